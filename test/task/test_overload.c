/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Too much: a task that runs long is reported by name, while it runs and while the engine's stop
 * waits for it, a completion action and a source's callback, too, a repeat task that ran long after
 * that; one that submits itself without end lets others run, very many tasks wait in order of their
 * priority, and a strict task runs although its core's worker was moved away.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include <weft/progress.h>
#include <weft/source.h>
#include "base/counters.h"
#include "base/settings.h"
#include "check.h"
#include "task/task.h"
#include "topo/topo.h"

static uint64_t counter(enum weft_counter_id c)
{
	return weft_counter_sum(c);
}

/* ---- slow --------------------------------------------------------------------------------------
 */

static enum weft_task_verdict dawdles(struct weft_task *t, void *arg)
{
	uint64_t t0 = weft_clock_ns();
	while (weft_clock_ns() - t0 < 20000000) /* its own time, not another's deadline */
		weft_cpu_relax();
	return ++*(int *)arg < 3 ? WEFT_TASK_AGAIN : WEFT_TASK_DONE;
}

static void slow_is_reported(void)
{
	struct weft_task t;
	char said[4096] = "", path[] = "/tmp/weft-overload-XXXXXX";
	int n = 0, fd = mkstemp(path), err = dup(2);
	uint64_t before = counter(WEFT_CNT_TASKS_SLOW);
	CHECK(fd >= 0 && err >= 0);
	unlink(path);
	CHECK_EQ(dup2(fd, 2), 2);
	uint64_t began = weft_clock_ns();
	weft_task_init(&t, "dawdler", dawdles, &n, WEFT_TASK_REPEAT);
	weft_task_submit(&t);
	weft_task_wait(&t);
	uint64_t seconds = (weft_clock_ns() - began) / 1000000000u;
	dup2(err, 2);
	close(err);
	CHECK(pread(fd, said, sizeof said - 1, 0) > 0);
	close(fd);
	CHECK_EQ(counter(WEFT_CNT_TASKS_SLOW) - before, 3);
	uint64_t lines = 0;
	for (char *line = said; (line = strstr(line, "task dawdler ran for ")); line++)
		lines++;
	CHECK(lines >= 1 && lines <= 1 + seconds); /* one a second at most */
}

/* ---- while it runs ------------------------------------------------------------------------------
 */

static _Atomic bool x_enough;
static _Atomic int x_begun;

static enum weft_task_verdict until_told(struct weft_task *t, void *arg)
{
	atomic_fetch_add(&x_begun, 1);
	while (!atomic_load(&x_enough)) /* ends: the test has read of it */
		sched_yield();
	return WEFT_TASK_DONE;
}

static void until_said(int fd, const char *what)
{
	char said[8192];
	do { /* ends: it is said sooner or later, or this test never ends */
		ssize_t n = pread(fd, said, sizeof said - 1, 0);
		CHECK(n >= 0);
		said[n] = 0;
		sched_yield();
	} while (!strstr(said, what));
}

static void *stops(void *arg)
{
	weft_engine_stop();
	return NULL;
}

