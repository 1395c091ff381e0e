/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mismatch.c - members that call different collectives would wait for each other for ever: they
 * find that out and say so.
 *
 * Each member notes in the ring which collective it is in, by number and kind, and looks at the
 * other members' notes before it waits where the ring does not help: before it sleeps, and before
 * messages.  Both are ordered (seq_cst): of two members whose calls do not match, one sees the other.
 * With a core for each member, where a look at notes that change all the time costs as much as a
 * message, it looks before messages only if a member sleeps.
 * A member that is ahead also remembers what it has called under the number that another is in.
 */
#include "base/assert.h"
#include "base/log.h"
#include "coll/calls.h"
#include "coll/shm/group.h"

/* A note: the number, and in its lowest 8 bits the kind + 1 and how it is called. */
#define NOTE_LATER 0x80u   /* nonblocking or persistent */
#define NOTE_IN_RING 0x40u /* in the ring, as its size asks for */
_Static_assert(WEFT_COLL_KIND_COUNT < NOTE_IN_RING, "kinds have 6 bits");

/* The group's, if it is open. */
static struct weft_coll_shm *open_shm(const struct weft_coll_group *g)
{
	struct weft_coll_shm *s = g->shm_p ? *g->shm_p : NULL;
	return s && s->slot && !s->failed ? s : NULL;
}

static _Atomic uint32_t *x_note_of(const struct weft_coll_group *g, int r)
{
	return &weft_coll_ring_of(g)->note[r].x_note;
}

/* A note for the caller's collective, which it remembers. */
static uint32_t make_note(const struct weft_coll_group *g, enum weft_coll_kind kind, uint32_t how)
{
	weft_assert(kind < WEFT_COLL_KIND_COUNT && !(how & ~(NOTE_LATER | NOTE_IN_RING)));
	uint32_t number = weft_coll_number(g);
	uint32_t note = number << 8 | how | ((uint32_t)kind + 1);
	weft_coll_shm_of(g)->noted[number % WEFT_COLL_SHM_NOTES] = note;
	return note;
}

/* What we have called under the number of theirs; 0: that is too long ago, or to come. */
static uint32_t note_of_number(const struct weft_coll_group *g, uint32_t theirs)
{
	uint32_t ours = weft_coll_shm_of(g)->noted[(theirs >> 8) % WEFT_COLL_SHM_NOTES];
	return (ours ^ theirs) >> 8 ? 0 : ours;
}

static const char *name_of(uint32_t note)
{
	return weft_coll_kind_name((note & (NOTE_IN_RING - 1)) - 1);
}

static const char *how_of(uint32_t note)
{
	return note & NOTE_LATER ? " (nonblocking)" : note & NOTE_IN_RING ? " (small)" : "";
}

void weft_coll_shm_give_up(const struct weft_coll_group *g, uint32_t why, uint32_t sleepers)
{
	struct weft_coll_ring *ring = weft_coll_ring_of(g);
	if (why == WEFT_COLL_EC_MISMATCH)
		weft_coll_calls_failed(g->ctx, g->tag, true);
	sleepers |= weft_coll_ec_abort(&ring->x_head, why);
	sleepers |= weft_coll_ec_abort(&ring->x_floor, why);
	for (unsigned i = 0; i < WEFT_COLL_RING_PLACES; i++)
		sleepers |= weft_coll_ec_abort(&ring->place[i].x_came, why);
	sleepers |= weft_coll_ring_abort_signs(ring, (unsigned)g->size, why);
	weft_coll_shm_of(g)->failed = weft_coll_ec_failed(&ring->x_head);
	weft_coll_shm_wake(g, sleepers);
}

/* Is a collective of that kind and size over with one phase? */
static bool single_phase(uint32_t what)
{
	return what && (what & 0xffffff) <= WEFT_COLL_RING_DATA;
}

/* A member that has noted a collective of that kind; -1: each has noted another one since. */
static int member_in(const struct weft_coll_group *g, uint32_t what)
{
	for (int r = 0; r < g->size; r++) {
		/* Relaxed: for a message to the user only. */
		uint32_t note = atomic_load_explicit(x_note_of(g, r), memory_order_relaxed);
		if (r != g->rank && (note & (NOTE_IN_RING - 1)) == what >> 24)
			return r;
	}
	return -1;
}

weft_err weft_coll_shm_out_of_step(const struct weft_coll_group *g, uint32_t mine, uint32_t theirs,
				   uint32_t number)
{
	bool same_call = mine >> 24 == theirs >> 24 && number == weft_coll_number(g);
	if (!same_call)
		weft_error("collectives that do not match: rank %d of %s is in %s "
			   "(number %u), rank %d in %s (number %u)",
			   g->rank, weft_coll_comm_name(g->ctx), weft_coll_what_name(mine),
			   weft_coll_number(g), member_in(g, theirs), weft_coll_what_name(theirs),
			   number);
	if (!same_call || !single_phase(mine) || !single_phase(theirs))
		weft_coll_shm_give_up(g, WEFT_COLL_EC_MISMATCH, 0);
	return WEFT_ERR_TRUNC;
}

/* Is `theirs` of another collective than ours under the same number, or (ahead) past ours?  Then
 * *ours_p is what we called there, and *apart_p how far it is from there to `theirs`. */
