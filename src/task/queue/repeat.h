/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repeat.h - how many repeat tasks are queued, and how many waits only such a task ends.
 *
 * Nothing rings when a repeat task has news.  While one is queued, a thread that sleeps in the
 * watch set wakes by the timer.  While a thread waits for one, the holder of the baton polls
 * instead of sleeping; if the baton is vacant, the watcher wakes a parked waiter, which takes it.
 *
 * Callers   queued: the submitter, before the push.  left: the holder of the queue's mask.
 *           wait_begin, wait_end: the waiter.  some, awaited: a thread that is about to sleep,
 *           after it has said so in the baton (weft_task_baton_sleep, weft_task_watcher_sit).
 * Promise   a thread sleeps for longer than the timer's period only if no task is queued, or the
 *           submitter kicks it.  The holder sleeps only if no such wait is under way, or the waiter
 *           kicks it.
 * Checked   test/task/test_model_repeat.c.
 */
#ifndef WEFT_REPEAT_H
#define WEFT_REPEAT_H

#include "base/base.h"
#include "task/wake/baton.h"

struct weft_repeat {
	_Atomic uint32_t x_queued; /* repeat tasks from the push until they leave for good */
	_Atomic uint32_t x_waits;  /* waits that such a task ends */
};

static inline void weft_task_repeat_queued(struct weft_repeat *r)
{
	/* QUEUED -> NAP.  seq_cst: before the push and so before the submitter's look at the
	 * baton: it sees the sleeper and kicks, or the sleeper counts the task. */
	atomic_fetch_add_explicit(&r->x_queued, 1, memory_order_seq_cst);
}

static inline void weft_task_repeat_left(struct weft_repeat *r)
{
	/* Relaxed: too high a count costs a look. */
	atomic_fetch_sub_explicit(&r->x_queued, 1, memory_order_relaxed);
}

static inline bool weft_task_repeat_some(const struct weft_repeat *r)
{
	/* NAP <- QUEUED. */
	return atomic_load_explicit(&r->x_queued, memory_order_seq_cst) != 0;
}

/* True: the holder sleeps, kick it. */
static inline bool weft_task_repeat_wait_begin(struct weft_repeat *r, struct weft_baton *b)
{
	/* AWAIT -> DOZE.  seq_cst, both: of a waiter that comes and a holder that falls asleep, the
	 * waiter sees the holder asleep, or the holder counts the waiter.  Without it the holder
	 * would sleep for the timer's period between two polls. */
	atomic_fetch_add_explicit(&r->x_waits, 1, memory_order_seq_cst);
	return atomic_load_explicit(&b->x_state, memory_order_seq_cst) == WEFT_BATON_ASLEEP;
}

static inline void weft_task_repeat_wait_end(struct weft_repeat *r)
{
	/* Relaxed: too high a count costs a look. */
	atomic_fetch_sub_explicit(&r->x_waits, 1, memory_order_relaxed);
}

/* A thread has to poll: the caller, or another that holds the baton. */
static inline bool weft_task_repeat_awaited(const struct weft_repeat *r)
{
	/* DOZE <- AWAIT.  A masked task lies in no queue: nothing is to be polled. */
	return weft_unlikely(atomic_load_explicit(&r->x_waits, memory_order_seq_cst) != 0) &&
	       weft_task_repeat_some(r);
}

#endif
