/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waiting.c - waits for one, any or all completions: poll as holder of the baton, or park.
 *
 * A waiter that gets the baton polls for a learned time, then sleeps in the watch set, baton in
 * hand, so that an arrival costs one wake-up.  A waiter that does not get it parks; whoever
 * completes its operation wakes it.  A poller that completes somebody else's operation, and not its
 * own, gives up the baton, wakes the other and parks: on a shared core the other can only run if it
 * does.
 * A thread that blocks beside the kernel's (a light one, ult/) never polls: it parks, and its
 * worker, without other work, waits here in its place for "one of mine is ready"
 * (weft_engine_idle).
 */
#include "base/cancel.h"
#include "base/log.h"
#include "task/ending.h"
#include "task/engine_int.h"
#include "wait/foreign.h"
#include "wait/stack.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/hooks.h>

#define CHUNK 64      /* completions that one wait enlists without allocating */
#define NAP_US 50     /* without memory for a node, or turned away often */
#define YIELDS_MAX 64 /* turned away so often: some 50 us, more than a handler may take */
#define CHECK_MASK 7  /* rounds between looks at the clock, less 1 */
#define HOT_WAITS 4   /* waits that polling ended, before the doorbells are put away */

struct wait_call {
	struct weft_completion *const *c;
	size_t n;
	bool all;
	size_t first;         /* all: everything before is done */
	uint64_t deadline_ns; /* WEFT_NEVER or of the clock */
	const void *site;     /* where the caller waits: it learns how long to spin */
	struct weft_parker *parker;
	struct weft_wait_node *node; /* n of them */
	bool (*ready)(void *arg);    /* an idle worker's: instead of completions */
	void *ready_arg;
	bool held;            /* the baton is ours already, and the batch set up */
	unsigned turned_away; /* so often in this wait */
	bool enlisted, parked_once, slept;
	struct weft_waiter waiter;
	struct weft_wake_batch batch; /* what our rounds completed for others */
};

/* ---- what is waited for -----------------------------------------------------------------------
 */

static bool call_done(struct wait_call *w)
{
	if (w->ready)
		return w->ready(w->ready_arg);
	if (w->all) {
		while (w->first < w->n && /* ends at n */
		       (!w->c[w->first] || weft_completion_done(w->c[w->first])))
			w->first++;
		return w->first == w->n;
	}
	for (size_t i = 0; i < w->n; i++)
		if (!w->c[i] || weft_completion_done(w->c[i]))
			return true;
	return w->n == 0;
}

/* The engine has been stopped under us: what we wait for will not come. */
static bool stopped(struct weft_engine *e)
{
	return weft_unlikely(!weft_ending_parks(&e->x_running));
}

static bool expired(const struct wait_call *w)
{
	return w->deadline_ns != WEFT_NEVER && weft_clock_ns() >= w->deadline_ns;
}

/* Puts us into the lists of all that is not done yet; false: no parker, do not sleep. */
static bool enlist(struct wait_call *w)
{
	if (w->enlisted)
		return true;
	if (!w->parker)
		return false;
	weft_parker_forget(w->parker);
	w->waiter.parker = w->parker;
	/* Relaxed: published with the first node. */
	atomic_store_explicit(&w->waiter.x_need, w->all ? (int)w->n : 1, memory_order_relaxed);
	for (size_t i = 0; i < w->n; i++) {
		weft_wait_node_init(&w->node[i], &w->waiter);
		if (w->c[i] && weft_completion_enlist(w->c[i], &w->node[i]))
			continue;
		w->node[i].waiter = NULL; /* not in use */
		if (w->all)
			atomic_fetch_sub_explicit(&w->waiter.x_need, 1, memory_order_acq_rel);
	}
	w->enlisted = true;
	return true;
}

/* Nobody knows the node any more when this returns. */
static void delist_node(struct weft_completion *c, struct weft_wait_node *n)
{
	unsigned turns = 0;
	if (weft_completion_delist(c, n))
		return;
	/* LEFT: ends when the waker has read the node; it is past its exchange. */
	while (!atomic_load_explicit(&n->x_left, memory_order_acquire))
		weft_backoff(&turns);
}

