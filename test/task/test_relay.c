/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks that are told to an idle worker instead of the kernel run, by the hand that it wakes, and
 * all the same when it is gone with the word; how long it stays awake goes by what came; many
 * submitters and many starts of the engine lose none.  No thread polls here: the background does all.
 */
#include <pthread.h>
#include <sched.h>
#include "base/counters.h"
#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/wake/idle.h"
#include "task/wake/relay_hand.h"
#include "task/wake/watcher.h"

static _Atomic int x_ran;

static enum weft_task_verdict count(struct weft_task *t, void *arg)
{
	atomic_fetch_add(&x_ran, 1);
	return WEFT_TASK_DONE;
}

static void until_done(struct weft_task *t)
{
	while (!weft_task_done(t)) /* ends: the engine's threads run it */
		sched_yield();
}

static void idle_workers(const char *n)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_IDLE_WORKERS, n), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_task_engine_set_local_ranks(1, 2);
}

static void it_stays_as_long_as_it_pays(void)
{
	CHECK_EQ(weft_task_idle_next_ns(150000, 20000, true), 300000);
	CHECK_EQ(weft_task_idle_next_ns(300000, 20000, false), 150000);
	CHECK_EQ(weft_task_idle_next_ns(150000, 20000, false), 100000); /* the shortest */
	CHECK_EQ(weft_task_idle_next_ns(150000, 250000, false),
		 250000);                                               /* what waking would cost */
	CHECK_EQ(weft_task_idle_next_ns(900000, 20000, true), 1000000); /* the longest */
}

/* This thread is the relay, and what it needs of the watcher it does itself. */
static void lease(void)
{
	do { /* ends: once the watcher does not take it back before we come */
		weft_task_relay_grant(&weft_task_engine);
		weft_task_watcher_call(&weft_task_engine); /* it sleeps briefly from now on */
	} while (!weft_task_relay_begin(weft_clock_ns()));
	CHECK(!weft_task_relay_begin(weft_clock_ns())); /* one at a time */
}

static void the_relay_tells_the_hand(void)
{
	struct weft_task t;
	uint64_t before = weft_counter_sum(WEFT_CNT_RELAYED);
	while (weft_counter_sum(WEFT_CNT_RELAYED) == before) { /* ends: the watcher is not always
								  the first to see the word */
		lease();
		weft_task_relay_beat(weft_clock_ns());
		weft_task_launch(&t, "relayed", count, NULL);
		while (!weft_task_relay_serve() && !weft_task_done(&t)) /* ends: one of both */
			weft_task_relay_beat(weft_clock_ns());
		until_done(&t);
		weft_task_relay_end();
	}
}

static void a_word_at_the_end_is_heard(void)
{
	struct weft_task t;
	lease();
	weft_task_relay_beat(weft_clock_ns());
	weft_task_launch(&t, "last", count, NULL);
	weft_task_relay_end();
	until_done(&t);
}

static void the_watcher_stands_in(void)
{
	struct weft_task t[3];
	lease();
	for (int i = 0; i < 3; i++) { /* and no relay serves */
		weft_task_relay_beat(weft_clock_ns());
		weft_task_launch(&t[i], "left alone", count, NULL);
		until_done(&t[i]);
	}
	while (weft_task_relay_nap_ns() !=
	       WEFT_FOREVER) /* ends: no beat, the watcher takes it back */
		sched_yield();
	CHECK(!weft_task_relay_beat(weft_clock_ns()));
	weft_task_relay_end();
	weft_task_launch(&t[0], "kicked", count, NULL);
	until_done(&t[0]);
}

enum { EACH = 300 };

static void *submits(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	for (int i = 0; i < EACH; i++) {
		struct weft_task t;
		weft_task_launch(&t, "many", count, NULL);
		until_done(&t);
		for (seed = seed * 1103515245u + 12345u; seed >> 16 & 31; seed -= 1u << 16)
			weft_cpu_relax();
	}
	return NULL;
}

static void none_is_lost(void)
{
	pthread_t p[2];
	int before = atomic_load(&x_ran);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&p[i], NULL, submits, (void *)(i + 1)), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(p[i], NULL);
	CHECK_EQ(atomic_load(&x_ran) - before, 2 * EACH);
}

/* Idle workers of before may still be awake: they hold no lease of the new engine, or end it. */
static void starts_and_stops(void)
{
	for (int i = 0; i < 10; i++) {
		idle_workers("2");
		for (int k = 0; k < 5; k++) {
			struct weft_task t;
			weft_task_launch(&t, "short life", count, NULL);
			until_done(&t);
		}
		weft_engine_stop();
	}
}

int main(void)
{
	it_stays_as_long_as_it_pays();
	idle_workers("0");
	the_relay_tells_the_hand();
	a_word_at_the_end_is_heard();
	the_watcher_stands_in();
	weft_engine_stop();
	idle_workers("1");
	none_is_lost();
	weft_engine_stop();
	starts_and_stops();
	return 0;
}
