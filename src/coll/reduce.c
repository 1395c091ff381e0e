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
static int add_combine(struct weft_coll *c, struct weft_view a, struct weft_view b, int after)
{
	return weft_coll_sched_reduce(c, a.base, b.base, b.count, after);
}

static void swap_views(struct weft_view *a, struct weft_view *b)
{
	struct weft_view t = *a;
	*a = *b;
	*b = t;
}

/* Do they share no byte? */
static bool views_disjoint(struct weft_view a, struct weft_view b)
{
	ptrdiff_t at_a, at_b;
	size_t len_a = weft_data_type_span(a.t, a.count, &at_a);
	size_t len_b = weft_data_type_span(b.t, b.count, &at_b);
	uintptr_t lo_a = (uintptr_t)a.base + (uintptr_t)at_a;
	uintptr_t lo_b = (uintptr_t)b.base + (uintptr_t)at_b;
	return lo_a + len_a <= lo_b || lo_b + len_b <= lo_a;
}

/*
 * Rank by rank what is combined, of n vectors: own is used where it lies, each other one gets a place.
 * The last one becomes the result; that is `to` right away if what lies there is not needed.
 * own_p: the step after which own may be read.
 */
static struct weft_view *reduce_places(struct weft_coll *c, struct weft_view own, int me, int n,
				       struct weft_view to, bool to_is_free, int *own_p)
{
	struct weft_view *part = weft_coll_sched_scratch(c, (size_t)n * sizeof *part);
	if (c->err)
		return NULL;
	for (int r = 0; r < n; r++) {
		part[r] = r == me && r < n - 1       ? own
			  : r == n - 1 && to_is_free ? to
						     : weft_coll_view_scratch(c, own.count, own.t);
	}
	if (me == n - 1)
		*own_p = weft_coll_alg_copy(c, part[me], own, *own_p);
	return part;
}

/*
 * Combines n vectors in rank order, from the last to the first, each as soon as it and all behind
 * it are there, into the last one.  got[r]: the step that brings vector r.
 */
static int combine_all(struct weft_coll *c, const struct weft_view *part, const int *got, int n)
{
	int done = got[n - 1];
	for (int r = n - 2; r >= 0; r--) {
		int both = add_combine(c, part[r], part[n - 1], done);
		weft_coll_sched_after(c, both, got[r]);
		done = both;
	}
	return done;
}

/* The root receives all contributions and combines them from the last rank to the first. */
static int reduce_flat(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		       struct weft_view to, int root, int after)
{
	if (g->rank != root)
		return weft_coll_alg_send(c, g, root, WEFT_TAG_UP, weft_coll_view_buf(from), after);
	int *got = weft_coll_sched_scratch(c, (size_t)g->size * sizeof *got);
	int own = after;
	struct weft_view *part =
		reduce_places(c, from, root, g->size, to, views_disjoint(to, from), &own);
	if (!part)
		return -1;
	for (int r = 0; r < g->size; r++)
		got[r] = r == root ? own
				   : weft_coll_alg_recv(c, g, r, WEFT_TAG_UP,
							weft_coll_view_buf(part[r]), after);
	int done = combine_all(c, part, got, g->size);
	return weft_coll_alg_copy(c, to, part[g->size - 1], done);
}

/* The last rank that vr receives from in a binomial tree, less vr; 0: it only sends. */
static int last_child(int vr, int size)
{
	int last = 0;
	for (int mask = 1; mask < size && !(vr & mask); mask <<= 1)
		if (vr + mask < size)
			last = mask;
	return last;
}

/* Binomial tree with rank 0 at the top, whose result goes on to the root. */
static int reduce_tree(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		       struct weft_view to, int root, int after)
{
	/* A commutative operation may as well count ranks from the root. */
	int top = c->op.commutative ? root : 0;
	int vr = (g->rank - top + g->size) % g->size;
	int last = last_child(vr, g->size), done = after;
	/* What comes last may come to the result's place, unless our own is still there. */
	bool straight = g->rank == root && !vr && (to.base != from.base || last > 1);
	struct weft_view acc = from;
	for (int mask = 1; mask <= last; mask <<= 1) {
		if (vr + mask >= g->size)
			continue;
		struct weft_view in = mask == last && straight
					      ? to
					      : weft_coll_view_scratch(c, from.count, from.t);
		/* Our own is read by the first of them. */
		int got = weft_coll_alg_recv(c, g, (vr + mask + top) % g->size, WEFT_TAG_UP,
					     weft_coll_view_buf(in),
					     in.base == from.base ? done : after);
		int both = add_combine(c, acc, in, got);
		weft_coll_sched_after(c, both, done);
		done = both;
		acc = in;
	}
	if (vr)
		done = weft_coll_alg_send(c, g, (vr - (vr & -vr) + top) % g->size, WEFT_TAG_UP,
					  weft_coll_view_buf(acc), done);
	if (top == root)
		return g->rank == root ? weft_coll_alg_copy(c, to, acc, done) : done;
	if (g->rank == top)
		return weft_coll_alg_send(c, g, root, WEFT_TAG_DOWN, weft_coll_view_buf(acc), done);
	if (g->rank == root) {
		int got =
			weft_coll_alg_recv(c, g, top, WEFT_TAG_DOWN, weft_coll_view_buf(to), done);
		return got;
	}
	return done;
}

