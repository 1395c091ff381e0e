/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mutex.h - how a mutex passes from one thread to the next.
 *
 * Callers   as ult_sync.h says; `self` is the caller's parker, which names it as the owner.
 * Owner     the holder of the mutex owns waiters.count.  A waiter's node lies on its own stack and
 *           stays in the queue until the mutex is its own or its time is over.
 * Order     what was written before unlock is visible to the next owner.
 * Progress  lock: looks a while at an owner that runs elsewhere, then sleeps.  unlock: never waits
 *           longer than a few instructions under the queue's lock.
 * Fairness  Unlock calls the first waiter and goes on; until that waiter runs, any thread may take
 *           the mutex, so that a thread that is awake need not wait for one that must be woken.
 *           Not for ever: the unlock after WEFT_MUTEX_PASSES that went past the first waiter hands
 *           the mutex over to it.  Waiters are served in the order they came.
 * Destroy   when no thread waits and its last owner's unlock took place; that unlock may still be
 *           on its way out: it touches the mutex no more.
 *
 * The word: the owner's parker, or 0 when it is free, and two bits that are changed under the
 * queue's lock only.  WAITED: the queue is not empty.  CALLED: its first was called, and will
 * either take the mutex or, finding it taken, clear the bit, so that its owner's unlock calls
 * again.
 */
#ifndef WEFT_ULT_MUTEX_H
#define WEFT_ULT_MUTEX_H

#include "base/assert.h"
#include "ult/sync/waiters.h"

#define WEFT_MUTEX_WAITED ((uintptr_t)1)
#define WEFT_MUTEX_CALLED ((uintptr_t)2)
#define WEFT_MUTEX_FLAGS (WEFT_MUTEX_WAITED | WEFT_MUTEX_CALLED)

#ifndef WEFT_MUTEX_PASSES
#define WEFT_MUTEX_PASSES 64 /* a call over cores lasts about as long as that many turns */
#endif
#ifndef WEFT_MUTEX_LOOKS
#define WEFT_MUTEX_LOOKS 10 /* at the word, each after twice the pause before: 1 us or so */
#endif
#define WEFT_MUTEX_PAUSE 16 /* the longest of them, in turns of the processor's */

/* What a waiter's x_go says. */
enum {
	WEFT_MUTEX_WAITS = 0,
	WEFT_MUTEX_YOURS = 1, /* handed over, and out of the queue */
	WEFT_MUTEX_COME = 2,  /* called */
};

/* Is it a thread that may be running now, on another core than the caller's? */
bool weft_ult_may_run_elsewhere(const struct weft_parker *p);

static inline struct weft_parker *weft_ult_mutex_owner(uintptr_t word)
{
	return (struct weft_parker *)(word & ~WEFT_MUTEX_FLAGS);
}

/* Takes m if it is free, even when a waiter was called. */
static inline bool weft_ult_mutex_take(weft_ult_mutex *m, struct weft_parker *self)
{
	_Atomic uintptr_t *word = WEFT_SHAREDPTR(m->owner);
	uintptr_t seen = 0;
	do /* ends: a retry follows another thread's success */
		/* LOCK <- UNLOCK.  Carries: what the mutex protects, and waiters.count.
		 * LOCK -> LOOK.  Carries: our parker, which may be new. */
		if (atomic_compare_exchange_weak_explicit(word, &seen, seen | (uintptr_t)self,
							  memory_order_acq_rel,
							  memory_order_relaxed))
			return true;
	while (!weft_ult_mutex_owner(seen));
	return false;
}

/* Looks for a while, longer and longer: a lock that is passed on at each turn costs both sides a
 * cache line each time. */
static inline bool weft_ult_mutex_look(weft_ult_mutex *m, struct weft_parker *self)
{
	unsigned pause = 1;
	for (int i = 0; i < WEFT_MUTEX_LOOKS; i++) { /* ends: as counted */
		/* LOOK <- LOCK.  Carries: the owner's parker, of which we ask where it runs. */
		uintptr_t seen =
			atomic_load_explicit(WEFT_SHAREDPTR(m->owner), memory_order_acquire);
		struct weft_parker *owner = weft_ult_mutex_owner(seen);
		if (owner ? !weft_ult_may_run_elsewhere(owner) : weft_ult_mutex_take(m, self))
			return !owner;
		for (unsigned k = 0; k < pause; k++)
			weft_cpu_relax();
		pause = pause < WEFT_MUTEX_PAUSE ? 2 * pause : pause;
	}
	return false;
}

