/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine is stopped with work left: tasks that are queued are named, never run and count as
 * done; threads that wait come out, asleep or polling, for tasks and for what will never come;
 * tasks that others submit at that moment are done, too, also by a submitter that is stalled until the next
 * start; a handler cannot stop it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <weft/progress.h>
#include <weft/task.h>
#include "check.h"
#include "task/queue/life.h"
#include "task/queue/tqueue.h"
#include "wait/park.h"

#define MANY 25

static _Atomic int x_in, x_stop;

static enum weft_task_verdict again(struct weft_task *t, void *arg)
{
	return WEFT_TASK_AGAIN;
}

static enum weft_task_verdict nothing(struct weft_task *t, void *arg)
{
	return WEFT_TASK_DONE;
}

static enum weft_task_verdict never(struct weft_task *t, void *arg)
{
	CHECK(!"runs");
	return WEFT_TASK_DONE;
}

/* ---- what it says ----------------------------------------------------------------------------
 */

static int count(const char *text, const char *word)
{
	int n = 0;
	for (const char *at = text; (at = strstr(at, word)); at++)
		n++;
	return n;
}

static void names_what_is_left(void)
{
	static struct weft_task t[MANY];
	char said[8192] = "", path[] = "/tmp/weft-ending-XXXXXX";
	int fd = mkstemp(path), err = dup(2);
	CHECK(fd >= 0 && err >= 0);
	unlink(path);
	weft_progress_set(false);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (int i = 0; i < MANY; i++) {
		weft_task_init(&t[i], "left over", never, NULL, i % 2 ? WEFT_TASK_ONCE : 0);
		CHECK(weft_task_submit(&t[i]));
	}
	fflush(stderr);
	CHECK_EQ(dup2(fd, 2), 2);
	weft_engine_stop();
	dup2(err, 2);
	close(err);
	CHECK(pread(fd, said, sizeof said - 1, 0) > 0);
	close(fd);
	CHECK_EQ(count(said, "task left over was still queued"), 10);
	CHECK_EQ(count(said, "and 15 more tasks"), 1);
	CHECK_EQ(count(said, "\n"), 11);
	for (int i = 0; i < MANY; i++)
		CHECK(weft_task_done(&t[i]));
}

/* ---- waiting -----------------------------------------------------------------------------------
 */

static void *waits_for_task(void *arg)
{
	atomic_fetch_add(&x_in, 1);
	CHECK_EQ(weft_task_wait(arg), WEFT_OK);
	CHECK(weft_task_done(arg));
	return NULL;
}

static void *waits_in_vain(void *arg)
{
	atomic_fetch_add(&x_in, 1);
	CHECK_EQ(weft_tally_wait(arg, 1, WEFT_FOREVER), WEFT_ERR_STATE);
	return NULL;
}