static bool note_differs(const struct weft_coll_group *g, uint32_t theirs, bool ahead,
			 uint32_t *ours_p, int32_t *apart_p)
{
	/* Relaxed: our own. */
	uint32_t mine = atomic_load_explicit(x_note_of(g, g->rank), memory_order_relaxed);
	/* The distance of two numbers of 23 bits. */
	int32_t apart = (int32_t)((theirs & ~0xffu) - (mine & ~0xffu)) << 1;
	*apart_p = apart;
	*ours_p = apart < 0 ? note_of_number(g, theirs) : mine;
	return theirs && *ours_p && theirs != *ours_p && (apart <= 0 || ahead);
}

bool weft_coll_shm_mismatch(const struct weft_coll_group *g, _Atomic uint64_t *x_ec,
			    uint32_t number, bool ahead)
{
	for (int r = 0; r < g->size; r++) {
		/* NOTE <- NOTE (weft_coll_note, weft_coll_shm_note).  Carries: what its member saw
		 * posted or posted before, so that the exchange in weft_coll_ec_fail sees it, too. */
		uint32_t theirs = atomic_load_explicit(x_note_of(g, r), memory_order_seq_cst);
		uint32_t ours, sleepers;
		int32_t apart;
		if (!note_differs(g, theirs, ahead, &ours, &apart))
			continue;
		/* False also when it is posted meanwhile, and the other member went on. */
		if (!weft_coll_ec_fail(x_ec, number, WEFT_COLL_EC_MISMATCH, &sleepers))
			return false;
		weft_error("collectives that do not match: rank %d of %s %s in %s%s, "
			   "rank %d in %s%s",
			   g->rank, weft_coll_comm_name(g->ctx), apart < 0 ? "was" : "is",
			   name_of(ours), how_of(ours), r, name_of(theirs), how_of(theirs));
		weft_coll_shm_give_up(g, WEFT_COLL_EC_MISMATCH, sleepers);
		return true;
	}
	return false;
}

/* Has a root handed out in the ring what we are about to wait for by messages?  (If not, it comes
 * later, and looks at our note when it sleeps.)  Gives up, and says so. */
static bool handed_out_in_ring(const struct weft_coll_group *g)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	struct weft_coll_ring *ring = &s->slot->ring;
	uint32_t next = weft_coll_ec_next(s->heads), number = weft_coll_number(g);
	if (weft_likely(!weft_coll_ec_reached(&ring->x_head, next)) ||
	    weft_coll_ec_failed(&ring->x_head) ||
	    weft_coll_ring_at(ring, s->phase)->number != number)
		return false;
	weft_error("collectives that do not match: rank %d of %s is in %s, and its root in one "
		   "(small)",
		   g->rank, weft_coll_comm_name(g->ctx), name_of(note_of_number(g, number << 8)));
	weft_coll_shm_give_up(g, WEFT_COLL_EC_MISMATCH, 0);
	return true;
}

void weft_coll_shm_note(const struct weft_coll_group *g, enum weft_coll_kind kind, bool in_ring)
{
	/* NOTE -> NOTE (mismatch).  Carries: what we have seen posted.  Not seq_cst: a waiter notes
	 * it again before it sleeps. */
	atomic_store_explicit(x_note_of(g, g->rank), make_note(g, kind, in_ring ? NOTE_IN_RING : 0),
			      memory_order_release);
}

void weft_coll_shm_note_sleep(const struct weft_coll_group *g)
{
	_Atomic uint32_t *x_note = x_note_of(g, g->rank);
	/* NOTE -> NOTE (mismatch), as in weft_coll_note.  Relaxed: our own. */
	(void)atomic_exchange_explicit(x_note, atomic_load_explicit(x_note, memory_order_relaxed),
				       memory_order_seq_cst);
	/* ASLEEP -> ASLEEP (weft_coll_note).  Carries: our note.  seq_cst: a member that does not see
	 * us has noted its call before we look at its note. */
	atomic_fetch_add_explicit(&weft_coll_ring_of(g)->x_asleep, 1, memory_order_seq_cst);
}

void weft_coll_shm_note_awake(const struct weft_coll_group *g)
{
	/* Relaxed: carries nothing. */
	atomic_fetch_sub_explicit(&weft_coll_ring_of(g)->x_asleep, 1, memory_order_relaxed);
}

/* Should a member look at the other notes before it waits for messages? */
static bool has_to_look(const struct weft_coll_group *g)
{
	/* ASLEEP <- ASLEEP (weft_coll_shm_note_sleep). */
	return g->crowded ||
	       atomic_load_explicit(&weft_coll_ring_of(g)->x_asleep, memory_order_seq_cst);
}

weft_err weft_coll_note(const struct weft_coll_group *g, enum weft_coll_kind kind, bool later)
{
	struct weft_coll_shm *s = open_shm(g);
	if (weft_likely(!s))
		return WEFT_OK;
	/* NOTE -> NOTE (mismatch).  Carries: nothing but itself.  seq_cst on both: of two members
	 * that note different calls at least the later one sees the earlier note. */
	atomic_exchange_explicit(x_note_of(g, g->rank), make_note(g, kind, later ? NOTE_LATER : 0),
				 memory_order_seq_cst);
	if (weft_unlikely((has_to_look(g) &&
			   weft_coll_shm_mismatch(g, &s->slot->ring.x_head,
						  weft_coll_ec_next(s->heads), false)) ||
			  handed_out_in_ring(g)))
		return WEFT_ERR_TRUNC;
	return WEFT_OK;
}
