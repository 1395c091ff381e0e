/* SPDX-License-Identifier: BSD-3-Clause */
/* task.c - submits, runs, masks and cancels tasks; the rules of their word are in life.h. */
#include <sched.h>
#include "base/assert.h"
#include "base/trace.h"
#include "base/counters.h"
#include "base/log.h"
#include "task/engine_int.h"
#include "task/queue/overseer.h"
#include "task/queue/worker.h"
#include "task/wake/kick.h"
#include "task/queue/life.h"
#include "task/queue/running.h"
#include "task/queue/tally.h"
#include "task/queue/tqueue.h"
#include "task/queue/weft_task.h"
#include "task/wake/submit_kick.h"
#include "topo/topo.h"
#include "wait/waiter.h"

/* Word by word: a compound literal becomes a string instruction, which takes 10 ns to begin. */
static inline void fill_task(struct weft_task *t, const char *name, weft_task_fn *fn, void *arg,
			     unsigned options)
{
	t->fn = fn;
	t->arg = arg;
	t->options = options;
	t->priority = 0;
	t->on_complete = NULL;
	t->tally = NULL;
	t->engine[0] = t->engine[1] = t->engine[2] = NULL;
	t->on_complete_arg = NULL;
	t->cpus = NULL;
	t->cpus_bytes = 0;
	t->name = name;
	for (size_t i = 0; i < weft_countof(t->engine_cold); i++)
		t->engine_cold[i] = NULL;
}

void weft_task_init(struct weft_task *t, const char *name, weft_task_fn *fn, void *arg,
		    unsigned options)
{
	fill_task(t, name, fn, arg, options);
	weft_wait_completion_init_done(&weft_task_core(t)->done);
}

/* ---- submitting --------------------------------------------------------------------------------
 */

/* False: there is no engine. */
static bool enqueue_task(struct weft_task *t, enum weft_haste haste)
{
	struct weft_tqueue *q =
		weft_task_tqueue_of_place(t->cpus ? weft_topo_cover(t->cpus, t->cpus_bytes) : 0);
	if (weft_unlikely(!q))
		return false;
	weft_prefetch_write(&q->x_slot);
	weft_task_core(t)->counted = t->tally != NULL; /* published with the push */
	if (weft_unlikely(t->options & WEFT_TASK_REPEAT && t->tally))
		weft_task_tally_will_be_polled(weft_task_tally_core(t->tally));
	/* Relaxed: cancel_wait looks there, and again. */
	atomic_store_explicit(&weft_task_cold(t)->x_queue, q, memory_order_relaxed);
	int leaf = weft_unlikely(t->options & (WEFT_TASK_URGENT | WEFT_TASK_STRICT))
			   ? weft_topo_leaf_in(t->cpus, t->cpus_bytes)
			   : -1;
	/* None of its cores is in the tree: see cores_are_gone(). */
	if (weft_unlikely(leaf < 0 && t->options & WEFT_TASK_STRICT))
		leaf = weft_topo_leaf_here();
	/* A repeat task has to be looked at again and again. */
	bool anybody = leaf < 0 && !(t->options & WEFT_TASK_REPEAT);
	weft_task_tqueue_push(q, t); /* from here on t may run, end and be freed */
	if (weft_likely(leaf < 0) || weft_task_worker_ring(leaf))
		weft_task_submit_kick(&weft_task_engine, haste, anybody);
	return true;
}

/* Says that t is done; the last access to it. */
static void finish_task(struct weft_task *t)
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

static void refuse_task(struct weft_task *t)
{
	weft_error("task %s was submitted while no engine runs", t->name ? t->name : "?");
	/* Relaxed: no other thread is at it; the signal orders. */
	atomic_store_explicit(&weft_task_core(t)->x_state, 0, memory_order_relaxed);
	weft_wait_completion_signal(&weft_task_core(t)->done);
}

/* The last run has made the task idle and is about to signal; a few instructions. */
static void await_last_signal(struct weft_completion *done)
{
	unsigned turns = 0;
	while (!weft_wait_completion_done(done))
		weft_backoff(&turns);
}

static bool submit_task(struct weft_task *t, enum weft_haste haste)
{
	struct weft_task_core *c = weft_task_core(t);
	if (t->options & WEFT_TASK_ONCE) {
		if (!weft_task_life_submit_once(&c->x_state, &c->done))
			return false;
	} else {
		if (weft_task_life_submit(&c->x_state) != WEFT_LIFE_ENQUEUE)
			return false;
		await_last_signal(&c->done);
		weft_wait_completion_init(&c->done);
	}
	if (weft_unlikely(!enqueue_task(t, haste)))
		refuse_task(t);
	return true;
}

