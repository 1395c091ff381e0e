/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waiting.c - waits for one, any or all completions: poll as holder of the baton, or park.
 *
 * A waiter that gets the baton polls for a learned time, then sleeps in the watch set (holder.c). A
 * waiter that does not get it parks; the thread that completes its operation wakes it.
 * A thread that blocks beside the kernel's (a light one, ult/) never polls: it parks (wait_ult.c), and
 * its worker, without other work, waits here in its place for "one of mine is ready"
 * (weft_task_engine_idle).
 */
#include "base/log.h"
#include "task/waiting/app_work.h"
#include "task/waiting/holder.h"
#include "task/waiting/wait_site.h"
#include "wait/note.h"

#include <stdlib.h>

#define CHUNK 64 /* completions that one wait enlists without allocating */

/* Another thread has the baton: sleep until woken, unless it comes free at this moment. */
static void park_beside(struct weft_engine *e, struct wait_call *w)
{
	weft_assert(!w->held && !weft_task_engine_self.wait); /* the baton is not ours */
	struct weft_parked me = {.parker = w->parker};
	if (!weft_task_wait_call_enlist(w)) {
		weft_task_wait_call_nap();
		return;
	}
	weft_task_parked_add(e, &me);
	if (weft_task_baton_park(&e->baton) && !weft_task_wait_call_done(w) &&
	    !weft_task_app_work_waiting() && !weft_task_wait_call_stopped(e)) {
		weft_count(WEFT_CNT_PARKS, 1);
		w->parked_once = true;
		weft_wait_note_park(w->parker, w->deadline_ns);
	}
	weft_task_parked_remove(e, &me);
}

/* ---- the waits ---------------------------------------------------------------------------------
 */

static weft_err wait_loop(struct weft_engine *e, struct wait_call *w)
{
	weft_err err = WEFT_OK;
	if (w->held)
		weft_task_holder_wait(e, w);
	/* Ends: done, expired or stopped; parks or sleeps between. */
	while (!weft_task_wait_call_done(w) && !(err = weft_task_wait_call_given_up(e, w))) {
		if (weft_task_baton_try_take(&e->baton))
			weft_task_holder_wait(e, w);
		else if (!weft_task_app_work_run()) /* the holder may not do it */
			park_beside(e, w);
	}
	/* Relaxed: it was us, most likely. */
	if (w->enlisted && atomic_load_explicit(&e->x_woken, memory_order_relaxed))
		atomic_store_explicit(&e->x_woken, false, memory_order_relaxed);
	weft_task_wait_call_delist(w);
	/* A leaver may have woken us to poll for the others; with the watcher off pass it on. */
	if (w->parked_once &&
	    atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) == WEFT_WATCHER_OFF &&
	    weft_task_baton_try_take(&e->baton))
		weft_task_baton_release(e, WEFT_LEAVER_POLLER, NULL);
	return err;
}

static uint64_t deadline_of(uint64_t timeout_ns)
{
	if (timeout_ns == WEFT_FOREVER)
		return WEFT_NEVER;
	uint64_t now = weft_clock_ns();
	return now > WEFT_NEVER - 1 - timeout_ns ? WEFT_NEVER - 1 : now + timeout_ns;
}

/* Waits for at most CHUNK completions; the nodes are here, on the stack. */
static __attribute__((noinline)) weft_err wait_chunk(struct wait_call *w)
{
	struct weft_wait_node node[CHUNK];
	w->node = node;
	return wait_loop(&weft_task_engine, w);
}

static __attribute__((noinline)) weft_err wait_few(struct wait_call *w)
{
	struct weft_wait_node node[4];
	w->node = node;
	return wait_loop(&weft_task_engine, w);
}

static weft_err wait_heap(struct wait_call *w)
{
	w->node = malloc(w->n * sizeof *w->node);
	if (!w->node) {
		w->parker = NULL; /* polls and naps instead of sleeping */
		weft_debug("no memory to sleep on %zu completions: polling", w->n);
	}
	weft_err err = wait_loop(&weft_task_engine, w);
	free(w->node);
	return err;
}

