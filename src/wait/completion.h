/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completion.h - a word that becomes true once, and the threads that sleep until it does.
 *
 * Callers   init: the owner.  done: any thread.  signal: once, any thread, task handlers included.
 * Owner     the memory belongs to the caller; signal's last access to it is the exchange that makes
 *           done() true, so a waiter may free it at once.
 * Order     what the signaller wrote before signal() is visible after done() was true.
 * Cost      done: one load.  signal: one exchange when no thread sleeps.
 */
#ifndef WEFT_COMPLETION_H
#define WEFT_COMPLETION_H

#include "base/base.h"

#define WEFT_COMPLETION_PENDING ((uintptr_t)0)
#define WEFT_COMPLETION_DONE ((uintptr_t)1)

struct weft_completion {
	_Atomic uintptr_t x_state; /* PENDING, DONE, or the list of waiters */
};

static inline void weft_wait_completion_init(struct weft_completion *c)
{
	atomic_store_explicit(&c->x_state, WEFT_COMPLETION_PENDING, memory_order_relaxed);
}

static inline bool weft_wait_completion_done(const struct weft_completion *c)
{
	/* SEE: partner PUB in weft_wait_completion_signal.  Carries: the result beside the completion.
	 */
	return atomic_load_explicit(&c->x_state, memory_order_acquire) == WEFT_COMPLETION_DONE;
}

/* For an operation that is complete before a thread can wait for it. */
static inline void weft_wait_completion_init_done(struct weft_completion *c)
{
	atomic_store_explicit(&c->x_state, WEFT_COMPLETION_DONE, memory_order_relaxed);
}

void weft_wait_completion_signal(struct weft_completion *c);

/*
 * The completion that the calling thread polls for, if no other thread waits or will wait for it and
 * it is in no list; else NULL.  The signal, made by its own polling, then needs no exchange.
 */
extern _Thread_local const struct weft_completion *weft_wait_completion_own;

static inline bool weft_wait_completion_signal_own(struct weft_completion *c)
{
	if (c != weft_wait_completion_own)
		return false;
	/* Relaxed: the thread that looks is the one that stores. */
	atomic_store_explicit(&c->x_state, WEFT_COMPLETION_DONE, memory_order_relaxed);
	return true;
}

#endif
