/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.c - how a task starts in the background without a system call of its submitter: an idle
 * worker that is awake (idle.c) sees the word (relay.h) and wakes the hand, on its own core.
 *
 * To wake a thread of another core costs the submitter some us and the task 10 to 150 more.  The
 * idle worker may not run tasks itself: preempted, it would keep them for long.  The hand is a
 * thread like the watcher, bound to the core where the relay is, and asleep until it is told.
 * The hand and the word that it sleeps on are static: a relay of an engine that has stopped, which
 * comes back late, may ring them at any time.
 */
#include "base/futex.h"
#include "base/mechanism.h"
#include "task/engine_int.h"
#include "task/thread.h"
#include "task/wake/kick.h"
#include "task/wake/kick_filter.h"
#include "task/wake/outside.h"
#include "task/queue/tqueue.h"
#include "task/wake/relay_hand.h"

#include <unistd.h>

#define FRESH_NS 10000u  /* a beat no older: the relay has its core */
#define LEASE_NS 400000u /* the watcher's sleep meanwhile: so long a word may lie if it has not */
#define TURNS_MAX 8      /* looks in a row that found something */

static struct weft_relay relay;

static struct {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_word; /* ringers add; it sleeps on it */
	_Atomic int x_cpu;                               /* the relay: where it is */
	_Atomic bool x_stop;                             /* stopper */
	bool started, failed;                            /* watcher and stopper */
	pthread_t thread;
} hand;

static _Atomic uint64_t x_granted_ns; /* the watcher; a hint */

/* ---- the hand ----------------------------------------------------------------------------------
 */

static void ring_hand(void)
{
	weft_task_wake_word_ring(&hand.x_word);
	weft_futex_wake(&hand.x_word);
}

/* To the relay's core, a thread that sleeps there is woken soonest; within what it may use. */
static void follow_relay(const cpu_set_t *may, int *bound)
{
	cpu_set_t set;
	int cpu = atomic_load_explicit(&hand.x_cpu, memory_order_relaxed); /* a hint */
	if (cpu < 0 || cpu >= CPU_SETSIZE || cpu == *bound || !CPU_ISSET(cpu, may))
		return;
	*bound = cpu;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof set, &set); /* refused: then where it is */
}

static void run_tasks(struct weft_engine *e)
{
	int turns = 0;
	while (weft_task_tqueues_visit_all()) { /* ends: nothing more is there, or too much */
		weft_task_outside_tell(e);
		if (++turns == TURNS_MAX) {
			weft_task_engine_kick(e, weft_task_baton_submit_target(&e->baton));
			return;
		}
	}
}

static void *run_hand(void *arg)
{
	struct weft_engine *e = arg;
	int bound = -1;
	cpu_set_t may;
	if (sched_getaffinity(0, sizeof may, &may)) /* a larger machine: it stays where it is */
		CPU_ZERO(&may);
	(void)weft_task_engine_thread_settle("weft-hand");
	weft_task_engine_self.runner = WEFT_RUNNER_WATCHER;
	for (;;) { /* ends: stop */
		uint32_t seen = weft_task_kick_filter_begin(&e->kick_filter, &hand.x_word);
		if (atomic_load_explicit(&hand.x_stop, memory_order_acquire))
			return NULL;
		follow_relay(&may, &bound);
		run_tasks(e);
		weft_futex_wait(&hand.x_word, seen, WEFT_NEVER);
	}
}

/* ---- the idle worker's ------------------------------------------------------------------------
 */

bool weft_task_relay_begin(uint64_t now)
{
	if (!weft_task_relay_accept(&relay))
		return false;
	atomic_store_explicit(&hand.x_cpu, sched_getcpu(), memory_order_relaxed);
	atomic_store_explicit(&relay.x_beat_ns, now, memory_order_relaxed);
	return true;
}

