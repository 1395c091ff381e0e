/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.c - idle workers: after an event they keep an otherwise idle core awake for the next one.
 *
 * Waking a core that sleeps costs up to 150 us in a guest, so for about that long after an event a
 * SCHED_IDLE thread spins there: it costs the neighbours nothing, and the next doorbell, which
 * wakes the watcher, finds the core awake: 5 us instead of 150.  As long as events come while it
 * spins it stays twice as long the next time, up to a millisecond; after a spin for nothing half as
 * long: a core is awake at most as long as events are apart, or the shortest spin per event.  One
 * of them is the relay, to which tasks are told without a system call (relay.c).  It polls nothing
 * itself: preempted in the midst of it, it would keep a mask for very long.  When all cores are
 * busy it does not run, and it is not called again for a while.  No thread waits for its end either,
 * that could take long: it touches static memory only, and ends when its generation is over.  With
 * a fixed period it does look at the queues; stop waits for the end of a look.
 */
#include "base/assert.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/settings.h"
#include "task/wake/ending.h"
#include "task/engine_int.h"
#include "task/thread.h"
#include "task/wake/budget.h"
#include "task/wake/idle.h"
#include "task/wake/kick.h"
#include "task/wake/relay_hand.h"
#include "task/wake/watcher.h"
#include "task/event/load.h"
#include "task/wake/wake_word.h"

#include <sched.h>
#include <unistd.h>

#define IDLERS_MAX 64
#define COST_START_NS 150000u /* until measured */
#define COST_MIN_NS 20000u
#define COST_MAX_NS 300000u
#define SPIN_MIN_NS 100000u /* 1 % of a core at a hundred events a second */
#define SPIN_MAX_NS 1000000u
#define BUSY_NS 1000000u      /* a wake-up later than this was no wake-up but a busy core */
#define HOLD_OFF_NS 20000000u /* then leave it alone for so long */

struct idler {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_word; /* callers add; it sleeps on it */
	_Atomic bool x_parked;                           /* owner: about to sleep */
	_Atomic uint64_t x_called_ns;                    /* caller: when it was woken last */
	_Atomic int x_place; /* the thread that says how many there are */
};

static struct idler idlers[IDLERS_MAX];
static int started, failed; /* the watcher's alone */
static _Atomic int x_wanted;
static _Atomic int64_t x_period_us = -1; /* between looks; -1: adapted */
static _Atomic uint64_t x_event_ns;      /* the last event */
static _Atomic uint64_t x_hold_until_ns; /* cores are busy: no calls before that */
static _Atomic uint64_t x_cost_ns = COST_START_NS;
static _Atomic uint64_t x_spin_ns = COST_START_NS; /* how long it lasts */
static struct weft_looks looks; /* at the engine's memory, each of a generation of ours */
static _Atomic int x_running;

/* All times here are hints and relaxed; the futex word alone decides about sleep. */

void weft_task_idle_given(void)
{
	atomic_store_explicit(&x_period_us, weft_setting_int(WEFT_SET_IDLE_PERIOD_US),
			      memory_order_relaxed);
}

void weft_task_idle_size(int ranks, int cpus)
{
	int64_t given = weft_setting_int(WEFT_SET_IDLE_WORKERS);
	weft_task_idle_given();
	/* One core of our share is the application's. */
	int share = cpus / (ranks > 0 ? ranks : 1), place[IDLERS_MAX];
	/* A quota smaller than our cores: what we would spend is the application's. */
	int spare = weft_task_load_cpus() < share ? 0 : share - 1;
	int n = weft_task_idle_spread(weft_setting_str(WEFT_SET_IDLE_LEVEL), (int)given, spare,
				      place, IDLERS_MAX);
	weft_assert(n >= 0 && n <= IDLERS_MAX);
	for (int i = 0; i < n; i++)
		atomic_store_explicit(&idlers[i].x_place, place[i], memory_order_relaxed);
	atomic_store_explicit(&x_wanted, n, memory_order_relaxed);
}

/* Must the watcher be told?  Takes no mask. */
static bool something_waits(void)
{
	struct weft_engine *e = &weft_task_engine;
	uint32_t state = atomic_load_explicit(&e->baton.x_state, memory_order_relaxed);
	return state == WEFT_BATON_VACANT && weft_task_engine_tasks_left(e);
}

static bool generation_over(unsigned generation)
{
	return weft_task_ending_over(&looks, generation);
}

