/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h - what every bench needs: clock, pinning, statistics, memory, work that takes a known
 * time, rows.
 *
 * Plain C and POSIX, so that one source compiles for each MPI and without any.  A bench prints rows
 * "case,metric,unit,value" on stdout, one value per run; `weft bench` runs it several times and
 * makes minimum, median and maximum of the values.
 */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BENCH_BLOCKS_MAX 64

/* Microseconds of CLOCK_MONOTONIC. */
static inline double bench_now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

/* The calling thread asks for the kernel's shortest slice, as weft's own threads do, so that it wakes before others'
 * slices end; kernels before 6.12 ignore it. */
static inline void bench_ask_short_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = {.size = sizeof a, .policy = SCHED_OTHER, .runtime = 100000};
	(void)syscall(SYS_sched_setattr, 0, &a, 0);
}

/* Binds the calling thread, and all that it will start, to the rank-th core it may use. */
static inline void bench_pin(int rank)
{
	cpu_set_t may, one;
	if (sched_getaffinity(0, sizeof(may), &may) != 0 || CPU_COUNT(&may) < 2)
		return;
	int nth = rank % CPU_COUNT(&may);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &may) && nth-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
			return;
		}
	}
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Sorts v; for an even number of values the mean of the middle two. */
static inline double bench_median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), bench_compare);
	return n == 0 ? 0 : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* This process: pages in memory, and the tables for them. */
static inline long bench_memory_kib(void)
{
	char line[128];
	long kib = 0, n;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &n) == 1 || sscanf(line, "VmPTE: %ld", &n) == 1)
			kib += n;
	if (f)
		fclose(f);
	return kib;
}

/* "8 B", "64 KiB", "1 MiB" */
static inline const char *bench_size(size_t bytes, char *text, size_t room)
{
	if (bytes >= 1u << 20 && bytes % (1u << 20) == 0)
		snprintf(text, room, "%zu MiB", bytes >> 20);
	else if (bytes >= 1u << 10 && bytes % (1u << 10) == 0)
		snprintf(text, room, "%zu KiB", bytes >> 10);
	else
		snprintf(text, room, "%zu B", bytes);
	return text;
}

/* One result.  Flushed at once: a later case may hang, and its run be killed. */
static inline void bench_row(const char *name, const char *metric, const char *unit, double value)
{
	printf("%s,%s,%s,%.6g\n", name, metric, unit, value);
	fflush(stdout);
}

/* Says on stderr what is wrong with the command line, and ends. */
static inline void bench_usage(const char *prog, const char *arg, const char *usage)
{
	fprintf(stderr, "%s: what is '%s'? usage: %s %s\n", prog, arg, prog, usage);
	exit(2);
}

/* Memory that is there: touched, and aligned to a page. */
static inline char *bench_alloc(size_t bytes)
{
	void *p = NULL;
	size_t room = (bytes + 4095) & ~(size_t)4095;
	if (posix_memalign(&p, 4096, room ? room : 4096) != 0) {
		fprintf(stderr, "bench: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	memset(p, 1, room ? room : 4096);
	return p;
}

/* ---- computing --------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define BENCH_KEEP(x) __asm__ volatile("" : "+x"(x))
#elif defined(__aarch64__)
#define BENCH_KEEP(x) __asm__ volatile("" : "+w"(x))
#else
#define BENCH_KEEP(x) __asm__ volatile("" : "+m"(x))
#endif

/* `turns` dependent multiplications: touches no memory, and takes longer when the core is shared.
 */
static inline double bench_compute(long turns)
{
	double x = 1.0;
	for (long i = 0; i < turns; i++) {
		x = x * 1.0000001 + 1e-9;
		/* Keeps the compiler from folding the loop. */
		BENCH_KEEP(x);
	}
	return x;
}

/* How many turns take `us` microseconds on this core, now; the least disturbed of seven tries. */
static inline long bench_turns(double us)
{
	double best = 1e30;
	const long probe = 200000;
	for (int i = 0; i < 7; i++) {
		double t = bench_now_us();
		bench_compute(probe);
		t = bench_now_us() - t;
		if (t < best)
			best = t;
	}
	return (long)(us * (double)probe / best) + 1;
}

#endif
