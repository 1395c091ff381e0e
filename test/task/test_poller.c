/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that polls in vain gives up its core only where cores are short: nothing yields or sleeps
 * where they are not; with more ranks than cores it yields, then sleeps for moments that an arrival
 * ends; a thread that computes between polls, or is in a handler, never pauses; several threads of
 * one process that poll hand the core on; no message is lost.  By counts, not by the clock.
 */
#include <pthread.h>
#include "base/counters.h"
#include "base/mechanism.h"
#include "base/settings.h"
#include "fake_source.h"
#include "task/engine_int.h"
#include "task/waiting/poller.h"
#include "task/waiting/spin.h"
#include "task/event/load.h"

static struct fake_source net;

static uint64_t yields(void)
{
	return weft_counter_sum(WEFT_CNT_POLL_YIELDS);
}

static uint64_t sleeps(void)
{
	return weft_counter_sum(WEFT_CNT_POLL_SLEEPS);
}

static void crowd(bool on)
{
	weft_task_engine_set_local_ranks(on ? 3 : 1, 2);
}

/* ---- the steps, by made-up cycles -------------------------------------------------------------- */

enum { GAP = 100, RUN = GAP * WEFT_POLLER_RUN };

static void counts_eight(void)
{
	struct weft_poller p = {.vain = 0};
	for (int i = 1; i <= 3 * WEFT_POLLER_RUN; i++)
		CHECK_EQ(weft_task_poller_counts(&p), i % WEFT_POLLER_RUN == 0);
	p.gives_way = true;
	for (int i = 0; i < 3; i++)
		CHECK(weft_task_poller_counts(&p));
}

static void a_gap_ends_a_run(void)
{
	struct weft_poller p = {.looked = 1000, .vain = 16};
	CHECK_EQ(weft_task_poller_vain(&p, 1000 + RUN, RUN, GAP), WEFT_POLLER_LOOKS);
	CHECK_EQ(p.looked, 1000 + RUN);
	CHECK_EQ(weft_task_poller_vain(&p, 1000 + 2 * RUN + 1, RUN, GAP), WEFT_POLLER_GAP);
	CHECK_EQ(p.vain, 0);
	p.gives_way = true;
	p.looked = 0;
	CHECK_EQ(weft_task_poller_vain(&p, GAP, RUN, GAP), WEFT_POLLER_GIVES_WAY);
	CHECK_EQ(weft_task_poller_vain(&p, 2 * GAP + 1, RUN, GAP), WEFT_POLLER_GAP);
	CHECK(!p.gives_way);
}

static void ways_to_give_way(void)
{
	static const struct {
		bool beside;
		unsigned untaken;
		bool over, plan_yields;
		enum weft_poller_way way;
	} row[] = {
		/* ranks outnumber cores: yields for as long as a wait would, and no longer */
		{false, 0, false, true, WEFT_POLLER_YIELDS},
		{false, 65, false, true, WEFT_POLLER_SLEEPS},
		{false, 0, true, true, WEFT_POLLER_SLEEPS},
		{true, 0, true, true, WEFT_POLLER_SLEEPS},
		/* strangers took the core: its turn, then a sleep */
		{false, 0, false, false, WEFT_POLLER_SPINS},
		{false, 0, true, false, WEFT_POLLER_SLEEPS},
		/* other threads of the process poll */
		{true, 0, false, false, WEFT_POLLER_YIELDS},
		{true, 0, true, false, WEFT_POLLER_YIELDS},
	};
	for (unsigned i = 0; i < weft_countof(row); i++) {
		struct weft_poller p = {.beside = row[i].beside, .untaken = row[i].untaken};
		CHECK_EQ(weft_task_poller_way(&p, row[i].over, row[i].plan_yields, 64), row[i].way);
	}
}

static void patience_among_strangers(void)
{
	CHECK_EQ(weft_task_poller_patience(200000, false, false), 200000);
	CHECK_EQ(weft_task_poller_patience(200000, true, false), 200000);
	CHECK_EQ(weft_task_poller_patience(200000, false, true), WEFT_POLLER_TURN_NS);
	CHECK_EQ(weft_task_poller_patience(4000, false, true), 4000);
	CHECK_EQ(weft_task_poller_patience(0, false, true), 0);
	CHECK_EQ(weft_task_poller_patience(200000, true, true), 200000);
}

/* ---- in the engine ------------------------------------------------------------------------------ */

static void polls(int n)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(weft_engine_poll(), 0);
}

static void free_cores_cost_nothing(void)
{
	uint64_t y = yields(), s = sleeps();
	crowd(false);
	polls(20000);
	CHECK_EQ(yields(), y);
	CHECK_EQ(sleeps(), s);
}

static void a_crowd_yields_then_sleeps(void)
{
	uint64_t y = yields(), s = sleeps();
	crowd(true);
	while (yields() == y) /* ends: eight polls in quick succession */
		polls(1);
	/* Ends: a run lasts 200 us, or 64 yields that no thread takes. */
	while (sleeps() < s + 3)
		polls(1);
	crowd(false);
}

/* Without yields: sleeps at once. */
static void yields_can_be_switched_off(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_YIELD_MAX, "0"), WEFT_OK);
	weft_task_spin_init();
	crowd(true);
	uint64_t y = yields(), s = sleeps();
	while (sleeps() < s + 3)
		polls(1);
	CHECK_EQ(yields(), y);
	CHECK_EQ(weft_setting_set(WEFT_SET_YIELD_MAX, "64"), WEFT_OK);
	weft_task_spin_init();
	crowd(false);
}

