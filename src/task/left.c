/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * left.c - work that background progress must leave alone: application threads do it when they
 * poll.
 *
 * A stack, taken whole and run in the order it was left.  Whoever leaves something wakes a waiter
 * if there is one; whoever is about to sleep looks here once more after it has said so.
 */
#include "task/engine_int.h"

static _Atomic(struct weft_left *) x_left;

bool weft_left_waiting(void)
{
	/* seq_cst: after the caller has said that it sleeps, see weft_engine_leave. */
	return atomic_load_explicit(&x_left, memory_order_seq_cst) != NULL;
}

void weft_engine_leave(struct weft_left *l)
{
	struct weft_engine *e = &weft_engine;
	struct weft_left *head = atomic_load_explicit(&x_left, memory_order_relaxed);
	do
		l->next = head;
	/* LEAVE -> RUN (weft_left_run).  Carries: *l and what it works on.
	 * seq_cst: comes before our look for sleepers; a sleeper looks at the list after it has
	 * said that it sleeps, so one of us sees the other. */
	while (!atomic_compare_exchange_weak_explicit(&x_left, &head, l, memory_order_seq_cst,
						      memory_order_relaxed));
	if (atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) == WEFT_BATON_ASLEEP) {
		/* Acquire: a parker that was named by its sleeper. */
		struct weft_parker *p = atomic_load_explicit(&e->x_sleeper, memory_order_acquire);
		if (p)
			weft_unpark(p);
	}
	/* A read-modify-write: a parker has either counted itself before, or comes after us. */
	if (atomic_fetch_add_explicit(&e->baton.x_parked, 0, memory_order_seq_cst))
		weft_engine_kick(e, WEFT_KICK_PARKED);
}

int weft_left_run(void)
{
	/* Relaxed: rarely anything; the exchange orders. */
	if (weft_likely(!atomic_load_explicit(&x_left, memory_order_relaxed)))
		return 0;
	/* RUN <- LEAVE. */
	struct weft_left *list = atomic_exchange_explicit(&x_left, NULL, memory_order_acq_rel);
	struct weft_left *first = NULL;
	int n = 0;
	while (list) { /* ends: what is left from now on is for the next call */
		struct weft_left *next = list->next;
		list->next = first;
		first = list;
		list = next;
	}
	weft_engine_self.in_handler++;
	for (; first; n++) {
		struct weft_left *next = first->next; /* fn may leave it again, or free it */
		first->fn(first);
		first = next;
	}
	weft_engine_self.in_handler--;
	return n;
}
