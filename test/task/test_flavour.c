/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes progress: calls alone (explicit), another runtime's hooks, a server that spins, or
 * threads that sleep, within their budget and on the cores given to them.  Each is seen in the
 * counters, which another process can read.
 */
#include <dirent.h>
#include <string.h>
#include <unistd.h>
#include <weft/hooks.h>
#include <weft/stats.h>
#include "base/counters.h"
#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/queue/weft_task.h"

static void set(enum weft_setting_id id, const char *text)
{
	CHECK_EQ(weft_setting_set(id, text), WEFT_OK);
}

static int threads_called(const char *prefix)
{
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	if (!d)
		SKIP("no /proc");
	for (struct dirent *e; (e = readdir(d));) {
		char path[300], name[32] = "";
		snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
		FILE *f = fopen(path, "r");
		if (f && fgets(name, sizeof name, f))
			n += strncmp(name, prefix, strlen(prefix)) == 0;
		if (f)
			fclose(f);
	}
	closedir(d);
	return n;
}

static enum weft_task_verdict count(struct weft_task *t, void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
	return WEFT_TASK_DONE;
}

static struct weft_task task;
static _Atomic int x_runs;

static void submit(void)
{
	atomic_store(&x_runs, 0);
	weft_task_init(&task, "counts", count, (void *)&x_runs, 0);
	weft_task_submit(&task);
}

static void until_run(void)
{
	while (!weft_task_done(&task)) /* ends: another thread runs it, or this test never ends */
		sched_yield();
	CHECK_EQ(atomic_load(&x_runs), 1);
}

static void explicit_only(void)
{
	set(WEFT_SET_FLAVOUR, "explicit");
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	CHECK_EQ(threads_called("weft-"), 0);
	submit();
	CHECK_EQ(atomic_load(&x_runs), 0);
	/* A look goes past some queues; a few looks do not. */
	while (!weft_engine_poll())
		CHECK_EQ(atomic_load(&x_runs), 0);
	CHECK_EQ(atomic_load(&x_runs), 1);
	submit();
	CHECK_EQ(weft_task_wait(&task), WEFT_OK);
	weft_progress_set(false);
	weft_progress_set(true);
	CHECK_EQ(threads_called("weft-"), 0);
	weft_engine_stop();
}

static void hooks(void)
{
	set(WEFT_SET_FLAVOUR, "hooks");
	CHECK_EQ(weft_hook_idle(), 0); /* nothing runs yet */
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	CHECK_EQ(threads_called("weft-"), 0);
	uint64_t before = weft_task_stat("poll_hook");
	submit();
	CHECK_EQ(weft_hook_idle(), 1);
	submit();
	CHECK_EQ(weft_hook_tick(), 1);
	submit();
	while (!weft_hook_entry()) /* ends: a look goes past some queues, a few do not */
		;
	submit();
	while (!weft_hook_switch()) /* the same, and one look per microsecond */
		;
	CHECK_EQ(atomic_load(&x_runs), 1);
	CHECK(weft_task_stat("poll_hook") >= before + 4);
	weft_engine_stop();
}

static void server(void)
{
	set(WEFT_SET_FLAVOUR, "server");
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	submit();
	until_run();
	submit();
	CHECK_EQ(weft_task_wait(&task), WEFT_OK);
	while (!weft_task_stat("poll_server"))
		sched_yield();
	/* Ends: a new thread has its creator's name until it has its own. */
	while (threads_called("weft-server") != 1)
		sched_yield();
	/* Off: it sleeps, and calls do it. */
	weft_progress_set(false);
	submit();
	CHECK_EQ(weft_task_wait(&task), WEFT_OK);
	weft_progress_set(true);
	submit();
	until_run();
	weft_engine_stop();
	CHECK_EQ(threads_called("weft-server"), 0);
}

static enum weft_task_verdict burn(struct weft_task *t, void *arg)
{
	uint64_t end = weft_clock_ns() + 2000000;
	while (weft_clock_ns() < end)
		weft_cpu_relax();
	return atomic_load((_Atomic int *)arg) ? WEFT_TASK_DONE : WEFT_TASK_AGAIN;
}

static void budget(void)
{
	_Atomic int stop = 0;
	struct weft_task t;
	set(WEFT_SET_FLAVOUR, "threads");
	set(WEFT_SET_PROGRESS_BUDGET, "1");
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	uint64_t before = weft_task_stat("budget_pauses");
	weft_task_init(&t, "burns", burn, (void *)&stop, 0);
	weft_task_submit(&t);
	while (weft_task_stat("budget_pauses") < before + 2) /* ends: it uses more than 1 % */
		usleep(1000);
	CHECK(weft_task_stat("background_ns") > 0);
	atomic_store(&stop, 1);
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
	weft_engine_stop();
	set(WEFT_SET_PROGRESS_BUDGET, "100");
}

static _Atomic int x_cpu;

static enum weft_task_verdict where(struct weft_task *t, void *arg)
{
	atomic_store(&x_cpu, sched_getcpu());
	return WEFT_TASK_DONE;
}

static void cores(void)
{
	cpu_set_t mine;
	char text[16];
	int cpu = 0;
	CHECK_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &mine))
			cpu = i;
	snprintf(text, sizeof text, "%d", cpu);
	set(WEFT_SET_PROGRESS_CPUS, text);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (int i = 0; i < 5; i++) {
		struct weft_task t;
		weft_task_init(&t, "where", where, NULL, 0);
		weft_task_submit(&t);
		while (!weft_task_done(&t))
			sched_yield();
		CHECK_EQ(atomic_load(&x_cpu), cpu);
	}
	weft_engine_stop();
	set(WEFT_SET_PROGRESS_CPUS, "");
}

/* By default no thread looks periodically, and what comes is run all the same. */
static void no_period(void)
{
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	uint64_t timer = weft_task_stat("poll_timer");
	for (int i = 0; i < 20; i++) {
		submit();
		until_run();
	}
	CHECK_EQ(weft_task_stat("poll_timer"), timer);
	weft_engine_stop();
}

/* A fixed period goes on although nothing comes. */
static void periods(void)
{
	set(WEFT_SET_IDLE_WORKERS, "1");
	set(WEFT_SET_IDLE_PERIOD_US, "100");
	set(WEFT_SET_TIMER_POLL_MS, "1");
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	uint64_t idle = weft_task_stat("poll_idle"), timer = weft_task_stat("poll_timer");
	while (weft_task_stat("poll_timer") < timer + 3)
		usleep(1000);
	/* All cores may be busy with others: then an idle worker does not run, and that is right.
	 */
	for (int i = 0; i < 20 && weft_task_stat("poll_idle") == idle; i++)
		usleep(1000);
	submit();
	until_run();
	weft_engine_stop();
	set(WEFT_SET_IDLE_PERIOD_US, "-1");
	set(WEFT_SET_TIMER_POLL_MS, "0");
}

static void stats_are_there(void)
{
	struct weft_stat s[200];
	size_t n = weft_task_stats(s, 200);
	CHECK(n > 20 && n < 200);
	for (size_t i = 0; i < n; i++)
		CHECK(s[i].name && s[i].help);
	CHECK_EQ(weft_task_stats(NULL, 0), n);
	CHECK_EQ(weft_task_stat("no such thing"), 0);
	CHECK(weft_task_stat("tasks_run") > 5);
}

int main(void)
{
	explicit_only();
	hooks();
	server();
	budget();
	cores();
	no_period();
	periods();
	stats_are_there();
	return 0;
}