bool weft_task_relay_beat(uint64_t now)
{
	/* Relaxed, both: a hint, and our own lease, which ends for us by a close alone. */
	atomic_store_explicit(&relay.x_beat_ns, now, memory_order_relaxed);
	return atomic_load_explicit(&relay.x_lease, memory_order_relaxed) == WEFT_LEASE_HELD;
}

bool weft_task_relay_serve(void)
{
	if (weft_likely(!weft_task_relay_answer(&relay, WEFT_WORD_MARKED)))
		return false;
	atomic_store_explicit(&hand.x_cpu, sched_getcpu(), memory_order_relaxed);
	ring_hand();
	weft_task_relay_answered(&relay);
	weft_count(WEFT_CNT_RELAYED, 1);
	return true;
}

void weft_task_relay_end(void)
{
	if (weft_task_relay_close(&relay))
		ring_hand();
}

/* ---- the submitter's --------------------------------------------------------------------------
 */

/* Old: it has lost its core, the system call is quicker. */
static bool relay_is_quick(const struct weft_relay *r)
{
	/* Relaxed: a hint. */
	uint64_t beat = atomic_load_explicit(&r->x_beat_ns, memory_order_relaxed);
	return weft_clock_ns() < beat + FRESH_NS;
}

bool weft_task_engine_spare(void)
{
	/* Relaxed: a hint.  Where no idle worker is awake this word lies in every core's cache. */
	return atomic_load_explicit(&relay.x_lease, memory_order_relaxed) == WEFT_LEASE_HELD &&
	       relay_is_quick(&relay);
}

bool weft_task_relay_tell(struct weft_engine *e)
{
	return weft_task_kick_filter_relayed(&e->kick_filter, &relay, relay_is_quick);
}

/* ---- the watcher's ----------------------------------------------------------------------------
 */

void weft_task_relay_grant(struct weft_engine *e)
{
	if (!weft_mechanism_on(WEFT_MECH_RELAY))
		return;
	if (!hand.started && !hand.failed) {
		atomic_store_explicit(&hand.x_stop, false, memory_order_relaxed);
		atomic_store_explicit(&hand.x_cpu, -1, memory_order_relaxed);
		hand.failed = weft_task_engine_thread(&hand.thread, run_hand, e) != WEFT_OK;
		hand.started = !hand.failed;
	}
	if (hand.started && weft_task_relay_offer(&relay))
		atomic_store_explicit(&x_granted_ns, weft_clock_ns(), memory_order_relaxed);
}

uint64_t weft_task_relay_nap_ns(void)
{
	/* Relaxed: we alone grant; gone meanwhile, one sleep more is short. */
	return atomic_load_explicit(&relay.x_lease, memory_order_relaxed) == WEFT_LEASE_NONE
		       ? WEFT_FOREVER
		       : LEASE_NS;
}

bool weft_task_relay_check(struct weft_engine *e)
{
	if (weft_likely(weft_task_relay_nap_ns() == WEFT_FOREVER))
		return false;
	/* Relaxed: what we miss now we see the next time. */
	uint64_t last = atomic_load_explicit(&relay.x_beat_ns, memory_order_relaxed);
	uint64_t granted = atomic_load_explicit(&x_granted_ns, memory_order_relaxed);
	if (last < granted)
		last = granted;
	return weft_task_kick_filter_look_after(&e->kick_filter, &relay,
						weft_clock_ns() > last + LEASE_NS);
}

bool weft_task_relay_take_back(struct weft_engine *e)
{
	return weft_task_relay_nap_ns() != WEFT_FOREVER &&
	       weft_task_kick_filter_look_after(&e->kick_filter, &relay, true);
}

void weft_task_relay_stop(void)
{
	(void)weft_task_relay_close(&relay);
	if (hand.started) {
		/* STOP -> run.  The word rung after it ends the sleep. */
		atomic_store_explicit(&hand.x_stop, true, memory_order_release);
		ring_hand();
		pthread_join(hand.thread, NULL);
	}
	hand.started = hand.failed = false;
}
