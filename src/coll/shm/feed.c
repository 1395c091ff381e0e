/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * feed.c - small broadcast, scatter, reduce and gather where many ranks share few cores: turns of a
 * ring on the group's board (feed.h says how and why).
 */
#include <string.h>

#include "base/counters.h"
#include "coll/shm/board_int.h"
#include "coll/limits.h"

_Static_assert(WEFT_LIMIT_FED_BCAST_BYTES < 1 << 16, "what_of has room for it");

static uint32_t what_of(enum weft_coll_kind kind, size_t bytes)
{
	return ((uint32_t)kind + 1) << 16 | (uint32_t)bytes;
}

_Static_assert(WEFT_FEED_DATA < 1 << 9 && WEFT_COLL_KIND_COUNT < 1 << 7, "gave_of, too");

static uint16_t gave_of(enum weft_coll_kind kind, size_t bytes)
{
	return (uint16_t)(((unsigned)kind + 1) << 9 | (unsigned)bytes);
}

/* Does each collective of so many elements of a type take a turn?  The same answer on all members:
 * sizes match, whatever the types.  WEFT_AGAIN: by messages. */
static weft_err open_for(const struct weft_coll_group *g, size_t count, const struct weft_type *t,
			 size_t room, size_t *bytes_p)
{
	weft_err err = WEFT_OK;
	if (!g->crowded || !t->size || !count || count > room / t->size)
		return WEFT_AGAIN;
	if (!weft_coll_board_open(g, &err))
		return err ? err : WEFT_AGAIN;
	*bytes_p = count * t->size;
	return WEFT_OK;
}

static weft_err until(const struct weft_coll_group *g, _Atomic uint64_t *x_word, uint32_t number,
		      bool ahead)
{
	if (weft_likely(weft_coll_shared_word_over(x_word, number) &&
			!weft_coll_shared_word_failed(x_word)))
		return WEFT_OK;
	return weft_coll_board_wait_for(g, x_word, number, ahead);
}

/* Posts and wakes.  False: the group has given up. */
static bool post(const struct weft_coll_group *g, _Atomic uint64_t *x_word, uint32_t number)
{
	uint32_t sleepers;
	if (weft_unlikely(!weft_coll_shared_word_post(x_word, number, &sleepers))) {
		weft_coll_keep_of(g)->turn = WEFT_BOARD_FAILED;
		return false;
	}
	if (weft_unlikely(sleepers))
		weft_coll_board_wake(g, sleepers);
	return true;
}

static void pass(const struct weft_coll_group *g, struct weft_keep *k)
{
	struct weft_feed *f = &k->slot->feed;
	uint32_t next = weft_coll_feed_next(k->feed_turn);
	if (weft_coll_feed_pass(f, k->feed_turn, (unsigned)g->size))
		(void)post(g, &f->x_floor, next);
	k->feed_turn = next;
}

/* The group's feed; NULL: it has given up. */
static struct weft_feed *begin(const struct weft_coll_group *g, enum weft_coll_kind kind,
			       struct weft_keep *k)
{
	if (weft_unlikely(k->turn == WEFT_BOARD_FAILED))
		return NULL;
	weft_count(WEFT_CNT_COLL_FEEDS, 1);
	weft_coll_board_note_fed(g, kind);
	return &k->slot->feed;
}

/* ---- down ---------------------------------------------------------------------------------- */

/* What goes in one turn. */
struct part {
	uint32_t what;
	const struct weft_buf *buf; /* the root's, or where it goes */
	size_t off, len;            /* of buf */
	size_t at;                  /* in the place, for who reads */
	const struct weft_buf *own; /* the root's share, if it has one */
};

/* Another size, or another call, than the root's.  Ours and its own may take as many turns: then
 * we are still in step. */
static weft_err differs(const struct weft_coll_group *g, uint32_t mine, uint32_t roots)
{
	if ((mine & 0xffff) > WEFT_FEED_DATA || (roots & 0xffff) > WEFT_FEED_DATA)
		weft_coll_board_give_up(g, 0);
	return WEFT_ERR_TRUNC;
}

