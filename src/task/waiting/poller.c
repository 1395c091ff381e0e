/* SPDX-License-Identifier: BSD-3-Clause */
/* poller.c - threads that poll instead of waiting, and what they do when it is in vain. */
#include "task/waiting/poller.h"
#include "base/mechanism.h"
#include "task/engine_int.h"
#include "task/waiting/app_work.h"
#include "task/waiting/holder.h"
#include "task/waiting/patience.h"
#include "task/waiting/spin.h"
#include "task/waiting/wait_call.h"
#include "task/waiting/wait_site.h"
#include "task/wake/arm.h"
#include "task/wake/release.h"
#include "wait/stack.h"

#define QUICK_TESTS 16 /* in a row, before the doorbells are put away */
#define REST_MAX 1024  /* looks: 8,192 polls in vain */

static _Thread_local struct weft_poller here;

/* After a switch of user-level threads another worker may run the caller. */
static __attribute__((noinline)) struct weft_poller *poller_here(void)
{
	return &here;
}

/* ---- one poll ---------------------------------------------------------------------------------- */

/*
 * While sources are armed each arrival rings a doorbell and wakes the watcher.  A thread that tests
 * in a loop does not need that: after a few tests in quick succession the sources are disarmed.
 */
static void disarm_held(struct weft_engine *e)
{
	if (weft_task_holder_some_armed(e))
		(void)weft_task_sources_arm(e, WEFT_ARM_OFF);
}

static void quick_tests(struct weft_engine *e, struct weft_engine_self *self)
{
	uint64_t now = weft_cycles();
	bool quick = now - self->test_cycles < 2 * weft_cycles_per_us();
	self->test_cycles = now;
	if (!quick)
		self->tests = 0;
	else if (++self->tests >= QUICK_TESTS && weft_task_baton_try_take(&e->baton)) {
		self->tests = 0;
		disarm_held(e);
		weft_task_baton_release(e, WEFT_LEAVER_POLLER, NULL);
	}
}

static int poll_here(void)
{
	struct weft_engine *e = &weft_task_engine;
	struct weft_engine_self *self = &weft_task_engine_self;
	/* READY (start).  Without it a round could walk queues that are not yet made. */
	if (self->in_handler || !atomic_load_explicit(&e->x_running, memory_order_acquire))
		return 0;
	int found = weft_task_engine_round(e, WEFT_ROUND_QUICK) + weft_task_app_work_run();
	/* Relaxed, and two may write the same number: the watcher only asks whether it moved. */
	uint32_t rounds = atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
	atomic_store_explicit(&e->x_rounds, rounds + 1, memory_order_relaxed);
	weft_count(WEFT_CNT_POLL_EXPLICIT, 1);
	/* Hint, the holder's word: a test more or less before we disarm. */
	if (weft_task_holder_some_armed(e))
		quick_tests(e, self);
	return found;
}

static void poll_for(void *arg)
{
	*(int *)arg = poll_here();
}

int weft_task_engine_poll(void)
{
	int found;
	if (weft_likely(!weft_wait_stack_may_be_small()))
		return poll_here();
	weft_wait_entry();
	weft_wait_big_stack(poll_for, &found);
	return found;
}

/* ---- in vain ----------------------------------------------------------------------------------- */

/* Which thread last looked whether other threads poll; all relaxed, a hint. */
static _Atomic(const void *) x_last;

static bool others_poll(struct weft_poller *p)
{
	const void *last = atomic_load_explicit(&x_last, memory_order_relaxed);
	if (last != p)
		atomic_store_explicit(&x_last, p, memory_order_relaxed);
	if (p->rests) {
		p->rests--;
		return false;
	}
	return last && last != p;
}

static bool blocks_beside(void)
{
	return weft_unlikely(weft_wait_stack_may_be_small()) &&
	       weft_wait_parker_is_light(weft_wait_parker_self());
}

static bool cores_short(struct weft_poller *p)
{
	p->beside = others_poll(p);
	return p->beside || weft_task_spin_crowded() || weft_task_spin_preempted();
}

/* A poll in vain.  True: the caller pauses. */
static bool in_vain(struct weft_poller *p)
{
	uint64_t now = weft_cycles();
	uint64_t gap = weft_task_spin_cycles(WEFT_POLLER_GAP_NS), before = p->looked;
	switch (weft_task_poller_vain(p, now, gap * WEFT_POLLER_RUN, gap)) {
	case WEFT_POLLER_GAP:
		weft_task_spin_gap(now - before);
		return false;
	case WEFT_POLLER_LOOKS:
		if (!weft_mechanism_on(WEFT_MECH_POLL_PAUSE) ||
		    (!cores_short(p) && !blocks_beside()))
			return false;
		p->gives_way = true;
		p->untaken = 0;
		p->begun = now;
		p->slept_ns = 0;
		return true;
	case WEFT_POLLER_GIVES_WAY:
		return true;
	default:
		return false;
	}
}

/* A run has ended with a find: what the place learns from it. */
static void run_ended(struct weft_poller *p)
{
	p->looked = weft_cycles();
	if (p->slept_ns) {
		weft_task_spin_slept(p->site, p->slept_ns);
		p->hot = false;
	} else if (p->begun) {
		weft_task_spin_paid(p->site);
		p->hot = true;
	}
	p->begun = p->slept_ns = 0;
}

