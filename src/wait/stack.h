/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stack.h - a larger stack for calls that would not fit on a user-level thread's.
 *
 * Callers   weft_big_stack: any thread.  fn may not block; it may wake others.
 * Cost      without user-level threads: a load and a branch that is always the same.
 */
#ifndef WEFT_WAIT_STACK_H
#define WEFT_WAIT_STACK_H

#include "base/base.h"

typedef void weft_big_stack_hook(void (*fn)(void *arg), void *arg);

/* Set before the first user-level thread, or thread of a foreign runtime, may wait; NULL before. */
extern _Atomic(weft_big_stack_hook *) weft_x_big_stack;

/* Could the caller be on a small stack? */
static inline bool weft_stack_may_be_small(void)
{
	/* Relaxed: a thread that runs on a small stack was started after it was set. */
	return weft_unlikely(atomic_load_explicit(&weft_x_big_stack, memory_order_relaxed) != NULL);
}

/* Calls fn(arg), on the stack of the caller's worker if the caller is a user-level thread. */
static inline void weft_big_stack(void (*fn)(void *arg), void *arg)
{
	weft_big_stack_hook *hook = atomic_load_explicit(&weft_x_big_stack, memory_order_acquire);
	if (hook)
		hook(fn, arg);
	else
		fn(arg);
}

#endif
