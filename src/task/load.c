/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.c - how many cores are ours, and who else wants them: affinity, control group, run queues.
 *
 * Each number is looked up at most every so often, by whoever asks then; between it is a load.
 */
#include "base/cancel.h"
#include "base/base.h"
#include "task/load.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_NS 1000000000u
#define RUNNING_NS 2000000u /* reading costs about 3 us: 0.15 % of a core */
#define PRESSED_NS 500000000u
#define PRESSED_PERCENT 20.0 /* of the last ten seconds somebody waited for a core */

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

/* The file's beginning as a string; false: it cannot be read. */
static bool slurp(const char *path, char *text, size_t room)
{
	int was = weft_cancel_off();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
	if (fd >= 0)
		close(fd);
	weft_cancel_back(was);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* Our control group's quota in cores, rounded up; 0: none. */
int weft_load_quota(void)
{
	char text[512], path[768];
	long long max = 0, period = 0;
	if (slurp("/proc/self/cgroup", text, sizeof text)) {
		char *mine = strstr(text, "0::"); /* version 2 */
		if (mine) {
			mine += 3;
			mine[strcspn(mine, "\n")] = 0;
			snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", mine);
			if ((slurp(path, text, sizeof text) ||
			     slurp("/sys/fs/cgroup/cpu.max", text, sizeof text)) &&
			    sscanf(text, "%lld %lld", &max, &period) == 2 && max > 0 && period > 0)
				return (int)((max + period - 1) / period);
		}
	}
	if (slurp("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", text, sizeof text) &&
	    (max = atoll(text)) > 0 &&
	    slurp("/sys/fs/cgroup/cpu/cpu.cfs_period_us", text, sizeof text) &&
	    (period = atoll(text)) > 0)
		return (int)((max + period - 1) / period);
	return 0;
}

static int read_cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set), q = weft_load_quota();
	if (q > 0 && q < n)
		n = q;
	return n > 0 ? n : 1;
}

/* "0.30 0.12 0.05 3/214 4711": three threads run or want to. */
static int read_running(void)
{
	char text[128];
	int n = 0;
	if (!slurp("/proc/loadavg", text, sizeof text) || sscanf(text, "%*f %*f %*f %d/", &n) != 1)
		return 0;
	return n;
}

static int read_pressed(void)
{
	char text[256];
	double avg10 = 0;
	return slurp("/proc/pressure/cpu", text, sizeof text) &&
	       sscanf(text, "some avg10=%lf", &avg10) == 1 && avg10 > PRESSED_PERCENT;
}

int weft_load_cpus(void)
{
	static struct known k;
	return look_up(&k, CPUS_NS, read_cpus);
}

int weft_load_running(void)
{
	static struct known k;
	return look_up(&k, RUNNING_NS, read_running);
}

bool weft_load_pressed(void)
{
	static struct known k;
	return look_up(&k, PRESSED_NS, read_pressed);
}
