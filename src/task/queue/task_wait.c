/* SPDX-License-Identifier: BSD-3-Clause */
/* task_wait.c - waits for one, any, all of some tasks, or until so many are done. */
#include <stdlib.h>
#include "base/log.h"
#include "task/engine_int.h"
#include "task/queue/weft_task.h"
#include "task/waiting/wait_site.h"
#include "task/wake/kick.h"
#include "task/queue/life.h"
#include "task/queue/tally.h"
#include "task/queue/tqueue.h"

#define CHUNK 64 /* tasks that one call gathers on its stack */

/*
 * The caller has just submitted t and no other thread has taken it: it runs here and now, without the baton
 * and without a mask.  Only where the caller's own round would look first.
 */
static bool run_it_here(struct weft_task *t)
{
	/* Relaxed: t is taken by an exchange below, or not at all. */
	struct weft_tqueue *q =
		atomic_load_explicit(&weft_task_cold(t)->x_queue, memory_order_relaxed);
	if (!q || !weft_task_tqueue_slot_take_this(q, t))
		return false;
	struct weft_engine *e = &weft_task_engine;
	if (weft_task_run(t, q, false))
		weft_task_tqueue_requeue(q, t);
	/* Relaxed: see weft_engine_poll. */
	uint32_t n = atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
	atomic_store_explicit(&e->x_rounds, n + 1, memory_order_relaxed);
	return true;
}

/* Before a wait; repeats: only a poll ends it.  Returns the same, for polled_wait_end(). */
static bool polled_wait_begin(bool repeats)
{
	struct weft_engine *e = &weft_task_engine;
	/* A light thread does not take the baton: the watcher shall hear of the wait. */
	if (weft_unlikely(repeats) && (weft_task_repeat_wait_begin(&e->repeat, &e->baton) ||
				       weft_wait_parker_is_light(weft_wait_parker_self())))
		weft_task_engine_kick(e, weft_task_baton_submit_target(&e->baton));
	return repeats;
}

static void polled_wait_end(bool repeats)
{
	if (weft_unlikely(repeats))
		weft_task_repeat_wait_end(&weft_task_engine.repeat);
}

static bool some_repeat(struct weft_task *const *t, size_t n)
{
	size_t i = 0;
	while (i < n && !(t[i] && t[i]->options & WEFT_TASK_REPEAT))
		i++;
	return i < n;
}

static inline weft_err wait_for_task(struct weft_task *t, uint64_t timeout_ns, const void *site)
{
	struct weft_completion *c = &weft_task_core(t)->done;
	if (weft_task_done(t))
		return WEFT_OK;
	if (weft_likely(!weft_task_engine_self.in_handler) && run_it_here(t) &&
	    weft_likely(weft_task_done(t)))
		return WEFT_OK;
	bool polled = polled_wait_begin(t->options & WEFT_TASK_REPEAT);
	weft_err err = weft_task_engine_wait_all_at(&c, 1, timeout_ns, site);
	polled_wait_end(polled);
	return err;
}

weft_err weft_task_wait_for(struct weft_task *t, uint64_t timeout_ns)
{
	return wait_for_task(t, timeout_ns, WEFT_WAIT_SITE);
}

weft_err weft_task_wait(struct weft_task *t)
{
	return wait_for_task(t, WEFT_FOREVER, WEFT_WAIT_SITE);
}

static void gather_completions(struct weft_completion **c, struct weft_task *const *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		c[i] = t[i] ? &weft_task_core(t[i])->done : NULL;
}

weft_err weft_task_wait_any(struct weft_task *const *t, size_t n, uint64_t timeout_ns,
			    size_t *which_p)
{
	struct weft_completion *few[CHUNK] = {NULL}, **c = few;
	if (n > CHUNK && !(c = malloc(n * sizeof *c)))
		return WEFT_ERR_NOMEM;
	gather_completions(c, t, n);
	bool polled = polled_wait_begin(some_repeat(t, n));
	weft_err err = weft_task_engine_wait_any_at(c, n, timeout_ns, WEFT_WAIT_SITE);
	polled_wait_end(polled);
	if (c != few)
		free(c);
	for (size_t i = 0; which_p && !err && i < n; i++)
		if (!t[i] || weft_task_done(t[i])) {
			*which_p = i;
			break;
		}
	return err;
}

weft_err weft_task_wait_all(struct weft_task *const *t, size_t n, uint64_t timeout_ns)
{
	struct weft_completion *c[CHUNK] = {NULL};
	uint64_t begun = timeout_ns == WEFT_FOREVER ? 0 : weft_clock_ns();
	weft_err err = WEFT_OK;
	bool polled = polled_wait_begin(some_repeat(t, n));
	for (size_t at = 0; at < n && !err; at += CHUNK) {
		size_t part = n - at < CHUNK ? n - at : CHUNK;
		uint64_t left = timeout_ns;
		if (timeout_ns != WEFT_FOREVER) {
			uint64_t gone = weft_clock_ns() - begun;
			left = gone < timeout_ns ? timeout_ns - gone : 0;
		}
		gather_completions(c, t + at, part);
		err = weft_task_engine_wait_all_at(c, part, left, WEFT_WAIT_SITE);
	}
	polled_wait_end(polled);
	return err;
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
		weft_task_life_await(c);
	return WEFT_OK;
}

/* ---- tallies -----------------------------------------------------------------------------------
 */

weft_err weft_tally_wait(struct weft_tally *y, uint64_t n, uint64_t timeout_ns)
{
	struct weft_tally_core *c = weft_task_tally_core(y);
	struct weft_tally_entry w = {.n = n};
	struct weft_completion *come = &w.come;
	if (weft_task_tally_reached(c, n))
		return WEFT_OK;
	if (weft_task_engine_self.in_handler) {
		weft_error("a handler tried to wait for a tally");
		return WEFT_ERR_DEADLOCK;
	}
	weft_wait_completion_init(&w.come);
	if (!weft_task_tally_enlist(c, &w))
		return WEFT_OK;
	bool polled = polled_wait_begin(weft_task_tally_polled(c));
	weft_err err = weft_task_engine_wait_all_at(&come, 1, timeout_ns, WEFT_WAIT_SITE);
	polled_wait_end(polled);
	if (!err || weft_task_tally_withdraw(c, &w))
		return err;
	/* It comes at this moment, a few instructions. */
	unsigned turns = 0;
	while (!weft_wait_completion_done(&w.come))
		weft_backoff(&turns);
	return WEFT_OK;
}
