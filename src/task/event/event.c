/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c - requests of a source: posting, the look that finds what is there, arming, the choice.
 */
#include "base/assert.h"
#include "base/cancel.h"
#include "base/counters.h"
#include "task/event/event_int.h"
#include "task/event/load.h"
#include "task/queue/overseer.h"
#include "task/waiting/policy_int.h"
#include "task/waiting/wait_site.h"
#include "task/wake/source_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHOOSE_EVERY 64 /* looks: choosing may read a file of the kernel's, some us */
#define ARM_TRIES 4     /* then the timer looks: something is there, but only half */

/* ---- pending and done; the mask is held ------------------------------------------------------ */

/* Completes what is done: calls functions, wakes waiters.  Returns how many. */
static int finish_done(struct weft_events *es)
{
	int n = 0;
	for (struct weft_link *l; (l = weft_list_pop_front(&es->done)); n++) {
		/* ends: functions post through `sub` */
		struct weft_ev *ev = weft_task_event_of_link(l);
		struct weft_event *event = weft_task_event_public(ev);
		ev->blocked = ev->leaving = false;
		/* Relaxed: posted again only by its function or by a thread that has seen it done. */
		atomic_store_explicit(&ev->x_state, event->fn ? WEFT_EV_IN_FN : WEFT_EV_IDLE,
				      memory_order_relaxed);
		if (event->fn) {
			if (event->fn(event))
				continue; /* not ours any more */
			atomic_store_explicit(&ev->x_state, WEFT_EV_IDLE, memory_order_relaxed);
		}
		weft_wait_completion_signal(&ev->done); /* our last access */
	}
	if (n)
		weft_count(WEFT_CNT_EVENTS, (uint64_t)n);
	return n;
}

static void withdraw_event(struct weft_events *es, struct weft_ev *ev)
{
	struct weft_event *event = weft_task_event_public(ev);
	if (ev->leaving)
		return;
	if (ev->blocked) {
		if (es->ops.unblock)
			es->ops.unblock(es->arg);
	} else if (!es->ops.detach || es->ops.detach(es->arg, event)) {
		weft_event_complete(event, -ECANCELED);
	} else {
		ev->leaving = true;
	}
}

static bool is_cancelled(const struct weft_ev *ev)
{
	/* Relaxed: x_cancels brought it. */
	return atomic_load_explicit(&ev->x_state, memory_order_relaxed) & WEFT_EV_CANCELLED;
}

static void withdraw_cancelled(struct weft_events *es)
{
	/* CANCEL -> SWEEP.  Carries: the bits in the events. */
	if (weft_likely(!atomic_load_explicit(&es->x_cancels, memory_order_relaxed)) ||
	    !atomic_exchange_explicit(&es->x_cancels, false, memory_order_acq_rel))
		return;
	for (struct weft_event *e = weft_events_first(es); e; e = weft_events_next(es))
		if (is_cancelled(weft_task_event_of(e)))
			withdraw_event(es, weft_task_event_of(e));
}

/* From `sub` into `pending`.  True: there were some. */
static bool take_in_posted(struct weft_events *es)
{
	bool fresh = false;
	for (struct weft_mpsc_node *n; (n = weft_mpsc_pop(&es->sub)); fresh = true) {
		/* ends: empty, or the next push is half done and then looks itself */
		struct weft_ev *ev = weft_container_of(n, struct weft_ev, sub);
		struct weft_event *event = weft_task_event_public(ev);
		weft_assert(ev->es == es && !weft_wait_completion_done(&ev->done));
		weft_task_events_add(es, ev);
		int64_t result = -ECANCELED;
		if (es->closed || (es->ops.attach && es->ops.attach(es->arg, event, &result)))
			weft_event_complete(event, result);
	}
	return fresh;
}

/* ---- which method ------------------------------------------------------------------------------
 */

