/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wake_world.h - what stands around the production's wake protocol in test_model_wake.c: the kernel
 * (the watch set, its timer, the word that the watcher sleeps on), one source with its bell, one
 * queue, and what the watcher asks of the rest of the engine.
 */
#ifndef WEFT_TEST_WAKE_WORLD_H
#define WEFT_TEST_WAKE_WORLD_H

#include "model/explore.h"
#include "base/counters.h"
#include "base/futex.h"
#include "task/engine_int.h"

/* The explorer's threads are one thread of the system: each has its own. */
static struct weft_engine_self selves[M_THREADS];
#define weft_task_engine_self (selves[mx.now < 0 ? mx.asserts : mx.now])
#define weft_count(id, n) ((void)(n))
static uint64_t model_clock(void);
#define weft_clock_ns model_clock
#define weft_cycles model_clock
#pragma GCC diagnostic ignored "-Wunused-function"
#include "task/wake/release.c"
#include "task/wake/watcher.c"
#include "task/wake/watcher_armed.c"

struct weft_engine weft_task_engine;
_Thread_local bool weft_task_progress_off_here;
#define ENGINE (&weft_task_engine)
static struct weft_relay relay;
static struct weft_watcher watcher;
static _Atomic int x_work;     /* tasks: a seq_cst exchange, as in the queues */
static _Atomic int x_packets;  /* messages */
static _Atomic int x_bell;     /* the level that the one source is armed to; a ring takes it */
static _Atomic int x_kicks;    /* the watch set: kicks that no sleeper has taken */
static _Atomic int x_rings;    /* rings */
static _Atomic int x_timer;    /* 1: set, it may go off at any moment */
static _Atomic int x_notified; /* the parked waiter's parker */
/* The explorer's, without an order of their own. */
static int tasks, messages, waiters; /* done so far */
static int want_tasks, want_messages, want_waiters;
static bool work_due, granted, no_timer;
static uint64_t now_ns;

static struct weft_watcher_row table[WEFT_WATCHER_ROWS];
static unsigned long visits[WEFT_WATCHER_ROWS];
static enum weft_watcher_pos begin_at;

static int newest(_Atomic int *p)
{
	int v;
	memcpy(&v, (void *)p, sizeof v); /* as the kernel sees it */
	return v;
}

static bool all_done(void)
{
	return tasks >= want_tasks && messages >= want_messages && waiters >= want_waiters;
}

/* ---- the clock, kicks, the watch set: the kernel's part ----------------------------------------
 */

static uint64_t model_clock(void)
{
	return now_ns;
}

static bool timer_ns_passes(uint64_t deadline_ns)
{
	/* A tick is over, or only a part of it: then something held back is not due yet. */
	now_ns += m_choose(2) && deadline_ns - now_ns > 5000 ? 5000 : 20000;
	return true;
}

void weft_task_engine_kick(struct weft_engine *e, enum weft_kick kick)
{
	if (kick == WEFT_KICK_SET)
		atomic_fetch_add_explicit(&x_kicks, 1, memory_order_acq_rel);
	else if (kick == WEFT_KICK_WATCHER)
		atomic_fetch_add_explicit(&e->x_watcher_word, 1, memory_order_acq_rel);
	else if (kick == WEFT_KICK_PARKED)
		atomic_exchange_explicit(&x_notified, 1, memory_order_acq_rel);
}

void weft_task_watcher_call(struct weft_engine *e)
{
	atomic_store_explicit(&e->x_call_watcher, true, memory_order_seq_cst);
	weft_task_engine_kick(e, WEFT_KICK_WATCHER);
	weft_task_engine_kick(e, WEFT_KICK_SET);
}

void weft_task_watcher_redirect(struct weft_engine *e)
{
	if (atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) == WEFT_BATON_ASLEEP &&
	    !weft_task_sources_armed(e))
		weft_task_engine_kick(e, WEFT_KICK_SET);
}