/* A caller that does something else between two polls. */
static void some_polls_never_pause(void)
{
	uint64_t y = yields(), s = sleeps();
	crowd(true);
	for (int i = 0; i < 5000; i++)
		CHECK_EQ(weft_task_engine_poll(), 0);
	CHECK_EQ(yields(), y);
	CHECK_EQ(sleeps(), s);
	crowd(false);
}

static void computation_is_left_alone(void)
{
	crowd(true);
	polls(1);
	uint64_t y = yields(), s = sleeps(), us = weft_cycles_per_us();
	for (int i = 0; i < 300; i++) {
		uint64_t end = weft_cycles() + 2 * WEFT_POLLER_GAP_NS / 1000 * us;
		while (weft_cycles() < end) /* ends: it has computed for two gaps */
			;
		polls(1);
	}
	/* At most the first poll belongs to the run before. */
	CHECK(yields() + sleeps() <= y + s + 1);
	crowd(false);
}

static void polls_inside(void *arg)
{
	atomic_store((_Atomic int *)arg, weft_engine_poll()); /* the watcher, perhaps */
}

static void handlers_never_pause(void)
{
	crowd(true);
	for (int i = 0; i < 100; i++) {
		_Atomic int found = -1;
		struct fake_msg m = {.fn = polls_inside, .arg = &found};
		fake_send(&net, &m);
		while (found < 0) /* ends: polled */
			(void)weft_task_engine_poll();
		CHECK_EQ(found, 0);
	}
	crowd(false);
}

/* ---- arrivals ----------------------------------------------------------------------------------- */

enum { ROUNDS = 2000 };
static _Atomic int x_got, x_sent;

static void got(void *arg)
{
	(void)arg;
	atomic_fetch_add(&x_got, 1);
}

/* Sends one message after the other, each when the one before is taken, half of them while the
 * poller sleeps. */
static void *sends(void *arg)
{
	static struct fake_msg m;
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t s = sleeps();
		while (i % 2 && sleeps() == s) /* ends: it polls in vain */
			sched_yield();
		m.fn = got;
		atomic_store(&x_sent, i + 1);
		fake_send(&net, &m);
		while (atomic_load(&x_got) <= i) /* ends: taken */
			sched_yield();
	}
	return NULL;
}

static void arrivals_are_not_lost(void)
{
	pthread_t t;
	crowd(true);
	atomic_store(&x_got, 0);
	CHECK_EQ(pthread_create(&t, NULL, sends, NULL), 0);
	long rings = atomic_load(&net.x_rings);
	while (atomic_load(&x_got) < ROUNDS) { /* ends: each message ends a sleep */
		int before = atomic_load(&x_got), found = weft_engine_poll();
		CHECK(!found || atomic_load(&x_got) > before || !atomic_load(&x_sent));
	}
	pthread_join(t, NULL);
	CHECK(atomic_load(&net.x_rings) > rings); /* some slept with the bells armed */
	crowd(false);
}

/* ---- several threads ------------------------------------------------------------------------------ */

enum { THREADS = 4 };
struct one {
	struct fake_msg msg;
	struct weft_completion done;
	_Atomic int x_round;
};
static struct one one[THREADS];

static void signals(void *arg)
{
	weft_wait_completion_signal(arg);
}

static void *tests(void *arg)
{
	struct one *o = arg;
	for (int i = 1; i <= ROUNDS / 4; i++) {
		struct weft_completion *c = &o->done;
		bool pause;
		weft_wait_completion_init(c);
		o->msg.fn = signals;
		o->msg.arg = c;
		atomic_store(&o->x_round, i);
		while (!weft_wait_completion_done(c)) { /* ends: sent, and polled by any of them */
			(void)weft_task_poll(&pause);
			if (pause && !weft_wait_completion_done(c))
				(void)weft_task_poll_pause(&c, 1);
		}
	}
	return NULL;
}

/* Each waits for its own message, all at once; with and without background progress. */
static void threads_take_turns(bool crowded, bool progress)
{
	pthread_t t[THREADS];
	int sent[THREADS] = {0};
	uint64_t before = yields() + sleeps();
	weft_progress_set(progress);
	crowd(crowded);
	for (int i = 0; i < THREADS; i++) {
		atomic_store(&one[i].x_round, 0);
		CHECK_EQ(pthread_create(&t[i], NULL, tests, &one[i]), 0);
	}
	for (int left = THREADS; left;) { /* ends: all rounds of all are sent */
		for (int i = 0; i < THREADS; i++) {
			if (sent[i] >= ROUNDS / 4 || atomic_load(&one[i].x_round) <= sent[i])
				continue;
			fake_send(&net, &one[i].msg);
			left -= ++sent[i] == ROUNDS / 4;
		}
		sched_yield();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(yields() + sleeps() > before);
	crowd(false);
	weft_progress_set(true);
}

int main(void)
{
	/* No thread suspects strangers on a machine that is busy with other tests. */
	setenv("WEFT_WITHOUT", "turns", 1);
	CHECK_EQ(weft_mechanisms_init(), WEFT_OK);
	counts_eight();
	a_gap_ends_a_run();
	ways_to_give_way();
	patience_among_strangers();
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	fake_add(&net, "net", true);
	free_cores_cost_nothing();
	a_crowd_yields_then_sleeps();
	yields_can_be_switched_off();
	some_polls_never_pause();
	computation_is_left_alone();
	handlers_never_pause();
	arrivals_are_not_lost();
	threads_take_turns(true, true);
	threads_take_turns(true, false);
	threads_take_turns(false, true);
	fake_remove(&net);
	weft_engine_stop();
	return 0;
}