static weft_err hand_out(const struct weft_coll_group *g, const struct weft_coll_args *a,
			 const struct part *p)
{
	struct weft_keep *k = weft_coll_keep_of(g);
	struct weft_feed *f = begin(g, a->kind, k);
	if (weft_unlikely(!f))
		return WEFT_ERR_PEER;
	struct weft_feed_turn *t = weft_coll_feed_at(f, k->feed_turn);
	uint32_t next = weft_coll_feed_next(k->feed_down), what;
	bool here = g->rank == a->root;
	weft_err err = here ? until(g, &f->x_floor, weft_coll_feed_floor(k->feed_turn), true)
			    : until(g, &f->x_head, next, true);
	if (weft_unlikely(err))
		return err;
	if (here) {
		t->what = p->what;
		t->number = weft_coll_board_number(g);
		weft_data_pack(p->buf, p->off, t->data, p->len);
		if (p->own)
			weft_data_unpack(p->own, 0, t->data + p->at, p->own->bytes);
		if (weft_unlikely(!post(g, &f->x_head, next)))
			return WEFT_ERR_PEER;
	} else if (what = t->what, weft_likely(what == p->what)) {
		weft_data_unpack(p->buf, p->off, t->data + p->at, p->len);
	} else {
		err = differs(g, p->what, what);
	}
	k->feed_down = next;
	pass(g, k);
	return err;
}

/* As many turns as it takes. */
weft_err weft_coll_feed_bcast(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t bytes;
	weft_err err = open_for(g, a->rcount, a->rtype, WEFT_LIMIT_FED_BCAST_BYTES, &bytes);
	if (err)
		return err;
	struct weft_buf buf = weft_data_buf_typed(a->rbuf, a->rcount, a->rtype);
	struct part p = {.what = what_of(a->kind, bytes), .buf = &buf};
	for (; p.off < bytes && !err; p.off += p.len) {
		p.len = bytes - p.off < WEFT_FEED_DATA ? bytes - p.off : WEFT_FEED_DATA;
		err = hand_out(g, a, &p);
	}
	return err;
}

weft_err weft_coll_feed_scatter(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t n = (size_t)g->size, room = WEFT_FEED_DATA / n, block;
	bool here = g->rank == a->root;
	weft_err err = here ? open_for(g, a->scount, a->stype, room, &block)
			    : open_for(g, a->rcount, a->rtype, room, &block);
	if (err)
		return err;
	struct weft_buf own = {0}, all = {0};
	if (!here || !a->in_place)
		own = weft_data_buf_typed(a->rbuf, a->rcount, a->rtype);
	struct part p = {.what = what_of(a->kind, n * block),
			 .buf = &own,
			 .len = block,
			 .at = block * (size_t)g->rank};
	if (here) {
		all = weft_data_buf_typed(a->sbuf, n * a->scount, a->stype);
		p.buf = &all;
		p.len = n * block;
		if (own.bytes > block)
			own.bytes = block;
		p.own = a->in_place ? NULL : &own;
	}
	return hand_out(g, a, &p);
}

/* ---- up ------------------------------------------------------------------------------------ */

static char *given(const struct weft_coll_group *g, const struct weft_keep *k, int r)
{
	return weft_coll_feed_at(&k->slot->feed, k->feed_turn)->data +
	       (size_t)r * weft_coll_feed_share((unsigned)g->size);
}

