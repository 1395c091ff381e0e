/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocker.c - one thread for a source that can sleep only in a call of its own.
 *
 * It makes the call outside the source's mask while blocking is wanted and there are requests;
 * while it is out no thread polls the source.  When it is back it looks for what is there, under the
 * mask, and wakes the waiters: no round of the engine is needed.
 */
#include "base/assert.h"
#include "base/counters.h"
#include "base/futex.h"
#include "base/log.h"
#include "task/event/event_int.h"
#include "task/thread.h"
#include "task/wake/source_int.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct weft_blocker {
	struct weft_events *es;                 /* I */
	int (*harvest)(struct weft_events *es); /* I */
	bool want;                              /* M */
	bool asleep;                            /* M: on x_word, or about to */
	bool started;                           /* M: the thread is there */
	bool failed;                            /* M: it cannot be started */
	_Atomic uint32_t x_word;                /* M: written; the thread sleeps on it */
	_Atomic bool x_stop;                    /* closer sets */
	pthread_t thread;
};

weft_err weft_task_blocker_create(struct weft_events *es, int (*harvest)(struct weft_events *es),
				  struct weft_blocker **b_p)
{
	struct weft_blocker *b = calloc(1, sizeof *b);
	if (!b)
		return WEFT_ERR_NOMEM;
	b->es = es;
	b->harvest = harvest;
	*b_p = b;
	return WEFT_OK;
}

/* The next request to block on; the mask is held. */
static struct weft_event *pick_request(struct weft_events *es)
{
	for (struct weft_event *e = weft_events_first(es); e; e = weft_events_next(es))
		if (!weft_task_event_of(e)->leaving)
			return e;
	return NULL;
}

static bool is_stopped(struct weft_blocker *b)
{
	/* STOP.  Carries: what closing wrote before; the word rung with it ends the sleep. */
	return atomic_load_explicit(&b->x_stop, memory_order_acquire);
}

/* One blocking call, if one is wanted.  False: sleep while the word is *seen_p. */
static bool make_blocking_call(struct weft_blocker *b, uint32_t *seen_p)
{
	struct weft_events *es = b->es;
	struct weft_source_inside inside;
	weft_task_source_enter(&es->source, &inside);
	struct weft_event *ev = NULL;
	bool go = b->want && es->count && !es->closed;
	if (go && !es->ops.block_group) {
		ev = pick_request(es);
		go = ev != NULL;
		if (go)
			weft_task_event_of(ev)->blocked = true;
	}
	es->in_block = go;
	b->asleep = !go;
	*seen_p = atomic_load_explicit(&b->x_word, memory_order_relaxed);
	weft_task_source_exit(&es->source, &inside);
	if (!go)
		return false;

	weft_count(WEFT_CNT_BLOCKING_CALLS, 1);
	weft_task_engine_self.in_handler++;
	int64_t result = -ECANCELED;
	bool there = false;
	if (ev)
		there = es->ops.block(es->arg, ev, &result);
	else
		es->ops.block_group(es->arg, es);
	weft_task_engine_self.in_handler--;

	weft_task_source_enter(&es->source, &inside);
	weft_assert(es->in_block && !b->asleep);
	es->in_block = false;
	if (ev) {
		struct weft_ev *e = weft_task_event_of(ev);
		bool withdrawn =
			es->closed || (atomic_load_explicit(&e->x_state, memory_order_relaxed) &
				       WEFT_EV_CANCELLED);
		e->blocked = false;
		if (there || withdrawn)
			weft_event_complete(ev, there ? result : -ECANCELED);
	}
	(void)b->harvest(es);
	weft_task_source_exit(&es->source, &inside);
	return true;
}

static void *run_blocker(void *arg)
{
	struct weft_blocker *b = arg;
	uint32_t seen;
	(void)weft_task_engine_thread_settle("weft-block");
	weft_task_engine_self.runner = WEFT_RUNNER_WATCHER;
	while (!is_stopped(b)) /* ends: stop */
		if (!make_blocking_call(b, &seen) && !is_stopped(b))
			weft_futex_wait(&b->x_word, seen, WEFT_NEVER);
	return NULL;
}

static void wake_blocker(struct weft_blocker *b)
{
	/* The word's change, not its order, ends the sleep; the mask carries the rest. */
	atomic_fetch_add_explicit(&b->x_word, 1, memory_order_release);
	weft_futex_wake(&b->x_word);
}

void weft_task_blocker_want(struct weft_blocker *b, bool want)
{
	struct weft_events *es = b->es;
	b->want = want;
	if (!want) {
		if (es->in_block && es->ops.unblock)
			es->ops.unblock(es->arg);
		return;
	}
	if (!b->started && !b->failed) {
		b->failed = weft_task_engine_thread(&b->thread, run_blocker, b) != WEFT_OK;
		b->started = !b->failed;
		if (b->failed)
			weft_warn("no thread for the blocking calls of source %s: it is polled",
				  es->source.name);
	}
	if (b->failed)
		es->retry = true; /* the timer polls */
	else if (b->asleep)
		wake_blocker(b);
}

void weft_task_blocker_destroy(struct weft_blocker *b)
{
	if (!b)
		return;
	if (b->started) {
		/* STOP -> stopped. */
		atomic_store_explicit(&b->x_stop, true, memory_order_release);
		wake_blocker(b);
		if (b->es->ops.unblock)
			b->es->ops.unblock(b->es->arg);
		pthread_join(b->thread, NULL);
	}
	free(b);
}
