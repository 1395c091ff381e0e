/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.c - a task's life.
 *
 *   IDLE --submit--> QUEUED --taken--> RUNNING --done--> IDLE
 *   RUNNING --submit--> RUNNING|RESUBMITTED --done--> QUEUED
 *   QUEUED, RUNNING --cancel--> the same|CANCELLED; QUEUED|CANCELLED is unlinked by a holder of its
 *   queue's mask, RUNNING|CANCELLED does not start again.
 *
 * A submit takes back a cancel that has not been acted on.  `done` follows the state: who makes a
 * task idle signals it next and touches nothing after that; a submitter waits those few
 * instructions.
 */
#include "task/weft_task.h"

#include "base/counters.h"
#include "base/log.h"
#include "task/engine_int.h"
#include "task/tqueue.h"
#include "topo/topo.h"

#include <sched.h>

void weft_task_init(struct weft_task *t, const char *name,
		    enum weft_task_verdict (*fn)(struct weft_task *t, void *arg), void *arg,
		    unsigned options)
{
	*t = (struct weft_task){.name = name, .fn = fn, .arg = arg, .options = options};
	weft_completion_init_done(&t->done);
}

/* ---- submitting --------------------------------------------------------------------------------
 */

static void enqueue(struct weft_task *t)
{
	struct weft_engine *e = &weft_engine;
	struct weft_tqueue *q = weft_tqueue_of_place(weft_topo_cover(t->cpus));
	/* Relaxed: cancel_wait looks there, and again. */
	atomic_store_explicit(&t->x_queue, q, memory_order_relaxed);
	int leaf = weft_unlikely(t->options & (WEFT_TASK_URGENT | WEFT_TASK_STRICT))
			   ? weft_worker_place(t->cpus)
			   : -1;
	weft_tqueue_push(q, t); /* from here on t may run, end and be freed */
	if (weft_likely(leaf < 0) || weft_worker_ring(leaf))
		weft_engine_kick(e, weft_baton_submit_target(&e->baton));
}

/* The last run has made the task idle and is about to signal; a few instructions. */
static void await_signal(struct weft_task *t)
{
	unsigned turns = 0;
	while (!weft_completion_done(&t->done))
		weft_waiter_relax(&turns);
}

bool weft_task_submit(struct weft_task *t)
{
	uint32_t seen = atomic_load_explicit(&t->x_state, memory_order_relaxed);
	for (;;) { /* ends: each failure is somebody else's step */
		/* It takes back a cancel that has not been acted on. */
		uint32_t want = seen & WEFT_TASK_RUNNING ? WEFT_TASK_RUNNING | WEFT_TASK_RESUBMITTED
							 : WEFT_TASK_QUEUED;
		/* SUBMIT -> RUN (weft_task_run).  Carries: what the caller wrote, also when the
		 * task is queued already: so the word is written even if it stays the same. Without
		 * it a run that starts later could miss the work it was submitted for. */
		if (atomic_compare_exchange_weak_explicit(
			    &t->x_state, &seen, want, memory_order_acq_rel, memory_order_relaxed))
			break;
	}
	if (seen & (WEFT_TASK_QUEUED | WEFT_TASK_RUNNING))
		return false;
	await_signal(t);
	weft_completion_init(&t->done);
	enqueue(t);
	return true;
}

/* ---- running -----------------------------------------------------------------------------------
 */

/*
 * t's word is idle: tells those who wait.  Nobody can submit it again before `done`, and nobody may
 * free it, so its fields are still ours until the signal.
 */
static void finish(struct weft_task *t)
{
	void (*action)(void *) = t->on_complete;
	void *arg = t->on_complete_arg;
	weft_completion_signal(&t->done); /* our last access */
	if (action) {
		weft_engine_self.in_handler++;
		action(arg);
		weft_engine_self.in_handler--;
	}
}

bool weft_task_drop_cancelled(struct weft_task *t)
{
	uint32_t seen = atomic_load_explicit(&t->x_state, memory_order_relaxed);
	do { /* ends: dropped, or a submit has taken the cancel back */
		if (!(seen & WEFT_TASK_CANCELLED))
			return false;
		/* Acquire: what the canceller wrote, for the completion's action; release: our
		 * unlinking, to the next submitter. */
	} while (!atomic_compare_exchange_weak_explicit(&t->x_state, &seen, 0, memory_order_acq_rel,
							memory_order_relaxed));
	finish(t);
	return true;
}