void weft_task_engine_set_kick_timer(struct weft_engine *e, enum weft_task_kick_timer_what what)
{
	atomic_store_explicit(&e->kick_timer.x_rounds,
			      atomic_load_explicit(&e->x_rounds, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_exchange_explicit(&x_timer, 1, memory_order_acq_rel);
}

bool weft_task_engine_kick_later(struct weft_engine *e, enum weft_task_kick_timer_what what)
{
	if (no_timer ||
	    atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) != WEFT_WATCHER_UNDER)
		return false;
	if (weft_task_kick_timer_due(&e->kick_timer, what))
		weft_task_engine_set_kick_timer(e, what);
	return true;
}

static bool no_edge(void *arg)
{
	(void)arg;
	return !newest(&x_kicks) && !newest(&x_rings) && !newest(&x_timer) && !all_done();
}

/* A sleep in the watch set: any sleeper may get what is there. */
bool weft_task_engine_watch(struct weft_engine *e, uint64_t timeout_ns)
{
	if (timeout_ns == WEFT_FOREVER)
		model_block(no_edge, NULL);
	else if (no_edge(NULL))
		model_relax();
	bool kicked =
		newest(&x_kicks) && atomic_exchange_explicit(&x_kicks, 0, memory_order_acq_rel);
	bool rang = newest(&x_rings) && atomic_exchange_explicit(&x_rings, 0, memory_order_acq_rel);
	bool gone_off =
		newest(&x_timer) && atomic_exchange_explicit(&x_timer, 0, memory_order_acq_rel);
	weft_task_kick_filter_woke(&e->kick_filter);
	if (gone_off)
		weft_task_kick_timer_fired(&e->kick_timer);
	if (rang)
		weft_task_baton_rang(&e->baton);
	weft_task_engine_self.deferred = gone_off && !kicked && !rang;
	weft_task_engine_self.expired = !gone_off && !kicked && !rang;
	return rang;
}

struct futex {
	_Atomic uint32_t *x_word;
	uint32_t seen;
};

static bool is_unchanged(void *arg)
{
	const struct futex *f = arg;
	uint32_t v;
	memcpy(&v, (void *)f->x_word, sizeof v); /* as the kernel sees it */
	return v == f->seen && !all_done();
}

void weft_futex_wait(_Atomic uint32_t *x_word, uint32_t seen, uint64_t deadline_ns)
{
	struct futex f = {x_word, seen};
	if (deadline_ns == WEFT_NEVER)
		model_block(is_unchanged, &f);
	else if (is_unchanged(&f) && timer_ns_passes(deadline_ns))
		model_relax();
	model_fresh((void *)x_word, sizeof *x_word);
	if (all_done()) /* a sleeper that looks again shall come out */
		atomic_fetch_add_explicit(x_word, 1, memory_order_acq_rel);
}

/* ---- polling and arming ------------------------------------------------------------------------
 */

static void poll(void)
{
	if (newest(&x_packets))
		messages += atomic_exchange_explicit(&x_packets, 0, memory_order_acq_rel);
}

static bool tasks_there(void)
{
	return atomic_load_explicit(&x_work, memory_order_seq_cst) != 0;
}

static void look(void)
{
	if (tasks_there())
		tasks += atomic_exchange_explicit(&x_work, 0, memory_order_acq_rel);
	/* A full look at the source. */
	if (atomic_load_explicit(&x_packets, memory_order_acquire))
		messages += atomic_exchange_explicit(&x_packets, 0, memory_order_acq_rel);
}

/* One shm source.  WEFT_AGAIN: something is there, and it is off. */
weft_err weft_task_sources_arm(struct weft_engine *e, enum weft_arm_level to)
{
	weft_task_baton_arm(&e->baton, to);
	if (to == WEFT_ARM_OFF) {
		atomic_store_explicit(&x_bell, WEFT_ARM_OFF, memory_order_relaxed);
		return WEFT_OK;
	}
	if (newest(&x_bell) < (int)to) {
		atomic_exchange_explicit(&x_bell, to, memory_order_seq_cst);
		if (to == WEFT_ARM_ALL)
			model_membarrier();
	}
	model_fence();
	if (!atomic_load_explicit(&x_packets, memory_order_acquire))
		return WEFT_OK;
	atomic_store_explicit(&x_bell, WEFT_ARM_OFF, memory_order_relaxed);
	weft_task_baton_arm(&e->baton, WEFT_ARM_OFF);
	return WEFT_AGAIN;
}

static bool arm(enum weft_arm_level to)
{
	return weft_task_sources_arm(ENGINE, to) == WEFT_OK;
}

enum weft_arm_level weft_task_sources_level_to_leave(struct weft_engine *e, bool soon)
{
	return weft_task_baton_heard(&e->baton) ? WEFT_ARM_ALL_UNCHECKED
						: WEFT_ARM_REPLIES_UNCHECKED;
}

static enum weft_arm_level level_to_leave(void)
{
	return weft_task_sources_level_to_leave(ENGINE, false);
}

static enum weft_arm_level level(void)
{
	return weft_task_sources_level(ENGINE);
}

bool weft_task_engine_tasks_left(struct weft_engine *e)
{
	return tasks_there();
}

bool weft_task_engine_tasks_waiting(struct weft_engine *e)
{
	return tasks_there();
}

/* One look; production looks until a round finds nothing. */
void weft_task_watcher_drain(struct weft_engine *e)
{
	look();
}

/* ---- what the watcher asks of other parts ------------------------------------------------------
 */

uint64_t weft_task_app_work_due_ns(void)
{
	return work_due ? 0 : WEFT_FOREVER;
}

void weft_task_app_work_run_due(void)
{
	work_due = false;
}

uint64_t weft_task_engine_nap_ns(struct weft_engine *e)
{
	return WEFT_FOREVER;
}

uint64_t weft_task_relay_nap_ns(void)
{
	return granted ? 1 : WEFT_FOREVER;
}

bool weft_task_relay_check(struct weft_engine *e)
{
	return granted && weft_task_kick_filter_look_after(&e->kick_filter, &relay, true);
}

bool weft_task_relay_take_back(struct weft_engine *e)
{
	return weft_task_relay_check(e);
}

void weft_task_outside_ring(struct weft_engine *e)
{
}

bool weft_task_budget_pause(void)
{
	return false;
}

bool weft_task_spin_crowded(void)
{
	return false;
}

/* No wait of ours comes after a rest: x_rest_arms alone says which one arms by itself. */
uint64_t weft_task_spin_cycles(uint64_t ns)
{
	return UINT64_MAX;
}

weft_err weft_task_engine_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	return WEFT_ERR_UNSUPPORTED;
}

bool weft_task_engine_thread_settle(const char *name)
{
	return false;
}

#endif
