/* SPDX-License-Identifier: BSD-3-Clause */
/* wait_call.c - the lists that a waiter is in: of completions, and of the parked waiters. */
#include "base/log.h"
#include "task/waiting/wait_call.h"

/* Puts us into the lists of all that is not done yet; false: no parker, do not sleep. */
bool weft_task_wait_call_enlist(struct wait_call *w)
{
	if (w->enlisted)
		return true;
	if (!w->parker)
		return false;
	weft_assert(w->node || !w->n);
	weft_wait_parker_forget(w->parker);
	w->waiter.parker = w->parker;
	/* Relaxed: published with the first node. */
	atomic_store_explicit(&w->waiter.x_need, w->all ? (int)w->n : 1, memory_order_relaxed);
	for (size_t i = 0; i < w->n; i++) {
		weft_wait_node_init(&w->node[i], &w->waiter);
		if (w->c[i] && weft_wait_completion_enlist(w->c[i], &w->node[i]))
			continue;
		w->node[i].waiter = NULL; /* not in use */
		if (w->all)
			atomic_fetch_sub_explicit(&w->waiter.x_need, 1, memory_order_acq_rel);
	}
	w->enlisted = true;
	return true;
}

/* No list holds the node any more when this returns. */
void weft_task_wait_call_delist_node(struct weft_completion *c, struct weft_wait_node *n)
{
	weft_assert(n->waiter);
	unsigned turns = 0;
	if (weft_wait_completion_delist(c, n))
		return;
	/* LEFT: ends when the waker has read the node; it is past its exchange. */
	while (!atomic_load_explicit(&n->x_left, memory_order_acquire))
		weft_backoff(&turns);
}

void weft_task_wait_call_delist(struct wait_call *w)
{
	for (size_t i = 0; w->enlisted && i < w->n; i++)
		if (w->node[i].waiter)
			weft_task_wait_call_delist_node(w->c[i], &w->node[i]);
	w->enlisted = false;
}

void weft_task_parked_add(struct weft_engine *e, struct weft_parked *me)
{
	pthread_mutex_lock(&e->park_lock);
	weft_list_push_back(&e->parked, &me->link);
	pthread_mutex_unlock(&e->park_lock);
}

void weft_task_parked_remove(struct weft_engine *e, struct weft_parked *me)
{
	pthread_mutex_lock(&e->park_lock);
	weft_list_remove(&me->link); /* alone already if a leaver took it out */
	pthread_mutex_unlock(&e->park_lock);
	weft_task_baton_unpark(&e->baton);
}

/* May this thread wait at all?  Logs why not. */
weft_err weft_task_wait_call_may(struct weft_engine *e)
{
	if (weft_unlikely(weft_task_engine_self.in_handler)) {
		weft_error("a handler tried to wait: it would wait for itself");
		return WEFT_ERR_DEADLOCK;
	}
	if (weft_unlikely(!atomic_load_explicit(&e->x_running, memory_order_acquire))) {
		weft_error(atomic_load_explicit(&e->x_dead, memory_order_relaxed)
				   ? "a child process of fork cannot wait for its parent's messages"
				   : "the progress engine is not running");
		return WEFT_ERR_STATE;
	}
	return WEFT_OK;
}