/* QUEUED to RUNNING; false: it was cancelled and is done. */
static bool claim(struct weft_task *t)
{
	uint32_t seen = WEFT_TASK_QUEUED;
	/* RUN <- SUBMIT, RUN.  Carries: what submitters wrote, and the last run. */
	while (!atomic_compare_exchange_weak_explicit(&t->x_state, &seen, WEFT_TASK_RUNNING,
						      memory_order_acq_rel, memory_order_relaxed)) {
		/* ends: only a cancel or a submit comes between */
		if (seen & WEFT_TASK_CANCELLED && weft_task_drop_cancelled(t))
			return false;
		seen = WEFT_TASK_QUEUED;
	}
	return true;
}

/* After a run: idle, or back to QUEUED if it shall run again. */
static bool settle(struct weft_task *t, bool again)
{
	uint32_t seen = atomic_load_explicit(&t->x_state, memory_order_relaxed);
	for (;;) { /* ends: each failure is a submit or a cancel, at most one of each counts */
		bool more =
			!(seen & WEFT_TASK_CANCELLED) && (again || (seen & WEFT_TASK_RESUBMITTED));
		/* RUN -> RUN, RUN -> SUBMIT.  Carries: what this run wrote, to the next run and to
		 * the next submitter. */
		if (atomic_compare_exchange_weak_explicit(
			    &t->x_state, &seen, more ? WEFT_TASK_QUEUED : 0, memory_order_acq_rel,
			    memory_order_relaxed))
			return more;
	}
}

bool weft_task_run(struct weft_task *t, struct weft_tqueue *q, bool masked)
{
	if (!claim(t))
		return false;
	weft_count(WEFT_CNT_TASKS_RUN, 1);
	weft_engine_self.in_handler++;
	enum weft_task_verdict v = t->fn(t, t->arg);
	weft_engine_self.in_handler--;
	if (v == WEFT_TASK_GONE)
		return false;
	if (!settle(t, v == WEFT_TASK_AGAIN)) {
		finish(t);
		return false;
	}
	if (!masked) {
		weft_tqueue_push(q, t);
		/* We may be somebody who polls once and goes away. */
		weft_engine_kick(&weft_engine, weft_baton_submit_target(&weft_engine.baton));
	}
	return true;
}

/* ---- waiting and cancelling
 * ---------------------------------------------------------------------- */

weft_err weft_task_wait(struct weft_task *t)
{
	struct weft_completion *c = &t->done;
	return weft_engine_wait_all(&c, 1, WEFT_FOREVER);
}

bool weft_task_cancel(struct weft_task *t)
{
	uint32_t seen = atomic_load_explicit(&t->x_state, memory_order_relaxed);
	do {
		if (!(seen & (WEFT_TASK_QUEUED | WEFT_TASK_RUNNING)))
			return false;
		/* Release: what the canceller wrote, for the completion's action. */
	} while (!atomic_compare_exchange_weak_explicit(
		&t->x_state, &seen, seen | WEFT_TASK_CANCELLED, memory_order_acq_rel,
		memory_order_relaxed));
	return true;
}

weft_err weft_task_cancel_wait(struct weft_task *t)
{
	if (weft_engine_self.in_handler)
		return weft_task_done(t) ? WEFT_OK : WEFT_ERR_DEADLOCK;
	if (weft_task_cancel(t))
		while (!weft_task_done(t)) { /* ends: not queued again; runs end by themselves */
			struct weft_completion *c = &t->done;
			struct weft_tqueue *q =
				atomic_load_explicit(&t->x_queue, memory_order_relaxed);
			if (q)
				weft_tqueue_purge(q);
			/* A holder of the mask may have it on its list: look again soon. */
			(void)weft_engine_wait_all(&c, 1, 100000);
		}
	else
		await_signal(t);
	return WEFT_OK;
}

bool weft_task_allowed(const struct weft_task *t)
{
	struct weft_engine_self *self = &weft_engine_self;
	uint64_t now = weft_clock_ns();
	if (now - self->affinity_ns > 1000000) { /* it seldom changes; the call is 150 ns */
		self->affinity_ns = now;
		if (sched_getaffinity(0, sizeof self->affinity, &self->affinity))
			CPU_ZERO(&self->affinity);
	}
	if (!t->cpus)
		return true;
	cpu_set_t both;
	CPU_AND(&both, t->cpus, &self->affinity);
	return CPU_COUNT(&self->affinity) > 0 && CPU_EQUAL(&both, &self->affinity);
}