/* The bounds of n even shares of count elements. */
static size_t *even_shares(struct weft_coll *c, size_t count, int n)
{
	size_t *at = weft_coll_sched_scratch(c, ((size_t)n + 1) * sizeof *at);
	if (c->err)
		return NULL;
	for (int i = 0; i <= n; i++)
		at[i] = count / (size_t)n * (size_t)i +
			(count % (size_t)n * (size_t)i + (size_t)n - 1) / (size_t)n;
	return at;
}

int weft_coll_alg_reduce_scatter(struct weft_coll *c, const struct weft_coll_group *g,
				 struct weft_view from, const size_t *at, struct weft_view to,
				 int after)
{
	size_t mine = at[g->rank + 1] - at[g->rank];
	struct weft_view own = weft_coll_view_part(from, at[g->rank], mine);
	int *got = weft_coll_sched_scratch(c, (size_t)g->size * sizeof *got);
	/* All contributions to my share. */
	struct weft_view *part = NULL;
	to.count = mine;
	if (mine) {
		got[g->rank] = after;
		part = reduce_places(c, own, g->rank, g->size, to,
				     views_disjoint(to, weft_coll_view_part(from, 0, at[g->size])),
				     &got[g->rank]);
		if (!part)
			return -1;
	}
	/* Each starts with its left neighbour, so that no rank is the first of all. */
	for (int k = 1; k < g->size && mine; k++) {
		int r = (g->rank - k + g->size) % g->size;
		got[r] = weft_coll_alg_recv(c, g, r, WEFT_TAG_ACROSS, weft_coll_view_buf(part[r]),
					    after);
	}
	/* The result waits for our sends too, because `to` may be a part of `from`. */
	int sent = weft_coll_sched_join(c);
	weft_coll_sched_after(c, sent, after);
	for (int k = 1; k < g->size; k++) {
		int r = (g->rank + k) % g->size;
		if (at[r + 1] == at[r])
			continue;
		struct weft_view share = weft_coll_view_part(from, at[r], at[r + 1] - at[r]);
		weft_coll_sched_after(c, sent,
				      weft_coll_alg_send(c, g, r, WEFT_TAG_ACROSS,
							 weft_coll_view_buf(share), after));
	}
	if (!mine)
		return sent;
	int done = weft_coll_sched_join(c);
	weft_coll_sched_after(c, done, combine_all(c, part, got, g->size));
	weft_coll_sched_after(c, done, sent);
	return weft_coll_alg_copy(c, to, part[g->size - 1], done);
}

/* Reduced in shares, which then are collected at the root. */
static int reduce_shares(struct weft_coll *c, const struct weft_coll_group *g,
			 struct weft_view from, struct weft_view to, int root, int after)
{
	size_t *at = even_shares(c, from.count, g->size);
	if (!at)
		return -1;
	size_t n = at[g->rank + 1] - at[g->rank];
	struct weft_view mine = g->rank == root ? weft_coll_view_part(to, at[root], n)
						: weft_coll_view_scratch(c, n, from.t);
	int done = weft_coll_alg_reduce_scatter(c, g, from, at, mine, after);
	if (g->rank != root)
		return n ? weft_coll_alg_send(c, g, root, WEFT_TAG_UP, weft_coll_view_buf(mine),
					      done)
			 : done;
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, done);
	for (int r = 0; r < g->size; r++) {
		struct weft_view part = weft_coll_view_part(to, at[r], at[r + 1] - at[r]);
		/* After our own sends: `to` may be `from`. */
		if (r != root && part.count)
			weft_coll_sched_after(c, join,
					      weft_coll_alg_recv(c, g, r, WEFT_TAG_UP,
								 weft_coll_view_buf(part), done));
	}
	return join;
}

