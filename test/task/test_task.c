/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task runs as often as it was asked to and never twice at once; it may be cancelled, submitted
 * again by any thread and by itself, and freed right after its wait; repeat, priority, completion
 * action, urgent and strict do what they say.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include "base/counters.h"
#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/queue/tqueue.h"
#include "task/queue/weft_task.h"
#include "topo/topo.h"

static _Atomic int x_runs, x_inside;

/* Progress was switched off: from when this returns only the main thread runs tasks. */
static void watcher_goes_off(void)
{
	while (atomic_load(&weft_task_engine.baton.x_watcher) != WEFT_WATCHER_OFF)
		usleep(100);
}

static enum weft_task_verdict counts(struct weft_task *t, void *arg)
{
	CHECK_EQ(atomic_fetch_add(&x_inside, 1), 0);
	atomic_fetch_add(&x_runs, 1);
	atomic_fetch_sub(&x_inside, 1);
	return WEFT_TASK_DONE;
}

static void runs_once(void)
{
	struct weft_task t;
	weft_task_init(&t, "once", counts, NULL, 0);
	CHECK(weft_task_done(&t));
	for (int i = 1; i <= 1000; i++) {
		atomic_store(&x_runs, 0);
		CHECK(weft_task_submit(&t));
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
		CHECK_EQ(atomic_load(&x_runs), 1);
	}
}

/* The memory is poisoned right after the wait, as if freed and used again. */
static void freed_after_wait(void)
{
	for (int i = 0; i < 2000; i++) {
		struct weft_task *t = malloc(sizeof *t);
		CHECK(t != NULL);
		weft_task_init(t, "freed", counts, NULL, 0);
		weft_task_submit(t);
		if (i % 3 == 0)
			usleep(20); /* the watcher takes it */
		CHECK_EQ(weft_task_wait(t), WEFT_OK);
		memset(t, 0xa5, sizeof *t);
		free(t);
	}
}

static enum weft_task_verdict five_times(struct weft_task *t, void *arg)
{
	return ++*(int *)arg < 5 ? WEFT_TASK_AGAIN : WEFT_TASK_DONE;
}

static enum weft_task_verdict resubmits_itself(struct weft_task *t, void *arg)
{
	int *n = arg;
	if (++*n < 5)
		CHECK(!weft_task_submit(t)); /* it is not idle */
	return WEFT_TASK_DONE;
}

static void comes_back(void)
{
	struct weft_task t;
	int n = 0;
	weft_task_init(&t, "again", five_times, &n, 0);
	weft_task_submit(&t);
	weft_task_wait(&t);
	CHECK_EQ(n, 5);
	n = 0;
	weft_task_init(&t, "repeat", five_times, &n, WEFT_TASK_REPEAT);
	weft_task_submit(&t);
	weft_task_wait(&t);
	CHECK_EQ(n, 5);
	n = 0;
	weft_task_init(&t, "itself", resubmits_itself, &n, 0);
	weft_task_submit(&t);
	weft_task_wait(&t);
	CHECK_EQ(n, 5);
}

static void sets_flag(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
}

static enum weft_task_verdict frees_itself(struct weft_task *t, void *arg)
{
	struct weft_completion *c = arg;
	free(t);
	weft_wait_completion_signal(c);
	return WEFT_TASK_GONE;
}

static void completes(void)
{
	_Atomic int x_flag = 0;
	struct weft_task t;
	weft_task_init(&t, "action", counts, NULL, 0);
	t.on_complete = sets_flag;
	t.on_complete_arg = (void *)&x_flag;
	weft_task_submit(&t);
	weft_task_wait(&t);
	while (!atomic_load(&x_flag)) /* the action follows the signal */
		sched_yield();
	CHECK_EQ(atomic_load(&x_flag), 1);

	struct weft_completion c;
	struct weft_task *gone = malloc(sizeof *gone);
	CHECK(gone != NULL);
	weft_wait_completion_init(&c);
	weft_task_init(gone, "gone", frees_itself, &c, 0);
	weft_task_submit(gone);
	weft_task_engine_wait(&c);
}

/* ---- cancel ------------------------------------------------------------------------------------
 */

static enum weft_task_verdict polls_for_ever(struct weft_task *t, void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
	return WEFT_TASK_AGAIN;
}

