/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the watcher leaves for a while runs once: in the watcher, when the application does not come
 * back; else in its wait, also when background progress goes off meanwhile.
 */
#include <sched.h>
#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include <weft/progress.h>
#include <weft/task.h>

enum { ROUNDS = 30 };

static _Atomic int x_left, x_runs;
static _Atomic enum weft_runner x_runner;
static struct weft_completion done;
static struct weft_task_app_work work;

static void works(struct weft_task_app_work *l)
{
	CHECK(l == &work);
	atomic_store(&x_runner, weft_task_engine_runner());
	atomic_fetch_add(&x_runs, 1);
	weft_wait_completion_signal(&done);
}

static enum weft_task_verdict leaves(struct weft_task *t, void *arg)
{
	CHECK_EQ(weft_task_engine_runner(), WEFT_RUNNER_WATCHER);
	work.fn = works;
	weft_task_engine_leave_awhile(&work);
	atomic_fetch_add(&x_left, 1);
	return WEFT_TASK_DONE;
}

/* Returns once the watcher has left it, or has even run it. */
static void begin(struct weft_task *t, int i)
{
	weft_wait_completion_init(&done);
	weft_task_init(t, "leaves", leaves, NULL, 0);
	CHECK(weft_task_submit(t));
	while (atomic_load(&x_left) != i) /* ends: the watcher alone polls */
		sched_yield();
}

static void ran_once(struct weft_task *t, int i)
{
	CHECK_EQ(atomic_load(&x_runs), i);
	while (!weft_task_done(t)) /* ends: it has run */
		sched_yield();
}

/* No thread calls. */
static void behind(int *n_p)
{
	struct weft_task t;
	for (int i = 0; i < ROUNDS; i++) {
		begin(&t, ++*n_p);
		while (!weft_wait_completion_done(&done)) /* ends: the watcher runs it */
			sched_yield();
		CHECK_EQ(atomic_load(&x_runner), WEFT_RUNNER_WATCHER);
		ran_once(&t, *n_p);
	}
}

/* Whichever thread is first. */
static void in_a_wait(int *n_p)
{
	struct weft_task t;
	for (int i = 0; i < ROUNDS; i++) {
		begin(&t, ++*n_p);
		weft_task_engine_wait(&done);
		ran_once(&t, *n_p);
	}
}

static void switched_off(int *n_p)
{
	struct weft_task t;
	for (int i = 0; i < ROUNDS; i++) {
		begin(&t, ++*n_p);
		weft_progress_set(false);
		weft_task_engine_wait(&done);
		ran_once(&t, *n_p);
		weft_progress_set(true);
	}
}

int main(void)
{
	int n = 0;
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_task_engine_set_local_ranks(1, 1); /* no idle worker */
	behind(&n);
	in_a_wait(&n);
	switched_off(&n);
	weft_engine_stop();
	return 0;
}
