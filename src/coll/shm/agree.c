/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agree.c - the members of a group agree on their ways through shared memory: a mask, the same on
 * all of them.
 *
 * It is asked for in two steps, as the ways differ in what they cost a group that does not need
 * them: the ring takes messages with the first member only; stages and reads, which connect each
 * member with each other, are agreed on in the ring.  Both are made in a collective that would
 * take them, after some that went without, so that groups that live shorter do not pay.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "coll/shm/group.h"

#define RING_FROM 4
#define LARGE_FROM 2
#define LARGE (WEFT_COLL_SHM_STAGE | WEFT_COLL_SHM_READ)

_Static_assert(sizeof(struct weft_coll_shm_memory) <= WEFT_COMM_BOARD_BYTES,
	       "comm/ has room for it");

/* ---- memory ------------------------------------------------------------------------------- */

static struct weft_coll_slot *slot_at(const struct weft_coll_group *g, int owner, int index)
{
	struct weft_coll_shm_memory *m = weft_comm_board(weft_comm_ctx_core(g->ctx), owner);
	return m && index >= 0 && index < WEFT_COLL_SHM_SLOTS ? &m->slot[index] : NULL;
}

static struct weft_coll_stage *stage_at(const struct weft_coll_group *g, int owner, int index)
{
	struct weft_coll_shm_memory *m = weft_comm_board(weft_comm_ctx_core(g->ctx), owner);
	return m && index >= 0 && index < WEFT_COLL_SHM_STAGES ? &m->stage[index] : NULL;
}

static bool take_place(_Atomic uint32_t *x_used)
{
	uint32_t none = 0;
	/* TAKE <- GIVE (give_place).  Carries: no member of the last group looks there any more. */
	return atomic_compare_exchange_strong_explicit(x_used, &none, 1, memory_order_acquire,
						       memory_order_relaxed);
}

static void give_place(_Atomic uint32_t *x_used)
{
	/* GIVE -> TAKE.  Carries: no member of this group looks there any more. */
	atomic_store_explicit(x_used, 0, memory_order_release);
}

/* A free slot of our own; -1: none. */
static int slot_take(const struct weft_coll_group *g, int self)
{
	for (int i = 0; i < WEFT_COLL_SHM_SLOTS; i++) {
		struct weft_coll_slot *slot = slot_at(g, self, i);
		if (!slot || !take_place(&slot->x_used))
			continue;
		/* Relaxed: the message with the index publishes it. */
		atomic_store_explicit(&slot->x_gone, 0, memory_order_relaxed);
		weft_coll_ring_reset(&slot->ring);
		return i;
	}
	return -1;
}

static int stage_take(const struct weft_coll_group *g, int self)
{
	for (int i = 0; i < WEFT_COLL_SHM_STAGES; i++) {
		struct weft_coll_stage *stage = stage_at(g, self, i);
		if (stage && take_place(&stage->x_used))
			return i;
	}
	return -1;
}

/* ---- the ring ----------------------------------------------------------------------------- */

/* The same answer on every member. */
static bool may_have_ring(const struct weft_coll_group *g)
{
	if (g->size < 2 || g->size > WEFT_COLL_RING_MEMBERS)
		return false;
	for (int r = 0; r < g->size; r++)
		if (!weft_comm_same_host(weft_comm_ctx_core(g->ctx), weft_coll_process(g, r)))
			return false;
	return true;
}

/* The first member offers a slot, hears whether all can reach it, and says so. */
static weft_err offer_ring(const struct weft_coll_group *g, struct weft_coll_shm *s)
{
	int self = weft_coll_process(g, 0), index = slot_take(g, self),
	    tag = g->tag + WEFT_TAG_AGREE;
	char yes = index >= 0, answer;
	weft_err err = WEFT_OK;
	for (int r = 1; r < g->size && !err; r++)
		err = weft_coll_shm_send(g, r, tag, &index, sizeof index);
	for (int r = 1; r < g->size && !err; r++) {
		err = weft_coll_shm_recv(g, weft_coll_process(g, r), tag, &answer, 1);
		yes = yes && answer;
	}
	for (int r = 1; r < g->size && !err; r++)
		err = weft_coll_shm_send(g, r, tag, &yes, 1);
	if (!err && yes)
		s->slot = slot_at(g, self, index);
	else if (!err && index >= 0)
		give_place(&slot_at(g, self, index)->x_used);
	return err;
}

static weft_err join_ring(const struct weft_coll_group *g, struct weft_coll_shm *s)
{
	int first = weft_coll_process(g, 0), index, tag = g->tag + WEFT_TAG_AGREE;
	weft_err err = weft_coll_shm_recv(g, first, tag, &index, sizeof index);
	if (err)
		return err;
	struct weft_coll_slot *slot = slot_at(g, first, index);
	char yes = slot != NULL;
	err = weft_coll_shm_send(g, 0, tag, &yes, 1);
	if (!err)
		err = weft_coll_shm_recv(g, first, tag, &yes, 1);
	if (!err && yes)
		s->slot = slot;
	return err;
}

static weft_err agree_on_ring(const struct weft_coll_group *g, struct weft_coll_shm *s)
{
	if (!may_have_ring(g))
		return WEFT_OK;
	weft_err err = g->rank ? join_ring(g, s) : offer_ring(g, s);
	if (s->slot)
		s->have |= WEFT_COLL_SHM_RING;
	return err;
}

