/* SPDX-License-Identifier: BSD-3-Clause */
/* task.c - submits, masks and cancels tasks; the rules of their word are in life.h. */
#include "base/counters.h"
#include "base/log.h"
#include "task/engine_int.h"
#include "task/queue/weft_task.h"
#include "task/queue/worker.h"
#include "task/queue/life.h"
#include "task/queue/tally.h"
#include "task/queue/tqueue.h"
#include "task/wake/submit_kick.h"
#include "topo/topo.h"

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

static void refuse_task(struct weft_task *t)
{
	weft_error("task %s was submitted while no engine runs", t->name ? t->name : "?");
	/* Relaxed: no other thread is at it; the signal orders. */
	atomic_store_explicit(&weft_task_core(t)->x_state, 0, memory_order_relaxed);
	weft_wait_completion_signal(&weft_task_core(t)->done);
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
		weft_task_life_await(&c->done);
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
		weft_task_finish(t);
	return true;
}
