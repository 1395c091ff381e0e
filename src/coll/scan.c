/* SPDX-License-Identifier: BSD-3-Clause */
/* scan.c - prefix reductions by recursive doubling; in rank order, so operations need not commute.
 */
#include "coll/alg.h"

/*
 * `sum` is the combination of the 2^k ranks around us that round k has brought together, `left`
 * that of all ranks below us among them.  Rounds whose partner is to the right only widen sum.
 */
int weft_coll_alg_scan(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		       struct weft_view to, bool exclusive)
{
	if (!weft_coll_view_bytes(from))
		return -1;
	struct weft_view sum = weft_coll_view_scratch(c, from.count, from.t);
	struct weft_view in = weft_coll_view_scratch(c, from.count, from.t);
	struct weft_view left = weft_coll_view_scratch(c, from.count, from.t);
	bool have_left = false;
	int done = weft_coll_alg_copy(c, sum, from, -1), left_done = -1;
	for (int mask = 1; mask < g->size; mask <<= 1) {
		int r = g->rank ^ mask;
		if (r >= g->size)
			continue;
		int got =
			weft_coll_alg_recv(c, g, r, WEFT_TAG_ACROSS, weft_coll_view_buf(in), done);
		int out =
			weft_coll_alg_send(c, g, r, WEFT_TAG_ACROSS, weft_coll_view_buf(sum), done);
		weft_coll_sched_after(c, got, left_done);
		if (r > g->rank) {
			/* sum = sum op in; computed into in. */
			done = weft_coll_sched_reduce(c, sum.base, in.base, in.count, got);
			weft_coll_sched_after(c, done, out);
			struct weft_view t = sum;
			sum = in;
			in = t;
			continue;
		}
		int l = have_left ? weft_coll_sched_reduce(c, in.base, left.base, left.count, got)
				  : weft_coll_alg_copy(c, left, in, got);
		weft_coll_sched_after(c, l, left_done);
		have_left = true;
		left_done = l;
		done = weft_coll_sched_reduce(c, in.base, sum.base, sum.count, got);
		weft_coll_sched_after(c, done, out);
		/* The next round overwrites in. */
		weft_coll_sched_after(c, done, l);
	}
	if (exclusive)
		return have_left ? weft_coll_alg_copy(c, to, left, left_done) : left_done;
	if (!have_left)
		return weft_coll_alg_copy(c, to, from, -1);
	/* Inclusive: left op own, computed into a copy of our own contribution. */
	struct weft_view own = weft_coll_view_scratch(c, from.count, from.t);
	int copied = weft_coll_alg_copy(c, own, from, -1);
	int both = weft_coll_sched_reduce(c, left.base, own.base, own.count, left_done);
	weft_coll_sched_after(c, both, copied);
	return weft_coll_alg_copy(c, to, own, both);
}
