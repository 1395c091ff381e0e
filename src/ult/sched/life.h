/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h - the two words of a thread: the one that it parks on, and the one that it is joined by.
 *
 * Parking: ult_int.h has the states.  Joining: x_join is RUNNING, the joiner's parker, DETACHED or
 * ENDED.  The second of two frees the thread: the joiner after ENDED, or the end itself when it
 * finds DETACHED.
 *
 * Callers   park_commit, token_commit: inside the lock of the thread's home while it runs there,
 *           just before its context is stored; or the next to run there, after it is stored.
 *           over: the next to run.  consume, token_take: the thread itself.  call, token_give,
 *           call_late: any thread.  join, detach: one caller per thread.
 * Order     what a thread did is visible to its joiner; its context to the worker that runs it
 *           next; what a caller wrote before call or token_give to the thread whose park it ended.
 * Progress  lock-free; a retry follows another thread's success.
 */
#ifndef WEFT_ULT_LIFE_H
#define WEFT_ULT_LIFE_H

#include "base/assert.h"
#include "base/base.h"
#include "wait/park.h"

enum {
	WEFT_ULT_NOTIFIED = WEFT_PARKER_NOTIFIED, /* the next wait's park returns at once */
	WEFT_ULT_PARKED = WEFT_PARKER_PARKED,     /* in a wait */
	WEFT_ULT_WAITS_TOKEN = 4,                 /* in weft_ult_park */
	WEFT_ULT_TOKEN = 8,                       /* the next weft_ult_park returns at once */
};

enum {
	WEFT_ULT_RUNNING = 0,
	WEFT_ULT_ENDED = 1,
	WEFT_ULT_IS_DETACHED = 2,
	/* else: a parker's address */
};

/* From now on the thread may be called.  False: it was called before, and goes on. */
static inline bool weft_ult_park_commit(_Atomic uint32_t *word)
{
	uint32_t seen = atomic_load_explicit(word, memory_order_relaxed);
	weft_assert(!(seen & (WEFT_ULT_PARKED | WEFT_ULT_WAITS_TOKEN))); /* it runs */
	do
		if (seen & WEFT_ULT_NOTIFIED)
			return false;
	/* STORED -> CALL (call).  Carries: the context, when it is stored already.  Without it,
	 * a waker could pass the thread on and another worker jump to a context that is not yet
	 * there. */
	while (!atomic_compare_exchange_weak_explicit(word, &seen, seen | WEFT_ULT_PARKED,
						      memory_order_acq_rel, memory_order_relaxed));
	return true;
}

/* The same for weft_ult_park; a notification is for no wait, and forgotten. */
static inline bool weft_ult_token_commit(_Atomic uint32_t *word)
{
	uint32_t seen = atomic_load_explicit(word, memory_order_relaxed);
	weft_assert(!(seen & (WEFT_ULT_PARKED | WEFT_ULT_WAITS_TOKEN))); /* it runs */
	do
		if (seen & WEFT_ULT_TOKEN)
			return false;
	/* STORED -> CALL (token_give). */
	while (!atomic_compare_exchange_weak_explicit(word, &seen, WEFT_ULT_WAITS_TOKEN,
						      memory_order_acq_rel, memory_order_relaxed));
	return true;
}

/* Takes a notification that is there; false: there is none. */
static inline bool weft_ult_park_consume(_Atomic uint32_t *word)
{
	/* Relaxed: a hint, the exchange orders. */
	if (!(atomic_load_explicit(word, memory_order_relaxed) & WEFT_ULT_NOTIFIED))
		return false;
	/* WOKEN <- CALL.  Carries: what the notifier wrote. */
	(void)atomic_fetch_and_explicit(word, ~(uint32_t)WEFT_ULT_NOTIFIED, memory_order_acq_rel);
	return true;
}

static inline bool weft_ult_token_take(_Atomic uint32_t *word)
{
	/* As above. */
	if (!(atomic_load_explicit(word, memory_order_relaxed) & WEFT_ULT_TOKEN))
		return false;
	(void)atomic_fetch_and_explicit(word, ~(uint32_t)WEFT_ULT_TOKEN, memory_order_acq_rel);
	return true;
}

/*
 * Ends the thread's wait, or the park of the next.  True: it was parked, and the caller makes it
 * ready.  One that waits for its token has no wait that this could be for.
 */
