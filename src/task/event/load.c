/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.c - how many cores are ours, and how many threads want them: affinity, control group, run queues.
 *
 * Each number is looked up at most every so often, by the thread that asks then; between it is a load.
 */
#include "base/cancel.h"
#include "base/base.h"
#include "task/event/load.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_NS 1000000000u
#define RUNNING_NS 2000000u /* reading costs about 3 us: 0.15 % of a core */

/* A number and when it was looked up; relaxed, any mixture of old and new will do. */
struct known {
	_Atomic int x_value;
	_Atomic uint64_t x_until;
};

static int look_up(struct known *k, uint64_t ns, int (*read_it)(void))
{
	uint64_t now = weft_clock_ns();
	if (now >= atomic_load_explicit(&k->x_until, memory_order_relaxed)) {
		atomic_store_explicit(&k->x_until, now + ns, memory_order_relaxed);
		atomic_store_explicit(&k->x_value, read_it(), memory_order_relaxed);
	}
	return atomic_load_explicit(&k->x_value, memory_order_relaxed);
}

static struct known cpus, granted, running;
static const char *kernel_root = "";

void weft_task_load_set_root(const char *dir)
{
	kernel_root = dir;
	atomic_store_explicit(&cpus.x_until, 0, memory_order_relaxed);
	atomic_store_explicit(&granted.x_until, 0, memory_order_relaxed);
	atomic_store_explicit(&running.x_until, 0, memory_order_relaxed);
}

/* The file's beginning as a string; false: it cannot be read. */
static bool read_text(const char *name, char *text, size_t room)
{
	char path[1024];
	snprintf(path, sizeof path, "%.200s%s", kernel_root, name);
	int was = weft_cancel_off();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
	if (fd >= 0)
		close(fd);
	weft_cancel_back(was);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* What the files of one control group grant, in cores rounded up; 0: no quota. */
static int quota_at(const char *dir, bool unified)
{
	char path[768], text[64];
	long long max = 0, period = 0;
	snprintf(path, sizeof path, "%.700s/%s", dir, unified ? "cpu.max" : "cpu.cfs_quota_us");
	if (!read_text(path, text, sizeof text) || sscanf(text, "%lld %lld", &max, &period) < 1 ||
	    max <= 0)
		return 0; /* "max", -1, or no such group */
	if (!unified) {
		snprintf(path, sizeof path, "%.700s/cpu.cfs_period_us", dir);
		if (read_text(path, text, sizeof text))
			period = atoll(text);
	}
	return period > 0 ? (int)((max + period - 1) / period) : 0;
}

/* The least of a group and all above it; a namespace may show us only the root. */
static int quota_along(const char *mount, const char *group, size_t length, bool unified)
{
	char dir[700];
	int least = 0, root = snprintf(dir, sizeof dir, "%s", mount);
	if (length >= sizeof dir - (size_t)root)
		return 0;
	memcpy(dir + root, group, length);
	dir[(size_t)root + length] = 0;
	for (;;) { /* ends: a component less each turn, at the mount at the latest */
		int quota = quota_at(dir, unified);
		least = quota && (!least || quota < least) ? quota : least;
		char *last = strrchr(dir, '/');
		if (!last || last < dir + root)
			return least;
		*last = 0;
	}
}

/* Is `cpu` one of the controllers "cpu,cpuacct" of a line? */
static bool has_cpu(const char *list, size_t length)
{
	for (const char *at = list, *end = list + length; at < end;) { /* ends: a word less */
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t word = (size_t)((comma ? comma : end) - at);
		if (word == 3 && memcmp(at, "cpu", 3) == 0)
			return true;
		at += word + 1;
	}
	return false;
}

/* Our control group's quota in cores, rounded up; 0: none.  Lines are NUMBER:CONTROLLERS:GROUP. */
static int read_quota(void)
{
	char text[4096];
	int least = 0;
	if (!read_text("/proc/self/cgroup", text, sizeof text))
		return 0;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) { /* ends: a line less */
		char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
		if (!group)
			continue;
		bool unified = group == list + 1; /* version 2 names no controllers */
		if (!unified && !has_cpu(list + 1, (size_t)(group - list - 1)))
			continue;
		int quota = quota_along(unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu",
					group + 1, strlen(group + 1), unified);
		least = quota && (!least || quota < least) ? quota : least;
	}
	return least;
}

int weft_task_load_quota(void)
{
	return look_up(&granted, CPUS_NS, read_quota);
}

static int read_cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set),
	    q = weft_task_load_quota();
	if (q > 0 && q < n)
		n = q;
	return n > 0 ? n : 1;
}

/* "0.30 0.12 0.05 3/214 4711": three threads run or want to. */
static int read_running(void)
{
	char text[128];
	int n = 0;
	if (!read_text("/proc/loadavg", text, sizeof text) ||
	    sscanf(text, "%*f %*f %*f %d/", &n) != 1)
		return 0;
	return n;
}

uint64_t weft_task_load_queued_ns(void)
{
	char text[128];
	unsigned long long ran, waited;
	return read_text("/proc/thread-self/schedstat", text, sizeof text) &&
			       sscanf(text, "%llu %llu", &ran, &waited) == 2
		       ? waited
		       : 0;
}

int weft_task_load_cpus(void)
{
	return look_up(&cpus, CPUS_NS, read_cpus);
}

int weft_task_load_running(void)
{
	return look_up(&running, RUNNING_NS, read_running);
}