/* The source's own choice, or the program's for all sources; AUTO: neither says anything. */
static enum weft_events_method ask_method(const struct weft_events *es,
					  const struct weft_events_load *load)
{
	return es->ops.choose ? es->ops.choose(es->arg, load)
			      : weft_task_policy_ask_source(es->source.name, load);
}

static enum weft_events_method choose_method(struct weft_events *es)
{
	es->chosen = false;
	if (es->ops.flags & WEFT_EVENTS_RARE && (es->ops.has_fd || es->blocker))
		return WEFT_EVENTS_BLOCK;
	if (!es->ops.choose && (es->ops.method != WEFT_EVENTS_AUTO ||
				(!es->blocker && !weft_task_policy_has_source())))
		return es->ops.method;
	struct weft_events_load load = {
		.cores = weft_task_load_cpus(),
		.running = weft_task_load_running(),
		/* Relaxed: a hint. */
		.polled = atomic_load_explicit(&weft_task_engine.baton.x_state,
					       memory_order_relaxed) == WEFT_BATON_HELD,
		.requests = es->count,
	};
	enum weft_events_method m = ask_method(es, &load);
	es->chosen = m != WEFT_EVENTS_AUTO;
	return m == WEFT_EVENTS_AUTO && es->blocker ? weft_policy_source(&load) : m;
}

static void choose_method_again(struct weft_events *es, bool fresh)
{
	if (!fresh && (++es->looks % CHOOSE_EVERY || !es->count))
		return;
	es->now = choose_method(es);
	if (es->ops.has_fd)
		weft_task_source_rare_locked(&es->source, es->now == WEFT_EVENTS_BLOCK);
}

/* From now on what comes rings; the engine relies on it.  WEFT_AGAIN: it is there already. */
static weft_err arm_requests(struct weft_events *es)
{
	es->retry = false;
	if (!es->count || es->now == WEFT_EVENTS_POLL)
		return WEFT_OK;
	if (es->ops.has_fd)
		return es->ops.arm ? es->ops.arm(es->arg, es) : WEFT_OK;
	if (es->blocker)
		weft_task_blocker_want(es->blocker, true);
	return WEFT_OK;
}

/* What the engine must know of us after each look. */
static void describe_to_engine(struct weft_events *es)
{
	bool bell = es->ops.has_fd || es->blocker || es->ops.flags & WEFT_EVENTS_LOOKS;
	weft_task_source_timed_locked(
		&es->source, es->count && (!bell || es->now == WEFT_EVENTS_POLL || es->retry));
	weft_task_source_idle_locked(&es->source, !es->count && weft_mpsc_empty(&es->sub));
	if (es->blocker && es->count &&
	    (es->now == WEFT_EVENTS_BLOCK || !weft_task_events_can_poll(es)))
		weft_task_blocker_want(es->blocker, true);
}

/* ---- the look
 * ------------------------------------------------------------------------------------ */

static void poll_requests(struct weft_events *es)
{
	if (!es->count || es->in_block)
		return;
	if (es->ops.poll_group) {
		es->ops.poll_group(es->arg, es);
	} else if (es->ops.poll) {
		for (struct weft_event *e = weft_events_first(es); e; e = weft_events_next(es)) {
			int64_t result = 0;
			if (es->ops.poll(es->arg, e, &result))
				weft_event_complete(e, result);
		}
	}
}

int weft_task_events_harvest(struct weft_events *es)
{
	uint32_t run = weft_task_overseer_begin(WEFT_RUNNING_SOURCE, es->source.name);
	bool fresh = take_in_posted(es);
	withdraw_cancelled(es);
	choose_method_again(es, fresh);
	poll_requests(es);
	int found = finish_done(es);
	/* The engine may believe us armed from the time before this request came. */
	if (fresh && weft_task_source_armed_locked(&es->source)) {
		int tries = 0;
		while (arm_requests(es) != WEFT_OK && ++tries < ARM_TRIES) {
			poll_requests(es);
			found += finish_done(es);
		}
		es->retry = tries == ARM_TRIES;
	}
	describe_to_engine(es);
	weft_task_overseer_end(run);
	return found;
}