static void cancels(void)
{
	_Atomic int x_polled = 0;
	struct weft_task t;
	weft_task_init(&t, "polls", polls_for_ever, (void *)&x_polled, WEFT_TASK_REPEAT);
	CHECK(!weft_task_cancel(&t));
	for (int i = 0; i < 200; i++) {
		weft_task_submit(&t);
		for (int k = 0; k < i % 7; k++)
			weft_engine_poll();
		CHECK_EQ(weft_task_cancel_wait(&t), WEFT_OK);
		CHECK(weft_task_done(&t));
		int seen = atomic_load(&x_polled);
		for (int k = 0; k < 4; k++)
			weft_engine_poll();
		CHECK_EQ(atomic_load(&x_polled), seen);
	}
	/* Never polled between: still the wait ends and the function has not run. */
	atomic_store(&x_runs, 0);
	bool was = weft_progress_get();
	weft_progress_set(false);
	watcher_goes_off();
	weft_task_init(&t, "never", counts, NULL, 0);
	weft_task_submit(&t);
	CHECK(weft_task_cancel(&t));
	CHECK_EQ(weft_task_cancel_wait(&t), WEFT_OK);
	CHECK_EQ(atomic_load(&x_runs), 0);
	weft_progress_set(was);
}

/* ---- many threads ------------------------------------------------------------------------------
 */

static struct weft_task shared;
static _Atomic long x_work, x_seen;
static _Atomic int x_stop;

static enum weft_task_verdict takes_work(struct weft_task *t, void *arg)
{
	CHECK_EQ(atomic_fetch_add(&x_inside, 1), 0);
	atomic_store(&x_seen, atomic_load(&x_work));
	atomic_fetch_sub(&x_inside, 1);
	return WEFT_TASK_DONE;
}

static void *submits(void *arg)
{
	for (int i = 0; i < 3000; i++) {
		atomic_fetch_add(&x_work, 1);
		weft_task_submit(&shared);
		if (i % 16 == 0)
			weft_engine_poll();
	}
	return NULL;
}

static void *polls(void *arg)
{
	while (!atomic_load(&x_stop))
		weft_engine_poll();
	return NULL;
}

