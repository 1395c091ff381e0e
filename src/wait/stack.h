/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stack.h - larger stacks for calls that would not fit on a user-level thread's, and a hook for
 * calls that may block.
 *
 * Callers   any thread.  weft_wait_big_stack: fn may not block; it may wake threads.
 *           weft_wait_deep_stack: it may do both.
 * Cost      without user-level threads: a load and a branch that is always the same.
 */
#ifndef WEFT_WAIT_STACK_H
#define WEFT_WAIT_STACK_H

#include "base/base.h"

struct weft_stacks {
	/* Runs fn(arg) on the stack of the caller's worker, if it has one; no blocking there. */
	void (*big)(void (*fn)(void *arg), void *arg);
	/* Is the caller's stack one for which deep() would look for a larger? */
	bool (*small)(void);
	/* Runs fn(arg) on a stack that is the caller's for that long. */
	void (*deep)(void (*fn)(void *arg), void *arg);
};

/*
 * A user-level thread is about to look for, or to wait for, what is not there yet; NULL: there is no
 * hook.  Called on the thread's own stack; plain threads may call it.
 */
extern void (*_Atomic weft_wait_x_entry)(void);

/* Says so. */
static inline void weft_wait_entry(void)
{
	/* Relaxed: code, no data; its setter waits until it is out of use (ult/sched/worker.c). */
	void (*fn)(void) = atomic_load_explicit(&weft_wait_x_entry, memory_order_relaxed);
	if (weft_unlikely(fn != NULL))
		fn();
}

/* Set before the first user-level thread, or thread of a foreign runtime, may wait; NULL before. */
extern const struct weft_stacks *_Atomic weft_wait_x_stacks;

/* Could the caller be on a small stack? */
static inline bool weft_wait_stack_may_be_small(void)
{
	/* Relaxed: a thread that runs on a small stack was started after it was set. */
	return weft_unlikely(atomic_load_explicit(&weft_wait_x_stacks, memory_order_relaxed) !=
			     NULL);
}

static inline const struct weft_stacks *weft_wait_stacks_here(void)
{
	/* HERE <- STACKS (their setter).  Carries: the table. */
	return atomic_load_explicit(&weft_wait_x_stacks, memory_order_acquire);
}

/* Is the caller on one, and is there a larger for calls that block? */
static inline bool weft_wait_stack_is_small(void)
{
	return weft_wait_stack_may_be_small() && weft_wait_stacks_here()->small();
}

/* Calls fn(arg), on the stack of the caller's worker if the caller is a user-level thread. */
static inline void weft_wait_big_stack(void (*fn)(void *arg), void *arg)
{
	const struct weft_stacks *s = weft_wait_stacks_here();
	if (s)
		s->big(fn, arg);
	else
		fn(arg);
}

/* Calls fn(arg), on a larger stack if the caller's is small. */
static inline void weft_wait_deep_stack(void (*fn)(void *arg), void *arg)
{
	const struct weft_stacks *s = weft_wait_stacks_here();
	if (s)
		s->deep(fn, arg);
	else
		fn(arg);
}

#endif