static weft_err wait_sized(struct wait_call *w)
{
	weft_assert((w->n || w->ready) && !w->enlisted && !w->parked_once);
	w->parker = weft_wait_parker_self();
	struct weft_parker *p = w->parker;
	weft_wait_note_begin(p);
	weft_err err = weft_wait_parker_is_light(p) ? weft_task_wait_ult(w)
		       : w->n <= 4                  ? wait_few(w)
		       : w->n <= CHUNK              ? wait_chunk(w)
						    : wait_heap(w);
	weft_wait_note_end(p);
	return err;
}

weft_err weft_task_wait_call_sleep(struct wait_call *w)
{
	return wait_sized(w);
}

weft_err weft_task_engine_wait_all_at(struct weft_completion *const *c, size_t n,
				      uint64_t timeout_ns, const void *site)
{
	struct wait_call w = {.c = c, .n = n, .all = true, .site = site};
	if (weft_task_wait_call_done(&w))
		return WEFT_OK;
	weft_err err = weft_task_wait_call_may(&weft_task_engine);
	if (err)
		return err;
	weft_wait_entry();
	w.deadline_ns = deadline_of(timeout_ns);
	/* All means: one chunk after the other. */
	for (size_t at = w.first; at < n && !err; at += CHUNK) {
		struct wait_call part = {.c = c + at,
					 .n = n - at < CHUNK ? n - at : CHUNK,
					 .all = true,
					 .deadline_ns = w.deadline_ns,
					 .site = site};
		if (!weft_task_wait_call_done(&part))
			err = wait_sized(&part);
	}
	return err;
}

weft_err weft_task_engine_wait_any_at(struct weft_completion *const *c, size_t n,
				      uint64_t timeout_ns, const void *site)
{
	struct wait_call w = {.c = c, .n = n, .all = false, .site = site};
	if (weft_task_wait_call_done(&w))
		return WEFT_OK;
	weft_err err = weft_task_wait_call_may(&weft_task_engine);
	if (err)
		return err;
	weft_wait_entry();
	w.deadline_ns = deadline_of(timeout_ns);
	return wait_sized(&w);
}

weft_err weft_task_engine_wait_all(struct weft_completion *const *c, size_t n, uint64_t timeout_ns)
{
	return weft_task_engine_wait_all_at(c, n, timeout_ns, WEFT_WAIT_SITE);
}

weft_err weft_task_engine_wait_any(struct weft_completion *const *c, size_t n, uint64_t timeout_ns)
{
	return weft_task_engine_wait_any_at(c, n, timeout_ns, WEFT_WAIT_SITE);
}

/* ---- one, without timeout ----------------------------------------------------------------------
 */

static __attribute__((noinline)) void wait_on(struct weft_completion *c, struct wait_call *w,
					      const void *site)
{
	weft_err err = w->held ? WEFT_OK : weft_task_wait_call_may(&weft_task_engine);
	if (err)
		weft_panic("cannot wait here: %s", weft_strerror(err));
	w->c = (struct weft_completion *const *)&c;
	w->n = 1;
	w->all = true;
	w->first = 0;
	w->deadline_ns = WEFT_NEVER;
	w->site = site;
	w->ready = NULL;
	w->turned_away = 0;
	w->enlisted = w->parked_once = w->slept = w->pauses = w->found = false;
	if (wait_sized(w) == WEFT_ERR_STATE)
		weft_panic("the progress engine was stopped while a thread waited");
}

static __attribute__((noinline)) int look_at_completions(struct weft_engine *e, struct wait_call *w)
{
	int found = 0;

	if (weft_task_holder_look_begin(e, w)) {
		/* Armed: it would cost a system call, and perhaps a sleep comes all the same. */
		if (!weft_task_holder_some_armed(e))
			found = weft_task_holder_look(e);
		weft_task_holder_look_end(e, w, NULL);
	}
	return found;
}