/* Whatever was published before a submit is seen by a run that starts after it. */
static void submitted_from_everywhere(void)
{
	pthread_t t[4], p[2];
	atomic_store(&x_stop, 0);
	weft_task_init(&shared, "shared", takes_work, NULL, 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&p[i], NULL, polls, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, submits, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	weft_task_wait(&shared);
	CHECK_EQ(atomic_load(&x_seen), 4 * 3000);
	atomic_store(&x_work, 0);
	atomic_store(&x_stop, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(p[i], NULL);
}

static void *cancels_and_submits(void *arg)
{
	struct weft_task *t = arg;
	for (int i = 0; i < 3000; i++)
		if (i % 2)
			weft_task_submit(t);
		else
			weft_task_cancel(t);
	return NULL;
}

static void cancelled_from_everywhere(void)
{
	pthread_t t[3], p;
	atomic_store(&x_stop, 0);
	weft_task_init(&shared, "contended", counts, NULL, 0);
	CHECK_EQ(pthread_create(&p, NULL, polls, NULL), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, cancels_and_submits, &shared), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(weft_task_cancel_wait(&shared), WEFT_OK);
	CHECK(weft_task_done(&shared));
	atomic_store(&x_stop, 1);
	pthread_join(p, NULL);
}

/* ---- order and place ---------------------------------------------------------------------------
 */

static int order[8], ordered;

static enum weft_task_verdict notes(struct weft_task *t, void *arg)
{
	order[ordered++] = (int)(intptr_t)arg;
	return WEFT_TASK_DONE;
}

static void by_priority(void)
{
	struct weft_task t[5];
	static const int priority[5] = {0, 3, 1, 3, 2}, want[5] = {1, 3, 4, 2, 0};
	weft_progress_set(false);
	watcher_goes_off(); /* no other thread takes them */
	ordered = 0;
	for (int i = 0; i < 5; i++) {
		weft_task_init(&t[i], "prio", notes, (void *)(intptr_t)i, 0);
		t[i].priority = priority[i];
		weft_task_submit(&t[i]);
	}
	for (int i = 0; i < 5; i++)
		weft_task_wait(&t[i]);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(order[i], want[i]);
	weft_progress_set(true);
}

static enum weft_task_verdict notes_cpu(struct weft_task *t, void *arg)
{
	*(int *)arg = sched_getcpu();
	return WEFT_TASK_DONE;
}

static void on_its_core(void)
{
	cpu_set_t all, one;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		struct weft_task t;
		int ran_on = -1;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		weft_task_init(&t, "strict", notes_cpu, &ran_on, WEFT_TASK_STRICT);
		t.cpus = &one;
		weft_task_submit(&t);
		weft_task_wait(&t);
		/* A made-up tree may lack the core, and a system may forbid to choose one. */
		if (weft_topo_leaf_in(&one, 0) >= 0 && sched_setaffinity(0, sizeof all, &all) == 0)
			CHECK_EQ(ran_on, cpu);
		weft_task_init(&t, "urgent", notes_cpu, &ran_on, WEFT_TASK_URGENT);
		t.cpus = &one;
		weft_task_submit(&t);
		uint64_t t0 = weft_clock_ns();
		while (!weft_task_done(&t)) /* we compute: a worker or the watcher runs it */
			CHECK(weft_clock_ns() - t0 < 60000000000u);
	}
}

/* A strict task for cores that no thread may use runs all the same, with a warning. */
static void on_no_core(void)
{
	cpu_set_t none;
	struct weft_task t;
	int ran_on = -1;
	CPU_ZERO(&none);
	CPU_SET(CPU_SETSIZE - 1, &none);
	if (weft_topo_leaf_in(&none, 0) >= 0)
		return; /* that large a machine */
	weft_task_init(&t, "nowhere", notes_cpu, &ran_on, WEFT_TASK_STRICT);
	t.cpus = &none;
	weft_task_submit(&t);
	weft_task_wait(&t);
	CHECK(ran_on >= 0);
}

/* The caller computes and makes no call: the task runs all the same. */
static void in_the_background(void)
{
	for (int i = 0; i < 30; i++) {
		struct weft_task t;
		weft_task_init(&t, "background", counts, NULL, 0);
		usleep(i * 30);
		weft_task_submit(&t);
		uint64_t t0 = weft_clock_ns();
		while (!weft_task_done(&t))
			CHECK(weft_clock_ns() - t0 < 60000000000u);
	}
}

/* Ours holds the mask of the queue that the other may lie in: only outside can it be waited for. */
struct inner {
	struct weft_task other;
	_Atomic bool x_may_end;
	weft_err wait, cancel;
};

/* Runs again and again, until the test lets it end. */
static enum weft_task_verdict lasts(struct weft_task *t, void *arg)
{
	return atomic_load((_Atomic bool *)arg) ? WEFT_TASK_DONE : WEFT_TASK_AGAIN;
}

static enum weft_task_verdict waits_inside(struct weft_task *t, void *arg)
{
	struct inner *in = arg;
	weft_task_submit(&in->other);
	in->wait = weft_task_wait(&in->other);
	in->cancel = weft_task_cancel_wait(&in->other);
	return WEFT_TASK_DONE;
}

static void may_not_wait(void)
{
	struct weft_task t;
	struct inner in;
	atomic_init(&in.x_may_end, false);
	weft_task_init(&in.other, "other", lasts, (void *)&in.x_may_end, 0);
	weft_task_init(&t, "waits", waits_inside, &in, 0);
	weft_task_submit(&t);
	weft_task_wait(&t);
	CHECK_EQ(in.wait, WEFT_ERR_DEADLOCK);
	/* Where another thread was running it, the cancellation may already have ended it. */
	CHECK(in.cancel == WEFT_ERR_DEADLOCK || in.cancel == WEFT_OK);
	atomic_store(&in.x_may_end, true);
	CHECK_EQ(weft_task_cancel_wait(&in.other), WEFT_OK);
	CHECK(weft_task_done(&in.other));
}

int main(int argc, char **argv)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "error"), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	runs_once();
	freed_after_wait();
	comes_back();
	completes();
	cancels();
	submitted_from_everywhere();
	weft_task_tqueues_check();
	cancelled_from_everywhere();
	by_priority();
	weft_task_tqueues_check();
	on_its_core();
	on_no_core();
	in_the_background();
	may_not_wait();
	weft_engine_describe(stdout);
	weft_engine_stop();
	return 0;
}
