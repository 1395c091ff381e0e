/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waiters.h - a short queue of waiting threads of both kinds, under a lock of a word.
 *
 * Callers   any thread.  Inside the lock: a few instructions, no switch, no call that may block.
 * Owner     a node lies on its waiter's stack.  The thread that takes it out of the queue
 *           owns it until weft_ult_waiters_let_go(), whose last access to it is the store of x_go.
 * Order     what was written before let_go() is visible after the sleep that it ended.
 * Progress  lock: spins, then yields the core: the holder may have been preempted.
 */
#ifndef WEFT_ULT_WAITERS_H
#define WEFT_ULT_WAITERS_H

#include <weft/ult_sync.h>
#include "base/assert.h"
#include "base/backoff.h"
#include "ult/ult.h"
#include "wait/park.h"

struct weft_ult_node {
	struct weft_ult_node *next;
	struct weft_parker *parker;
	int kind;
	_Atomic uint32_t x_go;
};

/* The fields of the public structures are plain words for C++'s sake. */
#define WEFT_SHARED32(field) ((_Atomic uint32_t *)&(field))
#define WEFT_SHAREDPTR(field) ((_Atomic uintptr_t *)&(field))

/* For weft_assert_held: a thread holds the queue's lock. */
static inline bool weft_ult_waiters_held(struct weft_ult_waiters *q)
{
	/* Relaxed: asked by the holder. */
	return atomic_load_explicit(WEFT_SHARED32(q->lock), memory_order_relaxed) != 0;
}

static inline void weft_ult_waiters_lock(struct weft_ult_waiters *q)
{
	unsigned turns = 0;
	/* TAKE <- GIVE.  Carries: the queue, and what the object's other words say. */
	while (atomic_exchange_explicit(WEFT_SHARED32(q->lock), 1, memory_order_acquire))
		/* Relaxed: the exchange decides; looking, we leave the line to its holder. */
		while (atomic_load_explicit(WEFT_SHARED32(q->lock), memory_order_relaxed))
			weft_backoff(&turns); /* ends: the holder stays for a few instructions */
}

static inline void weft_ult_waiters_unlock(struct weft_ult_waiters *q)
{
	weft_assert_held(weft_ult_waiters, q);
	/* GIVE -> TAKE. */
	atomic_store_explicit(WEFT_SHARED32(q->lock), 0, memory_order_release);
}

/* Under the lock, all of these. */
static inline void weft_ult_waiters_push_locked(struct weft_ult_waiters *q, struct weft_ult_node *n)
{
	weft_assert_held(weft_ult_waiters, q);
	weft_assert(!q->first || !((struct weft_ult_node *)q->last)->next);
	n->next = NULL;
	if (q->first)
		((struct weft_ult_node *)q->last)->next = n;
	else
		q->first = n;
	q->last = n;
}

static inline struct weft_ult_node *weft_ult_waiters_pop_locked(struct weft_ult_waiters *q)
{
	struct weft_ult_node *n = q->first;
	weft_assert_held(weft_ult_waiters, q);
	weft_assert(!n || n->next || n == q->last);
	if (n)
		q->first = n->next;
	return n;
}

static inline void weft_ult_waiters_remove_locked(struct weft_ult_waiters *q,
						  struct weft_ult_node *n)
{
	struct weft_ult_node *before = NULL, *at = q->first;
	weft_assert_held(weft_ult_waiters, q);
	while (at != n) { /* ends: n is in the queue */
		weft_assert(at);
		before = at;
		at = at->next;
	}
	if (before)
		before->next = n->next;
	else
		q->first = n->next;
	if (q->last == n)
		q->last = before;
}

/* Makes a node of the caller's; WEFT_ERR_NOMEM: it has no parker. */
static inline weft_err weft_ult_waiters_node(struct weft_ult_node *n, int kind)
{
	n->parker = weft_wait_parker_self();
	n->kind = kind;
	/* Relaxed: published by the lock. */
	atomic_store_explicit(&n->x_go, 0, memory_order_relaxed);
	return n->parker ? WEFT_OK : WEFT_ERR_NOMEM;
}

/* Lets a waiter that was taken out go on. */
static inline void weft_ult_waiters_let_go(struct weft_ult_node *n)
{
	struct weft_parker *p = n->parker;
	/* GO -> sleep.  Carries: what the waker did.  Our last access to n, which the waiter may
	 * leave at once; parkers stay. */
	atomic_store_explicit(&n->x_go, 1, memory_order_release);
	weft_wait_unpark(p);
}

/* The same for a list of them. */
static inline void weft_ult_waiters_let_all_go(struct weft_ult_node *n)
{
	while (n) { /* ends: the list is ours */
		struct weft_ult_node *next = n->next;
		weft_ult_waiters_let_go(n);
		n = next;
	}
}

/* Sleeps with n in the queue, the lock not held.  WEFT_ERR_TIMEOUT: n is out of the queue again. */
weft_err weft_ult_waiters_sleep(struct weft_ult_waiters *q, struct weft_ult_node *n,
				uint64_t deadline_ns, const char *what, const void *object);

/* ns from now as a time of the clock. */
uint64_t weft_ult_waiters_deadline(uint64_t ns);

#endif
