/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c - what a worker does between threads: clocks, messages, other workers' threads, sleep.
 *
 * A worker without work says so (x_idle), looks once more, then calls the idle hook, which polls
 * and sleeps.  A waker looks at x_idle after it has set a ready bit; both sides are seq_cst, so
 * either the worker sees the bit or the waker sees the worker asleep and wakes it.
 *
 * Stealing.  A thief takes from a worker that has two or more ready threads, or has one and has not
 * switched for a while; up to half, nearest worker first.  While a worker has ready threads, idle
 * workers nap instead of sleeping, so that a thread behind a long computation is found within a
 * nap.
 */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include "base/log.h"
#include "ult/watch.h"

#define SPIN_NS 20000u     /* of looking before a sleep without a hook: a futex wake-up or four */
#define NAP_NS 1000000u    /* a thread behind a long computation is found within this */
#define NAPS_MAX 4         /* fruitless naps before a sleep without an end */
#define STALL_US 20        /* a worker that has not switched for that long is computing */
#define BACKOFF_US 10      /* after a fruitless attempt to steal; doubles to 64 times */
#define CALLS_PER_THIEF 64 /* makings-ready between two wake-ups of thieves */
#define STEAL_MAX 16
#define FIRST_LOOKS 100 /* of a few ns each, before a worker says that it is idle */
#define STEAL_WORDS 16  /* of ready threads that one attempt looks at */
#define TICKS 61        /* switches between looks at messages and clocks, while threads are ready */

struct weft_ult_all weft_ult_all = {.x_ticks = TICKS - 1};

static _Atomic(const struct weft_ult_hooks *) x_hooks;
static _Atomic int x_in_hooks; /* workers that may be inside */

