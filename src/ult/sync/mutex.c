/* SPDX-License-Identifier: BSD-3-Clause */
/* mutex.c - mutexes (mutex.h), conditions, barriers. */
#include "base/assert.h"
#include "ult/sync/mutex.h"
#include "base/log.h"
#include "ult/ult_int.h"

/* The caller's parker, without a call where the caller is a user-level thread. */
static inline struct weft_parker *self_parker(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	return w && w->current && !w->on_own_stack ? &w->current->parker : weft_wait_parker_self();
}

bool weft_ult_may_run_elsewhere(const struct weft_parker *p)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (p->ops != &weft_ult_parker_ops)
		return true;
	/* Its home does not say where it runs, but where it most often does. */
	const struct weft_ult *t = weft_container_of(p, const struct weft_ult, parker);
	/* Relaxed: a hint. */
	return t->home != w && !(atomic_load_explicit(&p->x_word, memory_order_relaxed) &
				 (WEFT_ULT_PARKED | WEFT_ULT_WAITS_TOKEN));
}

weft_err weft_ult_mutex_try(weft_ult_mutex *m)
{
	struct weft_parker *self = self_parker();
	if (!self)
		return WEFT_ERR_NOMEM;
	return weft_ult_mutex_take(m, self) ? WEFT_OK : WEFT_AGAIN;
}

static __attribute__((noinline)) weft_err lock_slow(weft_ult_mutex *m, struct weft_parker *self,
						    uint64_t deadline_ns)
{
	char who[WEFT_ULT_WHO];
	/* Relaxed: only our own name matters, and only we write that. */
	if (weft_ult_mutex_owner(
		    atomic_load_explicit(WEFT_SHAREDPTR(m->owner), memory_order_relaxed)) == self) {
		weft_error("%s locks mutex %p, which it holds", weft_ult_who(self, who), (void *)m);
		return WEFT_ERR_DEADLOCK;
	}
	if (weft_ult_mutex_look(m, self))
		return WEFT_OK;
	struct weft_ult_node n;
	weft_err err = weft_ult_waiters_node(&n, 0);
	return err ? err : weft_ult_mutex_wait(m, &n, deadline_ns);
}

weft_err weft_ult_mutex_lock(weft_ult_mutex *m)
{
	struct weft_parker *self = self_parker();
	if (weft_unlikely(!self))
		return WEFT_ERR_NOMEM;
	return weft_likely(weft_ult_mutex_take(m, self)) ? WEFT_OK : lock_slow(m, self, WEFT_NEVER);
}

weft_err weft_ult_mutex_lock_for(weft_ult_mutex *m, uint64_t ns)
{
	struct weft_parker *self = self_parker();
	if (!self)
		return WEFT_ERR_NOMEM;
	return weft_ult_mutex_take(m, self) ? WEFT_OK
					    : lock_slow(m, self, weft_ult_waiters_deadline(ns));
}

/* act: "unlocks". */
static __attribute__((noinline)) weft_err not_owner(const char *act, weft_ult_mutex *m)
{
	char who[WEFT_ULT_WHO], holder[WEFT_ULT_WHO];
	/* Relaxed: a guess, for the message. */
	struct weft_parker *owner = weft_ult_mutex_owner(
		atomic_load_explicit(WEFT_SHAREDPTR(m->owner), memory_order_relaxed));
	weft_error("%s %s mutex %p, which %s holds", weft_ult_who(self_parker(), who), act,
		   (void *)m, owner ? weft_ult_who(owner, holder) : "no thread");
	return WEFT_ERR_STATE;
}

weft_err weft_ult_mutex_unlock(weft_ult_mutex *m)
{
	weft_err err = weft_ult_mutex_release(m, self_parker());
	return weft_likely(!err) ? WEFT_OK : not_owner("unlocks", m);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static weft_err cond_wait(weft_ult_cond *c, weft_ult_mutex *m, uint64_t deadline_ns)
{
	struct weft_ult_node n;
	weft_err err = weft_ult_waiters_node(&n, 0);
	if (err)
		return err;
	/* Relaxed: only our own name matters, and only we write that. */
	if (weft_ult_mutex_owner(atomic_load_explicit(WEFT_SHAREDPTR(m->owner),
						      memory_order_relaxed)) != n.parker)
		return not_owner("waits for a condition with", m);
	weft_ult_waiters_lock(&c->waiters);
	weft_ult_waiters_push_locked(&c->waiters, &n);
	weft_ult_waiters_unlock(&c->waiters);
	(void)weft_ult_mutex_unlock(m); /* ours, as seen */
	err = weft_ult_waiters_sleep(&c->waiters, &n, deadline_ns, "condition", c);
	weft_err again = weft_ult_mutex_lock(m);
	return again ? again : err;
}

weft_err weft_ult_cond_wait(weft_ult_cond *c, weft_ult_mutex *m)
{
	return cond_wait(c, m, WEFT_NEVER);
}

weft_err weft_ult_cond_wait_for(weft_ult_cond *c, weft_ult_mutex *m, uint64_t ns)
{
	return cond_wait(c, m, weft_ult_waiters_deadline(ns));
}

void weft_ult_cond_signal(weft_ult_cond *c)
{
	weft_ult_waiters_lock(&c->waiters);
	struct weft_ult_node *n = weft_ult_waiters_pop_locked(&c->waiters);
	weft_ult_waiters_unlock(&c->waiters);
	if (n)
		weft_ult_waiters_let_go(n);
}

void weft_ult_cond_broadcast(weft_ult_cond *c)
{
	weft_ult_waiters_lock(&c->waiters);
	struct weft_ult_node *n = c->waiters.first;
	c->waiters.first = NULL;
	weft_ult_waiters_unlock(&c->waiters);
	weft_ult_waiters_let_all_go(n);
}

/* ---- barriers -------------------------------------------------------------------------------- */

weft_err weft_ult_barrier_wait(weft_ult_barrier *b, bool *last_p)
{
	struct weft_ult_node n, *list = NULL;
	weft_err err = weft_ult_waiters_node(&n, 0);
	if (err)
		return err;
	weft_ult_waiters_lock(&b->waiters);
	weft_assert(b->here < b->need || !b->need);
	bool last = ++b->here >= b->need;
	if (last) {
		b->here = 0;
		list = b->waiters.first;
		b->waiters.first = NULL;
	} else {
		weft_ult_waiters_push_locked(&b->waiters, &n);
	}
	weft_ult_waiters_unlock(&b->waiters);
	if (last)
		weft_ult_waiters_let_all_go(list);
	else
		(void)weft_ult_waiters_sleep(&b->waiters, &n, WEFT_NEVER, "barrier", b);
	if (last_p)
		*last_p = last;
	return WEFT_OK;
}
