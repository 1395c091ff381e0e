/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_ult.c - waits of threads that block beside the kernel's (user-level threads, those of another
 * runtime): they park, and never poll.  Their worker does, or the watcher.
 */
#include "base/log.h"
#include "task/waiting/wait_call.h"
#include "task/wake/release.h"
#include "wait/foreign.h"
#include "wait/note.h"
#include "wait/stack.h"
#include "task/wake/kick.h"

#include <stdlib.h>
#include <weft/hooks.h>

static bool watcher_off(struct weft_engine *e)
{
	/* Seq_cst: after PARK, see foreign_park(). */
	return atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) == WEFT_WATCHER_OFF;
}

static void foreign_park(struct weft_engine *e, struct wait_call *w)
{
	struct weft_parked me = {.parker = w->parker};
	weft_task_engine_hears(e);
	weft_task_parked_add(e, &me);
	/* PARK: counted before our look at the watcher; one that goes off says so before it looks
	 * at the count.  Either we see it off, or it sees us and we are woken to poll. */
	(void)weft_task_baton_park(&e->baton);
	if (!watcher_off(e) && !weft_task_wait_call_done(w) && !weft_task_wait_call_stopped(e)) {
		weft_count(WEFT_CNT_PARKS_LIGHT, 1);
		weft_wait_note_park(w->parker, w->deadline_ns);
	}
	weft_task_parked_remove(e, &me);
}

/*
 * A thread of a foreign runtime: parks, and the watcher or the runtime's idle loop sees to its
 * message.  With the watcher off it looks itself, between the others of its runtime, and passes
 * that on when it goes.
 */
static weft_err wait_foreign(struct weft_engine *e, struct wait_call *w)
{
	weft_err err = WEFT_OK;
	(void)weft_task_wait_call_enlist(w);
	/* Ends: done, expired or stopped; parks or yields between. */
	while (!weft_task_wait_call_done(w) && !(err = weft_task_wait_call_given_up(e, w))) {
		if (!watcher_off(e))
			foreign_park(e, w);
		else if (!weft_hook_idle())
			weft_wait_foreign_yield();
	}
	weft_task_wait_call_delist(w);
	if (watcher_off(e) && weft_task_baton_try_take(&e->baton))
		weft_task_baton_release(e, WEFT_LEAVER_POLLER, NULL);
	return err;
}

/* A light thread: its worker polls, not it. */
static weft_err wait_light(struct wait_call *w)
{
	weft_assert(w->node && weft_wait_parker_is_light(w->parker));
	weft_err err = WEFT_OK;
	if (weft_unlikely(weft_wait_foreign_is(w->parker)))
		return wait_foreign(&weft_task_engine, w);
	weft_task_engine_hears(&weft_task_engine);
	(void)weft_task_wait_call_enlist(w);
	while (!weft_task_wait_call_done(w)) { /* ends: done or expired; parks between */
		if (weft_task_wait_call_expired(w)) {
			err = WEFT_ERR_TIMEOUT;
			break;
		}
		weft_count(WEFT_CNT_PARKS_LIGHT, 1);
		weft_wait_note_park(w->parker, w->deadline_ns);
	}
	weft_task_wait_call_delist(w);
	return err;
}

/* The same without memory to be woken by. */
static weft_err wait_light_napping(struct wait_call *w)
{
	while (!weft_task_wait_call_done(w)) { /* ends: done or expired */
		if (weft_task_wait_call_expired(w))
			return WEFT_ERR_TIMEOUT;
		if (weft_wait_foreign_is(w->parker))
			(void)weft_hook_idle();
		weft_wait_park(w->parker, weft_clock_ns() + WEFT_NAP_US * 1000);
	}
	return WEFT_OK;
}

static __attribute__((noinline)) weft_err wait_light_one(struct wait_call *w)
{
	struct weft_wait_node node;
	w->node = &node;
	return wait_light(w);
}

/* For one, without a deadline, and with no more on its stack than that takes.  False: the caller is
 * no such thread, or may not wait. */
__attribute__((noinline)) bool weft_task_wait_ult_alone(struct weft_completion *c)
{
	struct weft_parker *p = weft_wait_parker_self();
	struct weft_waiter waiter = {.parker = p};
	struct weft_wait_node node;
	if (!weft_wait_parker_is_light(p) || weft_wait_foreign_is(p) ||
	    weft_task_wait_call_may(&weft_task_engine))
		return false;
	weft_wait_entry();
	weft_task_engine_hears(&weft_task_engine);
	weft_wait_parker_forget(p);
	/* Relaxed: published with the node. */
	atomic_store_explicit(&waiter.x_need, 1, memory_order_relaxed);
	weft_wait_node_init(&node, &waiter);
	if (!weft_wait_completion_enlist(c, &node))
		return true;
	weft_wait_note_begin(p);
	while (!weft_wait_completion_done(c)) { /* ends: done; parks between */
		weft_count(WEFT_CNT_PARKS_LIGHT, 1);
		weft_wait_note_park(p, WEFT_NEVER);
	}
	weft_wait_note_end(p);
	weft_task_wait_call_delist_node(c, &node);
	return true;
}

/* Its stack is small: no more than one node lies there. */
weft_err weft_task_wait_ult(struct wait_call *w)
{
	if (w->n == 1)
		return wait_light_one(w);
	w->node = malloc(w->n * sizeof *w->node);
	if (!w->node)
		return wait_light_napping(w);
	weft_err err = wait_light(w);
	free(w->node);
	return err;
}
