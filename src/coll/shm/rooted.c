/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rooted.c - small broadcast, scatter, reduce and gather: phases down and up in the ring.
 *
 * A root that hands out gets a ring of phases ahead of its readers, and givers get as far ahead of
 * a root that collects.
 */
#include <string.h>

#include "base/counters.h"
#include "coll/shm/group.h"

size_t weft_coll_shm_scatter_max(int n)
{
	return WEFT_COLL_RING_DATA / (unsigned)n;
}

size_t weft_coll_shm_gather_max(int n)
{
	return weft_coll_ring_share((unsigned)n);
}

static void begin_rooted(const struct weft_coll_group *g, enum weft_coll_kind kind)
{
	weft_count(WEFT_CNT_COLL_ROOTED, 1);
	weft_coll_shm_note(g, kind, true);
}

/* ---- down ---------------------------------------------------------------------------------- */

/* What one phase hands out. */
struct part {
	uint32_t what;
	const struct weft_buf *buf; /* the root's, or where it goes */
	size_t off, len;            /* of buf */
	size_t at;                  /* in the place, for a reader */
	const struct weft_buf *own; /* the root's share, if it has one */
};

static weft_err write_place(const struct weft_coll_group *g, const struct part *p)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	struct weft_coll_ring_place *place;
	weft_err err = weft_coll_shm_begin(g, &place);
	if (weft_unlikely(err))
		return err;
	weft_assert(p->len <= WEFT_COLL_RING_DATA);
	place->what = p->what;
	place->number = weft_coll_number(g);
	weft_data_pack(p->buf, p->off, place->data, p->len);
	if (p->own)
		weft_data_unpack(p->own, 0, place->data + p->at, p->own->bytes);
	return weft_coll_shm_post(g, &s->slot->ring.x_head, weft_coll_ec_next(s->heads));
}

static weft_err read_place(const struct weft_coll_group *g, const struct part *p)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	struct weft_coll_ring_place *place = weft_coll_ring_at(&s->slot->ring, s->phase);
	weft_err err = s->failed ? s->failed
				 : weft_coll_shm_wait(g, &s->slot->ring.x_head,
						      weft_coll_ec_next(s->heads), true);
	if (weft_unlikely(err))
		return err;
	weft_assert(p->at + p->len <= WEFT_COLL_RING_DATA);
	if (weft_unlikely(place->what != p->what || place->number != weft_coll_number(g)))
		return weft_coll_shm_out_of_step(g, p->what, place->what, place->number);
	weft_data_unpack(p->buf, p->off, place->data + p->at, p->len);
	return WEFT_OK;
}

static weft_err hand_out(const struct weft_coll_group *g, const struct weft_coll_args *a,
			 const struct part *p)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	begin_rooted(g, a->kind);
	weft_err err = g->rank == a->root ? write_place(g, p) : read_place(g, p);
	if (weft_unlikely(s->failed))
		return err;
	s->heads = weft_coll_ec_next(s->heads);
	weft_coll_shm_pass(g);
	return err;
}

weft_err weft_coll_shm_bcast(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct weft_buf buf = weft_data_buf_typed(a->rbuf, a->rcount, a->rtype);
	struct part p = {.what = weft_coll_what(a->kind, buf.bytes), .buf = &buf};
	weft_err err = WEFT_OK;
	for (; p.off < buf.bytes && !err; p.off += p.len) {
		p.len = buf.bytes - p.off < WEFT_COLL_RING_DATA ? buf.bytes - p.off
								: WEFT_COLL_RING_DATA;
		err = hand_out(g, a, &p);
	}
	return err;
}

