/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halving.c - long reductions by recursive halving (Rabenseifner): log2(ranks) exchanges, each of
 * half as much as the one before, leave every rank with its part of the result; as many exchanges
 * the other way collect the parts.
 *
 * Neighbours exchange first, so what a rank has combined is always a run of neighbouring ranks in
 * their order, and operations need not commute.  Ranks beyond a power of two fold into their right
 * neighbour before, as in recursive doubling.
 */
#include "coll/alg.h"

struct halves {
	const struct weft_coll_group *g;
	int pow2, extra;
	int me;        /* among the power of two; -1: folded into the right neighbour */
	size_t lo, hi; /* the part that is this rank's */
	struct weft_view acc;
	int done; /* acc's part is complete */
};

static void halves_init(struct halves *h, const struct weft_coll_group *g)
{
	*h = (struct halves){.g = g, .pow2 = 1};
	while (h->pow2 * 2 <= g->size)
		h->pow2 *= 2;
	h->extra = g->size - h->pow2;
}

/* The group's rank that is number i of the power of two. */
static int rank_of(const struct halves *h, int i)
{
	return i < h->extra ? 2 * i + 1 : i + h->extra;
}

static int number_of(const struct halves *h, int rank)
{
	if (rank >= 2 * h->extra)
		return rank - h->extra;
	return rank % 2 ? rank / 2 : -1;
}

/* Shrinks lo..hi to what number i keeps of it when it meets i ^ mask. */
static void keep_half(int i, int mask, size_t *lo, size_t *hi)
{
	size_t middle = *lo + (*hi - *lo) / 2;
	*(i & mask ? lo : hi) = middle;
}

static void part_of(const struct halves *h, int i, size_t count, size_t *lo, size_t *hi)
{
	*lo = 0;
	*hi = count;
	for (int mask = 1; mask < h->pow2; mask <<= 1)
		keep_half(i, mask, lo, hi);
}

static struct weft_view range(struct weft_view v, size_t lo, size_t hi)
{
	return weft_coll_view_part(v, lo, hi - lo);
}

/* Takes the left neighbour's contribution in, or gives ours to the right one. */
static void fold(struct weft_coll *c, struct halves *h, struct weft_view in, int after)
{
	const struct weft_coll_group *g = h->g;
	h->me = number_of(h, g->rank);
	if (g->rank >= 2 * h->extra)
		return;
	if (h->me < 0) {
		h->done = weft_coll_alg_send(c, g, g->rank + 1, WEFT_TAG_FOLD,
					     weft_coll_view_buf(h->acc), h->done);
		return;
	}
	int got =
		weft_coll_alg_recv(c, g, g->rank - 1, WEFT_TAG_FOLD, weft_coll_view_buf(in), after);
	int both = weft_coll_sched_reduce(c, in.base, h->acc.base, in.count, got);
	weft_coll_sched_after(c, both, h->done);
	h->done = both;
}

/*
 * One exchange: the partner gets the half that it keeps, we get our half of its and combine.  What
 * is received over was sent or combined in an earlier round only where this round does not reach.
 */
static void exchange(struct weft_coll *c, struct halves *h, struct weft_view *in, int mask)
{
	const struct weft_coll_group *g = h->g;
	int other = h->me ^ mask, r = rank_of(h, other);
	size_t lo = h->lo, hi = h->hi;
	keep_half(other, mask, &lo, &hi);
	keep_half(h->me, mask, &h->lo, &h->hi);
	struct weft_view mine = range(h->acc, h->lo, h->hi), theirs = range(*in, h->lo, h->hi);
	int got = weft_coll_alg_recv(c, g, r, WEFT_TAG_ACROSS, weft_coll_view_buf(theirs), h->done);
	weft_coll_alg_send(c, g, r, WEFT_TAG_ACROSS, weft_coll_view_buf(range(h->acc, lo, hi)),
			   h->done);
	if (other < h->me) {
		h->done = weft_coll_sched_reduce(c, theirs.base, mine.base, mine.count, got);
		return;
	}
	h->done = weft_coll_sched_reduce(c, mine.base, theirs.base, mine.count, got);
	struct weft_view t = h->acc;
	h->acc = *in;
	*in = t;
}

