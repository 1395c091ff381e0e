/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What weft/task.h promises beyond submit and wait: tasks that run once, masks, waits for any and
 * all with timeouts, tallies with many waiters, and an end with tasks still queued.  It includes
 * nothing of the engine but the installed header.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weft/progress.h>
#include <weft/task.h>
#include "check.h"

static _Atomic int x_runs, x_actions;

static enum weft_task_verdict counts(struct weft_task *t, void *arg)
{
	x_runs++;
	return WEFT_TASK_AGAIN + (arg == NULL ? -1 : 0);
}

static void acts(void *arg)
{
	x_actions++;
}

static void runs_one_time(void)
{
	struct weft_task t;
	for (int i = 1; i <= 2000; i++) {
		x_runs = 0;
		weft_task_launch(&t, "launched", counts,
				 &x_runs); /* answers AGAIN: once all the same */
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
		CHECK_EQ(x_runs, 1);
	}
	CHECK(!weft_task_cancel(&t));
	CHECK_EQ(weft_task_mask(&t), WEFT_ERR_UNSUPPORTED);
}

/* No thread but this one: what is queued stays there. */
static void refused_and_cancelled(void)
{
	struct weft_task t;
	x_runs = 0;
	weft_task_init(&t, "once", counts, NULL, WEFT_TASK_ONCE);
	t.on_complete = acts;
	x_actions = 0;
	CHECK(weft_task_submit(&t));
	CHECK(!weft_task_submit(&t)); /* refused */
	CHECK(weft_task_cancel(&t));
	CHECK_EQ(weft_task_cancel_wait(&t), WEFT_OK);
	CHECK_EQ(x_runs, 0);
	CHECK_EQ(x_actions, 1);
	CHECK(weft_task_submit(&t));
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	CHECK_EQ(x_runs, 1);
}

/* Two threads submit one idle task: one of them starts it. */
static struct weft_task contended;
static _Atomic int x_started;

static void *submits(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		x_started += weft_task_submit(&contended);
		weft_engine_poll();
	}
	return NULL;
}

static void one_of_two_submits(void)
{
	pthread_t p[2];
	x_runs = x_started = 0;
	weft_task_init(&contended, "contended", counts, NULL, WEFT_TASK_ONCE);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&p[i], NULL, submits, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(p[i], NULL);
	CHECK_EQ(weft_task_wait(&contended), WEFT_OK);
	CHECK_EQ(x_runs, x_started);
}

/* ---- masks -------------------------------------------------------------------------------------
 */

static void masked_does_not_start(void)
{
	struct weft_task t;
	weft_task_init(&t, "masked", counts, NULL, 0);
	for (int i = 0; i < 100; i++) {
		x_runs = 0;
		CHECK_EQ(weft_task_mask(&t), WEFT_OK);
		CHECK(weft_task_submit(&t));
		for (int k = 0; k < i % 5; k++)
			weft_engine_poll(); /* finds it masked, or does not find it at all */
		CHECK(!weft_task_done(&t));
		CHECK(!weft_task_submit(&t));
		CHECK_EQ(x_runs, 0);
		if (i % 3 == 0) {
			CHECK_EQ(weft_task_cancel_wait(&t), WEFT_OK);
			CHECK_EQ(x_runs, 0);
			weft_task_unmask(&t);
			continue;
		}
		weft_task_unmask(&t);
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
		CHECK_EQ(x_runs, 1);
	}
}

/* A repeat task works on a plain variable, which others change while it is masked. */
static long guarded;

static enum weft_task_verdict adds(struct weft_task *t, void *arg)
{
	guarded++;
	return WEFT_TASK_AGAIN;
}

static void *polls(void *arg)
{
	while (!*(_Atomic int *)arg)
		weft_engine_poll();
	return NULL;
}

static void mask_is_a_lock(void)
{
	struct weft_task t;
	_Atomic int x_stop = 0;
	pthread_t p;
	CHECK_EQ(pthread_create(&p, NULL, polls, (void *)&x_stop), 0);
	weft_task_init(&t, "guarded", adds, NULL, WEFT_TASK_REPEAT);
	weft_task_submit(&t);
	for (int i = 0; i < 500; i++) {
		CHECK_EQ(weft_task_mask_wait(&t), WEFT_OK);
		long seen = guarded;
		for (int k = 0; k < 10; k++)
			weft_engine_poll();
		CHECK_EQ(guarded, seen);
		guarded = 0;
		weft_task_unmask(&t);
		weft_engine_poll();
	}
	CHECK_EQ(weft_task_cancel_wait(&t), WEFT_OK);
	x_stop = 1;
	pthread_join(p, NULL);
}

/* ---- waits -------------------------------------------------------------------------------------
 */