static int events_poll(void *arg)
{
	int was = weft_cancel_off(); /* the callbacks may read or write */
	int found = weft_task_events_harvest(arg);
	weft_cancel_back(was);
	return found;
}

static weft_err arm_events(struct weft_events *es)
{
	uint32_t run = weft_task_overseer_begin(WEFT_RUNNING_SOURCE, es->source.name);
	take_in_posted(es);
	choose_method_again(es, true);
	/* A thread may have polled until now: it will not any more. */
	if (es->now == WEFT_EVENTS_POLL && es->blocker && !es->chosen &&
	    es->ops.method == WEFT_EVENTS_AUTO)
		es->now = WEFT_EVENTS_BLOCK;
	weft_err err = arm_requests(es);
	finish_done(es);
	describe_to_engine(es);
	weft_task_overseer_end(run);
	return err;
}

static void disarm_events(struct weft_events *es)
{
	if (es->ops.has_fd && es->ops.disarm)
		es->ops.disarm(es->arg, es);
	else if (es->blocker && weft_task_events_can_poll(es) &&
		 choose_method(es) != WEFT_EVENTS_BLOCK)
		weft_task_blocker_want(es->blocker, false);
}

static weft_err events_arm(void *arg, enum weft_arm_level level)
{
	if (level != WEFT_ARM_OFF)
		return arm_events(arg);
	disarm_events(arg);
	return WEFT_OK;
}

/* ---- opening and closing
 * --------------------------------------------------------------------------- */

static weft_err check_ops(const struct weft_events_ops *ops)
{
	if (!ops->poll && !ops->poll_group && !ops->block && !ops->block_group)
		return WEFT_ERR_ARG;
	if (ops->block_group && !ops->poll && !ops->poll_group)
		return WEFT_ERR_ARG; /* nothing could say which request is there */
	return WEFT_OK;
}

weft_err weft_events_open(const struct weft_events_ops *ops, void *arg, struct weft_events **es_p)
{
	if (!ops || !es_p || check_ops(ops))
		return WEFT_ERR_ARG;
	struct weft_events *es =
		aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *es, WEFT_CACHELINE));
	if (!es)
		return WEFT_ERR_NOMEM;
	memset((void *)es, 0, sizeof *es);
	es->ops = *ops;
	es->arg = arg;
	weft_mpsc_init(&es->sub);
	weft_list_init(&es->pending);
	weft_list_init(&es->done);
	es->cursor = &es->pending.head;
	es->source = (struct weft_source){
		.name = ops->name ? ops->name : "events",
		.poll = events_poll,
		.arm = events_arm,
		.fd = ops->has_fd ? ops->fd : -1,
		.self_armed = true,
		.rare = (ops->flags & WEFT_EVENTS_RARE) || ops->method == WEFT_EVENTS_BLOCK,
		.priority = ops->priority,
		.arg = es,
	};
	weft_err err = WEFT_OK;
	if (weft_task_events_can_block(es) && !ops->has_fd)
		err = weft_task_blocker_create(es, weft_task_events_harvest, &es->blocker);
	if (!err)
		err = weft_task_source_add(&es->source);
	if (err) {
		weft_task_blocker_destroy(es->blocker);
		free(es);
		return err;
	}
	*es_p = es;
	return WEFT_OK;
}

/* Withdraws all; returns how many will still complete. */
static size_t withdraw_all(struct weft_events *es)
{
	struct weft_source_inside inside;
	weft_task_source_enter(&es->source, &inside);
	es->closed = true;
	take_in_posted(es);
	for (struct weft_event *e = weft_events_first(es); e; e = weft_events_next(es))
		withdraw_event(es, weft_task_event_of(e));
	poll_requests(es);
	finish_done(es);
	size_t left = es->count;
	describe_to_engine(es);
	weft_task_source_exit(&es->source, &inside);
	return left;
}

