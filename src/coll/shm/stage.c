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

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* One meeting for `len` bytes; as_expected: we have what the other members expect. */
static weft_err meet(const struct weft_coll_group *g, enum weft_coll_kind kind, size_t len,
		     bool as_expected)
{
	weft_assert(len <= WEFT_COLL_SHM_PIECE);
	weft_coll_shm_note(g, kind, false);
	return weft_coll_shm_meet(g, as_expected ? weft_coll_what(kind, len) : 0);
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
		len = least(block - off, WEFT_COLL_SHM_PIECE);
		if (as_expected)
			weft_data_pack(&mine, off, next_piece(g, g->rank), len);
		weft_err err = meet(g, a->kind, len, as_expected);
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
		len = least(block - off, most);
		char *out = next_piece(g, g->rank);
		for (size_t r = 0; r < n && as_expected; r++)
			weft_data_pack(&mine, r * block + off, out + r * most, len);
		weft_err err = meet(g, a->kind, len, as_expected);
		if (err)
			return err;
		take_blocks(g, a, (size_t)g->rank * most, off, len);
	}
	return WEFT_OK;
}

/* Combines this member's share of what all have shown, n elements of `size` bytes from element
 * `lo` on, from the last rank to the first, as reduce.c does. */
static void combine(const struct weft_coll_group *g, weft_reduce_fn *fn, char *acc, size_t lo,
		    size_t n, size_t size)
{
	memcpy(acc, shown_piece(g, g->size - 1) + lo * size, n * size);
	for (int r = g->size - 2; r >= 0; r--)
		fn(shown_piece(g, r) + lo * size, acc, n);
}

/* Of `count` elements in pieces: each shows its own, combines its share, shows that, and takes all
 * shares. */
static weft_err allreduce_piece(const struct weft_coll_group *g, const struct weft_coll_args *a,
				const char *from, char *to, size_t count)
{
	size_t size = a->rtype->size, n = (size_t)g->size, me = (size_t)g->rank;
	size_t lo = count * me / n, hi = count * (me + 1) / n;
	memcpy(next_piece(g, g->rank), from, count * size);
	weft_err err = meet(g, a->kind, count * size, true);
	if (err)
		return err;
	if (hi > lo)
		combine(g, a->op.fn, next_piece(g, g->rank), lo, hi - lo, size);
	err = meet(g, a->kind, count * size, true);
	for (size_t r = 0; r < n && !err; r++) {
		lo = count * r / n;
		hi = count * (r + 1) / n;
		memcpy(to + lo * size, shown_piece(g, (int)r), (hi - lo) * size);
	}
	return err;
}

weft_err weft_coll_stage_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t size = a->rtype->size, most = WEFT_COLL_SHM_PIECE / size, count;
	weft_assert(size && most);
	const char *from = a->in_place ? a->rbuf : a->sbuf;
	weft_err err = WEFT_OK;
	weft_count(WEFT_CNT_COLL_STAGES, 1);
	for (size_t at = 0; at < a->rcount && !err; at += count) {
		count = least(a->rcount - at, most);
		err = allreduce_piece(g, a, from + at * size, (char *)a->rbuf + at * size, count);
	}
	return err;
}
