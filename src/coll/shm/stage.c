/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage.c - allgather, alltoall and allreduce of what is too large for a board, where many ranks
 * share few cores: piece by piece through memory that each member shows to all.
 *
 * By messages each pair of ranks needs turns on a core.  Here each member puts a piece of what it
 * gives on its stage, all meet on the board, and each takes what it needs from the others' stages.
 * A piece is written by one core while it is in its cache, and mostly read from there.
 *
 * Turns     a stage has two halves; which one is written before a turn, and how long it is read,
 *           is the rule of the board's area (board.h).
 * Owner     each process has a few stages.  A group gets one of each member's, by agreement, in its
 *           STAGE_FROM-th collective that could use one, and keeps them until it is freed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "coll/alg.h"
#include "coll/shm/board.h"
#include "coll/limits.h"

#define STAGE_FROM 2

enum { ASKED = 1000, NONE };

/* What a group keeps. */
struct weft_stages {
	unsigned state; /* calls so far; ASKED: stages are there; NONE: not for this group */
	int size;
	struct weft_board_stage *of[WEFT_BOARD_MEMBERS];
};

static struct weft_board_stage *stage_at(int owner, unsigned index)
{
	struct weft_board_memory *m = weft_comm_board(owner);
	return m && index < WEFT_BOARD_STAGES ? &m->stage[index] : NULL;
}

static void stage_give(struct weft_board_stage *s)
{
	/* GIVE -> TAKE (stage_take).  Carries: nobody of this group reads there any more. */
	atomic_store_explicit(&s->x_used, 0, memory_order_release);
}

/* One of our own: its number from 1 on; 0: none is free. */
static unsigned char stage_take(int self)
{
	for (unsigned i = 0; i < WEFT_BOARD_STAGES; i++) {
		struct weft_board_stage *s = stage_at(self, i);
		uint32_t none = 0;
		/* TAKE <- GIVE.  Carries: the reads of the last group are over. */
		if (s && atomic_compare_exchange_strong_explicit(
				 &s->x_used, &none, 1, memory_order_acquire, memory_order_relaxed))
			return (unsigned char)(i + 1);
	}
	return 0;
}

/* ---- agreement ---------------------------------------------------------------------------- */

/* Everybody tells everybody a byte; the group's turns on the board are over by then or fail. */
static weft_err tell(const struct weft_coll_group *g, enum weft_coll_kind kind, unsigned char mine,
		     unsigned char *all)
{
	struct weft_buf buf = weft_data_buf_flat(&mine, 1);
	weft_err err = weft_coll_board_show(g, kind, &buf, 1);
	for (int r = 0; r < g->size && !err; r++)
		all[r] = (unsigned char)*weft_coll_board_shown(g, r);
	return err;
}

/* Who has not exchanged a message with us does not show us its memory. */
static bool all_connected(const struct weft_coll_group *g)
{
	for (int r = 0; r < g->size; r++)
		if (!weft_comm_board(weft_coll_process(g, r)))
			return false;
	return true;
}

static bool all_yes(const unsigned char *all, int n)
{
	for (int r = 0; r < n; r++)
		if (!all[r])
			return false;
	return true;
}

static weft_err ask(const struct weft_coll_group *g, enum weft_coll_kind kind,
		    struct weft_stages *s)
{
	unsigned char all[WEFT_BOARD_MEMBERS];
	int self = weft_coll_process(g, g->rank);
	s->state = NONE;
	weft_err err = tell(g, kind, all_connected(g), all);
	if (!err && !all_yes(all, g->size))
		err = weft_coll_board_connect(g);
	if (err)
		return err;
	unsigned char mine = all_connected(g) ? stage_take(self) : 0;
	err = tell(g, kind, mine, all);
	bool good = !err && all_yes(all, g->size);
	for (int r = 0; r < g->size && good; r++)
		s->of[r] = stage_at(weft_coll_process(g, r), all[r] - 1u);
	for (int r = 0; r < g->size && good; r++)
		good = s->of[r] != NULL;
	if (good)
		s->state = ASKED;
	else if (mine)
		stage_give(stage_at(self, mine - 1u));
	return err;
}

bool weft_coll_stage_open(const struct weft_coll_group *g, enum weft_coll_kind kind,
			  weft_err *err_p)
{
	if (!weft_coll_board_open(g, err_p))
		return false;
	struct weft_stages **s_p = weft_coll_board_stages(g);
	if (weft_unlikely(!*s_p)) {
		*s_p = calloc(1, sizeof **s_p);
		if (!*s_p) {
			*err_p = WEFT_ERR_NOMEM;
			return false;
		}
		(*s_p)->size = g->size;
	}
	struct weft_stages *s = *s_p;
	if (weft_unlikely(s->state < ASKED) && s->state++ == STAGE_FROM) {
		weft_coll_board_note(g, kind);
		*err_p = ask(g, kind, s);
	}
	return s->state == ASKED;
}

