/* SPDX-License-Identifier: BSD-3-Clause */
/* task_run.c - runs a task that was taken out of a queue, and says that it is done. */
#include "base/assert.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/trace.h"
#include "task/engine_int.h"
#include "task/queue/life.h"
#include "task/queue/overseer.h"
#include "task/queue/running.h"
#include "task/queue/tqueue.h"
#include "task/queue/weft_task.h"
#include "topo/topo.h"

/* Says that t is done; the last access to it. */
void weft_task_finish(struct weft_task *t)
{
	void (*action)(void *) = t->on_complete;
	void *arg = NULL;
	uint32_t run = 0;
	if (weft_unlikely(action != NULL)) {
		arg = t->on_complete_arg;
		run = weft_task_overseer_begin(WEFT_RUNNING_ACTION, t->name);
	}
	weft_assert(!weft_wait_completion_done(&weft_task_core(t)->done));
	/* Beside the name: only the submitter's line says which. */
	struct weft_tally *y = weft_unlikely(weft_task_core(t)->counted) ? t->tally : NULL;
	weft_wait_completion_signal(&weft_task_core(t)->done);
	if (weft_unlikely(y != NULL))
		weft_tally_add(y);
	if (weft_unlikely(action != NULL)) {
		weft_task_engine_self.in_handler++;
		action(arg);
		weft_task_engine_self.in_handler--;
		weft_task_overseer_end(run);
	}
}

static inline enum weft_task_verdict call_task_as_run(struct weft_task *t, uint32_t *run_p)
{
	struct weft_engine_self *self = &weft_task_engine_self;
	struct weft_running *r = self->running;
	weft_count(WEFT_CNT_TASKS_RUN, 1);
	if (weft_unlikely(!r))
		r = self->running = weft_task_overseer_join();
	unsigned name = 0;
	uint64_t from =
		weft_trace_on() ? weft_trace_begin(t->name, (void *)(uintptr_t)t->fn, &name) : 0;
	*run_p = weft_task_running_begin(r, t->name);
	weft_task_overseer_begun();
	self->in_handler++;
	enum weft_task_verdict v = t->fn(t, t->arg);
	self->in_handler--;
	weft_task_running_end(r, *run_p); /* t may be gone */
	if (weft_unlikely(from) && v != WEFT_TASK_AGAIN)
		weft_trace_put(WEFT_TRACE_TASK, name, 0, from, 0);
	return v;
}

static enum weft_task_verdict call_task(struct weft_task *t)
{
	uint32_t run;
	return call_task_as_run(t, &run);
}

/* A tick's resolution, 1 to 4 ms, for 5 ns. */
static uint64_t coarse_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void report_slow(const char *name, uint64_t ns)
{
	static _Atomic uint64_t x_next_ns; /* one line a second is enough */
	weft_count(WEFT_CNT_TASKS_SLOW, 1);
	uint64_t now = coarse_ns();
	/* Relaxed: two lines at once do no harm. */
	if (now < atomic_load_explicit(&x_next_ns, memory_order_relaxed))
		return;
	atomic_store_explicit(&x_next_ns, now + 1000000000u, memory_order_relaxed);
	weft_warn("task %s ran for %llu ms: no other thread could look at its queue meanwhile",
		  name ? name : "?", (unsigned long long)(ns / 1000000));
}

/* The same under the mask, where it must not take long. */
static enum weft_task_verdict call_repeat_task(struct weft_task *t)
{
	uint64_t limit = weft_task_engine.slow_ns;
	if (!limit)
		return call_task(t);
	const char *name = t->name; /* t may be gone afterwards */
	uint64_t begun = coarse_ns();
	uint32_t run;
	enum weft_task_verdict v = call_task_as_run(t, &run);
	uint64_t took = coarse_ns() - begun;
	/* Relaxed: written before we came out of the run, if it was this one. */
	if (weft_unlikely(took >= limit) &&
	    atomic_load_explicit(&weft_task_engine_self.running->x_told, memory_order_relaxed) !=
		    run)
		report_slow(name, took);
	return v;
}

/* Runs at most one time: no step of its word says that it runs. */
static void run_once_task(struct weft_task *t)
{
	/* Acquire: what a canceller wrote, for the completion's action.  Taking it out of the queue
	 * has carried the rest. */
	if (weft_unlikely(atomic_load_explicit(&weft_task_core(t)->x_state, memory_order_acquire) &
			  WEFT_LIFE_CANCELLED) ||
	    call_task(t) != WEFT_TASK_GONE)
		weft_task_finish(t);
}

