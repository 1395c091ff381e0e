/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage.c - allgather, alltoall and allreduce of what is too large for the ring: piece by piece
 * through memory that each member shows to all.
 *
 * By messages each pair of ranks needs turns on a core.  Here each member puts a piece of what it
 * gives on its stage, all meet in the ring, and each takes what it needs from the other stages.  A
 * piece is written by one core while it is in its cache, and mostly read from there.
 *
 * A stage has two pieces; which one is written before a meeting, and how long it is read, is the
 * rule of the ring's areas (ring.h).
 */
#include <string.h>

#include "base/counters.h"
#include "coll/shm/group.h"

/* Member r's stage as it is written before the next meeting. */
static char *next_piece(const struct weft_coll_group *g, int r)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	weft_assert(s->have & WEFT_COLL_SHM_STAGE && r == g->rank); /* its own alone */
	return s->stage[r]->piece[s->meets & 1];
}

/* And as it was written before the last one. */
static const char *shown_piece(const struct weft_coll_group *g, int r)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	weft_assert(s->have & WEFT_COLL_SHM_STAGE && r >= 0 && r < g->size && s->meets);
	return s->stage[r]->piece[!(s->meets & 1)];
}

static size_t least_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* One meeting for `len` bytes; as_expected: we have what the other members expect. */
static weft_err meet_for_piece(const struct weft_coll_group *g, enum weft_coll_kind kind,
			       size_t len, bool as_expected)
{
	weft_assert(len <= WEFT_COLL_SHM_PIECE);
	weft_coll_shm_note(g, kind, false);
	return weft_coll_shm_sync(g, as_expected ? weft_coll_what(kind, len) : 0);
}

/* The blocks that lie in each piece from byte `at` on, of `len` bytes, go to their places. */
static void take_blocks(const struct weft_coll_group *g, const struct weft_coll_args *a, size_t at,
			size_t off, size_t len)
{
	/* Each begins with its own, so that not all read from one. */
	for (int k = 0; k < g->size; k++) {
		int r = (g->rank + k) % g->size;
		struct weft_buf to = weft_coll_view_buf(weft_coll_args_rblock(a, r));
		if (k || !a->in_place)
			weft_data_unpack(&to, off, shown_piece(g, r) + at, len);
	}
}

weft_err weft_coll_stage_allgather(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct weft_buf mine = weft_coll_given(g, a);
	size_t block = a->rcount * a->rtype->size, len;
	bool as_expected = mine.bytes == block;
	weft_count(WEFT_CNT_COLL_STAGES, 1);
	for (size_t off = 0; off < block; off += len) {
		len = least_of(block - off, WEFT_COLL_SHM_PIECE);
		if (as_expected)
			weft_data_pack(&mine, off, next_piece(g, g->rank), len);
		weft_err err = meet_for_piece(g, a->kind, len, as_expected);
		if (err)
			return err;
		take_blocks(g, a, 0, off, len);
	}
	return WEFT_OK;
}

weft_err weft_coll_stage_alltoall(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct weft_buf mine = weft_coll_given(g, a);
	size_t block = a->rcount * a->rtype->size, n = (size_t)g->size, len;
	size_t most = WEFT_COLL_SHM_PIECE / n & ~(size_t)(WEFT_CACHELINE - 1);
	weft_assert(most && g->size <= WEFT_COLL_RING_MEMBERS);
	bool as_expected = mine.bytes == block * n;
	weft_count(WEFT_CNT_COLL_STAGES, 1);
	for (size_t off = 0; off < block; off += len) {
		len = least_of(block - off, most);
		char *out = next_piece(g, g->rank);
		for (size_t r = 0; r < n && as_expected; r++)
			weft_data_pack(&mine, r * block + off, out + r * most, len);
		weft_err err = meet_for_piece(g, a->kind, len, as_expected);
		if (err)
			return err;
		take_blocks(g, a, (size_t)g->rank * most, off, len);
	}
	return WEFT_OK;
}

/* A piece of an allreduce: where it comes from and goes to, and its elements, of `size` bytes. */
struct part {
	const struct weft_coll_group *g;
	const char *from;
	char *to;
	size_t count, size;
};

/* The bytes before member r's share. */
static size_t share_at(const struct part *p, int r)
{
	return p->count * (size_t)r / (size_t)p->g->size * p->size;
}

/* What each other member combines, on our stage. */
static void show_shares(const struct part *p)
{
	int me = p->g->rank;
	size_t lo = share_at(p, me), hi = share_at(p, me + 1), end = share_at(p, p->g->size);
	char *out = next_piece(p->g, me);
	memcpy(out, p->from, lo);
	memcpy(out + hi, p->from + hi, end - hi);
}

/* With a core each, all members would read from the last one first, then from the one before it ...:
 * each has its cache begin with its neighbour. */
static void prefetch_share(const struct part *p, size_t lo, size_t hi)
{
	const struct weft_coll_group *g = p->g;
	if (g->crowded || g->size == 2)
		return;
	for (int k = 1; k < g->size; k++) {
		const char *in = shown_piece(g, (g->rank + k) % g->size);
		for (size_t at = lo & ~(size_t)(WEFT_CACHELINE - 1); at < hi; at += WEFT_CACHELINE)
			__builtin_prefetch(in + at);
	}
}

/* Combines this member's share of what all have shown, from the last rank to the first, as reduce.c
 * does. */
static void combine_share(const struct part *p, weft_reduce_fn *fn)
{
	const struct weft_coll_group *g = p->g;
	size_t lo = share_at(p, g->rank), hi = share_at(p, g->rank + 1);
	char *acc = next_piece(g, g->rank) + lo;
	prefetch_share(p, lo, hi);
	for (int r = g->size - 1; r >= 0 && hi > lo; r--) {
		const char *in = r == g->rank ? p->from : shown_piece(g, r);
		if (r == g->size - 1)
			memcpy(acc, in + lo, hi - lo);
		else
			fn(in + lo, acc, (hi - lo) / p->size);
	}
}

/* Each begins with its own. */
static void collect_shares(const struct part *p)
{
	const struct weft_coll_group *g = p->g;
	for (int k = 0; k < g->size; k++) {
		int r = (g->rank + k) % g->size;
		size_t lo = share_at(p, r), hi = share_at(p, r + 1);
		memcpy(p->to + lo, shown_piece(g, r) + lo, hi - lo);
	}
}

static weft_err allreduce_piece(const struct part *p, const struct weft_coll_args *a)
{
	const struct weft_coll_group *g = p->g;
	size_t len = p->count * p->size;
	show_shares(p);
	weft_err err = meet_for_piece(g, a->kind, len, true);
	if (err)
		return err;
	combine_share(p, a->op.fn);
	err = meet_for_piece(g, a->kind, len, true);
	if (!err)
		collect_shares(p);
	return err;
}

weft_err weft_coll_stage_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t size = a->rtype->size, most = WEFT_COLL_SHM_PIECE / size;
	weft_assert(size && most);
	struct part p = {
		.g = g, .from = a->in_place ? a->rbuf : a->sbuf, .to = a->rbuf, .size = size};
	weft_err err = WEFT_OK;
	weft_count(WEFT_CNT_COLL_STAGES, 1);
	for (size_t at = 0; at < a->rcount && !err; at += p.count) {
		p.count = least_of(a->rcount - at, most);
		err = allreduce_piece(&p, a);
		p.from += p.count * size;
		p.to += p.count * size;
	}
	return err;
}
