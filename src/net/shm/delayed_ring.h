/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delayed_ring.h - rings that go out late: the peer has just gone to compute and is likely to poll
 * by itself before the wake-up would arrive (bell.h, SOON).
 *
 * The poster notes the bell's word for that peer and counts; the poller, some time later or before
 * it stops polling, takes the count and each note, and rings where the word is still the same.
 *
 * Callers   owe: a poster, one at a time per peer.  some: any thread, a hint.  take_all, then
 *           take for each peer: the poller.
 * Order     a note is seen by the take_all that takes its count.
 * Progress  some stores and an addition; an exchange each.
 * Promise   a note that is counted after a take_all is there for the next.  One that has just been
 *           renewed may be taken early.
 * Checked   test/net/test_model_bell.c.
 *
 *              owe  take_all  take   .  together, no help needed
 *   owe         .      .       .
 */
#ifndef WEFT_NET_DELAYED_RING_H
#define WEFT_NET_DELAYED_RING_H

#include "base/assert.h"
#include "base/base.h"

struct weft_net_delayed_ring {
	_Atomic unsigned x_n; /* notes since the last take_all */
};

/* One peer's. */
struct weft_net_delayed_ring_note {
	_Atomic uint32_t x_word; /* poster sets, poller clears; 0: none */
};

static inline bool weft_net_delayed_ring_some(const struct weft_net_delayed_ring *o)
{
	/* Relaxed: a hint, seen a poll later. */
	return atomic_load_explicit(&o->x_n, memory_order_relaxed) != 0;
}

static inline void weft_net_delayed_ring_owe(struct weft_net_delayed_ring *o,
					     struct weft_net_delayed_ring_note *note, uint32_t word)
{
	weft_assert(word); /* 0 is no note */
	/* Relaxed: the count publishes it. */
	atomic_store_explicit(&note->x_word, word, memory_order_relaxed);
	/* OWE -> TAKE.  Carries: the note.  Without it the poller could take the count and not find
	 * its note: the peer would not be rung. */
	atomic_fetch_add_explicit(&o->x_n, 1, memory_order_release);
}

/* False: nothing is owed. */
static inline bool weft_net_delayed_ring_take_all(struct weft_net_delayed_ring *o)
{
	/* TAKE <- OWE.  Carries: the notes that were counted. */
	return atomic_exchange_explicit(&o->x_n, 0, memory_order_acquire) != 0;
}

/* After take_all: the word, or 0. */
static inline uint32_t weft_net_delayed_ring_take(struct weft_net_delayed_ring_note *note)
{
	/* Relaxed, both: as said. */
	return atomic_load_explicit(&note->x_word, memory_order_relaxed)
		       ? atomic_exchange_explicit(&note->x_word, 0, memory_order_relaxed)
		       : 0;
}

#endif