bool weft_task_submit(struct weft_task *t)
{
	return submit_task(t, WEFT_HASTE_AT_ONCE);
}

bool weft_task_submit_later(struct weft_task *t)
{
	return submit_task(t, WEFT_HASTE_LATER);
}

bool weft_task_submit_spare(struct weft_task *t)
{
	return submit_task(t, WEFT_HASTE_SPARE);
}

void weft_task_launch(struct weft_task *t, const char *name, weft_task_fn *fn, void *arg)
{
	fill_task(t, name, fn, arg, WEFT_TASK_ONCE);
	/* Relaxed, both: no other thread knows it yet. */
	atomic_store_explicit(&weft_task_core(t)->x_state, WEFT_LIFE_QUEUED, memory_order_relaxed);
	weft_wait_completion_init(&weft_task_core(t)->done);
	if (weft_unlikely(!enqueue_task(t, WEFT_HASTE_AT_ONCE)))
		refuse_task(t);
}

/* ---- running -----------------------------------------------------------------------------------
 */

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
		finish_task(t);
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
		finish_task(t);
	if (step != WEFT_LIFE_ENQUEUE)
		return false;
	if (!masked) {
		weft_task_tqueue_push(q, t);
		/* The caller may poll once and go away.  The watcher does not. */
		if (weft_task_engine_self.runner != WEFT_RUNNER_WATCHER)
			weft_task_engine_kick(&weft_task_engine, weft_task_baton_submit_target(
									 &weft_task_engine.baton));
	}
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
	finish_task(t);
	return true;
}

void weft_task_end(struct weft_task *t)
{
	/* Relaxed: the engine has stopped, no other thread is at it. */
	atomic_store_explicit(&weft_task_core(t)->x_state, 0, memory_order_relaxed);
	finish_task(t);
}

/* ---- masking -----------------------------------------------------------------------------------
 */

static weft_err mask_task(struct weft_task *t, bool *running_p)
{
	if (t->options & WEFT_TASK_ONCE)
		return WEFT_ERR_UNSUPPORTED;
	*running_p = weft_task_life_mask(&weft_task_core(t)->x_state);
	return WEFT_OK;
}

weft_err weft_task_mask(struct weft_task *t)
{
	bool running;
	return mask_task(t, &running);
}

weft_err weft_task_mask_wait(struct weft_task *t)
{
	bool running;
	unsigned turns = 0;
	weft_err err = mask_task(t, &running);
	if (err || !running)
		return err;
	if (weft_task_engine_self.in_handler) {
		weft_error("a handler tried to wait until task %s has ended", t->name);
		return WEFT_ERR_DEADLOCK;
	}
	while (weft_task_life_running(
		&weft_task_core(t)->x_state)) /* ends: it does not start again */
		weft_backoff(&turns);
	return WEFT_OK;
}

void weft_task_unmask(struct weft_task *t)
{
	if (t->options & WEFT_TASK_ONCE)
		return;
	if (weft_task_life_unmask(&weft_task_core(t)->x_state) == WEFT_LIFE_ENQUEUE &&
	    !enqueue_task(t, WEFT_HASTE_AT_ONCE))
		refuse_task(t);
}

/* ---- cancelling
 * ----------------------------------------------------------------------------------
 */

bool weft_task_cancel(struct weft_task *t)
{
	enum weft_life_step step;
	if (weft_task_done(t) || !weft_task_life_cancel(&weft_task_core(t)->x_state, &step))
		return false;
	if (step == WEFT_LIFE_FINISH)
		finish_task(t);
	return true;
}

weft_err weft_task_cancel_wait(struct weft_task *t)
{
	struct weft_completion *c = &weft_task_core(t)->done;
	if (weft_task_engine_self.in_handler)
		return weft_task_done(t) ? WEFT_OK : WEFT_ERR_DEADLOCK;
	if (weft_task_cancel(t))
		while (!weft_task_done(t)) { /* ends: not queued again; runs end by themselves */
			struct weft_tqueue *q = atomic_load_explicit(&weft_task_cold(t)->x_queue,
								     memory_order_relaxed);
			if (q)
				weft_task_tqueue_purge(q);
			/* A holder of the mask may have it on its list: look again soon. */
			(void)weft_task_engine_wait_all(&c, 1, 100000);
		}
	else
		await_last_signal(c);
	return WEFT_OK;
}

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
