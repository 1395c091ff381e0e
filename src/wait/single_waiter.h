/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * single_waiter.h - lets the only thread that waits signal completions by a plain store.
 *
 * A signal is an exchange, because another thread may put itself into the completion's list at that
 * moment.  In most programs none ever does: the thread that started the engine is the only one that
 * waits.  It owns a lock (owner_lock.h), signals inside, and needs no exchange there: what is in the
 * list it has put there itself.  Another thread that enlists for the first time ends that for good.
 *
 * Callers   begin: before a thread can wait; the first call counts.  signal, enlisting: any thread.
 * Order     as completion.h.
 * Progress  signal: wait-free.  enlisting: a load; once in a process an interruption of the owner.
 * Fallback  without membarrier there is no single waiter.
 *
 *              signal  enlist    .  together, no help needed
 *   signal       .       L       L  end makes them exclude each other
 *   enlist       L       .
 */
#ifndef WEFT_SINGLE_WAITER_H
#define WEFT_SINGLE_WAITER_H

#include "wait/completion.h"
#include "wait/owner_lock.h"

extern struct weft_owner_lock weft_wait_single; /* x_owner 0: there is none any more */

/* The calling thread is the single waiter. */
void weft_wait_single_begin(void);
/* No thread is from now on.  Several may call it at once. */
void weft_wait_single_end(void);

/* The caller is about to enlist. */
static inline void weft_wait_single_enlisting(void)
{
	/* ENDED <- END (end).  Carries: what the single waiter has signalled.  Without it our list
	 * could be put where its DONE is. */
	uint32_t owner = atomic_load_explicit(&weft_wait_single.x_owner, memory_order_acquire);
	if (weft_unlikely(owner != 0 && owner != WEFT_OWNER_SELF))
		weft_wait_single_end();
}

/* False: the caller signals by an exchange. */
static inline bool weft_wait_single_signal(struct weft_completion *c)
{
	if (!weft_wait_owner_enter(&weft_wait_single))
		return false;
	/* Relaxed: if there is a list, the caller has made it. */
	bool mine =
		atomic_load_explicit(&c->x_state, memory_order_relaxed) == WEFT_COMPLETION_PENDING;
	if (weft_likely(mine))
		/* PUB -> SEE (done).  Carries: the result. */
		atomic_store_explicit(&c->x_state, WEFT_COMPLETION_DONE, memory_order_release);
	weft_wait_owner_leave(&weft_wait_single);
	return mine;
}

#endif
