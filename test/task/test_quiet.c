/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With nothing happening no thread wakes up and none uses the processor: with a receive posted and
 * a waiter asleep, with several waiters, with no thread waiting, and with background progress off. The
 * kernel's own counts of each thread's switches and run time are the proof.
 */
#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include "base/counters.h"
#include "fake_source.h"

static struct fake_source net;

struct usage {
	long switches;
	unsigned long long run_ns;
	int threads;
};

static long field_of(const char *path, const char *name)
{
	char line[256];
	long value = 0;
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0)
			value = atol(line + strlen(name));
	if (f)
		fclose(f);
	return value;
}

/* Threads that were there before the engine: a sanitizer's own. */
static long foreign[8];

static bool is_foreign(long tid)
{
	for (int i = 0; i < 8; i++)
		if (foreign[i] == tid)
			return true;
	return false;
}

static void note_foreign(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;
	for (struct dirent *e; d && n < 8 && (e = readdir(d));)
		if (atol(e->d_name))
			foreign[n++] = atol(e->d_name);
	if (d)
		closedir(d);
}

/* What all threads but the caller have used so far. */
static struct usage others_usage(void)
{
	struct usage u = {0};
	DIR *d = opendir("/proc/self/task");
	if (!d)
		SKIP("no /proc");
	for (struct dirent *e; (e = readdir(d));) {
		char path[300];
		if (atol(e->d_name) == 0 || is_foreign(atol(e->d_name)))
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
		u.switches += field_of(path, "voluntary_ctxt_switches:");
		snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
		FILE *f = fopen(path, "r");
		unsigned long long ns = 0;
		if (f && fscanf(f, "%llu", &ns) == 1)
			u.run_ns += ns;
		if (f)
			fclose(f);
		u.threads++;
	}
	closedir(d);
	return u;
}

static bool quiet(const char *what)
{
	usleep(100000); /* spins end, the watcher sits down */
	long polls = atomic_load(&net.x_polls);
	struct usage a = others_usage();
	usleep(200000);
	struct usage b = others_usage();
	polls = atomic_load(&net.x_polls) - polls;
	printf("%s: %d threads, %ld switches, %llu ns, %ld polls\n", what, b.threads,
	       b.switches - a.switches, b.run_ns - a.run_ns, polls);
	return b.threads == a.threads && b.switches == a.switches && b.run_ns == a.run_ns &&
	       polls == 0;
}

/* On a machine that is busy with others something may end late: but not a hundred times. */
static void expect_quiet(const char *what)
{
	for (int i = 0; i < 100; i++)
		if (quiet(what))
			return;
	CHECK(!"quiet");
}

struct box {
	struct fake_msg msg;
	struct weft_completion done;
};

static void signals(void *arg)
{
	weft_wait_completion_signal(arg);
}

static void *waits(void *arg)
{
	struct box *b = arg;
	weft_task_engine_wait(&b->done);
	return NULL;
}

static void with_waiters(int n, const char *what)
{
	static struct box box[8];
	pthread_t t[8];
	for (int i = 0; i < n; i++) {
		weft_wait_completion_init(&box[i].done);
		box[i].msg.fn = signals;
		box[i].msg.arg = &box[i].done;
		CHECK_EQ(pthread_create(&t[i], NULL, waits, &box[i]), 0);
	}
	expect_quiet(what);
	/* Each still wakes when its message comes, however long the quiet was. */
	for (int i = 0; i < n; i++) {
		fake_send(&net, &box[i].msg);
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		if (i + 1 < n)
			expect_quiet("one fewer");
	}
}

/* Unsolicited traffic is served although no thread waits or polls. */
static void *counts(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
	return NULL;
}

static void handler_counts(void *arg)
{
	counts(arg);
}

static void unsolicited(void)
{
	_Atomic int x_seen = 0;
	for (int i = 0; i < 20; i++) {
		struct fake_msg m = {.fn = handler_counts, .arg = &x_seen};
		fake_send(&net, &m);
		uint64_t t0 = weft_clock_ns();
		while (atomic_load(&x_seen) != i + 1) {
			CHECK(weft_clock_ns() - t0 < 60000000000u);
			usleep(i * 50);
		}
	}
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer has a thread of its own that wakes up");
#endif
	note_foreign(); /* the main thread, which measures, too */
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	fake_add(&net, "fake", true);
	expect_quiet("no thread waits");
	unsolicited();
	expect_quiet("after unsolicited messages");
	with_waiters(1, "one waiter");
	expect_quiet("it has gone");
	with_waiters(3, "three waiters");
	weft_progress_set(false);
	expect_quiet("progress off");
	with_waiters(1, "one waiter, progress off");
	with_waiters(3, "three waiters, progress off");
	weft_progress_set(true);
	expect_quiet("progress on again");
	unsolicited();
	fake_remove(&net);
	weft_engine_stop();
	return 0;
}