static weft_err give(const struct weft_coll_group *g, const struct weft_coll_args *a,
		     const struct weft_buf *from, size_t bytes)
{
	struct weft_keep *k = weft_coll_keep_of(g);
	struct weft_feed *f = begin(g, a->kind, k);
	if (weft_unlikely(!f))
		return WEFT_ERR_PEER;
	struct weft_feed_turn *t = weft_coll_feed_at(f, k->feed_turn);
	weft_err err = until(g, &f->x_floor, weft_coll_feed_floor(k->feed_turn), true);
	if (weft_unlikely(err))
		return err;
	t->gave[g->rank] = gave_of(a->kind, bytes);
	weft_data_pack(from, 0, given(g, k, g->rank), bytes);
	uint32_t sleepers = weft_coll_feed_come(t, (unsigned)g->size - 1);
	if (weft_unlikely(sleepers))
		weft_coll_board_wake(g, sleepers);
	pass(g, k);
	return WEFT_OK;
}

/* The root: until all the others have given. */
static weft_err collect(const struct weft_coll_group *g, const struct weft_coll_args *a,
			size_t bytes)
{
	struct weft_keep *k = weft_coll_keep_of(g);
	struct weft_feed *f = begin(g, a->kind, k);
	if (weft_unlikely(!f))
		return WEFT_ERR_PEER;
	struct weft_feed_turn *t = weft_coll_feed_at(f, k->feed_turn);
	/* The place may still be another root's, which has not collected what we gave it. */
	weft_err err = until(g, &f->x_floor, weft_coll_feed_floor(k->feed_turn), true);
	/* Who has given may be far ahead. */
	if (weft_likely(!err))
		err = until(g, &t->x_came, (uint32_t)g->size - 1, false);
	for (int r = 0; r < g->size && !err; r++)
		if (r != g->rank && t->gave[r] != gave_of(a->kind, bytes))
			err = WEFT_ERR_TRUNC;
	return err;
}

/* And has read it. */
static void collected(const struct weft_coll_group *g)
{
	struct weft_keep *k = weft_coll_keep_of(g);
	if (weft_unlikely(k->turn == WEFT_BOARD_FAILED))
		return;
	weft_coll_feed_clear(weft_coll_feed_at(&k->slot->feed, k->feed_turn));
	pass(g, k);
}

weft_err weft_coll_feed_reduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t bytes;
	weft_err err =
		open_for(g, a->rcount, a->rtype, weft_coll_feed_share((unsigned)g->size), &bytes);
	if (err)
		return err;
	const void *mine = a->in_place ? a->rbuf : a->sbuf;
	struct weft_buf from = weft_data_buf_flat(mine, bytes);
	if (g->rank != a->root)
		return give(g, a, &from, bytes);
	err = collect(g, a, bytes);
	if (!err) {
		/* In the last rank's place, from the last rank to the first, as reduce.c does. */
		const struct weft_keep *k = weft_coll_keep_of(g);
		int last = g->size - 1;
		char *acc = given(g, k, last);
		if (last == g->rank)
			memcpy(acc, mine, bytes);
		for (int r = last - 1; r >= 0; r--)
			a->op.fn(r == g->rank ? mine : given(g, k, r), acc, a->rcount);
		memcpy(a->rbuf, acc, bytes);
	}
	collected(g);
	return err;
}

weft_err weft_coll_feed_gather(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t room = weft_coll_feed_share((unsigned)g->size), bytes;
	bool here = g->rank == a->root;
	weft_err err = here ? open_for(g, a->rcount, a->rtype, room, &bytes)
			    : open_for(g, a->scount, a->stype, room, &bytes);
	if (err)
		return err;
	struct weft_buf from = {0};
	if (!here || !a->in_place)
		from = weft_data_buf_typed(a->sbuf, a->scount, a->stype);
	if (!here)
		return give(g, a, &from, bytes);
	err = collect(g, a, bytes);
	if (!err && !a->in_place)
		weft_data_pack(&from, 0, given(g, weft_coll_keep_of(g), g->rank),
			       from.bytes < bytes ? from.bytes : bytes);
	for (int r = 0; r < g->size && !err; r++) {
		struct weft_buf to = weft_coll_view_buf(weft_coll_args_rblock(a, r));
		if (r != g->rank || !a->in_place)
			weft_data_unpack(&to, 0, given(g, weft_coll_keep_of(g), r), bytes);
	}
	collected(g);
	return err;
}
