/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kick_pending.h - a kick that has not been answered yet makes a second kick unnecessary.
 *
 * A kick is a system call, and the thread that it wakes needs some us to come: until then every
 * further submission would kick again.
 *
 * Callers   woke: a thread that wakes in the watch set or on the watcher's word, before it looks.
 *           already, note: a thread that has published work and is about to kick.
 * Order     a kick that was noted is done: the thread that it wakes counts a look and then looks.
 * Progress  a load each, or one addition.  None waits.
 * Promise   already() says true only if a look will begin after the caller published.
 *
 *           already note woke    .  together, no help needed
 *   already    .     .    .
 *   note             .    .      a note that comes late names a look of the past and is no note
 *   woke                  .
 */
#ifndef WEFT_TASK_KICK_PENDING_H
#define WEFT_TASK_KICK_PENDING_H

#include "base/base.h"

struct weft_task_kick_pending {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_looks; /* the woken add */
	_Atomic bool x_napping;                           /* the watcher: its tick is a long one */
	_Atomic bool x_spared;   /* the watcher: so short that none need ring */
	_Atomic uint64_t x_note; /* kickers: which look was asked for */
};

/* How: the way of the kick, 1 to 3 (0: a relay); another way may reach another thread.  *key_p: for
 * note. */
static inline bool weft_task_kick_pending_already(struct weft_task_kick_pending *t, unsigned how,
						  uint64_t *key_p)
{
	/* TOLD <- LOOK.  seq_cst: comes after the caller's publication, which is seq_cst too; then
	 * the look that has not been counted yet sees it. */
	uint32_t looks = atomic_load_explicit(&t->x_looks, memory_order_seq_cst);
	*key_p = (uint64_t)looks << 2 | how;
	/* Relaxed: it names a look that has not begun, so its kick is done or at least on its way.
	 */
	return atomic_load_explicit(&t->x_note, memory_order_relaxed) == *key_p;
}

/* The kick of that key has been made. */
static inline void weft_task_kick_pending_note(struct weft_task_kick_pending *t, uint64_t key)
{
	atomic_store_explicit(&t->x_note, key, memory_order_relaxed);
}

static inline void weft_task_kick_pending_woke(struct weft_task_kick_pending *t)
{
	/* LOOK -> TOLD.  seq_cst: comes before the caller's look.  Without it a submitter could
	 * rely on a look that is over. */
	atomic_fetch_add_explicit(&t->x_looks, 1, memory_order_seq_cst);
}

#endif