/* Under the queue's lock: takes m, or says that a thread waits and none is called. */
static inline bool weft_ult_mutex_take_or_mark_locked(weft_ult_mutex *m, struct weft_parker *self,
						      bool others)
{
	_Atomic uintptr_t *word = WEFT_SHAREDPTR(m->owner);
	weft_assert_held(weft_ult_waiters, &m->waiters);
	weft_assert(self && !((uintptr_t)self & WEFT_MUTEX_FLAGS));
	uintptr_t seen = atomic_load_explicit(word, memory_order_relaxed), want;
	do { /* ends: a retry follows another thread's success */
		struct weft_parker *owner = weft_ult_mutex_owner(seen);
		want = owner ? (uintptr_t)owner | WEFT_MUTEX_WAITED
			     : (uintptr_t)self | (others ? WEFT_MUTEX_WAITED : 0);
		/* LOCK <- UNLOCK, LOCK -> LOOK, as above.  Held by another: its unlock comes after
		 * us. */
	} while (!atomic_compare_exchange_weak_explicit(word, &seen, want, memory_order_acq_rel,
							memory_order_relaxed));
	return !weft_ult_mutex_owner(seen);
}

/* One more waiter, at the end of the queue; the first one is called.  True: taken instead. */
static inline bool weft_ult_mutex_enlist(weft_ult_mutex *m, struct weft_ult_node *n)
{
	struct weft_ult_waiters *q = &m->waiters;
	_Atomic uintptr_t *word = WEFT_SHAREDPTR(m->owner);
	weft_ult_waiters_lock(q);
	uintptr_t seen = atomic_load_explicit(word, memory_order_relaxed), want;
	do { /* ends: as above */
		want = weft_ult_mutex_owner(seen) ? seen | WEFT_MUTEX_WAITED
						  : seen | (uintptr_t)n->parker;
		/* LOCK <- UNLOCK, LOCK -> LOOK, as above. */
	} while (!atomic_compare_exchange_weak_explicit(word, &seen, want, memory_order_acq_rel,
							memory_order_relaxed));
	bool taken = !weft_ult_mutex_owner(seen);
	if (!taken)
		weft_ult_waiters_push_locked(q, n);
	weft_ult_waiters_unlock(q);
	return taken;
}

/* n was called: takes m and leaves the queue, or waits on.  True: taken. */
static inline bool weft_ult_mutex_come(weft_ult_mutex *m, struct weft_ult_node *n)
{
	struct weft_ult_waiters *q = &m->waiters;
	uint32_t called = WEFT_MUTEX_COME;
	weft_ult_waiters_lock(q);
	bool taken = weft_ult_mutex_take_or_mark_locked(m, n->parker, n->next != NULL);
	if (taken) {
		weft_assert(q->first == n);
		(void)weft_ult_waiters_pop_locked(
			q); /* ourselves: the first is called, and stays */
		m->waiters.count = 0;
	} else {
		/* Not when m is being handed to us at this moment: YOURS is not to be overwritten.
		 * Relaxed: says nothing but that we sleep again; the next call comes under the
		 * lock. */
		(void)atomic_compare_exchange_strong_explicit(&n->x_go, &called, WEFT_MUTEX_WAITS,
							      memory_order_relaxed,
							      memory_order_relaxed);
	}
	weft_ult_waiters_unlock(q);
	return taken;
}

/* n's time is over and it is out of the queue; if it was called meanwhile, its call is for the
 * next waiter.  True: taken. */
