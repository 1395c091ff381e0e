/* SPDX-License-Identifier: BSD-3-Clause */
/* sem.c - semaphores, read-write locks, once: words under the lock of their queue. */
#include "base/assert.h"
#include "base/log.h"
#include "ult/ult_int.h"
#include "ult/sync/waiters.h"

/* ---- semaphores ------------------------------------------------------------------------------ */

weft_err weft_ult_sem_try(weft_ult_sem *s)
{
	weft_ult_waiters_lock(&s->waiters);
	bool got = s->count > 0;
	s->count -= got;
	weft_ult_waiters_unlock(&s->waiters);
	return got ? WEFT_OK : WEFT_AGAIN;
}

static weft_err sem_wait_until(weft_ult_sem *s, uint64_t deadline_ns)
{
	struct weft_ult_node n;
	weft_err err = weft_ult_waiters_node(&n, 0);
	if (err)
		return err;
	weft_ult_waiters_lock(&s->waiters);
	bool got = s->count > 0;
	s->count -= got;
	if (!got)
		weft_ult_waiters_push_locked(&s->waiters, &n);
	weft_ult_waiters_unlock(&s->waiters);
	return got ? WEFT_OK : weft_ult_waiters_sleep(&s->waiters, &n, deadline_ns, "semaphore", s);
}

weft_err weft_ult_sem_wait(weft_ult_sem *s)
{
	return sem_wait_until(s, WEFT_NEVER);
}

weft_err weft_ult_sem_wait_for(weft_ult_sem *s, uint64_t ns)
{
	return sem_wait_until(s, weft_ult_waiters_deadline(ns));
}

void weft_ult_sem_post(weft_ult_sem *s)
{
	weft_ult_waiters_lock(&s->waiters);
	struct weft_ult_node *n = weft_ult_waiters_pop_locked(&s->waiters);
	weft_assert(!n || !s->count); /* a thread waits only while there is none */
	s->count += !n;
	weft_ult_waiters_unlock(&s->waiters);
	if (n)
		weft_ult_waiters_let_go(n);
}

/* ---- read-write locks ------------------------------------------------------------------------ */

enum { READER, WRITER };

/* In the order of arrival: a writer when it is free, or all the readers in front.  Returns those to
 * let go. */
static struct weft_ult_node *admit_locked(weft_ult_rwlock *l)
{
	struct weft_ult_node *list = NULL, **end = &list, *n = l->waiters.first;
	weft_assert_held(weft_ult_waiters, &l->waiters);
	weft_assert(!l->writer || !l->readers);
	if (n && n->kind == WRITER) {
		if (l->readers || l->writer)
			return NULL;
		l->writer = (uintptr_t)n->parker;
		n = weft_ult_waiters_pop_locked(&l->waiters);
		n->next = NULL;
		return n;
	}
	while (!l->writer && (n = l->waiters.first) && n->kind == READER) { /* ends: queue ends */
		n = weft_ult_waiters_pop_locked(&l->waiters);
		l->readers++;
		n->next = NULL;
		*end = n;
		end = &n->next;
	}
	return list;
}

static weft_err rw_lock(weft_ult_rwlock *l, int kind, uint64_t deadline_ns)
{
	char who[WEFT_ULT_WHO];
	struct weft_ult_node n;
	weft_err err = weft_ult_waiters_node(&n, kind);
	if (err)
		return err;
	weft_ult_waiters_lock(&l->waiters);
	if (l->writer == (uintptr_t)n.parker) {
		weft_ult_waiters_unlock(&l->waiters);
		weft_error("%s locks read-write lock %p, which it holds",
			   weft_ult_who(n.parker, who), (void *)l);
		return WEFT_ERR_DEADLOCK;
	}
	bool got = !l->waiters.first && !l->writer && (kind == READER || !l->readers);
	if (got && kind == READER)
		l->readers++;
	else if (got)
		l->writer = (uintptr_t)n.parker;
	else
		weft_ult_waiters_push_locked(&l->waiters, &n);
	weft_ult_waiters_unlock(&l->waiters);
	if (got)
		return WEFT_OK;
	err = weft_ult_waiters_sleep(&l->waiters, &n, deadline_ns, "read-write lock", l);
	if (err) {
		/* A writer that gives up may have kept readers behind it. */
		weft_ult_waiters_lock(&l->waiters);
		struct weft_ult_node *go = admit_locked(l);
		weft_ult_waiters_unlock(&l->waiters);
		weft_ult_waiters_let_all_go(go);
	}
	return err;
}