weft_err weft_events_close(struct weft_events *es)
{
	if (!es)
		return WEFT_OK;
	if (weft_engine_in_handler())
		return WEFT_ERR_DEADLOCK;
	struct timespec nap = {0, 100000};
	while (withdraw_all(es)) /* ends: what the system or a blocking call still has comes back */
		nanosleep(&nap, NULL);
	weft_task_blocker_destroy(es->blocker);
	if (es->stop_arg)
		es->stop_arg(es->arg);
	weft_task_source_remove(&es->source);
	weft_assert(!es->count && weft_list_empty(&es->pending) && weft_list_empty(&es->done));
	if (es->free_arg)
		es->free_arg(es->arg);
	free(es);
	return WEFT_OK;
}

void weft_events_look(struct weft_events *es)
{
	weft_task_source_look(&es->source);
}

/* ---- requests
 * ---------------------------------------------------------------------------------------- */

weft_err weft_event_post(struct weft_events *es, struct weft_event *event)
{
	struct weft_ev *ev = weft_task_event_of(event);
	/* Relaxed: the event is the caller's. */
	uint32_t state = atomic_load_explicit(&ev->x_state, memory_order_relaxed);
	if (state & WEFT_EV_POSTED)
		return WEFT_ERR_STATE;
	if (state != WEFT_EV_IN_FN) /* else it has not been done yet, and a thread may wait */
		weft_wait_completion_init(&ev->done);
	ev->es = es;
	ev->blocked = ev->leaving = false;
	atomic_store_explicit(&ev->x_state, WEFT_EV_POSTED, memory_order_relaxed);
	weft_mpsc_push(&es->sub, &ev->sub); /* from here on it may come, and be freed */
	weft_task_source_look(&es->source);
	return WEFT_OK;
}

void weft_event_cancel(struct weft_event *event)
{
	struct weft_ev *ev = weft_task_event_of(event);
	struct weft_events *es = ev->es;
	uint32_t seen = WEFT_EV_POSTED;
	/* SWEEP <- CANCEL, with the exchange below. */
	if (!es || !atomic_compare_exchange_strong_explicit(
			   &ev->x_state, &seen, WEFT_EV_POSTED | WEFT_EV_CANCELLED,
			   memory_order_relaxed, memory_order_relaxed))
		return;
	atomic_exchange_explicit(&es->x_cancels, true, memory_order_acq_rel);
	weft_task_source_look(&es->source);
}

bool weft_event_done(const struct weft_event *event)
{
	return weft_wait_completion_done(&weft_task_event_of(event)->done);
}

int64_t weft_event_result(const struct weft_event *event)
{
	return weft_task_event_of(event)->result;
}

weft_err weft_event_wait(struct weft_event *event, uint64_t timeout_ns)
{
	struct weft_completion *c = &weft_task_event_of(event)->done;
	return weft_task_engine_wait_all_at(&c, 1, timeout_ns, WEFT_WAIT_SITE);
}

/* Waits on the completions of many; they need an array of their own. */
static weft_err wait_many(struct weft_event *const *ev, size_t n, uint64_t timeout_ns,
			  weft_err (*wait)(struct weft_completion *const *, size_t, uint64_t))
{
	struct weft_completion *few[64], **c = few;
	few[0] = NULL; /* n may be 0 */
	if (n > weft_countof(few) && !(c = malloc(n * sizeof *c)))
		return WEFT_ERR_NOMEM;
	for (size_t i = 0; i < n; i++)
		c[i] = ev[i] ? &weft_task_event_of(ev[i])->done : NULL;
	weft_err err = wait(c, n, timeout_ns);
	if (c != few)
		free(c);
	return err;
}

weft_err weft_event_wait_all(struct weft_event *const *ev, size_t n, uint64_t timeout_ns)
{
	return wait_many(ev, n, timeout_ns, weft_task_engine_wait_all);
}

weft_err weft_event_wait_any(struct weft_event *const *ev, size_t n, uint64_t timeout_ns)
{
	return wait_many(ev, n, timeout_ns, weft_task_engine_wait_any);
}