static void learn_wake_up_time(struct idler *me, uint64_t now)
{
	uint64_t took = now - atomic_load_explicit(&me->x_called_ns, memory_order_relaxed);
	if (took > BUSY_NS) {
		atomic_store_explicit(&x_hold_until_ns, now + HOLD_OFF_NS, memory_order_relaxed);
		return;
	}
	uint64_t cost = atomic_load_explicit(&x_cost_ns, memory_order_relaxed);
	cost = (cost * 7 + took) / 8;
	cost = cost < COST_MIN_NS ? COST_MIN_NS : cost > COST_MAX_NS ? COST_MAX_NS : cost;
	atomic_store_explicit(&x_cost_ns, cost, memory_order_relaxed);
}

uint64_t weft_task_idle_next_ns(uint64_t ns, uint64_t cost_ns, bool paid)
{
	uint64_t least = cost_ns > SPIN_MIN_NS ? cost_ns : SPIN_MIN_NS;
	ns = paid ? ns * 2 : ns / 2;
	return ns < least ? least : ns > SPIN_MAX_NS ? SPIN_MAX_NS : ns;
}

/* Looks for a word for a microsecond or two. */
static bool look_for_word(bool relays)
{
	for (int i = 0; i < 16; i++) {
		if (relays && weft_task_relay_serve())
			return true;
		weft_cpu_relax();
	}
	return false;
}

/* Until nothing has happened for a while.  True: something had. */
static bool spin_for_events(unsigned generation, uint64_t ns)
{
	uint64_t rounds = 0, now = weft_clock_ns();
	uint64_t first = atomic_load_explicit(&x_event_ns, memory_order_relaxed), event = first;
	bool relays = !generation_over(generation) && weft_task_relay_begin(now);
	while (!generation_over(generation)) { /* ends: as said, or the lease was taken back */
		now = weft_clock_ns();
		event = atomic_load_explicit(&x_event_ns, memory_order_relaxed);
		if ((now > event && now - event > ns) || (relays && !weft_task_relay_beat(now)))
			break;
		rounds++;
		if (look_for_word(relays))
			atomic_store_explicit(&x_event_ns, weft_clock_ns(), memory_order_relaxed);
	}
	if (relays)
		weft_task_relay_end();
	weft_count(WEFT_CNT_POLL_IDLE, rounds);
	return event != first;
}

static void stay_awake(unsigned generation)
{
	uint64_t ns = atomic_load_explicit(&x_spin_ns, memory_order_relaxed);
	bool paid = spin_for_events(generation, ns);
	uint64_t cost = atomic_load_explicit(&x_cost_ns, memory_order_relaxed);
	atomic_store_explicit(&x_spin_ns, weft_task_idle_next_ns(ns, cost, paid),
			      memory_order_relaxed);
}

/* One look; the engine does not stop meanwhile. */
static void look_for_work(unsigned generation)
{
	if (weft_task_ending_look_begin(&looks, generation) && something_waits())
		weft_task_watcher_call(&weft_task_engine);
	weft_task_ending_look_end(&looks);
}

/* A fixed period: looks for ever, and lets the watcher do what there is. */
static void look_periodically(unsigned generation, uint64_t period_ns)
{
	struct timespec nap = {.tv_sec = (time_t)(period_ns / 1000000000u),
			       .tv_nsec = (long)(period_ns % 1000000000u)};
	for (unsigned i = 0; !generation_over(generation); i++) { /* ends: as said */
		weft_count(WEFT_CNT_POLL_IDLE, 1);
		look_for_work(generation);
		if (period_ns)
			nanosleep(&nap, NULL);
		else
			sched_yield();
		if (period_ns || i % 1024 == 0)
			(void)weft_task_budget_pause();
	}
}

static void *run_idler(void *arg)
{
	struct idler *me = &idlers[(uintptr_t)arg % IDLERS_MAX];
	unsigned generation = (unsigned)((uintptr_t)arg / IDLERS_MAX);
	struct sched_param p = {0};
	(void)weft_task_engine_thread_settle("weft-idle");
	/* A late start may meet the next engine's, which loads the tree anew. */
	if (weft_task_ending_look_begin(&looks, generation))
		(void)weft_task_idle_bind(atomic_load_explicit(&me->x_place, memory_order_relaxed));
	weft_task_ending_look_end(&looks);
	if (sched_setscheduler(0, SCHED_IDLE, &p)) {
		weft_debug("no SCHED_IDLE here: no idle workers");
		return NULL;
	}
	atomic_fetch_add_explicit(&x_running, 1, memory_order_relaxed);
	int64_t period_us = atomic_load_explicit(&x_period_us, memory_order_relaxed);
	if (period_us >= 0) {
		look_periodically(generation, (uint64_t)period_us * 1000);
		return NULL;
	}
	for (;;) { /* ends: its generation is over */
		uint32_t seen = weft_task_wake_word_seen(&me->x_word);
		/* Relaxed: not seen, it is not called for this event. */
		atomic_store_explicit(&me->x_parked, true, memory_order_relaxed);
		if (generation_over(generation))
			return NULL;
		weft_futex_wait(&me->x_word, seen, WEFT_NEVER);
		atomic_store_explicit(&me->x_parked, false, memory_order_relaxed);
		weft_count(WEFT_CNT_IDLE_WAKEUPS, 1);
		learn_wake_up_time(me, weft_clock_ns());
		stay_awake(generation);
		int64_t pause = weft_task_budget_spend();
		if (pause) { /* leave it alone for so long; the bucket fills */
			weft_count(WEFT_CNT_BUDGET_PAUSES, 1);
			atomic_store_explicit(&x_hold_until_ns, weft_clock_ns() + (uint64_t)pause,
					      memory_order_relaxed);
		}
	}
}

