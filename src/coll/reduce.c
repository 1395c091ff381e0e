/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.c - reduce, allreduce, reduce_scatter.
 *
 * All of them combine in rank order, so they serve operations that do not commute as well, and give
 * the same bits for the same number of ranks and the same sizes.
 */
#include "coll/alg.h"
#include "coll/limits.h"

/* a is to the left of b in rank order; returns the place of (a op b), which is b. */
static int combine(struct weft_coll *c, struct weft_view a, struct weft_view b, int after)
{
	return weft_sched_reduce(c, a.base, b.base, b.count, after);
}

static void swap(struct weft_view *a, struct weft_view *b)
{
	struct weft_view t = *a;
	*a = *b;
	*b = t;
}

/*
 * Combines n vectors that lie one behind the other in rank order, from the last to the first, each
 * as soon as it and all behind it are there.  got[r]: the step that brings vector r.
 */
static int combine_all(struct weft_coll *c, struct weft_view all, size_t count, const int *got,
		       int n, struct weft_view *acc_p)
{
	*acc_p = weft_view_part(all, (size_t)(n - 1) * count, count);
	int done = got[n - 1];
	for (int r = n - 2; r >= 0; r--) {
		int both = combine(c, weft_view_part(all, (size_t)r * count, count), *acc_p, done);
		weft_sched_after(c, both, got[r]);
		done = both;
	}
	return done;
}

/* The root receives all contributions and combines them from the last rank to the first. */
static int reduce_flat(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		       struct weft_view to, int root, int after)
{
	if (g->rank != root)
		return weft_alg_send(c, g, root, WEFT_TAG_UP, weft_view_buf(from), after);
	/* Contributions lie one behind the other. */
	struct weft_view all = weft_view_scratch(c, (size_t)g->size * from.count, from.t);
	int *got = weft_sched_scratch(c, (size_t)g->size * sizeof *got);
	if (c->err)
		return -1;
	for (int r = 0; r < g->size; r++) {
		struct weft_view part = weft_view_part(all, (size_t)r * from.count, from.count);
		got[r] = r == root ? weft_alg_copy(c, part, from, after)
				   : weft_alg_recv(c, g, r, WEFT_TAG_UP, weft_view_buf(part), -1);
	}
	struct weft_view acc;
	int done = combine_all(c, all, from.count, got, g->size, &acc);
	weft_sched_after(c, done, after);
	return weft_alg_copy(c, to, acc, done);
}

/* Binomial tree with rank 0 at the top, whose result goes on to the root. */
static int reduce_tree(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		       struct weft_view to, int root, int after)
{
	/* A commutative operation may as well count ranks from the root. */
	int top = c->op.commutative ? root : 0;
	int vr = (g->rank - top + g->size) % g->size;
	struct weft_view acc = weft_view_scratch(c, from.count, from.t);
	int done = weft_alg_copy(c, acc, from, after);
	for (int mask = 1; mask < g->size; mask <<= 1) {
		if (vr & mask) {
			done = weft_alg_send(c, g, (vr - mask + top) % g->size, WEFT_TAG_UP,
					     weft_view_buf(acc), done);
			break;
		}
		if (vr + mask >= g->size)
			continue;
		struct weft_view in = weft_view_scratch(c, from.count, from.t);
		int got = weft_alg_recv(c, g, (vr + mask + top) % g->size, WEFT_TAG_UP,
					weft_view_buf(in), -1);
		weft_sched_after(c, got, after);
		int both = combine(c, acc, in, got);
		weft_sched_after(c, both, done);
		done = both;
		swap(&acc, &in);
	}
	if (top == root)
		return g->rank == root ? weft_alg_copy(c, to, acc, done) : done;
	if (g->rank == top)
		return weft_alg_send(c, g, root, WEFT_TAG_DOWN, weft_view_buf(acc), done);
	if (g->rank == root) {
		int got = weft_alg_recv(c, g, top, WEFT_TAG_DOWN, weft_view_buf(to), done);
		return got;
	}
	return done;
}