static void delist(struct wait_call *w)
{
	for (size_t i = 0; w->enlisted && i < w->n; i++)
		if (w->node[i].waiter)
			delist_node(w->c[i], &w->node[i]);
	w->enlisted = false;
}

/* ---- parking ------------------------------------------------------------------------------------
 */

static void parked_add(struct weft_engine *e, struct weft_parked *me)
{
	pthread_mutex_lock(&e->park_lock);
	weft_list_push_back(&e->parked, &me->link);
	pthread_mutex_unlock(&e->park_lock);
}

static void parked_remove(struct weft_engine *e, struct weft_parked *me)
{
	pthread_mutex_lock(&e->park_lock);
	weft_list_remove(&me->link); /* alone already if a leaver took it out */
	pthread_mutex_unlock(&e->park_lock);
	weft_baton_unpark(&e->baton);
}

/* Without memory for a parker: a nap instead. */
static void nap(void)
{
	int was = weft_cancel_off();
	usleep(NAP_US);
	weft_cancel_back(was);
}

/* The baton is somebody else's: sleep until woken, unless it comes free at this moment. */
static void park_beside(struct weft_engine *e, struct wait_call *w)
{
	struct weft_parked me = {.parker = w->parker};
	if (!enlist(w)) {
		nap();
		return;
	}
	parked_add(e, &me);
	if (weft_baton_park(&e->baton) && !call_done(w) && !weft_left_waiting() && !stopped(e)) {
		weft_count(WEFT_CNT_PARKS, 1);
		w->parked_once = true;
		weft_park(w->parker, w->deadline_ns);
	}
	parked_remove(e, &me);
}

/*
 * After a sleep the bells that rang are armed again before we go, here and now: that costs less
 * than to send the watcher ticking until it does the same.
 */
static void arm_before_leaving(struct weft_engine *e, const struct wait_call *w)
{
	if (w->slept && !weft_sources_armed(e) &&
	    atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) >= WEFT_WATCHER_UNDER)
		(void)weft_sources_arm(e); /* WEFT_AGAIN: then the watcher is kicked */
}

/* Back to the application. */
static void leave(struct weft_engine *e, struct wait_call *w)
{
	arm_before_leaving(e, w);
	weft_engine_kick(e, weft_baton_leave(&e->baton));
	/* A kick for a task may have woken us instead of the watcher, and our round went by it. */
	if (weft_unlikely(w->slept) && weft_engine_tasks_waiting(e))
		weft_engine_kick(e, weft_baton_submit_target(&e->baton));
	weft_wake_batch_self = NULL;
	if (weft_unlikely(w->batch.count))
		weft_wake_batch_flush(&w->batch, w->parker);
}

/*
 * We hold the baton and have completed others' operations, not our own: let them have it.
 * With the watcher off somebody must stay: true means that we still hold the baton.
 */
static bool hand_over(struct weft_engine *e, struct wait_call *w)
{
	struct weft_parked me = {.parker = w->parker};
	/* Relaxed: if it goes off just now, leave() tells us to wake one, perhaps ourselves. */
	if (atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) == WEFT_WATCHER_OFF ||
	    !enlist(w)) {
		weft_wake_batch_flush(&w->batch, w->parker);
		return true;
	}
	parked_add(e, &me);
	(void)weft_baton_park(&e->baton);
	arm_before_leaving(e, w);
	weft_engine_kick(e, weft_baton_leave(&e->baton));
	weft_wake_batch_self = NULL;
	/* Relaxed: a hint, see give_way(). */
	atomic_store_explicit(&e->x_woken, true, memory_order_relaxed);
	if (weft_wake_batch_flush(&w->batch, w->parker))
		weft_count(WEFT_CNT_BATON_HANDOVERS, 1);
	if (!call_done(w) && !weft_left_waiting() && !stopped(e)) {
		weft_count(WEFT_CNT_PARKS, 1);
		w->parked_once = true;
		weft_park(w->parker, w->deadline_ns);
	}
	parked_remove(e, &me);
	return false;
}

/* ---- polling and sleeping as holder
 * -------------------------------------------------------------- */