/* Reduces; afterwards acc holds the result from lo to hi. */
static void halve(struct weft_coll *c, struct halves *h, struct weft_view from, int after)
{
	struct weft_view in = weft_coll_view_scratch(c, from.count, from.t);
	h->acc = weft_coll_view_scratch(c, from.count, from.t);
	h->done = weft_coll_alg_copy(c, h->acc, from, after);
	h->hi = from.count;
	fold(c, h, in, after);
	for (int mask = 1; h->me >= 0 && mask < h->pow2; mask <<= 1)
		exchange(c, h, &in, mask);
}

int weft_coll_alg_allreduce_halving(struct weft_coll *c, const struct weft_coll_group *g,
				    struct weft_view from, struct weft_view to, int after)
{
	struct halves h;
	halves_init(&h, g);
	halve(c, &h, from, after);
	if (h.me < 0)
		return weft_coll_alg_recv(c, g, g->rank + 1, WEFT_TAG_UNFOLD,
					  weft_coll_view_buf(to), h.done);
	int join = weft_coll_sched_join(c);
	int done = weft_coll_alg_copy(c, range(to, h.lo, h.hi), range(h.acc, h.lo, h.hi), h.done);
	/* The way back: before the exchange with me ^ mask both parts lie in one range. */
	for (int mask = h.pow2 >> 1; mask; mask >>= 1) {
		int r = rank_of(&h, h.me ^ mask);
		size_t lo = 0, hi = from.count;
		for (int m = 1; m < mask; m <<= 1)
			keep_half(h.me, m, &lo, &hi);
		size_t mine_lo = lo, mine_hi = hi, other_lo = lo, other_hi = hi;
		keep_half(h.me, mask, &mine_lo, &mine_hi);
		keep_half(h.me ^ mask, mask, &other_lo, &other_hi);
		int got = weft_coll_alg_recv(c, g, r, WEFT_TAG_SPREAD,
					     weft_coll_view_buf(range(to, other_lo, other_hi)),
					     h.done);
		weft_coll_sched_after(
			c, join,
			weft_coll_alg_send(c, g, r, WEFT_TAG_SPREAD,
					   weft_coll_view_buf(range(to, mine_lo, mine_hi)), done));
		int both = weft_coll_sched_join(c);
		weft_coll_sched_after(c, both, done);
		weft_coll_sched_after(c, both, got);
		done = both;
	}
	if (g->rank < 2 * h.extra)
		weft_coll_sched_after(c, join,
				      weft_coll_alg_send(c, g, g->rank - 1, WEFT_TAG_UNFOLD,
							 weft_coll_view_buf(to), done));
	weft_coll_sched_after(c, join, done);
	return join;
}

int weft_coll_alg_reduce_halving(struct weft_coll *c, const struct weft_coll_group *g,
				 struct weft_view from, struct weft_view to, int root, int after)
{
	struct halves h;
	halves_init(&h, g);
	halve(c, &h, from, after);
	if (g->rank != root) {
		if (h.me < 0)
			return h.done;
		return weft_coll_alg_send(c, g, root, WEFT_TAG_UP,
					  weft_coll_view_buf(range(h.acc, h.lo, h.hi)), h.done);
	}
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, h.done);
	if (h.me >= 0)
		weft_coll_sched_after(c, join,
				      weft_coll_alg_copy(c, range(to, h.lo, h.hi),
							 range(h.acc, h.lo, h.hi), h.done));
	for (int i = 0; i < h.pow2; i++) {
		size_t lo, hi;
		part_of(&h, i, from.count, &lo, &hi);
		/* After our own copy: `to` may be `from`. */
		if (i != h.me)
			weft_coll_sched_after(
				c, join,
				weft_coll_alg_recv(c, g, rank_of(&h, i), WEFT_TAG_UP,
						   weft_coll_view_buf(range(to, lo, hi)), h.done));
	}
	return join;
}
