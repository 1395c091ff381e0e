/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h - the two words of a thread: the one that it parks on, and the one that it is joined by.
 *
 * Parking: ult_int.h has the states.  Joining: x_join is RUNNING, the parker of who joins, DETACHED
 * or ENDED.  Whoever comes second frees the thread: the joiner after ENDED, or the end itself when
 * it finds DETACHED.
 *
 * Callers   commit, end: who runs next on the thread's worker, after the thread's context is
 * stored. consume: the thread itself.  join, detach: one caller per thread. Order     what a thread
 * did is visible to who joined it; its context to who runs it next.
 */
#ifndef WEFT_ULT_LIFE_H
#define WEFT_ULT_LIFE_H

#include "base/base.h"
#include "wait/park.h"

enum {
	WEFT_ULT_RUNNING = 0,
	WEFT_ULT_ENDED = 1,
	WEFT_ULT_IS_DETACHED = 2,
	/* else: a parker's address */
};

/* Its context is stored: now it may be called.  False: it was called before; make it ready. */
static inline bool weft_ult_park_commit(_Atomic uint32_t *word)
{
	uint32_t empty = WEFT_PARKER_EMPTY;
	/* STORED -> CALL (weft_unpark).  Carries: the context.  Without it, whoever wakes the
	 * thread could pass it on and another worker jump to a context that is not yet there. */
	return atomic_compare_exchange_strong_explicit(word, &empty, WEFT_PARKER_PARKED,
						       memory_order_acq_rel, memory_order_acquire);
}

/* Takes a notification that is there; false: there is none. */
static inline bool weft_ult_park_consume(_Atomic uint32_t *word)
{
	/* Relaxed: a hint, the exchange orders. */
	if (atomic_load_explicit(word, memory_order_relaxed) != WEFT_PARKER_NOTIFIED)
		return false;
	/* WOKEN <- WAKE (weft_unpark).  Carries: what the notifier wrote. */
	(void)atomic_exchange_explicit(word, WEFT_PARKER_EMPTY, memory_order_acq_rel);
	return true;
}

static inline bool weft_ult_ended(const _Atomic uintptr_t *x_join)
{
	/* SEEN <- OVER. */
	return atomic_load_explicit(x_join, memory_order_acquire) == WEFT_ULT_ENDED;
}

/*
 * The caller will wait on its parker until weft_ult_ended().  WEFT_AGAIN: it has ended already.
 * WEFT_ERR_STATE: somebody joins it already, or it is detached.
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
 * The thread has left its stack for good.  *joiner_p: whom to unpark, or NULL.  True: the caller
 * frees it; false: it belongs to its joiner from now on.
 */
static inline bool weft_ult_over(_Atomic uintptr_t *x_join, struct weft_parker **joiner_p)
{
	/* OVER -> SEEN.  Carries: what the thread did, and that its stack is free.
	 * Without it the joiner could give the stack to another thread while this one leaves it. */
	uintptr_t old = atomic_exchange_explicit(x_join, WEFT_ULT_ENDED, memory_order_acq_rel);
	*joiner_p = old > WEFT_ULT_IS_DETACHED ? (struct weft_parker *)old : NULL;
	return old == WEFT_ULT_IS_DETACHED;
}

#endif