static uint64_t sleep_ns(struct weft_engine *e, const struct wait_call *w)
{
	uint64_t ns = weft_engine_nap_ns(e);
	if (w->deadline_ns != WEFT_NEVER) {
		uint64_t now = weft_clock_ns();
		uint64_t left = w->deadline_ns > now ? w->deadline_ns - now : 0;
		if (left < ns)
			ns = left;
	}
	return ns;
}

/*
 * Tasks wait in a queue whose mask somebody holds who has lost his core, perhaps to us.  He will
 * run them, but we are to look again: let him have the core, then look more rarely.
 */
static void turned_away(struct wait_call *w)
{
	if (++w->turned_away < YIELDS_MAX)
		sched_yield();
	else
		nap();
}

/* Sleeps in the watch set with the baton in hand; returns awake, holding it. */
static void sleep_armed(struct weft_engine *e, struct wait_call *w)
{
	if (!enlist(w)) {
		nap();
		return;
	}
	bool fresh = !weft_sources_armed(e) ||
		     atomic_load_explicit(&e->x_disarm_left, memory_order_relaxed);
	if (fresh && weft_sources_arm(e)) {
		/* Something is there, or a sender or poller is half done: let it have the core. */
		sched_yield();
		return;
	}
	if (!weft_parker_sleep_begin(w->parker)) {
		weft_parker_sleep_end(w->parker); /* notified already */
		return;
	}
	atomic_store_explicit(&e->x_sleeper, w->parker, memory_order_release);
	weft_baton_sleep(&e->baton);
	/*
	 * The last look.  Armed since long, an arrival would have rung.  Armed just now, the source
	 * has looked for itself; this one catches what a taken mask hid.
	 */
	int found =
		fresh || weft_engine_tasks_waiting(e) ? weft_engine_round(e, WEFT_ROUND_FULL) : 0;
	if (!found && !w->batch.count && !weft_engine_tasks_waiting(e) && !weft_left_waiting() &&
	    !call_done(w)) {
		uint64_t t0 = weft_clock_ns();
		weft_count(WEFT_CNT_PARKS, 1);
		weft_engine_watch(e, sleep_ns(e, w));
		w->slept = true;
		weft_spin_slept(w->site, weft_clock_ns() - t0);
	}
	weft_baton_wake(&e->baton);
	weft_parker_sleep_end(w->parker);
	weft_watcher_redirect(e);
	if (!found && weft_engine_tasks_waiting(e))
		turned_away(w);
}

/* One round; wakes are kept in the batch. */
static int round_once(struct weft_engine *e, enum weft_round_kind kind)
{
	int found = weft_engine_round(e, kind) + weft_left_run();
	uint32_t rounds = atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
	/* Relaxed: see weft_engine_poll. */
	atomic_store_explicit(&e->x_rounds, rounds + 1, memory_order_relaxed);
	return found;
}

/* All sources, or after a bell rang or a mask was taken perhaps some of them. */
static bool some_armed(struct weft_engine *e)
{
	return weft_sources_armed(e) ||
	       atomic_load_explicit(&e->x_disarm_left, memory_order_relaxed);
}

static void disarm_if_needed(struct weft_engine *e)
{
	if (weft_unlikely(some_armed(e)))
		weft_sources_disarm(e);
}

enum spin_verdict { SPIN_ON, SPIN_OVER };

#define UNTAKEN_NS 1000 /* a look and a yield: shorter, nobody else ran meanwhile */
#define UNTAKEN_MAX 64  /* so often in a row nobody wants our core: about what sleeping costs */

struct spin {
	uint64_t begun, last, budget, untaken_cycles; /* cycles */
	unsigned untaken;                             /* yields in a row that nobody took */
	bool started, yields;
};

/*
 * Somebody was handed a message and has not come back from its wait: it may be ready to run on this
 * very core, and what we poll for may depend on it.
 */
static void give_way(struct weft_engine *e)
{
	/* Relaxed, both: a hint; missed, it costs the others our spin, seen twice, a system call.
	 */
	if (weft_likely(!atomic_load_explicit(&e->x_woken, memory_order_relaxed)))
		return;
	atomic_store_explicit(&e->x_woken, false, memory_order_relaxed);
	sched_yield();
}