weft_err weft_coll_shm_scatter(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t n = (size_t)g->size;
	bool here = g->rank == a->root;
	size_t block = here ? a->scount * a->stype->size : a->rcount * a->rtype->size;
	struct weft_buf own = {0}, all = {0};
	if (!here || !a->in_place)
		own = weft_data_buf_typed(a->rbuf, a->rcount, a->rtype);
	struct part p = {.what = weft_coll_what(a->kind, n * block),
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

static char *share_of(const struct weft_coll_group *g, struct weft_coll_ring_place *place, int r)
{
	return place->data + (size_t)r * weft_coll_ring_share((unsigned)g->size);
}

static weft_err give_to_root(const struct weft_coll_group *g, const struct weft_coll_args *a,
			     const struct weft_buf *from, size_t bytes)
{
	struct weft_coll_ring_place *place;
	begin_rooted(g, a->kind);
	weft_err err = weft_coll_shm_begin(g, &place);
	if (weft_unlikely(err))
		return err;
	weft_assert(bytes <= weft_coll_ring_share((unsigned)g->size));
	place->gave[g->rank] = weft_coll_what(a->kind, bytes);
	weft_data_pack(from, 0, share_of(g, place, g->rank), bytes);
	uint32_t sleepers = weft_coll_ring_come(place, (unsigned)g->size - 1);
	if (weft_unlikely(sleepers))
		weft_coll_shm_wake(g, sleepers);
	weft_coll_shm_pass(g);
	return WEFT_OK;
}

/* The root: until all other members have given. */
static weft_err collect_shares(const struct weft_coll_group *g, const struct weft_coll_args *a,
			       size_t bytes, struct weft_coll_ring_place **place_p)
{
	uint32_t what = weft_coll_what(a->kind, bytes);
	begin_rooted(g, a->kind);
	/* The place may still be another root's, which has not collected what we gave it. */
	weft_err err = weft_coll_shm_begin(g, place_p);
	/* Givers may be far ahead. */
	if (weft_likely(!err))
		err = weft_coll_shm_wait(g, &(*place_p)->x_came, (uint32_t)g->size - 1, false);
	for (int r = 0; r < g->size && !err; r++)
		if (weft_unlikely(r != g->rank && (*place_p)->gave[r] != what))
			err = weft_coll_shm_out_of_step(g, what, (*place_p)->gave[r],
							weft_coll_number(g));
	return err;
}

/* And has read it. */
static weft_err note_collected(const struct weft_coll_group *g, struct weft_coll_ring_place *place,
			       weft_err err)
{
	if (weft_unlikely(weft_coll_shm_of(g)->failed))
		return err;
	weft_coll_ring_clear(place);
	weft_coll_shm_pass(g);
	return err;
}

weft_err weft_coll_shm_reduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t bytes = a->rcount * a->rtype->size;
	const void *mine = a->in_place ? a->rbuf : a->sbuf;
	struct weft_buf from = weft_data_buf_flat(mine, bytes);
	struct weft_coll_ring_place *place;
	if (g->rank != a->root)
		return give_to_root(g, a, &from, bytes);
	weft_err err = collect_shares(g, a, bytes, &place);
	if (!err) {
		/* In the last rank's place, from the last rank to the first, as reduce.c does. */
		int last = g->size - 1;
		char *acc = share_of(g, place, last);
		if (last == g->rank)
			memcpy(acc, mine, bytes);
		for (int r = last - 1; r >= 0; r--)
			a->op.fn(r == g->rank ? mine : share_of(g, place, r), acc, a->rcount);
		memcpy(a->rbuf, acc, bytes);
	}
	return note_collected(g, place, err);
}

weft_err weft_coll_shm_gather(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	bool here = g->rank == a->root;
	size_t bytes = here ? a->rcount * a->rtype->size : a->scount * a->stype->size;
	struct weft_coll_ring_place *place;
	struct weft_buf from = {0};
	if (!here || !a->in_place)
		from = weft_data_buf_typed(a->sbuf, a->scount, a->stype);
	if (!here)
		return give_to_root(g, a, &from, bytes);
	weft_err err = collect_shares(g, a, bytes, &place);
	if (!err && !a->in_place)
		weft_data_pack(&from, 0, share_of(g, place, g->rank),
			       from.bytes < bytes ? from.bytes : bytes);
	for (int r = 0; r < g->size && !err; r++) {
		struct weft_buf to = weft_coll_view_buf(weft_coll_args_rblock(a, r));
		if (r != g->rank || !a->in_place)
			weft_data_unpack(&to, 0, share_of(g, place, r), bytes);
	}
	return note_collected(g, place, err);
}
