/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that waits for a repeat task polls, or a thread polls in its place, and never sleeps
 * between two runs: on machines of 2 to 4,096 cores, alone, beside waiters for something else,
 * beside many pollers, with and without the watcher.  The timer's period is so long that a sleep
 * shows.  A repeat task that runs while the holder of the baton falls asleep is polled on.
 */
#include <pthread.h>
#include <unistd.h>
#include <weft/progress.h>
#include "base/counters.h"
#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/queue/tqueue.h"
#include "task/queue/weft_task.h"
#include "topo/topo.h"

#define RUNS 1000

static const char *const machines[] = {
	"pu:2",
	"pack:2 core:8",
	"pack:2 l3:4 core:4 pu:2",
	"pack:2 numa:2 l3:2 l2:2 core:2 pu:2",
	"pack:8 core:32 pu:2",
	"pack:16 l3:8 core:16 pu:2",
};

static enum weft_task_verdict counts_down(struct weft_task *t, void *arg)
{
	return --*(int *)arg ? WEFT_TASK_AGAIN : WEFT_TASK_DONE;
}

static void prepare(struct weft_task *t, int *left)
{
	*left = RUNS;
	weft_task_init(t, "polls", counts_down, left, WEFT_TASK_REPEAT);
}

static void start(const char *machine)
{
	CHECK_EQ(setenv("HWLOC_SYNTHETIC", machine, 1), 0);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
}

static uint64_t rounds(void)
{
	return weft_counter_sum(WEFT_CNT_POLL_EXPLICIT);
}

/* Returns how many rounds the waiter needed. */
static uint64_t waits_alone(const cpu_set_t *cpus)
{
	struct weft_task t;
	int left;
	uint64_t parks = weft_counter_sum(WEFT_CNT_PARKS), before = rounds();
	prepare(&t, &left);
	t.cpus = cpus;
	CHECK(weft_task_submit(&t));
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	CHECK_EQ(left, 0);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_PARKS), parks);
	return rounds() - before;
}

/* As often as on the flat machine, up to ten times. */
static void alone(void)
{
	for (size_t i = 0; i < weft_countof(machines); i++) {
		start(machines[i]);
		uint64_t most = 0;
		for (int k = 0; k < 5; k++) {
			uint64_t n = waits_alone(NULL);
			most = n > most ? n : most;
		}
		printf("%s: %llu rounds for %d runs\n", machines[i], (unsigned long long)most,
		       RUNS);
		CHECK(most <= 10 * RUNS);
		weft_engine_stop();
	}
	CHECK_EQ(unsetenv("HWLOC_SYNTHETIC"), 0);
}

/* ---- beside waiters for something else --------------------------------------------------------
 */

static struct weft_completion other;
static _Atomic bool x_stop;

static void *waits_for_other(void *arg)
{
	weft_task_engine_wait(&other);
	return NULL;
}

static void *waits_for_task(void *arg)
{
	CHECK_EQ(weft_task_wait(arg), WEFT_OK);
	return NULL;
}

static void until_baton(uint32_t state)
{
	while (atomic_load(&weft_task_engine.baton.x_state) != state) /* ends: it gets there */
		usleep(100);
}

static void until_parked(uint32_t n)
{
	while (atomic_load(&weft_task_engine.baton.x_parked) < n) /* ends: they sleep */
		usleep(100);
}

static void begin(pthread_t *p, void *(*fn)(void *), void *arg)
{
	CHECK_EQ(pthread_create(p, NULL, fn, arg), 0);
}

/* The holder sleeps, and has to poll for us; late: it has set its timer for the task before. */
static void beside_sleeper(bool late)
{
	pthread_t p;
	weft_wait_completion_init(&other);
	begin(&p, waits_for_other, NULL);
	until_baton(WEFT_BATON_ASLEEP);
	struct weft_task t;
	int left;
	prepare(&t, &left);
	CHECK(weft_task_submit(&t));
	while (late && (atomic_load(&weft_task_engine.baton.x_state) != WEFT_BATON_ASLEEP ||
			atomic_load(&weft_task_engine.x_sleep_ns) == WEFT_FOREVER))
		usleep(100);
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	CHECK_EQ(left, 0);
	weft_wait_completion_signal(&other);
	CHECK_EQ(pthread_join(p, NULL), 0);
}

static enum weft_task_verdict until_told(struct weft_task *t, void *arg)
{
	return atomic_load((_Atomic bool *)arg) ? WEFT_TASK_DONE : WEFT_TASK_AGAIN;
}

/* The holder that polled for us leaves: a parked waiter takes its place. */
static void leaver_is_relieved(void)
{
	_Atomic bool x_told = false;
	struct weft_task t;
	pthread_t p, q;
	weft_task_init(&t, "until told", until_told, (void *)&x_told, WEFT_TASK_REPEAT);
	weft_wait_completion_init(&other);
	begin(&p, waits_for_other, NULL);
	until_baton(WEFT_BATON_ASLEEP);
	CHECK(weft_task_submit(&t));
	begin(&q, waits_for_task, &t);
	until_parked(1);
	weft_wait_completion_signal(&other);
	CHECK_EQ(pthread_join(p, NULL), 0);
	atomic_store(&x_told, true);
	CHECK_EQ(pthread_join(q, NULL), 0);
}