int weft_task_engine_look(void)
{
	struct wait_call w;
	return look_at_completions(&weft_task_engine, &w);
}

/* With the baton in hand and bells armed: a wait whose operations are done. */
static __attribute__((noinline)) void end_wait(struct weft_engine *e, struct wait_call *w,
					       const void *site)
{
	weft_assert(w->held);
	w->c = NULL;
	w->n = w->first = 0;
	w->all = true;
	w->deadline_ns = WEFT_NEVER;
	w->site = site;
	w->parker = NULL;
	w->ready = NULL;
	w->turned_away = 0;
	w->enlisted = w->parked_once = w->slept = w->pauses = w->found = false;
	weft_task_holder_wait(e, w);
}

static __attribute__((noinline)) void wait_as_holder(struct weft_engine *e, struct wait_call *w,
						     const void *site)
{
	if (!weft_task_holder_look_begin(e, w))
		return;
	if (weft_task_holder_some_armed(e)) {
		end_wait(e, w, site);
		return;
	}
	(void)weft_task_holder_round(e, WEFT_ROUND_QUICK);
	weft_task_holder_look_end(e, w, site);
}

void weft_task_engine_waited(void)
{
	struct wait_call w;
	wait_as_holder(&weft_task_engine, &w, WEFT_WAIT_SITE);
}

static __attribute__((noinline)) void wait_looking(struct weft_completion *c, bool own,
						   const void *site)
{
	struct weft_engine *e = &weft_task_engine;
	struct wait_call w;

	if (weft_task_holder_look_begin(e, &w) && weft_likely(!weft_task_holder_some_armed(e))) {
		weft_wait_completion_own = own ? c : NULL;
		(void)weft_task_holder_look(e);
		weft_wait_completion_own = NULL;
		if (weft_likely(weft_wait_completion_done(c))) {
			weft_task_holder_look_end(e, &w, site);
			return;
		}
	}
	wait_on(c, &w, site);
}

static inline void wait_one(struct weft_completion *c, bool own, const void *site)
{
	if (weft_wait_completion_done(c) ||
	    (weft_wait_stack_may_be_small() && weft_task_wait_ult_alone(c)))
		return;
	wait_looking(c, own, site);
}

void weft_task_engine_wait(struct weft_completion *c)
{
	wait_one(c, false, WEFT_WAIT_SITE);
}

void weft_task_engine_wait_own(struct weft_completion *c)
{
	wait_one(c, true, WEFT_WAIT_SITE);
}

bool weft_task_engine_stays(const struct weft_completion *c)
{
	const struct wait_call *w = weft_task_engine_self.wait;
	/* Relaxed: a hint; switched off later, what has begun waits for the next call. */
	if (weft_task_engine_self.runner != WEFT_RUNNER_APPLICATION ||
	    c == weft_wait_completion_own ||
	    atomic_load_explicit(&weft_task_engine.baton.x_watcher, memory_order_relaxed) !=
		    WEFT_WATCHER_OFF)
		return true;
	if (!w || w->deadline_ns != WEFT_NEVER || (!w->all && w->n != 1))
		return false; /* it may go before that is done; a poller's pause is such a wait */
	for (size_t i = w->first; i < w->n; i++)
		if (w->c[i] == c)
			return true;
	return false;
}

void weft_task_engine_idle(bool (*ready)(void *arg), void *arg, uint64_t deadline_ns)
{
	struct wait_call w = {.ready = ready,
			      .ready_arg = arg,
			      .deadline_ns = deadline_ns,
			      .all = true,
			      .site = WEFT_WAIT_SITE};
	/* READY (engine.c). */
	if (weft_task_engine_self.in_handler ||
	    !atomic_load_explicit(&weft_task_engine.x_running, memory_order_acquire))
		return;
	w.parker = weft_wait_parker_self();
	(void)wait_loop(&weft_task_engine, &w);
}