/* ---- stages and reads --------------------------------------------------------------------- */

/* A process shows its memory to those that it has exchanged a message with. */
static bool all_connected(const struct weft_coll_group *g)
{
	for (int r = 0; r < g->size; r++)
		if (!weft_comm_board(weft_comm_ctx_core(g->ctx), weft_coll_process(g, r)))
			return false;
	return true;
}

/* A message between any two members. */
static weft_err connect_all(const struct weft_coll_group *g)
{
	char byte = 0;
	int tag = g->tag + WEFT_TAG_AGREE;
	weft_err err = WEFT_OK;
	for (int k = 1; k < g->size && !err; k++) {
		err = weft_coll_shm_send(g, (g->rank + k) % g->size, tag, &byte, 1);
		if (!err)
			err = weft_coll_shm_recv(
				g, weft_coll_process(g, (g->rank + g->size - k) % g->size), tag,
				&byte, 1);
	}
	return err;
}

/* Each takes a stage and tells all which; *can_p: this member reaches all of them. */
static weft_err stages_try(const struct weft_coll_group *g, enum weft_coll_kind kind, int mine,
			   bool *can_p)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	int index[WEFT_COLL_RING_MEMBERS];
	weft_err err = weft_coll_shm_tell(g, kind, &mine, index, sizeof mine);
	*can_p = !err;
	for (int r = 0; r < g->size && *can_p; r++) {
		s->stage[r] = stage_at(g, weft_coll_process(g, r), index[r]);
		*can_p = s->stage[r] != NULL;
	}
	return err;
}

static weft_err agree_on_large(const struct weft_coll_group *g, enum weft_coll_kind kind,
			       struct weft_coll_shm *s)
{
	weft_assert(s->have & WEFT_COLL_SHM_RING && !(s->have & LARGE));
	int self = weft_coll_process(g, g->rank), mine;
	bool stages = false, reads = false;
	uint32_t all;
	weft_err err = weft_coll_shm_and(g, kind, all_connected(g), &all);
	if (!err && !all)
		err = connect_all(g);
	if (err)
		return err;
	mine = stage_take(g, self);
	err = stages_try(g, kind, mine, &stages);
	if (!err)
		err = weft_coll_reads_try(g, kind, &reads);
	if (!err)
		err = weft_coll_shm_and(g, kind,
					(stages ? WEFT_COLL_SHM_STAGE : 0) |
						(reads ? WEFT_COLL_SHM_READ : 0u),
					&all);
	if (!err)
		s->have |= all & LARGE;
	/* After an error other members may have agreed: then it stays taken. */
	if (mine >= 0 && !err && !(all & WEFT_COLL_SHM_STAGE))
		give_place(&stage_at(g, self, mine)->x_used);
	return err;
}

/* ---- for all ------------------------------------------------------------------------------ */

static weft_err agree_on_ways(const struct weft_coll_group *g, enum weft_coll_kind kind,
			      unsigned needs, struct weft_coll_shm *s)
{
	weft_err err = WEFT_OK;
	if (!(s->asked & WEFT_COLL_SHM_RING)) {
		if (s->calls++ < RING_FROM)
			return WEFT_OK;
		s->asked |= WEFT_COLL_SHM_RING;
		err = agree_on_ring(g, s);
	}
	if (err || !(needs & LARGE) || !(s->have & WEFT_COLL_SHM_RING) || s->asked & LARGE ||
	    s->large_calls++ < LARGE_FROM)
		return err;
	s->asked |= LARGE;
	return agree_on_large(g, kind, s);
}

weft_err weft_coll_shm_prepare(const struct weft_coll_group *g)
{
	if (*g->shm_p)
		return WEFT_OK;
	struct weft_coll_shm *s = calloc(1, sizeof *s);
	if (!s)
		return WEFT_ERR_NOMEM;
	s->size = g->size;
	*g->shm_p = s;
	return WEFT_OK;
}

weft_err weft_coll_shm_open(const struct weft_coll_group *g, enum weft_coll_kind kind,
			    unsigned needs, unsigned *have_p)
{
	*have_p = 0;
	if (!g->shm_p)
		return WEFT_OK;
	weft_err err = weft_unlikely(!*g->shm_p) ? weft_coll_shm_prepare(g) : WEFT_OK;
	if (weft_unlikely(err))
		return err;
	struct weft_coll_shm *s = *g->shm_p;
	weft_assert(s->size == g->size && !(s->have & ~s->asked));
	if (weft_unlikely(needs & ~s->asked))
		err = agree_on_ways(g, kind, needs, s);
	*have_p = s->have;
	return err;
}

void weft_coll_shm_free(void *shm)
{
	struct weft_coll_shm *s = shm;
	if (!s)
		return;
	/* GONE -> GONE (the last member's).  Carries: we look no more.  Without it the last member
	 * could give back what another still reads. */
	if (s->slot && atomic_fetch_add_explicit(&s->slot->x_gone, 1, memory_order_acq_rel) ==
			       (uint32_t)s->size - 1) {
		for (int r = 0; r < s->size && s->have & WEFT_COLL_SHM_STAGE; r++)
			give_place(&s->stage[r]->x_used);
		give_place(&s->slot->x_used);
	}
	weft_coll_reads_free(s->reads);
	free(s);
}