/* The bounds of n even shares of count elements. */
static size_t *shares(struct weft_coll *c, size_t count, int n)
{
	size_t *at = weft_sched_scratch(c, ((size_t)n + 1) * sizeof *at);
	if (c->err)
		return NULL;
	for (int i = 0; i <= n; i++)
		at[i] = count / (size_t)n * (size_t)i +
			(count % (size_t)n * (size_t)i + (size_t)n - 1) / (size_t)n;
	return at;
}

int weft_alg_reduce_scatter(struct weft_coll *c, const struct weft_coll_group *g,
			    struct weft_view from, const size_t *at, struct weft_view to, int after)
{
	size_t mine = at[g->rank + 1] - at[g->rank];
	/* Everybody's contribution to my share, in rank order. */
	struct weft_view all = weft_view_scratch(c, (size_t)g->size * mine, from.t);
	int *got = weft_sched_scratch(c, (size_t)g->size * sizeof *got);
	if (c->err)
		return -1;
	/* Each starts with its left neighbour, so that no rank is everybody's first. */
	for (int k = 1; k < g->size && mine; k++) {
		int r = (g->rank - k + g->size) % g->size;
		got[r] = weft_alg_recv(c, g, r, WEFT_TAG_ACROSS,
				       weft_view_buf(weft_view_part(all, (size_t)r * mine, mine)),
				       after);
	}
	/* The result waits for our sends too, because `to` may be a part of `from`. */
	int sent = weft_sched_join(c);
	weft_sched_after(c, sent, after);
	for (int k = 1; k < g->size; k++) {
		int r = (g->rank + k) % g->size;
		if (at[r + 1] == at[r])
			continue;
		struct weft_view share = weft_view_part(from, at[r], at[r + 1] - at[r]);
		weft_sched_after(
			c, sent,
			weft_alg_send(c, g, r, WEFT_TAG_ACROSS, weft_view_buf(share), after));
	}
	if (!mine)
		return sent;
	got[g->rank] = weft_alg_copy(c, weft_view_part(all, (size_t)g->rank * mine, mine),
				     weft_view_part(from, at[g->rank], mine), after);
	struct weft_view acc;
	int done = weft_sched_join(c);
	weft_sched_after(c, done, combine_all(c, all, mine, got, g->size, &acc));
	weft_sched_after(c, done, sent);
	to.count = mine;
	return weft_alg_copy(c, to, acc, done);
}

/* Reduced in shares, which then are collected at the root. */
static int reduce_shares(struct weft_coll *c, const struct weft_coll_group *g,
			 struct weft_view from, struct weft_view to, int root, int after)
{
	size_t *at = shares(c, from.count, g->size);
	if (!at)
		return -1;
	size_t n = at[g->rank + 1] - at[g->rank];
	struct weft_view mine = weft_view_scratch(c, n, from.t);
	int done = weft_alg_reduce_scatter(c, g, from, at, mine, after);
	if (g->rank != root)
		return n ? weft_alg_send(c, g, root, WEFT_TAG_UP, weft_view_buf(mine), done) : done;
	int join = weft_sched_join(c);
	weft_sched_after(c, join, weft_alg_copy(c, weft_view_part(to, at[root], n), mine, done));
	for (int r = 0; r < g->size; r++) {
		struct weft_view part = weft_view_part(to, at[r], at[r + 1] - at[r]);
		/* After our own sends: `to` may be `from`. */
		if (r != root && part.count)
			weft_sched_after(
				c, join,
				weft_alg_recv(c, g, r, WEFT_TAG_UP, weft_view_buf(part), done));
	}
	return join;
}

static bool share_it(const struct weft_coll_group *g, struct weft_view v)
{
	return weft_view_bytes(v) >= weft_limit_reduce_share(g) && v.count >= (size_t)g->size;
}

static bool halve_it(const struct weft_coll_group *g, struct weft_view v)
{
	return weft_view_bytes(v) >= weft_limit_reduce_halving() && v.count >= (size_t)g->size;
}

bool weft_alg_reduce_flat(const struct weft_coll_group *g, size_t bytes)
{
	return g->crowded && g->size <= WEFT_LIMIT_FLAT_RANKS_CROWDED &&
	       bytes <= weft_limit_reduce_flat();
}