static void spin_begin(struct spin *s, struct weft_wait_plan plan)
{
	s->budget = weft_spin_cycles(plan.ns);
	s->yields = plan.yield;
	s->untaken = 0;
	s->untaken_cycles = weft_spin_cycles(UNTAKEN_NS);
}

/* After a fruitless round: go on polling, or sleep? */
static enum spin_verdict spin_next(struct weft_engine *e, const struct wait_call *w, struct spin *s,
				   unsigned round)
{
	give_way(e);
	if (!s->started) {
		s->started = true;
		s->begun = s->last = weft_cycles();
		spin_begin(s, weft_spin_plan(w->site));
	}
	if (!s->budget)
		return SPIN_OVER;
	if (s->yields || (round & CHECK_MASK) == 0) {
		uint64_t now = weft_cycles();
		weft_spin_gap(now - s->last);
		s->untaken = now - s->last < s->untaken_cycles ? s->untaken + 1 : 0;
		s->last = now;
		if (now - s->begun > s->budget || (s->yields && s->untaken > UNTAKEN_MAX))
			return SPIN_OVER;
		/* We shall poll for a while: no doorbells, please. */
		disarm_if_needed(e);
	}
	if (s->yields)
		sched_yield();
	else
		weft_cpu_relax();
	return SPIN_ON;
}

/* Waits that ended by polling, since the last that slept; the baton holder's. */
static unsigned polled_in_a_row;

/*
 * A wait, ours or one that we hand over to, has ended.  When one after the other ends by polling
 * nobody sleeps, and the doorbells that peers still ring for us cost both sides a system call for
 * nothing.
 */
static void polled(struct weft_engine *e, const struct wait_call *w)
{
	if (weft_likely(!some_armed(e)))
		return;
	if (w->slept)
		polled_in_a_row = 0;
	else
		polled_in_a_row++;
	if (polled_in_a_row < HOT_WAITS)
		return;
	polled_in_a_row = 0;
	if (weft_spin_wanted())
		disarm_if_needed(e);
}

/* Holds the baton until the call is done, handed over, or expired; returns without it. */
static void hold_baton(struct weft_engine *e, struct wait_call *w)
{
	struct spin spin = {.started = false};
	w->slept = false;
	if (!w->held) {
		weft_wake_batch_init(&w->batch);
		weft_wake_batch_self = &w->batch;
	}
	w->held = false;
	enum weft_round_kind kind = weft_spin_crowded() ? WEFT_ROUND_QUICK : WEFT_ROUND_SPIN;
	unsigned rounds = 1;
	for (;; rounds++) { /* ends: done, handed over or expired; sleeps when nothing comes */
		int found = round_once(e, kind);
		bool woke = w->ready && w->batch.count;
		if (woke) /* perhaps one of its own: it is ready once it has been woken */
			weft_wake_batch_flush(&w->batch, w->parker);
		if (call_done(w)) {
			if (spin.started && !w->slept)
				weft_spin_paid(w->site);
			polled(e, w);
			leave(e, w);
			break;
		}
		if (weft_unlikely(w->batch.count != 0 || woke)) {
			polled(e, w);
			if (!hand_over(e, w))
				break;
			spin.started = true; /* the watcher is off: sleep in the set at once */
			spin.budget = 0;
		}
		if (found) {
			if (weft_sources_armed(e) && weft_spin_wanted())
				disarm_if_needed(e); /* hot: polled messages need no doorbell */
			spin.started = false;
			continue;
		}
		if (weft_unlikely(w->deadline_ns != WEFT_NEVER) && (rounds & CHECK_MASK) == 0 &&
		    expired(w)) {
			leave(e, w);
			break;
		}
		if (spin_next(e, w, &spin, rounds) == SPIN_ON)
			continue;
		sleep_armed(e, w);
		if (stopped(e) || expired(w)) {
			leave(e, w);
			break;
		}
	}
	weft_count(WEFT_CNT_POLL_EXPLICIT, rounds);
}

/* ---- the waits ---------------------------------------------------------------------------------
 */