weft_err weft_ult_rwlock_read(weft_ult_rwlock *l)
{
	return rw_lock(l, READER, WEFT_NEVER);
}

weft_err weft_ult_rwlock_read_for(weft_ult_rwlock *l, uint64_t ns)
{
	return rw_lock(l, READER, weft_ult_waiters_deadline(ns));
}

weft_err weft_ult_rwlock_write(weft_ult_rwlock *l)
{
	return rw_lock(l, WRITER, WEFT_NEVER);
}

weft_err weft_ult_rwlock_write_for(weft_ult_rwlock *l, uint64_t ns)
{
	return rw_lock(l, WRITER, weft_ult_waiters_deadline(ns));
}

weft_err weft_ult_rwlock_unlock(weft_ult_rwlock *l)
{
	struct weft_parker *self = weft_wait_parker_self();
	char who[WEFT_ULT_WHO];
	struct weft_ult_node *go = NULL;
	weft_err err = WEFT_OK;
	weft_ult_waiters_lock(&l->waiters);
	if (l->writer && l->writer == (uintptr_t)self)
		l->writer = 0;
	else if (!l->writer && l->readers)
		l->readers--;
	else
		err = WEFT_ERR_STATE;
	if (!err)
		go = admit_locked(l);
	weft_ult_waiters_unlock(&l->waiters);
	if (err)
		weft_error("%s unlocks read-write lock %p, which it does not hold",
			   weft_ult_who(self, who), (void *)l);
	weft_ult_waiters_let_all_go(go);
	return err;
}

/* ---- once --------------------------------------------------------------------------------------
 */

enum { ONCE_NEW, ONCE_RUNS, ONCE_DONE };

weft_err weft_ult_once_run(weft_ult_once *o, void (*fn)(void))
{
	struct weft_ult_node n, *go;
	/* SEEN <- ONCE.  Carries: what fn did. */
	if (weft_likely(atomic_load_explicit(WEFT_SHARED32(o->state), memory_order_acquire) ==
			ONCE_DONE))
		return WEFT_OK;
	weft_err err = weft_ult_waiters_node(&n, 0);
	if (err)
		return err;
	weft_ult_waiters_lock(&o->waiters);
	/* Relaxed: under the lock. */
	uint32_t state = atomic_load_explicit(WEFT_SHARED32(o->state), memory_order_relaxed);
	if (state == ONCE_NEW)
		atomic_store_explicit(WEFT_SHARED32(o->state), ONCE_RUNS, memory_order_relaxed);
	else if (state == ONCE_RUNS)
		weft_ult_waiters_push_locked(&o->waiters, &n);
	weft_ult_waiters_unlock(&o->waiters);
	if (state == ONCE_RUNS)
		return weft_ult_waiters_sleep(&o->waiters, &n, WEFT_NEVER, "once", o);
	if (state == ONCE_DONE)
		return WEFT_OK;
	fn();
	weft_ult_waiters_lock(&o->waiters);
	/* ONCE -> SEEN. */
	atomic_store_explicit(WEFT_SHARED32(o->state), ONCE_DONE, memory_order_release);
	go = o->waiters.first;
	o->waiters.first = NULL;
	weft_ult_waiters_unlock(&o->waiters);
	while (go) { /* ends: the list is ours */
		struct weft_ult_node *next = go->next;
		weft_ult_waiters_let_go(go);
		go = next;
	}
	return WEFT_OK;
}