static void any_and_all(void)
{
	enum { N = 200 };
	static struct weft_task t[N];
	struct weft_task *p[N + 1];
	size_t which = 99;
	for (int i = 0; i < N; i++) {
		weft_task_init(&t[i], "many", counts, NULL, 0);
		weft_task_mask(&t[i]);
		weft_task_submit(&t[i]);
		p[i] = &t[i];
	}
	CHECK_EQ(weft_task_wait_for(&t[0], 1000), WEFT_ERR_TIMEOUT);
	CHECK_EQ(weft_task_wait_any(p, N, 1000, &which), WEFT_ERR_TIMEOUT);
	CHECK_EQ(weft_task_wait_all(p, N, 1000), WEFT_ERR_TIMEOUT);
	CHECK_EQ(which, 99);
	weft_task_unmask(&t[150]);
	CHECK_EQ(weft_task_wait_any(p, N, WEFT_FOREVER, &which), WEFT_OK);
	CHECK_EQ(which, 150);
	for (int i = 0; i < N; i++)
		weft_task_unmask(&t[i]);
	p[7] = NULL;
	CHECK_EQ(weft_task_wait_any(p, 8, WEFT_FOREVER, &which), WEFT_OK);
	CHECK(which <= 7);
	CHECK_EQ(weft_task_wait_all(p, N, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_task_wait(&t[7]), WEFT_OK);
	for (int i = 0; i < N; i++)
		CHECK(weft_task_done(&t[i]));
}

/*
 * A thread that others always poll for need not ring; when they poll elsewhere its task is run all
 * the same, by the watcher, while it computes.
 */
static void polled_elsewhere(void)
{
	_Atomic int x_stop = 0;
	pthread_t p;
	cpu_set_t all, mine;
	struct weft_task t;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	if (CPU_COUNT(&all) < 2)
		return;
	CHECK_EQ(pthread_create(&p, NULL, polls, (void *)&x_stop), 0);
	for (int cpu = 0, n = 0; cpu < CPU_SETSIZE && n < 2; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&mine);
		CPU_SET(cpu, &mine);
		if (n++ == 0)
			CHECK_EQ(pthread_setaffinity_np(p, sizeof mine, &mine), 0);
	}
	for (int i = 0; i < 100; i++) {
		weft_task_init(&t, "elsewhere", counts, NULL, i % 2 ? WEFT_TASK_ONCE : 0);
		t.cpus = i < 50 ? NULL : &mine; /* first where the poller looks, then not */
		weft_task_submit(&t);
		while (!weft_task_done(&t))
			sched_yield();
	}
	x_stop = 1;
	pthread_join(p, NULL);
}

/* Memory that is freed with the last count. */
struct batch {
	struct weft_tally tally;
	struct weft_task t[20];
};

static void *waits_for_ten(void *arg)
{
	CHECK_EQ(weft_tally_wait(arg, 10, WEFT_FOREVER), WEFT_OK);
	return NULL;
}

static void tallies(void)
{
	for (int r = 0; r < 50; r++) {
		struct batch *b = malloc(sizeof *b);
		pthread_t p[3];
		CHECK(b != NULL);
		weft_tally_init(&b->tally);
		CHECK_EQ(weft_tally_wait(&b->tally, 0, 0), WEFT_OK);
		CHECK_EQ(weft_tally_wait(&b->tally, 1, 1000), WEFT_ERR_TIMEOUT);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(pthread_create(&p[i], NULL, waits_for_ten, &b->tally), 0);
		for (int i = 0; i < 20; i++) {
			weft_task_init(&b->t[i], "counted", counts, NULL,
				       i % 2 ? WEFT_TASK_ONCE : 0);
			b->t[i].tally = &b->tally;
			weft_task_submit(&b->t[i]);
		}
		for (int i = 0; i < 3; i++)
			pthread_join(p[i], NULL);
		CHECK_EQ(weft_tally_wait(&b->tally, 20, WEFT_FOREVER), WEFT_OK);
		CHECK_EQ(weft_tally_read(&b->tally), 20);
		memset(b, 0xa5, sizeof *b);
		free(b);
	}
}

static enum weft_task_verdict waits_inside(struct weft_task *t, void *arg)
{
	struct weft_tally y;
	weft_tally_init(&y);
	CHECK_EQ(weft_tally_wait(&y, 1, WEFT_FOREVER), WEFT_ERR_DEADLOCK);
	CHECK_EQ(weft_task_mask_wait(t), WEFT_ERR_DEADLOCK);
	weft_task_unmask(t);
	return WEFT_TASK_DONE;
}

static void refused_in_handlers(void)
{
	struct weft_task t;
	weft_task_init(&t, "waits", waits_inside, NULL, 0);
	weft_task_submit(&t);
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
}

/* ---- the end -----------------------------------------------------------------------------------
 */

static struct weft_task follower;

static void submits_another(void *arg)
{
	weft_task_submit(&follower); /* no engine: refused, and done */
}

static void ends_with_tasks_queued(void)
{
	enum { N = 100 };
	static struct weft_task t[N];
	x_runs = x_actions = 0;
	weft_task_init(&follower, "follower", counts, NULL, 0);
	for (int i = 0; i < N; i++) {
		weft_task_init(&t[i], "left over", counts, NULL, i % 2 ? WEFT_TASK_REPEAT : 0);
		t[i].priority = i % 3;
		t[i].on_complete = i == 5 ? submits_another : acts;
		weft_task_submit(&t[i]);
	}
	weft_engine_stop();
	for (int i = 0; i < N; i++)
		CHECK(weft_task_done(&t[i]));
	CHECK(weft_task_done(&follower));
	CHECK_EQ(x_runs, 0);
	CHECK_EQ(x_actions, N - 1);
	CHECK_EQ(weft_task_wait(&t[0]), WEFT_OK);
	/* And from then on. */
	CHECK(weft_task_submit(&t[0]));
	CHECK(weft_task_done(&t[0]));
	CHECK_EQ(weft_engine_poll(), 0);
}

int main(void)
{
	setenv("WEFT_LOG", "error", 1);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	runs_one_time();
	one_of_two_submits();
	masked_does_not_start();
	mask_is_a_lock();
	any_and_all();
	polled_elsewhere();
	tallies();
	refused_in_handlers();
	weft_engine_stop();
	weft_progress_set(false);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	refused_and_cancelled();
	ends_with_tasks_queued();
	return 0;
}