static weft_err wait_loop(struct weft_engine *e, struct wait_call *w)
{
	weft_err err = WEFT_OK;
	if (w->held)
		hold_baton(e, w);
	while (!call_done(w)) { /* ends: done, expired or stopped; parks or sleeps between */
		if (stopped(e)) {
			err = WEFT_ERR_STATE;
			break;
		}
		if (expired(w)) {
			err = WEFT_ERR_TIMEOUT;
			break;
		}
		if (weft_baton_try_take(&e->baton))
			hold_baton(e, w);
		else if (!weft_left_run()) /* whoever has the baton may not do it */
			park_beside(e, w);
	}
	/* Relaxed: it was us, most likely. */
	if (w->enlisted && atomic_load_explicit(&e->x_woken, memory_order_relaxed))
		atomic_store_explicit(&e->x_woken, false, memory_order_relaxed);
	delist(w);
	/* A leaver may have woken us to poll for the others; with the watcher off pass it on. */
	if (w->parked_once &&
	    atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) == WEFT_WATCHER_OFF &&
	    weft_baton_try_take(&e->baton))
		weft_engine_kick(e, weft_baton_leave(&e->baton));
	return err;
}

/* May this thread wait at all?  Logs why not. */
static weft_err may_wait(struct weft_engine *e)
{
	if (weft_unlikely(weft_engine_self.in_handler)) {
		weft_error("a handler tried to wait: it would wait for itself");
		return WEFT_ERR_DEADLOCK;
	}
	if (weft_unlikely(!atomic_load_explicit(&e->x_running, memory_order_acquire))) {
		weft_error(atomic_load_explicit(&e->x_dead, memory_order_relaxed)
				   ? "a child process of fork cannot wait for its parent's messages"
				   : "the progress engine is not running");
		return WEFT_ERR_STATE;
	}
	return WEFT_OK;
}

static uint64_t deadline_of(uint64_t timeout_ns)
{
	if (timeout_ns == WEFT_FOREVER)
		return WEFT_NEVER;
	uint64_t now = weft_clock_ns();
	return now > WEFT_NEVER - 1 - timeout_ns ? WEFT_NEVER - 1 : now + timeout_ns;
}

static bool watcher_off(struct weft_engine *e)
{
	/* Seq_cst: after PARK, see foreign_park(). */
	return atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) == WEFT_WATCHER_OFF;
}

static void foreign_park(struct weft_engine *e, struct wait_call *w)
{
	struct weft_parked me = {.parker = w->parker};
	parked_add(e, &me);
	/* PARK: counted before our look at the watcher; one that goes off says so before it looks
	 * at the count.  Either we see it off, or it sees us and we are woken to poll. */
	(void)weft_baton_park(&e->baton);
	if (!watcher_off(e) && !call_done(w) && !stopped(e)) {
		weft_count(WEFT_CNT_PARKS_LIGHT, 1);
		weft_park(w->parker, w->deadline_ns);
	}
	parked_remove(e, &me);
}

/*
 * A thread of a foreign runtime: parks, and the watcher or the runtime's idle loop sees to its
 * message.  With the watcher off it looks itself, between the others of its runtime, and passes
 * that on when it goes.
 */
static weft_err wait_foreign(struct weft_engine *e, struct wait_call *w)
{
	weft_err err = WEFT_OK;
	(void)enlist(w);
	while (!call_done(w)) { /* ends: done, expired or stopped; parks or yields between */
		if (stopped(e)) {
			err = WEFT_ERR_STATE;
			break;
		}
		if (expired(w)) {
			err = WEFT_ERR_TIMEOUT;
			break;
		}
		if (!watcher_off(e))
			foreign_park(e, w);
		else if (!weft_hook_idle())
			weft_foreign_yield();
	}
	delist(w);
	if (watcher_off(e) && weft_baton_try_take(&e->baton))
		weft_engine_kick(e, weft_baton_leave(&e->baton));
	return err;
}

/* A light thread: its worker polls, not it. */
static weft_err wait_light(struct wait_call *w)
{
	weft_err err = WEFT_OK;
	if (weft_unlikely(weft_foreign_is(w->parker)))
		return wait_foreign(&weft_engine, w);
	(void)enlist(w);
	while (!call_done(w)) { /* ends: done or expired; parks between */
		if (expired(w)) {
			err = WEFT_ERR_TIMEOUT;
			break;
		}
		weft_count(WEFT_CNT_PARKS_LIGHT, 1);
		weft_park(w->parker, w->deadline_ns);
	}
	delist(w);
	return err;
}

