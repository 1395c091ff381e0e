/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says about the processor is read rightly, and acted upon: quotas of control
 * groups of both versions, wherever on the way up they are set, threads that run.  The kernel's
 * files are made up here.  Where they leave less than a core per rank, or for a while after the
 * core was taken from us, a waiter does not spin.
 */
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "check.h"
#include "task/engine_int.h"
#include "task/waiting/spin.h"
#include "task/event/load.h"
#include "task/waiting/turn.h"

#define MS UINT64_C(1000000)

static char root[128];

/* A file below our root, and the folders on its way; text NULL: no such file. */
static void put(const char *name, const char *text)
{
	char path[512];
	int n = snprintf(path, sizeof path, "%s/%s", root, name);
	CHECK(n < (int)sizeof path);
	for (char *c = path + strlen(root) + 1; (c = strchr(c, '/')); *c++ = '/') {
		*c = 0;
		(void)mkdir(path, 0755);
	}
	if (!text) {
		(void)unlink(path);
		return;
	}
	FILE *f = fopen(path, "w");
	CHECK(f != NULL);
	CHECK(fputs(text, f) >= 0);
	CHECK_EQ(fclose(f), 0);
}

static int quota(const char *groups)
{
	put("proc/self/cgroup", groups);
	weft_task_load_set_root(root);
	return weft_task_load_quota();
}

static void quotas(void)
{
	CHECK_EQ(quota(NULL), 0);
	CHECK_EQ(quota("0::/job/rank\n"), 0); /* groups that are not there */
	put("sys/fs/cgroup/job/cpu.max", "300000 100000\n");
	CHECK_EQ(quota("0::/job/rank\n"), 3); /* of the group above */
	put("sys/fs/cgroup/job/rank/cpu.max", "max 100000\n");
	CHECK_EQ(quota("0::/job/rank\n"), 3);
	put("sys/fs/cgroup/job/rank/cpu.max", "150000 100000\n");
	CHECK_EQ(quota("0::/job/rank\n"), 2); /* rounded up */
	put("sys/fs/cgroup/job/rank/cpu.max", "900000 100000\n");
	CHECK_EQ(quota("0::/job/rank\n"), 3); /* the least on the way up */
	put("sys/fs/cgroup/cpu.max", "1000 100000\n");
	CHECK_EQ(quota("0::/job/rank\n"), 1);
	CHECK_EQ(quota("0::/\n"), 1);
	put("sys/fs/cgroup/cpu.max", "nonsense\n");
	CHECK_EQ(quota("0::/\n"), 0);
	put("sys/fs/cgroup/cpu.max", NULL);
	/* Version 1, its controllers in any company; other controllers' groups are none of ours. */
	put("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "250000\n");
	put("sys/fs/cgroup/cpu/old/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(quota("5:cpu,cpuacct:/old\n4:memory:/job\n"), 3);
	CHECK_EQ(quota("5:cpuacct:/old\n4:cpuset:/old\n"), 0);
	CHECK_EQ(quota("9:cpuacct,cpu:/old\n0::/job\n"), 3);
	put("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "-1\n");
	CHECK_EQ(quota("5:cpu,cpuacct:/old\n"), 0);
	/* Longer than any name, lines without sense. */
	char line[3000] = "0::/";
	memset(line + 4, 'x', sizeof line - 5);
	CHECK_EQ(quota(line), 0);
	CHECK_EQ(quota("\n:\n::\n0\n0:\n0::\n\n0::/job/rank"), 3);
}

static void cores(void)
{
	cpu_set_t all;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CHECK_EQ(quota(NULL), 0);
	CHECK_EQ(weft_task_load_cpus(), CPU_COUNT(&all));
	put("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
	CHECK_EQ(quota("0::/job\n"), 1);
	CHECK_EQ(weft_task_load_cpus(), 1);
}

static int threads(const char *loadavg)
{
	put("proc/loadavg", loadavg);
	weft_task_load_set_root(root);
	return weft_task_load_running();
}

static void others(void)
{
	CHECK_EQ(threads(NULL), 0);
	CHECK_EQ(threads("0.30 0.12 0.05 17/214 4711\n"), 17);
	CHECK_EQ(threads("what\n"), 0);
}

/* ---- what a waiter makes of it ------------------------------------------------------------- */

static uint64_t spins(void)
{
	return weft_task_spin_plan(&root).ns;
}

static void a_quota_ends_spinning(void)
{
	put("sys/fs/cgroup/job/cpu.max", "100000 100000\n");
	CHECK_EQ(quota("0::/job\n"), 1);
	weft_task_engine_set_local_ranks(2, 2);
	CHECK_EQ(spins(), 0);
	CHECK(weft_task_spin_crowded());
	put("sys/fs/cgroup/job/cpu.max", "200000 100000\n");
	weft_task_load_set_root(root);
	weft_task_engine_set_local_ranks(2, 2);
	CHECK(spins() > 0);
	CHECK(!weft_task_spin_crowded());
	put("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
	weft_task_load_set_root(root);
	weft_task_engine_set_local_ranks(1, 2); /* one rank has what there is of a core */
	CHECK(spins() > 0);
}

/* A thread that was never asked before counts as one that lost its core. */
static void *loses_its_core(void *arg)
{
	weft_task_spin_gap(weft_cycles_per_us() * 1000000);
	return arg;
}

/* Two such gaps within 25 ms are a suspicion; after three sleeps a place no longer spins first. */
static void lose_the_core(void)
{
	do { /* ends: all comes within that time */
		pthread_t t[2];
		for (int i = 0; i < 2; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, loses_its_core, NULL), 0);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
		for (int i = 0; i < 3 && weft_task_spin_preempted(); i++) {
			weft_task_spin_slept(&root, 0);
			while (weft_task_turn_left_ns()) /* ends: time passes */
				;
		}
	} while (spins());
}

static void after(uint64_t ns)
{
	struct timespec ts = {0, (long)ns};
	while (nanosleep(&ts, &ts)) /* ends: time passes */
		;
}

/* The threads that saw strangers have ended, so no thread confirms that they are still there. */
static void a_suspicion_ends(void)
{
	CHECK_EQ(quota(NULL), 0);
	weft_task_engine_set_local_ranks(1, 2);
	CHECK(spins() > 0);
	lose_the_core();
	while (!spins()) /* ends: 50 ms later */
		after(10 * MS);
}

static void clean(void)
{
	char rm[160];
	snprintf(rm, sizeof rm, "rm -rf '%s'", root);
	(void)!system(rm);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(root, sizeof root, "%.90s/weft-load-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(root) != NULL);
	atexit(clean);
	quotas();
	cores();
	others();
	weft_task_spin_init();
	a_quota_ends_spinning();
	a_suspicion_ends();
	return 0;
}