static void lets_waiters_go(int round)
{
	enum { N = 4 };
	struct weft_task t[N];
	struct weft_tally y[2];
	pthread_t p[N + 2];
	weft_progress_set(round % 2);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	atomic_store(&x_in, 0);
	for (int i = 0; i < N; i++) {
		weft_task_init(&t[i], "again", again, NULL, WEFT_TASK_REPEAT);
		/* Some rounds have nothing to run: then they sleep. */
		if (round % 4 < 2)
			CHECK_EQ(weft_task_mask(&t[i]), WEFT_OK);
		weft_task_submit(&t[i]);
		weft_task_unmask(&t[i]);
		CHECK_EQ(pthread_create(&p[i], NULL, waits_for_task, &t[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		weft_tally_init(&y[i]);
		CHECK_EQ(pthread_create(&p[N + i], NULL, waits_in_vain, &y[i]), 0);
	}
	while (atomic_load(&x_in) < N + 2) /* ends: they start */
		sched_yield();
	usleep((unsigned)(round * 37 % 400)); /* any moment will do */
	weft_engine_stop();
	for (int i = 0; i < N + 2; i++)
		pthread_join(p[i], NULL);
}

/* ---- submitting --------------------------------------------------------------------------------
 */

static void *submits(void *arg)
{
	static struct weft_task t[2][16];
	struct weft_task *mine = t[(intptr_t)arg];
	for (int i = 0; i < 16; i++)
		weft_task_init(&mine[i], "late", nothing, NULL, i % 2 ? WEFT_TASK_ONCE : 0);
	atomic_fetch_add(&x_in, 1);
	for (int i = 0; !atomic_load(&x_stop); i++) /* ends: told to */
		if (weft_task_done(&mine[i % 16]))
			CHECK(weft_task_submit(&mine[i % 16]));
	for (int i = 0; i < 16; i++)
		CHECK(weft_task_done(&mine[i]));
	return NULL;
}

static void nothing_is_lost(int round)
{
	pthread_t p[2];
	weft_progress_set(round % 2);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	atomic_store(&x_in, 0);
	atomic_store(&x_stop, 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&p[i], NULL, submits, (void *)(intptr_t)i), 0);
	while (atomic_load(&x_in) < 2) /* ends: they start */
		sched_yield();
	usleep((unsigned)(round * 37 % 400));
	weft_engine_stop();
	atomic_store(&x_stop, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(p[i], NULL);
}

/* ---- stalled ------------------------------------------------------------------------------------
 */

static _Atomic int x_ran;

static enum weft_task_verdict runs(struct weft_task *t, void *arg)
{
	atomic_fetch_add(&x_ran, 1);
	return WEFT_TASK_DONE;
}

/* As a submitter does that has been stalled between its look for the queue and the push. */
static void across_a_start(const char *machine)
{
	struct weft_task t;
	atomic_store(&x_ran, 0);
	weft_progress_set(false);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	struct weft_tqueue *q = weft_task_tqueue_of_place(0);
	weft_task_init(&t, "stalled", runs, NULL, WEFT_TASK_ONCE);
	CHECK(weft_task_life_submit_once(&weft_task_core(&t)->x_state, &weft_task_core(&t)->done));
	weft_engine_stop();
	if (machine)
		setenv("HWLOC_SYNTHETIC", machine, 1);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_task_tqueue_push(q, &t);
	if (!machine) /* it is a task of the new engine */
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	CHECK(weft_task_done(&t));
	CHECK_EQ(atomic_load(&x_ran), !machine);
	weft_engine_stop();
	unsetenv("HWLOC_SYNTHETIC");
}

/* Threads of one core each are started, or not any more, at that moment. */
static void *submits_urgent(void *arg)
{
	static struct weft_task t;
	cpu_set_t set;
	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	atomic_fetch_add(&x_in, 1);
	while (!atomic_load(&x_stop)) { /* ends: told to */
		weft_task_init(&t, "urgent", nothing, NULL, WEFT_TASK_URGENT);
		t.cpus = &set;
		CHECK(weft_task_submit(&t));
		CHECK_EQ(weft_task_wait(&t) != WEFT_OK && !weft_task_done(&t), 0);
	}
	return NULL;
}

static void urgent_at_a_stop(int round)
{
	pthread_t p;
	weft_progress_set(round % 2);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	atomic_store(&x_in, 0);
	atomic_store(&x_stop, 0);
	CHECK_EQ(pthread_create(&p, NULL, submits_urgent, NULL), 0);
	while (!atomic_load(&x_in)) /* ends: it starts */
		sched_yield();
	usleep((unsigned)(round * 37 % 400));
	weft_engine_stop();
	atomic_store(&x_stop, 1);
	pthread_join(p, NULL);
}

/* ---- handlers ----------------------------------------------------------------------------------
 */

static enum weft_task_verdict stops(struct weft_task *t, void *arg)
{
	weft_engine_stop();
	return WEFT_TASK_DONE;
}

static void not_from_inside(void)
{
	struct weft_task t;
	weft_progress_set(true);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (int i = 0; i < 2; i++) { /* refused; the engine goes on */
		weft_task_init(&t, "stops", stops, NULL, i ? WEFT_TASK_REPEAT : 0);
		weft_task_submit(&t);
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	}
	weft_engine_stop();
}

int main(void)
{
	names_what_is_left();
	/* What the engine says goes nowhere from here on, what CHECK says does not. */
	int silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
	FILE *err = fdopen(dup(2), "w");
	CHECK(silence >= 0 && err != NULL);
	dup2(silence, 2);
	stderr = err;
	for (int i = 0; i < 12; i++) {
		nothing_is_lost(i);
		lets_waiters_go(i);
		not_from_inside();
		urgent_at_a_stop(i);
		across_a_start(i % 4 ? NULL : "package:2 core:3 pu:1");
	}
	fclose(err);
	return 0;
}
