/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ending.h - a stop of the engine against threads that look at its memory or go to sleep at that
 * moment.  (Against submitters: tqueue.h.)
 *
 * Callers   look_begin, look_end: idle workers, which are not joined.  over: the same.
 *           end: the stopper, which then asks inside until none is.
 *           parks: a waiter that has counted itself (baton.h), before it sleeps.
 *           off: the stopper, which then wakes each waiter that it finds counted until there is none.
 * Progress  a few atomic operations each.  look_begin never waits.
 * Promise   memory that a look was allowed to see stays until it has ended; no waiter sleeps on
 *           after the stop.
 */
#ifndef WEFT_ENDING_H
#define WEFT_ENDING_H

#include "base/base.h"

#define WEFT_LOOK 256u /* of one generation; below: how many look */

struct weft_looks {
	_Atomic unsigned x_word; /* lookers count themselves, the stopper the generations */
};

static inline unsigned weft_task_ending_generation(const struct weft_looks *l)
{
	/* Relaxed: the starter's, which does not end meanwhile. */
	return atomic_load_explicit(&l->x_word, memory_order_relaxed) / WEFT_LOOK;
}

static inline bool weft_task_ending_over(const struct weft_looks *l, unsigned generation)
{
	/* Relaxed: a hint, a thread that looks asks again; what ends then is static. */
	return atomic_load_explicit(&l->x_word, memory_order_relaxed) / WEFT_LOOK != generation;
}

/* True: look, it stays until the end.  In any case call end. */
static inline bool weft_task_ending_look_begin(struct weft_looks *l, unsigned generation)
{
	/* One word: either it is over for us, or the stopper counts us.  Relaxed: what we look at
	 * was made before our thread. */
	return atomic_fetch_add_explicit(&l->x_word, 1, memory_order_relaxed) / WEFT_LOOK ==
	       generation;
}

static inline void weft_task_ending_look_end(struct weft_looks *l)
{
	/* LOOKED -> INSIDE.  Carries: our look is over.  Without it the queues could be freed under
	 * our eyes. */
	atomic_fetch_sub_explicit(&l->x_word, 1, memory_order_release);
}

static inline void weft_task_ending_end(struct weft_looks *l)
{
	/* Relaxed: see look_begin. */
	atomic_fetch_add_explicit(&l->x_word, WEFT_LOOK, memory_order_relaxed);
}

/* Does a thread still look? */
static inline bool weft_task_ending_inside(const struct weft_looks *l)
{
	/* INSIDE <- LOOKED, also through others' counting: they only add and subtract. */
	return atomic_load_explicit(&l->x_word, memory_order_acquire) % WEFT_LOOK != 0;
}

/* May a waiter that is counted sleep? */
static inline bool weft_task_ending_parks(const _Atomic bool *x_running)
{
	/* PARKS <- OFF.  seq_cst: comes after we counted ourselves, also seq_cst; then either we
	 * see that it has stopped, or the stopper sees us.  Without it we could sleep for ever. */
	return atomic_load_explicit(x_running, memory_order_seq_cst);
}

static inline void weft_task_ending_off(_Atomic bool *x_running)
{
	/* OFF -> PARKS.  seq_cst: comes before the look at the count. */
	atomic_store_explicit(x_running, false, memory_order_seq_cst);
}

#endif