/* The worker at place d of w's order, d from 1. */
static struct weft_ult_worker *nth_neighbour(const struct weft_ult_worker *w, int d)
{
	return weft_ult_all.worker[w->near[d - 1]];
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* True: w slept and was woken. */
static bool wake_sleeper(struct weft_ult_worker *w)
{
	/* WAKE <- IDLE.  seq_cst: comes after the bit was set. */
	if (atomic_load_explicit(&w->x_idle, memory_order_seq_cst) != WEFT_ULT_IDLE_SLEEPS ||
	    atomic_exchange_explicit(&w->x_idle, WEFT_ULT_IDLE_NOT, memory_order_seq_cst) !=
		    WEFT_ULT_IDLE_SLEEPS)
		return false;
	weft_wait_unpark(atomic_load_explicit(&w->x_parker, memory_order_acquire));
	return true;
}

/* True: a sleeping worker, the nearest to w, was woken. */
static bool wake_near(const struct weft_ult_worker *w)
{
	int n = atomic_load_explicit(&weft_ult_all.x_count, memory_order_relaxed);
	for (int d = 1; d < n; d++)
		if (wake_sleeper(nth_neighbour(w, d)))
			return true;
	return false;
}

void weft_ult_wake_worker(struct weft_ult_worker *home, bool pinned)
{
	if (wake_sleeper(home) || pinned ||
	    !atomic_load_explicit(&weft_ult_all.x_idle_count, memory_order_relaxed) ||
	    atomic_load_explicit(&home->x_idle, memory_order_relaxed) ||
	    !atomic_load_explicit(&weft_ult_all.x_steal, memory_order_relaxed))
		return;
	if (!atomic_load_explicit(&weft_ult_all.x_nappers, memory_order_relaxed))
		(void)wake_near(home);
}

void weft_ult_wake_thief(struct weft_ult_worker *w)
{
	weft_compiler_barrier(); /* our load was stored before: see may_sleep */
	bool napper = atomic_load_explicit(&weft_ult_all.x_nappers, memory_order_relaxed);
	if (!atomic_load_explicit(&weft_ult_all.x_steal, memory_order_relaxed))
		return;
	if (napper && (weft_ult_load(w) < 2 || ++w->calls < CALLS_PER_THIEF))
		return;
	w->calls = 0;
	(void)wake_near(w);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* The hooks, which stay until hooks_leave(); or NULL. */
static const struct weft_ult_hooks *hooks_enter(void)
{
	/* Relaxed: without hooks, none are entered; they come into force a little later. */
	if (!atomic_load_explicit(&x_hooks, memory_order_relaxed))
		return NULL;
	/* INSIDE <- GONE. */
	atomic_fetch_add_explicit(&x_in_hooks, 1, memory_order_seq_cst);
	const struct weft_ult_hooks *h = atomic_load_explicit(&x_hooks, memory_order_seq_cst);
	if (!h)
		atomic_fetch_sub_explicit(&x_in_hooks, 1, memory_order_release);
	return h;
}

static void hooks_leave(void)
{
	/* LEFT -> GONE (weft_ult_hooks_set).  Carries: our last access to the hooks.  Without it,
	 * their owner could free what we still read. */
	atomic_fetch_sub_explicit(&x_in_hooks, 1, memory_order_release);
}

static void call_entry_hook(void *arg)
{
	const struct weft_ult_hooks *h = hooks_enter();
	(void)arg;
	if (h) {
		if (h->entry)
			h->entry();
		hooks_leave();
	}
}

/* As weft_wait_x_entry. */
static void entry_hook(void)
{
	const struct weft_ult_worker *w = weft_ult_worker_here();
	/* On the carrier's stack it is a hook, or a look, that calls what it calls. */
	if (w && w->current && !w->on_own_stack)
		weft_ult_on_big_stack(call_entry_hook, NULL);
}

void weft_ult_hooks_set(const struct weft_ult_hooks *hooks)
{
	/* Relaxed: in force from each worker's next tick on. */
	atomic_store_explicit(&weft_ult_all.x_ticks,
			      (hooks && hooks->switches ? hooks->switches : TICKS) - 1,
			      memory_order_relaxed);
	/* GONE -> INSIDE.  seq_cst: a worker either counts itself before, or sees NULL. */
	atomic_store_explicit(&x_hooks, hooks, memory_order_seq_cst);
	/* Relaxed: a thread that enters by it looks at x_hooks. */
	atomic_store_explicit(&weft_wait_x_entry, hooks && hooks->entry ? entry_hook : NULL,
			      memory_order_relaxed);
	int n = weft_ult_count();
	for (int i = 0; i < n; i++)
		/* A worker that sleeps without them shall know them. */
		(void)wake_sleeper(weft_ult_all.worker[i]);
	while (!hooks && atomic_load_explicit(&x_in_hooks, memory_order_seq_cst)) {
		for (int i = 0; i < n; i++) /* ends: a woken worker leaves and does not come back */
			(void)wake_sleeper(weft_ult_all.worker[i]);
		sched_yield();
	}
}

/* ---- stealing -------------------------------------------------------------------------------- */

/* Is v worth an attempt? */
static bool has_surplus(struct weft_ult_worker *w, struct weft_ult_worker *v, uint64_t now)
{
	/* Relaxed, all: hints. */
	uint32_t load = weft_ult_load(v);
	uint64_t switches = atomic_load_explicit(&v->x_switches, memory_order_relaxed);
	struct weft_ult_seen *seen = &w->seen[v->id];
	if (load == 0 && !weft_ult_ready_signalled(&v->ready) &&
	    !atomic_load_explicit(&v->x_first, memory_order_relaxed))
		return false;
	if (load >= 2)
		return true;
	if (seen->switches != switches || !seen->cycles) {
		seen->switches = switches;
		seen->cycles = now;
	}
	return now - seen->cycles > STALL_US * weft_cycles_per_us();
}

static bool may_steal(struct weft_ult_worker *w)
{
	int n = atomic_load_explicit(&weft_ult_all.x_count, memory_order_relaxed);
	if (n < 2 || !atomic_load_explicit(&weft_ult_all.x_steal, memory_order_relaxed))
		return false;
	uint64_t now = weft_cycles();
	if (now < w->steal_after)
		return false;
	for (int d = 1; d < n; d++)
		if (has_surplus(w, nth_neighbour(w, d), now))
			return true;
	return false;
}

/* Takes up to half of the threads of a word, the ones that v would run last; never pinned ones. */
static int take_some(struct weft_ult_worker *v, uint32_t word, uint64_t bits,
		     struct weft_ult_list *loot)
{
	int most = (__builtin_popcountll(bits) + 1) / 2, n = 0;
	weft_assert_held(weft_wait_owner, &v->lock);
	while (bits && n < most && n < STEAL_MAX) { /* ends: a bit less each time */
		uint32_t i = 63u - (uint32_t)__builtin_clzll(bits);
		struct weft_ult *t = weft_ult_of(v, word << 6 | i);
		bits &= ~weft_ult_ready_bit(i);
		if (weft_ult_is(t, WEFT_ULT_PINNED))
			continue;
		weft_ult_ready_clear(&v->ready, word << 6 | i);
		weft_ult_list_push(loot, t);
		n++;
	}
	return n;
}

/* From the next words that have some; we are inside v's lock. */
static int take_bits(struct weft_ult_worker *v, struct weft_ult_list *loot)
{
	struct weft_ready *r = &v->ready;
	bool wrapped = false;
	uint32_t word = v->steal_at;
	int n = 0;
	weft_ult_ready_fetch(r);
	for (int words = 0; !n && words < STEAL_WORDS; words++) { /* ends: as counted */
		word = weft_ult_ready_next_word(r, word);
		if (word == WEFT_READY_NONE) {
			word = 0;
			if (wrapped)
				break;
			wrapped = true;
			continue;
		}
		n = take_some(v, word, weft_ult_ready_gather(r, word), loot);
		word++;
	}
	v->steal_at = word;
	return n;
}

static int take_from(struct weft_ult_worker *v, struct weft_ult_list *loot)
{
	if (!weft_wait_owner_steal_begin(&v->lock, v->fence))
		return 0;
	int n = 0;
	struct weft_ult *t = v->stolen.first; /* never pinned */
	weft_ult_take_first(v);
	if (v->first.first && !weft_ult_is(v->first.first, WEFT_ULT_PINNED)) {
		weft_ult_list_push(loot, weft_ult_listed_pop(v, &v->first));
		n = 1;
	} else if (t) {
		weft_ult_list_push(loot, weft_ult_listed_pop(v, &v->stolen));
		n = 1;
	} else {
		n = take_bits(v, loot);
	}
	weft_wait_owner_steal_end(&v->lock);
	return n;
}

/* No attempt for a while, twice as long as after the one before. */
static void steal_later(struct weft_ult_worker *w)
{
	uint64_t least = BACKOFF_US * weft_cycles_per_us(), most = 64 * least;
	w->steal_backoff = !w->steal_backoff ? least : w->steal_backoff * 2;
	if (w->steal_backoff > most)
		w->steal_backoff = most;
	w->steal_after = weft_cycles() + w->steal_backoff;
}

/* Did running the last loot take less time than getting it?  Then its owner would have been faster,
 * and each attempt stops that owner by a membarrier. */
static bool was_in_vain(struct weft_ult_worker *w, uint64_t now)
{
	if (!w->loot_at)
		return false;
	bool vain = now - w->loot_at < w->loot_cost;
	w->loot_at = 0;
	if (!vain)
		w->steal_backoff = 0;
	return vain;
}

/* True: something is in our list of stolen threads. */
static bool steal_threads(struct weft_ult_worker *w)
{
	struct weft_ult_list loot = {NULL, NULL};
	int n = atomic_load_explicit(&weft_ult_all.x_count, memory_order_relaxed), got = 0;
	uint64_t began = weft_cycles();
	if (was_in_vain(w, began)) {
		steal_later(w);
		return false;
	}
	if (!may_steal(w))
		return false;
	for (int d = 1; d < n && !got; d++) {
		struct weft_ult_worker *v = nth_neighbour(w, d);
		if (has_surplus(w, v, weft_cycles()))
			got = take_from(v, &loot);
	}
	if (!got) {
		steal_later(w);
		return false;
	}
	weft_assert(loot.first && got <= STEAL_MAX);
	w->naps = 0;
	atomic_fetch_add_explicit(&w->x_stolen, (uint64_t)got, memory_order_relaxed);
	weft_ult_worker_enter(w);
	for (struct weft_ult *t; (t = weft_ult_list_pop(&loot));) { /* ends: the loot is finite */
		weft_ult_trace(WEFT_TRACE_ULT_STEAL, t);
		weft_ult_listed_push(w, &w->stolen, t);
	}
	weft_ult_worker_leave(w);
	w->loot_at = weft_cycles();
	w->loot_cost = w->loot_at - began;
	return true;
}

void weft_ult_steal_set(bool on)
{
	atomic_store_explicit(&weft_ult_all.x_steal, on, memory_order_relaxed);
}

/* ---- idle --------------------------------------------------------------------------------------
 */

/* Is there something to do for a worker without work? */
static bool has_work(void *arg)
{
	struct weft_ult_worker *w = arg;
	/* IDLE -> WAKE: each of these comes after x_idle was set, seq_cst. */
	return weft_ult_load(w) || weft_ult_ready_signalled(&w->ready) ||
	       atomic_load_explicit(&w->x_first, memory_order_seq_cst) ||
	       atomic_load_explicit(&w->x_idle, memory_order_seq_cst) == WEFT_ULT_IDLE_NOT ||
	       atomic_load_explicit(&weft_ult_all.x_stop, memory_order_seq_cst) || may_steal(w);
}

/* Has another worker something ready, to be stolen now or later?  After a membarrier of ours. */
static bool others_loaded(const struct weft_ult_worker *w)
{
	int n = atomic_load_explicit(&weft_ult_all.x_count, memory_order_relaxed);
	for (int d = 1; d < n; d++) {
		struct weft_ult_worker *v = nth_neighbour(w, d);
		if (weft_ult_load(v) || weft_ult_ready_signalled(&v->ready) ||
		    atomic_load_explicit(&v->x_first, memory_order_relaxed))
			return true;
	}
	return false;
}

static void say_idle(struct weft_ult_worker *w, uint32_t how)
{
	/* IDLE -> WAKE.  seq_cst: before our looks in has_work().  Without it, we could look, find
	 * nothing, and sleep, while the setter of a bit still sees us awake. */
	atomic_exchange_explicit(&w->x_idle, how, memory_order_seq_cst);
}

/*
 * May w sleep without an end?  Only when no worker has anything: what is ready now may be stolen
 * later, and a worker that makes something ready from now on wakes w.  It stores its load and then
 * looks at x_idle and the count of nappers without a fence; our membarrier is the fence for both:
 * either we see its load, or it sees us asleep.
 */
static bool may_sleep(struct weft_ult_worker *w)
{
	say_idle(w, WEFT_ULT_IDLE_SLEEPS);
	weft_membarrier_private();
	return !others_loaded(w);
}

bool weft_ult_hooked(void)
{
	return atomic_load_explicit(&x_hooks, memory_order_relaxed) != NULL;
}

/* Sleeps without the engine; when that takes long, looks now and then whether it could ever end. */
static void sleep_alone(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	struct weft_parker *p = w->carrier->parker;
	if (deadline_ns != WEFT_NEVER) {
		(void)weft_wait_park(p, deadline_ns);
		return;
	}
	for (uint64_t ns = weft_ult_look_ns;; ns *= 2) { /* ends: when woken */
		if (weft_wait_park(p, weft_clock_ns() + ns))
			return;
		weft_ult_deadlock_look(w, NULL);
		if (has_work(w))
			return;
	}
}

/* Without the engine: look for a while, then sleep. */
static void idle_alone(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	uint64_t end = weft_clock_ns() + SPIN_NS;
	say_idle(w, WEFT_ULT_IDLE_LOOKS);
	do { /* ends: after SPIN_NS */
		for (int i = 0; i < 32; i++) {
			if (has_work(w))
				return;
			weft_cpu_relax();
		}
	} while (weft_clock_ns() < end);
	say_idle(w, WEFT_ULT_IDLE_SLEEPS);
	if (!has_work(w))
		sleep_alone(w, deadline_ns);
}

static void idle_worker(struct weft_ult_worker *w)
{
	/* THIEF -> make_ready_here, wake_thief, which look without a fence after they have stored
	 * their load.  Both counts come before the membarrier of may_sleep, and so before our look
	 * at loads: a worker that does not see them is seen.  A napper wakes by itself. */
	atomic_fetch_add_explicit(&weft_ult_all.x_idle_count, 1, memory_order_seq_cst);
	bool many = atomic_load_explicit(&weft_ult_all.x_count, memory_order_relaxed) > 1 &&
		    atomic_load_explicit(&weft_ult_all.x_steal, memory_order_relaxed);
	bool nap = many && (w->naps < NAPS_MAX || w->fence || !may_sleep(w));
	uint64_t deadline = atomic_load_explicit(&w->x_next_timer, memory_order_relaxed);
	if (nap) {
		uint64_t end = weft_clock_ns() + NAP_NS;
		deadline = end < deadline ? end : deadline;
		/* THIEF, as above. */
		atomic_fetch_add_explicit(&weft_ult_all.x_nappers, 1, memory_order_seq_cst);
	}
	const struct weft_ult_hooks *h = hooks_enter();
	if (h) {
		/* Said by may_sleep already: said again it would hide a wake-up. */
		if (nap || !many)
			say_idle(w, WEFT_ULT_IDLE_SLEEPS);
		if (!has_work(w))
			h->idle(has_work, w, deadline);
		hooks_leave();
	} else if (many && !nap) {
		if (!has_work(w))
			sleep_alone(w, deadline);
	} else {
		idle_alone(w, deadline);
	}
	/* It was woken: there may be something to steal. */
	if (atomic_load_explicit(&w->x_idle, memory_order_relaxed) == WEFT_ULT_IDLE_NOT)
		w->naps = 0;
	else if (nap)
		w->naps++;
	say_idle(w, WEFT_ULT_IDLE_NOT);
	atomic_fetch_sub_explicit(&weft_ult_all.x_idle_count, 1, memory_order_seq_cst);
	if (nap)
		atomic_fetch_sub_explicit(&weft_ult_all.x_nappers, 1, memory_order_seq_cst);
	(void)steal_threads(w);
}

/* A moment's look before we say that we are idle: what comes at once needs no wake-up. */
static bool comes_at_once(struct weft_ult_worker *w)
{
	/* Relaxed: with hooks it is they that look. */
	if (atomic_load_explicit(&x_hooks, memory_order_relaxed))
		return false;
	for (int i = 0; i < FIRST_LOOKS; i++) {
		if (weft_ult_load(w) || weft_ult_ready_signalled(&w->ready) ||
		    atomic_load_explicit(&w->x_first, memory_order_relaxed))
			return true;
		weft_cpu_relax();
	}
	return false;
}

static void call_tick_hook(struct weft_ult_worker *w)
{
	w->tick_due = false;
	const struct weft_ult_hooks *h = hooks_enter();
	if (h) {
		h->tick();
		hooks_leave();
	}
}

void weft_ult_work(struct weft_ult_worker *w)
{
	for (;;) { /* ends: stop and nothing ready, or a thread keeps the carrier */
		weft_ult_timers_run(w);
		if (w->tick_due && weft_ult_load(w))
			call_tick_hook(w);
		weft_ult_worker_enter(w);
		struct weft_ult *t = weft_ult_next(w);
		weft_assert(!w->on_own_stack);
		if (t) {
			if (!weft_ult_run(w, t))
				return;
			continue;
		}
		weft_ult_worker_leave(w);
		/* END <- STOP (weft_ult_stop).  Carries: that no thread is left. */
		if (atomic_load_explicit(&weft_ult_all.x_stop, memory_order_acquire))
			return;
		w->tick_due = false;
		if (!comes_at_once(w)) {
			weft_trace(WEFT_TRACE_IDLE, 0, (uint32_t)w->id, 0, 0);
			idle_worker(w);
			weft_trace(WEFT_TRACE_BUSY, 0, (uint32_t)w->id, 0, 0);
		}
	}
}
