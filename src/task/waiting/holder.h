/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * holder.h - a waiter that holds the baton: one look, or all of its wait.
 *
 * Callers   look_begin, look, look_end: a waiter that has prepared nothing yet.  wait: after
 *           weft_task_baton_try_take(), or after look_begin with call->held.
 * Promise   wait comes back without the baton: the call is done, handed over, expired or stopped.
 */
#ifndef WEFT_HOLDER_H
#define WEFT_HOLDER_H

#include "task/waiting/wait_call.h"
#include "task/wake/release.h"
#include "wait/stack.h"
#include "task/waiting/app_work.h"
#include "task/waiting/spin.h"
#include "task/wake/arm.h"

void weft_task_holder_wait(struct weft_engine *e, struct wait_call *w);

/* One round; wakes are kept in the batch. */
static inline int weft_task_holder_round(struct weft_engine *e, enum weft_round_kind kind)
{
	int found = weft_task_engine_round(e, kind) + weft_task_app_work_run();
	uint32_t rounds = atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
	/* Relaxed: see weft_engine_poll. */
	atomic_store_explicit(&e->x_rounds, rounds + 1, memory_order_relaxed);
	return found;
}

/* All sources, or after a bell rang or a mask was taken perhaps some of them. */
static inline bool weft_task_holder_some_armed(struct weft_engine *e)
{
	return weft_task_sources_armed(e) ||
	       atomic_load_explicit(&e->x_some_armed, memory_order_relaxed);
}

/* May this thread look, as holder of the baton?  Then it is, and the batch is set up. */
static inline bool weft_task_holder_look_begin(struct weft_engine *e, struct wait_call *w)
{
	bool held = !weft_wait_stack_may_be_small() && !weft_task_engine_self.in_handler &&
		    atomic_load_explicit(&e->x_running, memory_order_acquire) &&
		    weft_task_baton_try_take(&e->baton);
	w->held = held;
	if (weft_likely(held)) {
		weft_wait_wake_batch_init(&w->batch);
		weft_wait_wake_batch_self = &w->batch;
	}
	return held;
}

/* With the baton in hand: a look at everything, as if what we wait for were about to come. */
static inline int weft_task_holder_look(struct weft_engine *e)
{
	return weft_task_holder_round(e, weft_task_spin_crowded() ? WEFT_ROUND_QUICK
								  : WEFT_ROUND_WAIT);
}

/* The look was all; nothing has been prepared for a sleep. */
static inline void weft_task_holder_look_end(struct weft_engine *e, struct wait_call *w,
					     const void *site)
{
	weft_assert(w->held && weft_wait_wake_batch_self == &w->batch);
	weft_task_baton_release(e, WEFT_LEAVER_WAITER, site);
	weft_wait_wake_batch_self = NULL;
	if (weft_unlikely(w->batch.count)) /* none of them is us: we are in no list */
		weft_wait_wake_batch_flush(&w->batch, NULL);
	weft_count(WEFT_CNT_POLL_EXPLICIT, 1);
}

#endif