static void wake_idler(struct idler *i)
{
	weft_task_wake_word_ring(&i->x_word);
	weft_futex_wake(&i->x_word);
}

void weft_task_idle_stay(uint64_t ns)
{
	if (ns > SPIN_MAX_NS)
		ns = SPIN_MAX_NS;
	if (ns > atomic_load_explicit(&x_spin_ns, memory_order_relaxed))
		atomic_store_explicit(&x_spin_ns, ns, memory_order_relaxed);
}

bool weft_task_idle_wanted(void)
{
	return atomic_load_explicit(&x_wanted, memory_order_relaxed) != 0;
}

void weft_task_engine_spare_wish(void)
{
	static _Atomic uint64_t x_last, x_wished; /* cycles */
	struct weft_engine *e = &weft_task_engine;
	if (!weft_task_idle_wanted())
		return;
	uint64_t now = weft_cycles(), per_us = weft_cycles_per_us();
	/* Relaxed, all: two threads that wish at once wake it twice. */
	uint64_t last = atomic_exchange_explicit(&x_last, now, memory_order_relaxed);
	if (now - last > 1000 * per_us ||
	    now - atomic_load_explicit(&x_wished, memory_order_relaxed) < 2000 * per_us)
		return;
	atomic_store_explicit(&x_wished, now, memory_order_relaxed);
	atomic_store_explicit(&e->x_wish_ns, 2000 * (now - last) / per_us + 1,
			      memory_order_relaxed);
	weft_task_engine_kick(e, weft_task_baton_submit_target(&e->baton));
}

void weft_task_idle_event(void)
{
	int wanted = atomic_load_explicit(&x_wanted, memory_order_relaxed);
	if (!wanted || failed)
		return;
	uint64_t now = weft_clock_ns();
	atomic_store_explicit(&x_event_ns, now, memory_order_relaxed);
	if (now < atomic_load_explicit(&x_hold_until_ns, memory_order_relaxed))
		return;
	while (started < wanted) { /* ends: all are there, or one cannot start */
		pthread_t thread;
		uintptr_t generation = weft_task_ending_generation(&looks);
		void *arg = (void *)(generation * IDLERS_MAX + (unsigned)started);
		if (weft_task_engine_thread(&thread, run_idler, arg)) {
			weft_info("no thread for an idle worker");
			failed = 1;
			return;
		}
		pthread_detach(thread);
		started++;
	}
	weft_assert(started <= IDLERS_MAX);
	for (int i = 0; i < started; i++) {
		if (!atomic_load_explicit(&idlers[i].x_parked, memory_order_relaxed))
			continue;
		weft_task_relay_grant(&weft_task_engine); /* the first that comes takes it */
		atomic_store_explicit(&idlers[i].x_called_ns, now, memory_order_relaxed);
		wake_idler(&idlers[i]);
	}
}

void weft_task_idle_stop(void)
{
	/* They find it before their next sleep, or are woken to find it. */
	weft_task_ending_end(&looks);
	while (weft_task_ending_inside(
		&looks)) /* ends: some instructions, which others may delay */
		sched_yield();
	for (int i = 0; i < started; i++)
		wake_idler(&idlers[i]);
	started = failed = 0;
	atomic_store_explicit(&x_running, 0, memory_order_relaxed);
}

void weft_task_idle_describe(FILE *out)
{
	fprintf(out,
		"  idle workers: at most %d, by level \"%s\" (%d started); "
		"waking a core: %llu us, they stay for %llu us\n",
		atomic_load_explicit(&x_wanted, memory_order_relaxed),
		weft_setting_str(WEFT_SET_IDLE_LEVEL),
		atomic_load_explicit(&x_running, memory_order_relaxed),
		(unsigned long long)atomic_load_explicit(&x_cost_ns, memory_order_relaxed) / 1000,
		(unsigned long long)atomic_load_explicit(&x_spin_ns, memory_order_relaxed) / 1000);
}