static bool takes_shares(const struct weft_coll_group *g, struct weft_view v)
{
	return weft_coll_view_bytes(v) >= weft_coll_limit_reduce_share(g) &&
	       v.count >= (size_t)g->size;
}

bool weft_coll_alg_reduce_flat(const struct weft_coll_group *g, size_t bytes)
{
	return g->crowded && g->size <= WEFT_LIMIT_FLAT_RANKS_CROWDED &&
	       bytes <= weft_coll_limit_reduce_flat();
}

int weft_coll_alg_reduce(struct weft_coll *c, const struct weft_coll_group *g,
			 struct weft_view from, struct weft_view to, int root, int after)
{
	weft_assert(from.count == to.count || g->rank != root);
	if (!weft_coll_view_bytes(from))
		return after;
	if (g->size == 1)
		return weft_coll_alg_copy(c, to, from, after);
	if (takes_shares(g, from) &&
	    (g->size > 2 || weft_coll_view_bytes(from) < WEFT_LIMIT_REDUCE_PAIR_BYTES))
		return reduce_shares(c, g, from, to, root, after);
	if (weft_coll_alg_reduce_flat(g, weft_coll_view_bytes(from)))
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
	struct weft_view acc = weft_coll_view_scratch(c, from.count, from.t);
	struct weft_view in = weft_coll_view_scratch(c, from.count, from.t);
	int done = weft_coll_alg_copy(c, acc, from, after);
	if (g->rank < 2 * extra && g->rank % 2 == 0) {
		weft_coll_alg_send(c, g, g->rank + 1, WEFT_TAG_FOLD, weft_coll_view_buf(acc), done);
		int got = weft_coll_alg_recv(c, g, g->rank + 1, WEFT_TAG_UNFOLD,
					     weft_coll_view_buf(to), done);
		return got;
	}
	if (g->rank < 2 * extra) {
		int got = weft_coll_alg_recv(c, g, g->rank - 1, WEFT_TAG_FOLD,
					     weft_coll_view_buf(in), after);
		int both = add_combine(c, in, acc, got);
		weft_coll_sched_after(c, both, done);
		done = both;
		me = g->rank / 2;
	} else {
		me = g->rank - extra;
	}
	for (int mask = 1; mask < pow2; mask <<= 1) {
		int other = me ^ mask;
		int r = other < extra ? 2 * other + 1 : other + extra;
		int got =
			weft_coll_alg_recv(c, g, r, WEFT_TAG_ACROSS, weft_coll_view_buf(in), done);
		int out =
			weft_coll_alg_send(c, g, r, WEFT_TAG_ACROSS, weft_coll_view_buf(acc), done);
		if (other > me) {
			done = add_combine(c, acc, in, got);
			/* acc is the next round's receive buffer. */
			weft_coll_sched_after(c, done, out);
			swap_views(&acc, &in);
		} else {
			done = add_combine(c, in, acc, got);
			weft_coll_sched_after(c, done, out);
		}
	}
	if (g->rank < 2 * extra)
		weft_coll_alg_send(c, g, g->rank - 1, WEFT_TAG_UNFOLD, weft_coll_view_buf(acc),
				   done);
	return weft_coll_alg_copy(c, to, acc, done);
}

static int allreduce_shares(struct weft_coll *c, const struct weft_coll_group *g,
			    struct weft_view from, struct weft_view to, int after)
{
	size_t *at = even_shares(c, from.count, g->size);
	struct weft_view *blocks = weft_coll_sched_scratch(c, (size_t)g->size * sizeof *blocks);
	if (c->err)
		return -1;
	for (int r = 0; r < g->size; r++)
		blocks[r] = weft_coll_view_part(to, at[r], at[r + 1] - at[r]);
	/* Straight into the place; the step waits for our sends out of `from`. */
	int done = weft_coll_alg_reduce_scatter(c, g, from, at, blocks[g->rank], after);
	return weft_coll_alg_allgather(c, g, NULL, blocks, done);
}

int weft_coll_alg_allreduce(struct weft_coll *c, const struct weft_coll_group *g,
			    struct weft_view from, struct weft_view to, int after)
{
	if (!weft_coll_view_bytes(from))
		return after;
	if (g->size == 1)
		return weft_coll_alg_copy(c, to, from, after);
	if (takes_shares(g, from))
		return allreduce_shares(c, g, from, to, after);
	if (weft_coll_alg_reduce_flat(g, weft_coll_view_bytes(from)))
		return weft_coll_alg_bcast(c, g, to, 0, reduce_flat(c, g, from, to, 0, after));
	return allreduce_doubling(c, g, from, to, after);
}