int weft_alg_reduce(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		    struct weft_view to, int root, int after)
{
	if (!weft_view_bytes(from))
		return after;
	if (g->size == 1)
		return weft_alg_copy(c, to, from, after);
	if (halve_it(g, from))
		return weft_alg_reduce_halving(c, g, from, to, root, after);
	if (share_it(g, from))
		return reduce_shares(c, g, from, to, root, after);
	if (weft_alg_reduce_flat(g, weft_view_bytes(from)))
		return reduce_flat(c, g, from, to, root, after);
	return reduce_tree(c, g, from, to, root, after);
}

/* Recursive doubling among a power of two of ranks.  Ranks beyond it fold into their right
 * neighbour first, which keeps every partial result a run of neighbouring ranks. */
static int allreduce_doubling(struct weft_coll *c, const struct weft_coll_group *g,
			      struct weft_view from, struct weft_view to, int after)
{
	int pow2 = 1;
	while (pow2 * 2 <= g->size)
		pow2 *= 2;
	int extra = g->size - pow2, me;
	struct weft_view acc = weft_view_scratch(c, from.count, from.t);
	struct weft_view in = weft_view_scratch(c, from.count, from.t);
	int done = weft_alg_copy(c, acc, from, after);
	if (g->rank < 2 * extra && g->rank % 2 == 0) {
		weft_alg_send(c, g, g->rank + 1, WEFT_TAG_FOLD, weft_view_buf(acc), done);
		int got =
			weft_alg_recv(c, g, g->rank + 1, WEFT_TAG_UNFOLD, weft_view_buf(to), done);
		return got;
	}
	if (g->rank < 2 * extra) {
		int got = weft_alg_recv(c, g, g->rank - 1, WEFT_TAG_FOLD, weft_view_buf(in), after);
		int both = combine(c, in, acc, got);
		weft_sched_after(c, both, done);
		done = both;
		me = g->rank / 2;
	} else {
		me = g->rank - extra;
	}
	for (int mask = 1; mask < pow2; mask <<= 1) {
		int other = me ^ mask;
		int r = other < extra ? 2 * other + 1 : other + extra;
		int got = weft_alg_recv(c, g, r, WEFT_TAG_ACROSS, weft_view_buf(in), done);
		int out = weft_alg_send(c, g, r, WEFT_TAG_ACROSS, weft_view_buf(acc), done);
		if (other > me) {
			done = combine(c, acc, in, got);
			/* acc is the next round's receive buffer. */
			weft_sched_after(c, done, out);
			swap(&acc, &in);
		} else {
			done = combine(c, in, acc, got);
			weft_sched_after(c, done, out);
		}
	}
	if (g->rank < 2 * extra)
		weft_alg_send(c, g, g->rank - 1, WEFT_TAG_UNFOLD, weft_view_buf(acc), done);
	return weft_alg_copy(c, to, acc, done);
}

static int allreduce_shares(struct weft_coll *c, const struct weft_coll_group *g,
			    struct weft_view from, struct weft_view to, int after)
{
	size_t *at = shares(c, from.count, g->size);
	struct weft_view *blocks = weft_sched_scratch(c, (size_t)g->size * sizeof *blocks);
	if (c->err)
		return -1;
	for (int r = 0; r < g->size; r++)
		blocks[r] = weft_view_part(to, at[r], at[r + 1] - at[r]);
	/* Straight into the place; the step waits for our sends out of `from`. */
	int done = weft_alg_reduce_scatter(c, g, from, at, blocks[g->rank], after);
	return weft_alg_allgather(c, g, NULL, blocks, done);
}

int weft_alg_allreduce(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		       struct weft_view to, int after)
{
	if (!weft_view_bytes(from))
		return after;
	if (g->size == 1)
		return weft_alg_copy(c, to, from, after);
	if (halve_it(g, from))
		return weft_alg_allreduce_halving(c, g, from, to, after);
	if (share_it(g, from))
		return allreduce_shares(c, g, from, to, after);
	if (weft_alg_reduce_flat(g, weft_view_bytes(from)))
		return weft_alg_bcast(c, g, to, 0, reduce_flat(c, g, from, to, 0, after));
	return allreduce_doubling(c, g, from, to, after);
}
