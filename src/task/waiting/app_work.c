/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app_work.c - work that background progress must leave alone: application threads do it when they
 * poll.
 *
 * A stack, taken whole and run in the order it was left.  A thread that leaves something wakes
 * a waiter if there is one; a waiter that is about to sleep looks here once more after it has said
 * so.
 *
 * A second stack is for work that can wait a while: the watcher, which alone leaves it there, takes
 * it when the oldest of it is due.
 */
#include "base/assert.h"
#include "task/engine_int.h"
#include "task/waiting/app_work.h"
#include "task/wake/kick.h"

static _Atomic(struct weft_task_app_work *) x_left, x_awhile;
static uint64_t awhile_ns; /* W: when the oldest of x_awhile was left there */

bool weft_task_app_work_waiting(void)
{
	/* seq_cst: after the caller has said that it sleeps, see weft_task_engine_leave. */
	return atomic_load_explicit(&x_left, memory_order_seq_cst) != NULL ||
	       atomic_load_explicit(&x_awhile, memory_order_seq_cst) != NULL;
}

/* True: it was empty. */
static bool push_work(_Atomic(struct weft_task_app_work *) *x_stack, struct weft_task_app_work *l)
{
	weft_assert(l->fn);
	struct weft_engine *e = &weft_task_engine;
	struct weft_task_app_work *head = atomic_load_explicit(x_stack, memory_order_relaxed);
	do
		l->next = head;
	/* LEAVE -> RUN (weft_task_app_work_run).  Carries: *l and what it works on.
	 * seq_cst: comes before our look for sleepers; a sleeper looks at the list after it has
	 * said that it sleeps, so one of us sees the other. */
	while (!atomic_compare_exchange_weak_explicit(x_stack, &head, l, memory_order_seq_cst,
						      memory_order_relaxed));
	if (atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) == WEFT_BATON_ASLEEP) {
		/* Acquire: a parker that was named by its sleeper. */
		struct weft_parker *p = atomic_load_explicit(&e->x_sleeper, memory_order_acquire);
		if (p)
			weft_wait_unpark(p);
	}
	/* A read-modify-write: a parker has either counted itself before, or comes after us. */
	if (atomic_fetch_add_explicit(&e->baton.x_parked, 0, memory_order_seq_cst))
		weft_task_engine_kick(e, WEFT_KICK_PARKED);
	return !head;
}

void weft_task_engine_leave(struct weft_task_app_work *l)
{
	(void)push_work(&x_left, l);
}

void weft_task_engine_leave_awhile(struct weft_task_app_work *l)
{
	weft_assert(weft_task_engine_self.runner == WEFT_RUNNER_WATCHER);
	uint64_t now = weft_clock_ns();
	if (push_work(&x_awhile, l))
		awhile_ns = now;
}

uint64_t weft_task_app_work_due_ns(void)
{
	/* Relaxed: ours, or gone. */
	if (weft_likely(!atomic_load_explicit(&x_awhile, memory_order_relaxed)))
		return WEFT_FOREVER;
	uint64_t past = weft_clock_ns() - awhile_ns;
	return past < WEFT_AWHILE_NS ? WEFT_AWHILE_NS - past : 0;
}

static int run_work_list(_Atomic(struct weft_task_app_work *) *x_stack)
{
	/* RUN <- LEAVE. */
	struct weft_task_app_work *list =
		atomic_exchange_explicit(x_stack, NULL, memory_order_acq_rel);
	struct weft_task_app_work *first = NULL;
	int n = 0;
	while (list) { /* ends: what is left from now on is for the next call */
		struct weft_task_app_work *next = list->next;
		list->next = first;
		first = list;
		list = next;
	}
	weft_task_engine_self.in_handler++;
	for (; first; n++) {
		struct weft_task_app_work *next =
			first->next; /* fn may leave it again, or free it */
		first->fn(first);
		first = next;
	}
	weft_task_engine_self.in_handler--;
	return n;
}

int weft_task_app_work_run(void)
{
	/* Relaxed, both: rarely anything; the exchange orders. */
	if (weft_likely(!atomic_load_explicit(&x_left, memory_order_relaxed) &&
			!atomic_load_explicit(&x_awhile, memory_order_relaxed)))
		return 0;
	return run_work_list(&x_left) + run_work_list(&x_awhile);
}

void weft_task_engine_run_left(void)
{
	if (!weft_task_engine_self.in_handler)
		(void)weft_task_app_work_run();
}

void weft_task_app_work_run_due(void)
{
	(void)run_work_list(&x_awhile);
}