static inline bool weft_ult_call(_Atomic uint32_t *word)
{
	uint32_t seen = atomic_load_explicit(word, memory_order_relaxed), want;
	do
		want = seen & WEFT_ULT_PARKED        ? seen & ~(uint32_t)WEFT_ULT_PARKED
		       : seen & WEFT_ULT_WAITS_TOKEN ? seen
						     : seen | WEFT_ULT_NOTIFIED;
	/* CALL <- STORED; CALL -> WOKEN, a write even where it changes nothing: else it could come
	 * before what the caller wrote, and neither side see the other. */
	while (!atomic_compare_exchange_weak_explicit(word, &seen, want, memory_order_acq_rel,
						      memory_order_relaxed));
	return seen & WEFT_ULT_PARKED;
}

/* Gives the token.  True: the thread waited for it, has it, and the caller makes it ready. */
static inline bool weft_ult_token_give(_Atomic uint32_t *word)
{
	uint32_t seen = atomic_load_explicit(word, memory_order_relaxed), want;
	do
		want = seen & WEFT_ULT_WAITS_TOKEN ? seen & ~(uint32_t)WEFT_ULT_WAITS_TOKEN
						   : seen | WEFT_ULT_TOKEN;
	/* CALL, as above. */
	while (!atomic_compare_exchange_weak_explicit(word, &seen, want, memory_order_acq_rel,
						      memory_order_relaxed));
	return seen & WEFT_ULT_WAITS_TOKEN;
}

/* A deadline has passed.  True: the thread was parked, in whatever, and the caller makes it
 * ready. */
static inline bool weft_ult_call_late(_Atomic uint32_t *word)
{
	uint32_t parked = WEFT_ULT_PARKED | WEFT_ULT_WAITS_TOKEN;
	/* CALL <- STORED. */
	return atomic_fetch_and_explicit(word, ~parked, memory_order_acq_rel) & parked;
}

static inline bool weft_ult_ended(const _Atomic uintptr_t *x_join)
{
	/* SEEN <- OVER. */
	return atomic_load_explicit(x_join, memory_order_acquire) == WEFT_ULT_ENDED;
}

/*
 * The caller will wait on its parker until weft_ult_ended().  WEFT_AGAIN: it has ended already.
 * WEFT_ERR_STATE: another thread joins it already, or it is detached.
 */
static inline weft_err weft_ult_join_begin(_Atomic uintptr_t *x_join, struct weft_parker *me)
{
	uintptr_t seen = WEFT_ULT_RUNNING;
	/* JOIN -> OVER.  Carries: our parker, which is never freed.  On failure acquire: SEEN. */
	if (atomic_compare_exchange_strong_explicit(x_join, &seen, (uintptr_t)me,
						    memory_order_acq_rel, memory_order_acquire))
		return WEFT_OK;
	return seen == WEFT_ULT_ENDED ? WEFT_AGAIN : WEFT_ERR_STATE;
}

/* WEFT_AGAIN: it has ended; the caller frees it. */
static inline weft_err weft_ult_detach_begin(_Atomic uintptr_t *x_join)
{
	uintptr_t seen = WEFT_ULT_RUNNING;
	if (atomic_compare_exchange_strong_explicit(x_join, &seen, WEFT_ULT_IS_DETACHED,
						    memory_order_acq_rel, memory_order_acquire))
		return WEFT_OK;
	return seen == WEFT_ULT_ENDED ? WEFT_AGAIN : WEFT_ERR_STATE;
}

/*
 * The thread has left its stack for good.  *joiner_p: the parker to unpark, or NULL.  True: the
 * caller frees it; false: it belongs to its joiner from now on.
 */
static inline bool weft_ult_over(_Atomic uintptr_t *x_join, struct weft_parker **joiner_p)
{
	/* OVER -> SEEN.  Carries: what the thread did, and that its stack is free.
	 * Without it the joiner could give the stack to another thread while this one leaves it. */
	uintptr_t old = atomic_exchange_explicit(x_join, WEFT_ULT_ENDED, memory_order_acq_rel);
	weft_assert(old != WEFT_ULT_ENDED); /* it ends once */
	*joiner_p = old > WEFT_ULT_IS_DETACHED ? (struct weft_parker *)old : NULL;
	return old == WEFT_ULT_IS_DETACHED;
}

#endif