/* Says so while it runs in the background, and when the engine's stop waits for it. */
static void until_reported(const char *what, int fd, int err)
{
	char goes_on[96], stop_waits[96];
	pthread_t thread;
	snprintf(goes_on, sizeof goes_on, "%s has run for ", what);
	snprintf(stop_waits, sizeof stop_waits, "stop waits for %s, which has run for ", what);
	until_said(fd, goes_on);
	CHECK_EQ(atomic_load(&x_begun), 1);
	CHECK_EQ(pthread_create(&thread, NULL, stops, NULL), 0);
	until_said(fd, stop_waits);
	atomic_store(&x_enough, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	dup2(err, 2);
	close(err);
	close(fd);
}

static int listen_begins(int *err_p)
{
	char path[] = "/tmp/weft-overload-XXXXXX";
	int fd = mkstemp(path);
	*err_p = dup(2);
	CHECK(fd >= 0 && *err_p >= 0);
	unlink(path);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	atomic_store(&x_enough, false);
	atomic_store(&x_begun, 0);
	CHECK_EQ(dup2(fd, 2), 2);
	return fd;
}

/* One whose name is gone with it. */
static void endless_is_reported(unsigned options)
{
	struct weft_task *t = malloc(sizeof *t);
	char *name = strdup("never ends");
	uint64_t before = counter(WEFT_CNT_TASKS_SLOW);
	int err, fd = listen_begins(&err);
	CHECK(t && name);
	weft_task_init(t, name, until_told, NULL, options);
	weft_task_submit(t);
	until_reported("task never ends", fd, err);
	CHECK(counter(WEFT_CNT_TASKS_SLOW) > before);
	CHECK(weft_task_done(t));
	free(t);
	free(name);
}

static enum weft_task_verdict nothing(struct weft_task *t, void *arg)
{
	return WEFT_TASK_DONE;
}

/* The task and its name are gone when its action runs. */
static void acts(void *arg)
{
	struct weft_task *t = arg;
	free((void *)(uintptr_t)t->name);
	free(t);
	(void)until_told(NULL, NULL);
}

static void endless_action_is_reported(void)
{
	struct weft_task *t = malloc(sizeof *t);
	int err, fd = listen_begins(&err);
	CHECK(t != NULL);
	weft_task_init(t, strdup("acts"), nothing, NULL, WEFT_TASK_ONCE);
	t->on_complete = acts;
	t->on_complete_arg = t;
	weft_task_submit(t);
	until_reported("the completion action of task acts", fd, err);
}

static pthread_t poster;

static void looks(void *arg, struct weft_events *es)
{
	struct weft_event *e = weft_events_first(es);
	if (pthread_equal(pthread_self(), poster)) /* the background shall */
		return;
	(void)until_told(NULL, NULL);
	if (e)
		weft_event_complete(e, 0);
}

static void endless_callback_is_reported(void)
{
	struct weft_events_ops ops = {.name = "sticky", .poll_group = looks};
	struct weft_events *es;
	struct weft_event ev;
	int err, fd = listen_begins(&err);
	CHECK_EQ(weft_events_open(&ops, NULL, &es), WEFT_OK);
	weft_event_init(&ev, NULL, NULL);
	poster = pthread_self();
	CHECK_EQ(weft_event_post(es, &ev), WEFT_OK);
	until_reported("a callback of source sticky", fd, err);
	CHECK(weft_event_done(&ev));
	CHECK_EQ(weft_events_close(es), WEFT_OK);
}

/* ---- without end -------------------------------------------------------------------------------
 */

static long runs;

static enum weft_task_verdict submits_itself(struct weft_task *t, void *arg)
{
	runs++;
	if (!*(int *)arg)
		weft_task_submit(t);
	return WEFT_TASK_DONE;
}

static void endless_lets_others_run(void)
{
	struct weft_task t, other;
	int stop = 0;
	weft_task_init(&t, "endless", submits_itself, &stop, 0);
	weft_task_submit(&t);
	for (int i = 0; i < 1000; i++) {
		long before = runs;
		weft_engine_poll();
		CHECK(runs - before <= 32); /* a poll comes back */
	}
	for (int i = 0; i < 100; i++) {
		weft_task_init(&other, "other", nothing, NULL, 0);
		weft_task_submit(&other);
		CHECK_EQ(weft_task_wait(&other), WEFT_OK);
	}
	stop = 1;
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	CHECK(runs > 0 && runs >= 1000 / weft_topo_node(0)->leaves); /* as its place is visited */
}

/* ---- many --------------------------------------------------------------------------------------
 */

static int last_priority;
static long in_order;

static enum weft_task_verdict checks_order(struct weft_task *t, void *arg)
{
	CHECK(t->priority <= last_priority);
	last_priority = t->priority;
	in_order++;
	return WEFT_TASK_DONE;
}

static void very_many(long n)
{
	struct weft_task *t = malloc((size_t)n * sizeof *t);
	struct weft_tally y;
	CHECK(t != NULL);
	weft_tally_init(&y);
	last_priority = 1000;
	for (long i = 0; i < n; i++) {
		weft_task_init(&t[i], "many", checks_order, NULL, 0);
		t[i].priority = (int)(i * 3 / n); /* each higher than what waits already */
		t[i].tally = &y;
		CHECK(weft_task_submit(&t[i]));
	}
	CHECK_EQ(weft_tally_read(&y), 0);
	CHECK_EQ(weft_tally_wait(&y, (uint64_t)n, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(in_order, n);
	free(t);
}

/* ---- a core that is gone -----------------------------------------------------------------------
 */

static enum weft_task_verdict notes_thread(struct weft_task *t, void *arg)
{
	*(pid_t *)arg = gettid();
	return WEFT_TASK_DONE;
}

static pid_t run_strict(const cpu_set_t *set)
{
	struct weft_task t;
	pid_t ran = 0;
	weft_task_init(&t, "strict", notes_thread, &ran, WEFT_TASK_STRICT);
	t.cpus = set;
	weft_task_submit(&t);
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	return ran;
}

/* What the system does to threads of a core that goes offline, done by hand. */
static void core_is_gone(void)
{
	cpu_set_t all, first, second;
	int n = 0;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&first);
	CPU_ZERO(&second);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, n++ ? &second : &first);
	if (n < 2)
		return;
	pid_t worker = run_strict(&second);
	CHECK(worker != gettid()); /* we may run on both, so we may not run it */
	CHECK_EQ(sched_setaffinity(worker, sizeof first, &first), 0);
	CHECK_EQ(run_strict(&second), worker);
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_SLOW_TASK_MS, "2"), WEFT_OK);
	endless_is_reported(0);
	endless_is_reported(WEFT_TASK_ONCE);
	endless_is_reported(WEFT_TASK_REPEAT);
	endless_action_is_reported();
	endless_callback_is_reported();
	CHECK_EQ(weft_setting_set(WEFT_SET_SLOW_TASK_MS, "8"), WEFT_OK);
	weft_progress_set(false); /* which thread runs what is ours to say */
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	slow_is_reported();
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "error"), WEFT_OK);
	endless_lets_others_run();
	very_many(getenv("WEFT_LONG") ? 1000000 : 100000);
	core_is_gone();
	weft_engine_stop();
	return 0;
}
