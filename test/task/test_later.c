/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task that was submitted for later runs once: in the submitter's wait, behind a thread that
 * never waits, beside one that waits for something else, and when the watcher is off.  While those
 * that hold back poll by themselves, the watcher lets itself more time; not once it had to see to
 * it.
 */
#include <pthread.h>
#include <sched.h>
#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/queue/weft_task.h"
#include <weft/progress.h>

enum { TURNS = 100 };

static _Atomic int x_runs;

static enum weft_task_verdict counts(struct weft_task *t, void *arg)
{
	atomic_fetch_add(&x_runs, 1);
	return WEFT_TASK_DONE;
}

static void until_run(int n)
{
	while (atomic_load(&x_runs) != n) /* ends: the watcher runs it */
		sched_yield();
}

/* No thread waits: the watcher runs it, wherever it is at that moment. */
static void behind(int pauses)
{
	struct weft_task t;
	weft_task_init(&t, "behind", counts, NULL, 0);
	atomic_store(&x_runs, 0);
	for (int i = 1; i <= TURNS; i++) {
		CHECK(weft_task_submit_later(&t));
		until_run(i);
		while (!weft_task_done(&t)) /* ends: it has run */
			sched_yield();
		for (int k = 0; k < i * pauses; k++)
			weft_cpu_relax();
	}
}

static void in_the_wait(void)
{
	struct weft_task t;
	weft_task_init(&t, "waited for", counts, NULL, 0);
	atomic_store(&x_runs, 0);
	for (int i = 1; i <= TURNS; i++) {
		CHECK(weft_task_submit_later(&t));
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
		CHECK_EQ(atomic_load(&x_runs), i);
	}
}

/* Another thread waits for a task of its own: it polls, sleeps and leaves at any moment. */
static _Atomic bool x_stop;

static void *waits_beside(void *arg)
{
	struct weft_task t;
	weft_task_init(&t, "beside", counts, NULL, 0);
	while (!atomic_load(&x_stop)) { /* ends: told to */
		(void)weft_task_submit(&t);
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	}
	return NULL;
}

static enum weft_task_verdict counts_apart(struct weft_task *t, void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
	return WEFT_TASK_DONE;
}

static void beside_a_waiter(void)
{
	pthread_t thread;
	struct weft_task t;
	static _Atomic int x_mine;
	weft_task_init(&t, "mine", counts_apart, &x_mine, 0);
	atomic_store(&x_stop, false);
	CHECK_EQ(pthread_create(&thread, NULL, waits_beside, NULL), 0);
	for (int i = 1; i <= TURNS; i++) {
		CHECK(weft_task_submit_later(&t));
		while (!weft_task_done(&t)) /* ends: the waiter or the watcher runs it */
			sched_yield();
		CHECK_EQ(atomic_load(&x_mine), i);
	}
	atomic_store(&x_stop, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static uint64_t hold_max(void)
{
	return atomic_load(&weft_task_engine.batch_hold.x_max_ns);
}

static void learns(void)
{
	struct weft_task t;
	weft_task_init(&t, "learns", counts, NULL, 0);
	for (int turn = 0; turn < 2; turn++) {
		while (hold_max() < WEFT_HOLD_MOST_NS) { /* ends: its looks find us polling */
			CHECK(weft_task_submit_later(&t));
			CHECK_EQ(weft_task_wait(&t), WEFT_OK);
		}
		while (hold_max() != WEFT_HOLD_NS) { /* ends: no thread polls */
			CHECK(weft_task_submit_later(&t));
			while (!weft_task_done(&t))
				sched_yield();
		}
	}
}

static void watcher_off(void)
{
	struct weft_task t;
	weft_task_init(&t, "off", counts, NULL, 0);
	atomic_store(&x_runs, 0);
	weft_progress_set(false);
	while (atomic_load(&weft_task_engine.baton.x_watcher) !=
	       WEFT_WATCHER_OFF) /* ends: switched */
		sched_yield();
	CHECK(weft_task_submit_later(&t));
	CHECK_EQ(atomic_load(&x_runs), 0);
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	CHECK_EQ(atomic_load(&x_runs), 1);
	/* Switched on again it finds what was submitted meanwhile. */
	CHECK(weft_task_submit_later(&t));
	weft_progress_set(true);
	until_run(2);
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "error"), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	behind(0);
	behind(200);
	in_the_wait();
	beside_a_waiter();
	learns();
	watcher_off();
	behind(0);
	weft_engine_stop();
	return 0;
}