/* The same without memory to be woken by. */
static weft_err wait_light_napping(struct wait_call *w)
{
	while (!call_done(w)) { /* ends: done or expired */
		if (expired(w))
			return WEFT_ERR_TIMEOUT;
		if (weft_foreign_is(w->parker))
			(void)weft_hook_idle();
		weft_park(w->parker, weft_clock_ns() + NAP_US * 1000);
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
static __attribute__((noinline)) bool wait_light_alone(struct weft_completion *c)
{
	struct weft_parker *p = weft_parker_self();
	struct weft_waiter waiter = {.parker = p};
	struct weft_wait_node node;
	if (!weft_parker_is_light(p) || weft_foreign_is(p) || may_wait(&weft_engine))
		return false;
	weft_parker_forget(p);
	/* Relaxed: published with the node. */
	atomic_store_explicit(&waiter.x_need, 1, memory_order_relaxed);
	weft_wait_node_init(&node, &waiter);
	if (!weft_completion_enlist(c, &node))
		return true;
	while (!weft_completion_done(c)) { /* ends: done; parks between */
		weft_count(WEFT_CNT_PARKS_LIGHT, 1);
		weft_park(p, WEFT_NEVER);
	}
	delist_node(c, &node);
	return true;
}

/* Its stack is small: no more than one node lies there. */
static weft_err wait_light_sized(struct wait_call *w)
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

/* Waits for at most CHUNK completions; the nodes are here, on the stack. */
static __attribute__((noinline)) weft_err wait_chunk(struct wait_call *w)
{
	struct weft_wait_node node[CHUNK];
	w->node = node;
	return wait_loop(&weft_engine, w);
}

static __attribute__((noinline)) weft_err wait_few(struct wait_call *w)
{
	struct weft_wait_node node[4];
	w->node = node;
	return wait_loop(&weft_engine, w);
}

static weft_err wait_heap(struct wait_call *w)
{
	w->node = malloc(w->n * sizeof *w->node);
	if (!w->node) {
		w->parker = NULL; /* polls and naps instead of sleeping */
		weft_debug("no memory to sleep on %zu completions: polling", w->n);
	}
	weft_err err = wait_loop(&weft_engine, w);
	free(w->node);
	return err;
}

static weft_err wait_sized(struct wait_call *w)
{
	w->parker = weft_parker_self();
	if (weft_parker_is_light(w->parker))
		return wait_light_sized(w);
	if (w->n <= 4)
		return wait_few(w);
	return w->n <= CHUNK ? wait_chunk(w) : wait_heap(w);
}

weft_err weft_engine_wait_all_at(struct weft_completion *const *c, size_t n, uint64_t timeout_ns,
				 const void *site)
{
	struct wait_call w = {.c = c, .n = n, .all = true, .site = site};
	if (call_done(&w))
		return WEFT_OK;
	weft_err err = may_wait(&weft_engine);
	if (err)
		return err;
	w.deadline_ns = deadline_of(timeout_ns);
	/* All means: one chunk after the other. */
	for (size_t at = w.first; at < n && !err; at += CHUNK) {
		struct wait_call part = {.c = c + at,
					 .n = n - at < CHUNK ? n - at : CHUNK,
					 .all = true,
					 .deadline_ns = w.deadline_ns,
					 .site = site};
		if (!call_done(&part))
			err = wait_sized(&part);
	}
	return err;
}

weft_err weft_engine_wait_any_at(struct weft_completion *const *c, size_t n, uint64_t timeout_ns,
				 const void *site)
{
	struct wait_call w = {.c = c, .n = n, .all = false, .site = site};
	if (call_done(&w))
		return WEFT_OK;
	weft_err err = may_wait(&weft_engine);
	if (err)
		return err;
	w.deadline_ns = deadline_of(timeout_ns);
	return wait_sized(&w);
}

weft_err weft_engine_wait_all(struct weft_completion *const *c, size_t n, uint64_t timeout_ns)
{
	return weft_engine_wait_all_at(c, n, timeout_ns, WEFT_WAIT_SITE);
}

weft_err weft_engine_wait_any(struct weft_completion *const *c, size_t n, uint64_t timeout_ns)
{
	return weft_engine_wait_any_at(c, n, timeout_ns, WEFT_WAIT_SITE);
}

/* ---- one, without timeout ----------------------------------------------------------------------
 */

static __attribute__((noinline)) void wait_on(struct weft_completion *c, struct wait_call *w,
					      const void *site)
{
	weft_err err = w->held ? WEFT_OK : may_wait(&weft_engine);
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
	w->enlisted = w->parked_once = w->slept = false;
	if (wait_sized(w) == WEFT_ERR_STATE)
		weft_panic("the progress engine was stopped while a thread waited");
}

/* May this thread look, as holder of the baton?  Then it is, and the batch is set up. */
static inline bool look_begin(struct weft_engine *e, struct wait_call *w)
{
	bool held = !weft_stack_may_be_small() && !weft_engine_self.in_handler &&
		    atomic_load_explicit(&e->x_running, memory_order_acquire) &&
		    weft_baton_try_take(&e->baton);
	w->held = held;
	if (weft_likely(held)) {
		weft_wake_batch_init(&w->batch);
		weft_wake_batch_self = &w->batch;
	}
	return held;
}

/* With the baton in hand: a look at everything, as if what we wait for were about to come. */
static inline int look_once(struct weft_engine *e)
{
	return round_once(e, weft_spin_crowded() ? WEFT_ROUND_QUICK : WEFT_ROUND_WAIT);
}

/* The look was all; nothing has been prepared for a sleep. */
static inline void look_end(struct weft_engine *e, struct wait_call *w)
{
	weft_engine_kick(e, weft_baton_leave(&e->baton));
	weft_wake_batch_self = NULL;
	if (weft_unlikely(w->batch.count)) /* nobody of them is us: we are in no list */
		weft_wake_batch_flush(&w->batch, NULL);
	weft_count(WEFT_CNT_POLL_EXPLICIT, 1);
}

static __attribute__((noinline)) int look(struct weft_engine *e, struct wait_call *w)
{
	int found = 0;

	if (look_begin(e, w)) {
		/* Armed: it would cost a system call, and perhaps a sleep comes all the same. */
		if (!some_armed(e))
			found = look_once(e);
		look_end(e, w);
	}
	return found;
}

int weft_engine_look(void)
{
	struct wait_call w;
	return look(&weft_engine, &w);
}

static __attribute__((noinline)) void wait_looking(struct weft_completion *c, bool own,
						   const void *site)
{
	struct weft_engine *e = &weft_engine;
	struct wait_call w;

	if (look_begin(e, &w) && weft_likely(!some_armed(e))) {
		weft_completion_own = own ? c : NULL;
		(void)look_once(e);
		weft_completion_own = NULL;
		if (weft_likely(weft_completion_done(c))) {
			look_end(e, &w);
			return;
		}
	}
	wait_on(c, &w, site);
}

static inline void wait_one(struct weft_completion *c, bool own, const void *site)
{
	if (weft_completion_done(c) || (weft_stack_may_be_small() && wait_light_alone(c)))
		return;
	wait_looking(c, own, site);
}

void weft_engine_wait(struct weft_completion *c)
{
	wait_one(c, false, WEFT_WAIT_SITE);
}

void weft_engine_wait_own(struct weft_completion *c)
{
	wait_one(c, true, WEFT_WAIT_SITE);
}

void weft_engine_idle(bool (*ready)(void *arg), void *arg, uint64_t deadline_ns)
{
	struct wait_call w = {.ready = ready,
			      .ready_arg = arg,
			      .deadline_ns = deadline_ns,
			      .all = true,
			      .site = WEFT_WAIT_SITE};
	/* READY (engine.c). */
	if (weft_engine_self.in_handler ||
	    !atomic_load_explicit(&weft_engine.x_running, memory_order_acquire))
		return;
	w.parker = weft_parker_self();
	(void)wait_loop(&weft_engine, &w);
}
