/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mutex.c - mutexes and conditions.
 *
 * A mutex's word is 0, or its owner's parker, with bit 0 when others wait; the bit is set and
 * cleared under the queue's lock.  Unlock with waiters hands the mutex to the first of them.
 */
#include "base/log.h"
#include "ult/waiters.h"

#define WAITED ((uintptr_t)1)

static uintptr_t me(void)
{
	return (uintptr_t)weft_parker_self();
}

weft_err weft_ult_mutex_try(weft_ult_mutex *m)
{
	uintptr_t free = 0, self = me();
	if (!self)
		return WEFT_ERR_NOMEM;
	/* LOCK <- UNLOCK.  Carries: what the mutex protects. */
	return atomic_compare_exchange_strong_explicit(WEFT_SHAREDPTR(m->owner), &free, self,
						       memory_order_acquire, memory_order_relaxed)
		       ? WEFT_OK
		       : WEFT_AGAIN;
}

/* Under the queue's lock: takes m, or notes that somebody waits.  True: taken. */
static bool take_or_mark_locked(weft_ult_mutex *m, uintptr_t self)
{
	_Atomic uintptr_t *word = WEFT_SHAREDPTR(m->owner);
	uintptr_t seen = atomic_load_explicit(word, memory_order_relaxed);
	for (;;) { /* ends: each retry follows somebody's success */
		uintptr_t want = seen ? seen | WAITED : self;
		/* LOCK <- UNLOCK. */
		if (seen == want ||
		    atomic_compare_exchange_weak_explicit(word, &seen, want, memory_order_acquire,
							  memory_order_relaxed))
			return !seen;
	}
}

static __attribute__((noinline)) weft_err lock_slow(weft_ult_mutex *m, uint64_t deadline_ns)
{
	struct weft_ult_node n;
	weft_err err = weft_waiters_node(&n, 0);
	if (err)
		return err;
	/* Relaxed: only our own name matters, and only we write that. */
	if ((atomic_load_explicit(WEFT_SHAREDPTR(m->owner), memory_order_relaxed) & ~WAITED) ==
	    (uintptr_t)n.parker) {
		weft_error("a thread locks mutex %p, which it holds", (void *)m);
		return WEFT_ERR_DEADLOCK;
	}
	weft_waiters_lock(&m->waiters);
	bool taken = take_or_mark_locked(m, (uintptr_t)n.parker);
	if (!taken)
		weft_waiters_push_locked(&m->waiters, &n);
	weft_waiters_unlock(&m->waiters);
	return taken ? WEFT_OK : weft_waiters_sleep(&m->waiters, &n, deadline_ns, "mutex", m);
}

weft_err weft_ult_mutex_lock(weft_ult_mutex *m)
{
	weft_err err = weft_ult_mutex_try(m);
	return weft_likely(err != WEFT_AGAIN) ? err : lock_slow(m, WEFT_NEVER);
}

weft_err weft_ult_mutex_lock_for(weft_ult_mutex *m, uint64_t ns)
{
	weft_err err = weft_ult_mutex_try(m);
	return err != WEFT_AGAIN ? err : lock_slow(m, weft_waiters_deadline(ns));
}

static __attribute__((noinline)) weft_err unlock_slow(weft_ult_mutex *m)
{
	weft_waiters_lock(&m->waiters);
	struct weft_ult_node *n = weft_waiters_pop_locked(&m->waiters);
	uintptr_t next = n ? (uintptr_t)n->parker | (m->waiters.first ? WAITED : 0) : 0;
	/* UNLOCK -> LOCK. */
	atomic_store_explicit(WEFT_SHAREDPTR(m->owner), next, memory_order_release);
	weft_waiters_unlock(&m->waiters);
	if (n)
		weft_waiters_let_go(n);
	return WEFT_OK;
}

weft_err weft_ult_mutex_unlock(weft_ult_mutex *m)
{
	uintptr_t self = me(), seen = self;
	/* UNLOCK -> LOCK.  Carries: what the mutex protects. */
	if (weft_likely(atomic_compare_exchange_strong_explicit(WEFT_SHAREDPTR(m->owner), &seen, 0,
								memory_order_release,
								memory_order_relaxed)))
		return WEFT_OK;
	if ((seen & ~WAITED) == self && self)
		return unlock_slow(m);
	weft_error("a thread unlocks mutex %p, which %s", (void *)m,
		   seen ? "another holds" : "nobody holds");
	return WEFT_ERR_STATE;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static weft_err cond_wait(weft_ult_cond *c, weft_ult_mutex *m, uint64_t deadline_ns)
{
	struct weft_ult_node n;
	weft_err err = weft_waiters_node(&n, 0);
	if (err)
		return err;
	weft_waiters_lock(&c->waiters);
	weft_waiters_push_locked(&c->waiters, &n);
	weft_waiters_unlock(&c->waiters);
	err = weft_ult_mutex_unlock(m);
	if (err) {
		weft_waiters_lock(&c->waiters);
		/* Not ours: then it is no use to wait; if we were signalled, so be it. */
		if (!atomic_load_explicit(&n.x_go, memory_order_acquire))
			weft_waiters_remove_locked(&c->waiters, &n);
		weft_waiters_unlock(&c->waiters);
		return err;
	}
	err = weft_waiters_sleep(&c->waiters, &n, deadline_ns, "condition", c);
	weft_err again = weft_ult_mutex_lock(m);
	return again ? again : err;
}

weft_err weft_ult_cond_wait(weft_ult_cond *c, weft_ult_mutex *m)
{
	return cond_wait(c, m, WEFT_NEVER);
}

weft_err weft_ult_cond_wait_for(weft_ult_cond *c, weft_ult_mutex *m, uint64_t ns)
{
	return cond_wait(c, m, weft_waiters_deadline(ns));
}

void weft_ult_cond_signal(weft_ult_cond *c)
{
	weft_waiters_lock(&c->waiters);
	struct weft_ult_node *n = weft_waiters_pop_locked(&c->waiters);
	weft_waiters_unlock(&c->waiters);
	if (n)
		weft_waiters_let_go(n);
}

/* Lets a list go that was taken out of a queue whole. */
static void let_all_go(struct weft_ult_node *n)
{
	while (n) { /* ends: the list is ours */
		struct weft_ult_node *next = n->next;
		weft_waiters_let_go(n);
		n = next;
	}
}

void weft_ult_cond_broadcast(weft_ult_cond *c)
{
	weft_waiters_lock(&c->waiters);
	struct weft_ult_node *n = c->waiters.first;
	c->waiters.first = NULL;
	weft_waiters_unlock(&c->waiters);
	let_all_go(n);
}

/* ---- barriers -------------------------------------------------------------------------------- */

weft_err weft_ult_barrier_wait(weft_ult_barrier *b, bool *last_p)
{
	struct weft_ult_node n, *list = NULL;
	weft_err err = weft_waiters_node(&n, 0);
	if (err)
		return err;
	weft_waiters_lock(&b->waiters);
	bool last = ++b->here >= b->need;
	if (last) {
		b->here = 0;
		list = b->waiters.first;
		b->waiters.first = NULL;
	} else {
		weft_waiters_push_locked(&b->waiters, &n);
	}
	weft_waiters_unlock(&b->waiters);
	if (last)
		let_all_go(list);
	else
		(void)weft_waiters_sleep(&b->waiters, &n, WEFT_NEVER, "barrier", b);
	if (last_p)
		*last_p = last;
	return WEFT_OK;
}
