/* SPDX-License-Identifier: BSD-3-Clause */
/* bcast.c - barrier and broadcast. */
#include "coll/alg.h"
#include "coll/limits.h"

bool weft_coll_alg_flat(const struct weft_coll_group *g)
{
	return g->size <= (g->crowded ? WEFT_LIMIT_FLAT_RANKS_CROWDED : WEFT_LIMIT_FLAT_RANKS);
}

static const struct weft_buf nothing;

/* The binomial tree below vr, ranks counted from the root: children are vr + mask for the masks
 * below vr's lowest bit. */
static int lowest_bit(int vr, int size)
{
	int mask = 1;
	while (mask < size && !(vr & mask))
		mask <<= 1;
	return mask;
}

int weft_coll_alg_signal_up(struct weft_coll *c, const struct weft_coll_group *g, int after)
{
	int top = weft_coll_alg_flat(g) ? g->size : 0;
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, after);
	if (top && !g->rank) {
		for (int r = 1; r < top; r++)
			weft_coll_sched_after(
				c, join, weft_coll_alg_recv(c, g, r, WEFT_TAG_UP, nothing, -1));
		return join;
	}
	if (top)
		return weft_coll_alg_send(c, g, 0, WEFT_TAG_UP, nothing, after);
	int low = lowest_bit(g->rank, g->size);
	for (int mask = 1; mask < low && g->rank + mask < g->size; mask <<= 1)
		weft_coll_sched_after(
			c, join,
			weft_coll_alg_recv(c, g, g->rank + mask, WEFT_TAG_UP, nothing, -1));
	if (!g->rank)
		return join;
	return weft_coll_alg_send(c, g, g->rank - low, WEFT_TAG_UP, nothing, join);
}

/* Sends buf down from root along a tree. */
static int tree_down(struct weft_coll *c, const struct weft_coll_group *g, struct weft_buf buf,
		     int root, int after)
{
	int vr = (g->rank - root + g->size) % g->size, done = after;
	weft_assert(root >= 0 && root < g->size);
	if (weft_coll_alg_flat(g)) {
		if (vr)
			return weft_coll_alg_recv(c, g, root, WEFT_TAG_DOWN, buf, after);
		int join = weft_coll_sched_join(c);
		weft_coll_sched_after(c, join, after);
		for (int i = 1; i < g->size; i++)
			weft_coll_sched_after(c, join,
					      weft_coll_alg_send(c, g, (root + i) % g->size,
								 WEFT_TAG_DOWN, buf, after));
		return join;
	}
	int low = lowest_bit(vr, g->size);
	if (vr)
		done = weft_coll_alg_recv(c, g, (vr - low + root) % g->size, WEFT_TAG_DOWN, buf,
					  after);
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, done);
	/* The largest subtree first: it has the longest way to go. */
	for (int mask = low >> 1; mask; mask >>= 1)
		if (vr + mask < g->size)
			weft_coll_sched_after(c, join,
					      weft_coll_alg_send(c, g, (vr + mask + root) % g->size,
								 WEFT_TAG_DOWN, buf, done));
	return join;
}

int weft_coll_alg_signal_down(struct weft_coll *c, const struct weft_coll_group *g, int after)
{
	return tree_down(c, g, nothing, 0, after);
}

int weft_coll_alg_barrier(struct weft_coll *c, const struct weft_coll_group *g, int after)
{
	if (g->crowded) {
		/* Two wake-ups for most ranks' worth of work on one core, not log2 of them each. */
		return weft_coll_alg_signal_down(c, g, weft_coll_alg_signal_up(c, g, after));
	}
	for (int step = 1, tag = 0; step < g->size; step <<= 1, tag++) {
		int join = weft_coll_sched_join(c);
		int to = (g->rank + step) % g->size;
		int from = (g->rank - step + g->size) % g->size;
		/* One tag serves all rounds: each round has another pair of ranks. */
		weft_coll_sched_after(c, join,
				      weft_coll_alg_recv(c, g, from, WEFT_TAG_ACROSS, nothing, -1));
		weft_coll_sched_after(
			c, join, weft_coll_alg_send(c, g, to, WEFT_TAG_ACROSS, nothing, after));
		weft_coll_sched_after(c, join, after);
		after = join;
	}
	return after;
}

/* Block i of bytes cut into n parts. */
static struct weft_buf nth_part(char *base, size_t bytes, int i, int n)
{
	size_t each = (bytes + (size_t)n - 1) / (size_t)n;
	each = weft_align_up(each, 64);
	size_t lo = each * (size_t)i < bytes ? each * (size_t)i : bytes;
	size_t hi = lo + each < bytes ? lo + each : bytes;
	return weft_data_buf_flat(base + lo, hi - lo);
}

/* Scatter from the root, then each passes its part round the ring. */
static int split_down(struct weft_coll *c, const struct weft_coll_group *g, char *base,
		      size_t bytes, int root, int after)
{
	int vr = (g->rank - root + g->size) % g->size;
	int have = after, join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, after);
	if (!vr) {
		for (int i = 1; i < g->size; i++)
			weft_coll_sched_after(
				c, join,
				weft_coll_alg_send(c, g, (root + i) % g->size, WEFT_TAG_DOWN,
						   nth_part(base, bytes, i, g->size), after));
	} else {
		have = weft_coll_alg_recv(c, g, root, WEFT_TAG_DOWN,
					  nth_part(base, bytes, vr, g->size), after);
		weft_coll_sched_after(c, join, have);
	}
	int right = (g->rank + 1) % g->size, left = (g->rank - 1 + g->size) % g->size;
	/* The root needs nothing, so its left neighbour sends nothing on; vr - 1 sends on to vr only. */
	for (int k = 0; k < g->size - 1; k++) {
		int out = (vr - k + g->size) % g->size, in = (out - 1 + g->size) % g->size;
		if (vr != g->size - 1)
			weft_coll_sched_after(
				c, join,
				weft_coll_alg_send(c, g, right, WEFT_TAG_SPREAD,
						   nth_part(base, bytes, out, g->size), have));
		if (vr) {
			have = weft_coll_alg_recv(c, g, left, WEFT_TAG_SPREAD,
						  nth_part(base, bytes, in, g->size), have);
			weft_coll_sched_after(c, join, have);
		}
	}
	return join;
}

int weft_coll_alg_bcast(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view v,
			int root, int after)
{
	size_t bytes = weft_coll_view_bytes(v);
	if (g->size == 1 || !bytes)
		return after;
	if (bytes < weft_coll_limit_bcast_split() || g->size < 3)
		return tree_down(c, g, weft_coll_view_buf(v), root, after);
	if (v.t->flat)
		return split_down(c, g, v.base + v.t->true_lb, bytes, root, after);
	char *flat_copy = weft_coll_sched_scratch(c, bytes);
	struct weft_buf copy = weft_data_buf_flat(flat_copy, bytes);
	if (g->rank == root)
		after = weft_coll_sched_copy(c, copy, weft_coll_view_buf(v), after);
	after = split_down(c, g, flat_copy, bytes, root, after);
	if (g->rank != root)
		after = weft_coll_sched_copy(c, weft_coll_view_buf(v), copy, after);
	return after;
}