/* ---- pauses ------------------------------------------------------------------------------------ */

static void note_yield(struct weft_poller *p)
{
	uint64_t now = weft_cycles(), lasted = now - p->looked;
	p->looked = now;
	weft_count(WEFT_CNT_POLL_YIELDS, 1);
	weft_task_spin_gap(lasted); /* to a thread that computes: not again, see poller.h */
	if (lasted >= weft_task_spin_cycles(WEFT_PATIENCE_UNTAKEN_NS)) {
		p->untaken = 0;
		p->rest = 0;
	} else {
		p->untaken++;
	}
}

/*
 * With the baton in hand, as a waiter yields: the watcher, which gets the core meanwhile, leaves the
 * doorbells alone.  When runs end without a sleep, they are put away.
 */
static void yield_core(struct weft_engine *e, struct weft_poller *p)
{
	bool held = weft_task_baton_try_take(&e->baton);
	if (held && p->hot)
		disarm_held(e);
	sched_yield();
	if (held)
		weft_task_baton_release(e, WEFT_LEAVER_POLLER, NULL);
	note_yield(p);
}

/* The threads of this process that poll have cores of their own: leave it for a while. */
static void rest_from_yields(struct weft_poller *p)
{
	p->rest = p->rest < REST_MAX / 2 ? p->rest * 2 + 1 : REST_MAX;
	p->rests = p->rest;
	p->gives_way = p->beside = false;
}

/* The wait ends with what the caller waits for, or any find (holder.c). */
static bool pause_over(void *arg)
{
	const struct wait_call *w = arg;
	for (size_t i = 0; i < w->n && !w->found; i++)
		if (weft_wait_completion_done(w->c[i]))
			return true;
	return w->found;
}

/* How much it found: at most 1, the rest is counted where it went. */
static int sleep_for_a_moment(struct weft_completion *const *c, size_t n, const void *site)
{
	struct wait_call w = {.c = c, .n = n, .pauses = true, .site = site, .ready = pause_over};
	uint64_t begun = weft_clock_ns();
	w.ready_arg = &w;
	w.deadline_ns = begun + WEFT_POLLER_PAUSE_NS;
	weft_count(WEFT_CNT_POLL_SLEEPS, 1);
	bool over = weft_task_wait_call_sleep(&w) == WEFT_OK;
	struct weft_poller *p = poller_here();
	p->slept_ns += weft_clock_ns() - begun;
	p->looked = weft_cycles();
	if (over)
		run_ended(p);
	return w.found;
}

/* A user-level thread lets others run.  False: that was all. */
static bool switch_light(void)
{
	weft_wait_yield(weft_wait_parker_self());
	struct weft_poller *p = poller_here();
	p->looked = weft_cycles();
	return p->gives_way && cores_short(p);
}

static __attribute__((noinline)) int pause_at(struct weft_completion *const *c, size_t n,
					      const void *site)
{
	if (blocks_beside()) {
		n = n ? 1 : 0; /* its stack is small */
		if (!switch_light())
			return 0;
	}
	struct weft_poller *p = poller_here();
	struct weft_wait_plan plan = weft_task_spin_plan(site);
	p->site = site;
	if (!p->begun)
		p->begun = p->looked;
	uint64_t cycles = weft_task_spin_cycles(
		weft_task_poller_patience(plan.ns, plan.yield, weft_task_spin_preempted()));
	bool over = p->looked - p->begun >= cycles;
	switch (weft_task_poller_way(p, over, plan.yield, weft_task_spin_yield_max())) {
	case WEFT_POLLER_SPINS:
		return 0;
	case WEFT_POLLER_YIELDS:
		yield_core(&weft_task_engine, p);
		if (!plan.yield && p->untaken > weft_task_spin_yield_max())
			rest_from_yields(p);
		return 0;
	default:
		return sleep_for_a_moment(c, n < WEFT_POLLER_MOST ? n : WEFT_POLLER_MOST, site);
	}
}

/* ---- for all ----------------------------------------------------------------------------------- */

int weft_task_poll(bool *pause_p)
{
	int found = weft_task_engine_poll();
	struct weft_poller *p = poller_here();
	*pause_p = false;
	if (weft_likely(found)) {
		if (weft_unlikely(p->gives_way))
			run_ended(p);
	} else if (weft_unlikely(weft_task_poller_counts(p)) && !weft_task_engine_self.in_handler &&
		   /* Relaxed: a hint here. */
		   atomic_load_explicit(&weft_task_engine.x_running, memory_order_relaxed)) {
		*pause_p = in_vain(p);
	}
	return found;
}

int weft_task_poll_pause(struct weft_completion *const *c, size_t n)
{
	return pause_at(c, n, WEFT_WAIT_SITE);
}

int weft_engine_poll(void)
{
	bool pause;
	int found = weft_task_poll(&pause);
	if (weft_unlikely(pause))
		found = pause_at(NULL, 0, WEFT_WAIT_SITE);
	return found;
}