/* Two tasks, a tally, and waits of several: each of them polls. */
static void of_several(void)
{
	struct weft_task t[2],
		never, *const both[] = {&t[0], &t[1]}, *const any[] = {&never, &t[1]};
	struct weft_tally y;
	_Atomic bool x_told = false;
	int left[2];
	size_t which = 2;
	for (int i = 0; i < 2; i++) {
		prepare(&t[i], &left[i]);
		CHECK(weft_task_submit(&t[i]));
	}
	CHECK_EQ(weft_task_wait_all(both, 2, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(left[0] + left[1], 0);

	weft_task_init(&never, "until told", until_told, (void *)&x_told, WEFT_TASK_REPEAT);
	prepare(&t[1], &left[1]);
	CHECK(weft_task_submit(&never) && weft_task_submit(&t[1]));
	CHECK_EQ(weft_task_wait_any(any, 2, WEFT_FOREVER, &which), WEFT_OK);
	CHECK_EQ(which, 1);
	CHECK_EQ(weft_task_cancel_wait(&never), WEFT_OK);

	weft_tally_init(&y);
	for (int i = 0; i < 2; i++) {
		prepare(&t[i], &left[i]);
		t[i].tally = &y;
		CHECK(weft_task_submit(&t[i]));
	}
	CHECK_EQ(weft_tally_wait(&y, 2, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(left[0] + left[1], 0);
}

/* The waiter may not run it itself: the worker of its core polls. */
static void strict(void)
{
	cpu_set_t all, one;
	struct weft_task t;
	int left, last = 0;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		last = CPU_ISSET(cpu, &all) ? cpu : last;
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	prepare(&t, &left);
	t.options |= WEFT_TASK_STRICT;
	t.cpus = &one;
	CHECK(weft_task_submit(&t));
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	CHECK_EQ(left, 0);
}

/* ---- many pollers ------------------------------------------------------------------------------
 */

static void *polls(void *arg)
{
	while (!atomic_load(&x_stop)) { /* ends: told to */
		(void)weft_engine_poll();
		sched_yield();
	}
	return NULL;
}

static void beside_pollers(void)
{
	enum { N = 4 };
	pthread_t p[N];
	atomic_store(&x_stop, false);
	for (int i = 0; i < N; i++)
		begin(&p[i], polls, NULL);
	for (int k = 0; k < 20; k++) {
		struct weft_task t;
		int left;
		prepare(&t, &left);
		CHECK(weft_task_submit(&t));
		weft_task_tqueues_check(); /* amid the pollers */
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
		CHECK_EQ(left, 0);
	}
	atomic_store(&x_stop, true);
	for (int i = 0; i < N; i++)
		CHECK_EQ(pthread_join(p[i], NULL), 0);
}

/* ---- nothing to poll ---------------------------------------------------------------------------
 */

/* A masked task lies in no queue: its waiter sleeps. */
static void masked_costs_nothing(void)
{
	struct weft_task t;
	pthread_t p;
	int left;
	prepare(&t, &left);
	CHECK_EQ(weft_task_mask(&t), WEFT_OK);
	CHECK(weft_task_submit(&t));
	begin(&p, waits_for_task, &t);
	until_baton(WEFT_BATON_ASLEEP);
	CHECK_EQ(left, RUNS);
	weft_task_unmask(&t);
	CHECK_EQ(pthread_join(p, NULL), 0);
	CHECK_EQ(left, 0);
}

/* ---- a run while the holder falls asleep ------------------------------------------------------
 */

static _Atomic int x_inside;

/* The first run ends when the holder sleeps, the second one ends the holder's wait. */
static enum weft_task_verdict ends_wait(struct weft_task *t, void *arg)
{
	if (atomic_fetch_add(&x_inside, 1)) {
		weft_wait_completion_signal(&other);
		return WEFT_TASK_DONE;
	}
	until_baton(WEFT_BATON_ASLEEP);
	return WEFT_TASK_AGAIN;
}

static void *polls_until_inside(void *arg)
{
	while (!atomic_load(&x_inside)) /* ends: it runs the task */
		(void)weft_engine_poll();
	return NULL;
}

static void run_meanwhile(void)
{
	pthread_t p, q;
	struct weft_task t;
	atomic_store(&x_inside, 0);
	weft_wait_completion_init(&other);
	weft_task_init(&t, "ends a wait", ends_wait, NULL, WEFT_TASK_REPEAT);
	weft_progress_set(false); /* else the watcher runs it */
	until_baton(WEFT_BATON_VACANT);
	while (atomic_load(&weft_task_engine.baton.x_watcher) != WEFT_WATCHER_OFF)
		usleep(100);
	CHECK(weft_task_submit(&t));
	begin(&p, polls_until_inside, NULL);
	while (!atomic_load(&x_inside))
		usleep(100);
	begin(&q, waits_for_other, NULL);
	CHECK_EQ(pthread_join(p, NULL), 0);
	CHECK_EQ(pthread_join(q, NULL), 0);
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	weft_progress_set(true);
}

static void everything(void)
{
	beside_sleeper(false);
	beside_sleeper(true);
	leaver_is_relieved();
	of_several();
	beside_pollers();
	masked_costs_nothing();
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_SLOW_TASK_MS, "0"), WEFT_OK);
	CHECK_EQ(weft_setting_set(WEFT_SET_TIMER_MS, "10000"), WEFT_OK);
	alone();
	start("pack:2 l3:4 core:4 pu:2");
	everything();
	weft_progress_set(false);
	everything();
	weft_engine_stop();
	CHECK_EQ(weft_setting_set(WEFT_SET_TIMER_MS, "10"), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	strict();
	weft_engine_stop();
	start("pu:2");
	run_meanwhile();
	weft_engine_stop();
	return 0;
}