static inline bool weft_ult_mutex_give_up(weft_ult_mutex *m, struct weft_ult_node *n)
{
	bool taken = false;
	/* Relaxed: the queue's lock, which we had since it was written, orders. */
	if (atomic_load_explicit(&n->x_go, memory_order_relaxed) != WEFT_MUTEX_COME)
		return false;
	weft_ult_waiters_lock(&m->waiters);
	taken = weft_ult_mutex_take_or_mark_locked(m, n->parker, m->waiters.first != NULL);
	weft_ult_waiters_unlock(&m->waiters);
	return taken;
}

static inline weft_err weft_ult_mutex_wait(weft_ult_mutex *m, struct weft_ult_node *n,
					   uint64_t deadline_ns)
{
	if (weft_ult_mutex_enlist(m, n))
		return WEFT_OK;
	for (;;) { /* ends: ours, or late; sleeps between */
		weft_err err = weft_ult_waiters_sleep(&m->waiters, n, deadline_ns, "mutex", m);
		if (err)
			return weft_ult_mutex_give_up(m, n) ? WEFT_OK : err;
		/* YOURS <- HAND.  Carries: what the mutex protects. */
		if (atomic_load_explicit(&n->x_go, memory_order_acquire) == WEFT_MUTEX_YOURS ||
		    weft_ult_mutex_come(m, n))
			return WEFT_OK;
	}
}

/* The caller holds m, and others wait or did: calls the first of them, or hands m over to it. */
static inline void weft_ult_mutex_pass(weft_ult_mutex *m)
{
	struct weft_ult_waiters *q = &m->waiters;
	_Atomic uintptr_t *word = WEFT_SHAREDPTR(m->owner);
	weft_ult_waiters_lock(q);
	struct weft_ult_node *n = q->first;
	weft_assert(weft_ult_mutex_owner(atomic_load_explicit(word, memory_order_relaxed)));
	bool hand = n && m->waiters.count >= WEFT_MUTEX_PASSES;
	struct weft_parker *p = n ? n->parker : NULL;
	m->waiters.count = hand || !n ? 0 : m->waiters.count + 1;
	uintptr_t next = n ? WEFT_MUTEX_WAITED | WEFT_MUTEX_CALLED : 0;
	if (hand) {
		(void)weft_ult_waiters_pop_locked(q);
		next = (uintptr_t)p | (q->first ? WEFT_MUTEX_WAITED : 0);
	} else if (n) {
		/* Relaxed: the woken thread looks at m under the lock. */
		atomic_store_explicit(&n->x_go, WEFT_MUTEX_COME, memory_order_relaxed);
	}
	/* UNLOCK -> LOCK.  Carries: what the mutex protects, and waiters.count. */
	atomic_store_explicit(word, next, memory_order_release);
	/* A waiter must take this lock before it leaves: m is still there. */
	weft_ult_waiters_unlock(q);
	if (hand)
		weft_ult_waiters_let_go(n); /* HAND -> YOURS */
	else if (n)
		weft_wait_unpark(p);
}

/* WEFT_ERR_STATE: it is not self's. */
static inline weft_err weft_ult_mutex_release(weft_ult_mutex *m, struct weft_parker *self)
{
	_Atomic uintptr_t *word = WEFT_SHAREDPTR(m->owner);
	uintptr_t seen = (uintptr_t)self;
	/* UNLOCK -> LOCK.  Carries: what the mutex protects, and waiters.count. */
	if (weft_likely(atomic_compare_exchange_strong_explicit(
		    word, &seen, 0, memory_order_release, memory_order_relaxed)))
		return WEFT_OK;
	if (weft_ult_mutex_owner(seen) != self || !self)
		return WEFT_ERR_STATE;
	while ((seen & WEFT_MUTEX_CALLED) && m->waiters.count < WEFT_MUTEX_PASSES) {
		/* Ends: each retry follows a waiter's success, and is counted. */
		m->waiters.count++;
		/* UNLOCK -> LOCK. */
		if (atomic_compare_exchange_strong_explicit(word, &seen, seen & WEFT_MUTEX_FLAGS,
							    memory_order_release,
							    memory_order_relaxed))
			return WEFT_OK;
	}
	weft_ult_mutex_pass(m);
	return WEFT_OK;
}

#endif