bool weft_task_run(struct weft_task *t, struct weft_tqueue *q, bool masked)
{
	if (t->options & WEFT_TASK_ONCE) {
		run_once_task(t);
		return false;
	}
	weft_assert(!masked || weft_mask_held(&q->mask));
	_Atomic uint32_t *x_state = &weft_task_core(t)->x_state;
	enum weft_life_step step = weft_task_life_claim(x_state);
	if (weft_likely(step == WEFT_LIFE_RUN)) {
		enum weft_task_verdict v = masked ? call_repeat_task(t) : call_task(t);
		if (v == WEFT_TASK_GONE)
			return false;
		step = weft_task_life_settle(x_state, v == WEFT_TASK_AGAIN);
	}
	if (step == WEFT_LIFE_FINISH)
		weft_task_finish(t);
	if (step != WEFT_LIFE_ENQUEUE)
		return false;
	return true;
}

bool weft_task_drop(struct weft_task *t)
{
	_Atomic uint32_t *x_state = &weft_task_core(t)->x_state;
	/* Relaxed: the claim orders. */
	if (!(atomic_load_explicit(x_state, memory_order_relaxed) & WEFT_LIFE_CANCELLED))
		return false;
	if (!(t->options & WEFT_TASK_ONCE)) {
		enum weft_life_step step = weft_task_life_claim(x_state);
		if (weft_unlikely(step == WEFT_LIFE_SHELF))
			return true;
		/* A submit has taken the cancel back: as if it had just come. */
		if (weft_unlikely(step == WEFT_LIFE_RUN)) {
			if (weft_task_life_settle(x_state, true) == WEFT_LIFE_ENQUEUE)
				return false;
		}
	}
	weft_task_finish(t);
	return true;
}

void weft_task_end(struct weft_task *t)
{
	/* Relaxed: the engine has stopped, no other thread is at it. */
	atomic_store_explicit(&weft_task_core(t)->x_state, 0, memory_order_relaxed);
	weft_task_finish(t);
}

/* ---- where it may run -------------------------------------------------------------------------
 */

static int first_cpu_of(const struct weft_task *t)
{
	int most = (int)(t->cpus_bytes ? t->cpus_bytes : sizeof *t->cpus) * 8, cpu = 0;
	while (cpu < most && !weft_topo_in_set(t->cpus, t->cpus_bytes, cpu))
		cpu++; /* ends: the set's end */
	return cpu;
}

/*
 * No thread has the cores that t wants: the system has moved the worker whose core has gone offline,
 * or has not let it have that core, or the tree has none of them.  Then that worker is as good as
 * any.
 */
static bool cores_are_gone(const struct weft_task *t, const unsigned long *own)
{
	static _Atomic bool x_said;
	struct weft_engine_self *self = &weft_task_engine_self;
	int cpu = weft_topo_node(self->place)->cpu;
	size_t bits = 8 * sizeof *own;
	if (self->runner != WEFT_RUNNER_WORKER || cpu < 0)
		return false;
	bool lost = self->unbound || !(own[(size_t)cpu / bits] >> ((size_t)cpu % bits) & 1);
	if (weft_topo_leaf_in(t->cpus, t->cpus_bytes) >= 0 &&
	    (!lost || !weft_topo_in_set(t->cpus, t->cpus_bytes, cpu)))
		return false;
	/* Relaxed: one line is enough, two do no harm. */
	if (!atomic_exchange_explicit(&x_said, true, memory_order_relaxed))
		weft_warn("core %d is gone or not ours: strict tasks for it run elsewhere",
			  lost ? cpu : first_cpu_of(t));
	return true;
}

bool weft_task_allowed(const struct weft_task *t)
{
	unsigned long own[WEFT_TOPO_CPUS_MAX / (8 * sizeof(unsigned long))];
	if (!t->cpus)
		return true;
	if (!weft_topo_own_cpus(own))
		return false;
	size_t bytes = t->cpus_bytes ? t->cpus_bytes : sizeof *t->cpus;
	const unsigned long *in = (const unsigned long *)(const void *)t->cpus;
	for (size_t w = 0; w < weft_countof(own); w++)
		if (own[w] & ~(w < bytes / sizeof *in ? in[w] : 0ul))
			return cores_are_gone(t, own);
	return true;
}