void weft_coll_stages_free(struct weft_stages *s, bool last)
{
	/* Only the last member to leave knows that nobody reads any more. */
	for (int r = 0; s && last && s->state == ASKED && r < s->size; r++)
		stage_give(s->of[r]);
	free(s);
}

/* ---- use ---------------------------------------------------------------------------------- */

/* Member r's stage as it is written before the next turn. */
static char *ahead(const struct weft_coll_group *g, int r)
{
	return (*weft_coll_board_stages(g))->of[r]->half[weft_coll_board_parity(g)];
}

/* And as it was written before the last one. */
static char *behind(const struct weft_coll_group *g, int r)
{
	return (*weft_coll_board_stages(g))->of[r]->half[!weft_coll_board_parity(g)];
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* One turn for `len` bytes; good: we have what the others expect. */
static weft_err turn(const struct weft_coll_group *g, enum weft_coll_kind kind, size_t len,
		     bool good)
{
	weft_coll_board_note(g, kind);
	weft_err err =
		weft_coll_board_turn(g, good ? ((uint32_t)kind + 1) << 16 | (uint32_t)len : 0);
	return weft_unlikely(!err && !good) ? WEFT_ERR_TRUNC : err;
}

weft_err weft_coll_stage_exchange(const struct weft_coll_group *g, const struct weft_coll_args *a,
				  const struct weft_buf *mine)
{
	size_t block = weft_coll_view_bytes(weft_coll_args_rblock(a, 0)), n = (size_t)g->size;
	bool each = a->kind == WEFT_COLL_ALLTOALL; /* another block for each */
	size_t most = each ? WEFT_BOARD_STAGE_BYTES / n & ~(size_t)(WEFT_CACHELINE - 1)
			   : WEFT_BOARD_STAGE_BYTES;
	bool good = mine->bytes == (each ? block * n : block);
	weft_count(WEFT_CNT_COLL_STAGES, 1);
	for (size_t off = 0; off < block; off += most) {
		size_t len = least(block - off, most);
		char *out = ahead(g, g->rank);
		for (size_t r = 0; r < (each ? n : 1) && good; r++)
			weft_data_pack(mine, r * block + off, out + r * most, len);
		weft_err err = turn(g, a->kind, len, good);
		if (err)
			return err;
		for (int k = 0; k < g->size; k++) {
			int r = (g->rank + k) % g->size;
			struct weft_buf to = weft_coll_view_buf(weft_coll_args_rblock(a, r));
			if (k || !a->in_place)
				weft_data_unpack(&to, off,
						 behind(g, r) + (each ? (size_t)g->rank * most : 0),
						 len);
		}
	}
	return WEFT_OK;
}

/* Combines this member's share of what all have shown, n elements of `size` bytes from element
 * `lo` on, from the last rank to the first, as reduce.c does. */
static void combine(const struct weft_coll_group *g, weft_reduce_fn *fn, char *acc, size_t lo,
		    size_t n, size_t size)
{
	memcpy(acc, behind(g, g->size - 1) + lo * size, n * size);
	for (int r = g->size - 2; r >= 0; r--)
		fn(behind(g, r) + lo * size, acc, n);
}

weft_err weft_coll_stage_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t size = a->rtype->size, most = WEFT_BOARD_STAGE_BYTES / size;
	size_t n = (size_t)g->size, me = (size_t)g->rank;
	const char *from = a->in_place ? a->rbuf : a->sbuf;
	weft_count(WEFT_CNT_COLL_STAGES, 1);
	for (size_t off = 0; off < a->rcount; off += most) {
		size_t count = least(a->rcount - off, most);
		size_t lo = count * me / n, hi = count * (me + 1) / n;
		memcpy(ahead(g, g->rank), from + off * size, count * size);
		weft_err err = turn(g, a->kind, count * size, true);
		if (err)
			return err;
		if (hi > lo)
			combine(g, a->op.fn, ahead(g, g->rank), lo, hi - lo, size);
		err = turn(g, a->kind, count * size, true);
		if (err)
			return err;
		for (size_t r = 0; r < n; r++) {
			lo = count * r / n;
			hi = count * (r + 1) / n;
			memcpy((char *)a->rbuf + (off + lo) * size, behind(g, (int)r),
			       (hi - lo) * size);
		}
	}
	return WEFT_OK;
}
