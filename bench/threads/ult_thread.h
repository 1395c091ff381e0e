/* SPDX-License-Identifier: BSD-3-Clause */
/* ult_thread.h - a thread of either kind, user-level or the kernel's, and how ult.c counts. */
#ifndef WEFT_BENCH_ULT_THREAD_H
#define WEFT_BENCH_ULT_THREAD_H

#include "bench.h"
#include <pthread.h>
#include <semaphore.h>
#include <weft/ult.h>

#define BLOCKS 15

static int plain, quick; /* --pthreads, --quick */
static double block[BENCH_BLOCKS_MAX];
static long turns; /* in a block */

static double now_ns(void)
{
	return bench_now_us() * 1e3;
}

static void row(const char *name, double ns)
{
	bench_row(name, "time", "ns", ns);
}

struct thread {
	weft_ult *ult;
	pthread_t plain;
	sem_t sem; /* a plain one parks here */
	void *(*fn)(void *);
	void *arg;
};

static void start(struct thread *t, void *(*fn)(void *), void *arg, int worker)
{
	t->fn = fn;
	t->arg = arg;
	if (!plain) {
		struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
		a.worker = worker;
		a.stack_size = 4096;
		if (weft_ult_create(&t->ult, &a, fn, arg))
			exit(1);
		return;
	}
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 10);
	if (worker >= 0) {
		cpu_set_t may, one;
		sched_getaffinity(0, sizeof(may), &may);
		int nth = worker % CPU_COUNT(&may);
		CPU_ZERO(&one);
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &may) && nth-- == 0)
				CPU_SET(cpu, &one);
		pthread_attr_setaffinity_np(&a, sizeof(one), &one);
	}
	sem_init(&t->sem, 0, 0);
	if (pthread_create(&t->plain, &a, fn, arg))
		exit(1);
	pthread_attr_destroy(&a);
}

static void end(struct thread *t)
{
	if (plain)
		pthread_join(t->plain, NULL);
	else
		weft_ult_join(t->ult, NULL);
}

static void park(struct thread *me)
{
	if (plain)
		sem_wait(&me->sem);
	else
		weft_ult_park();
}

static void unpark(struct thread *t)
{
	if (plain)
		sem_post(&t->sem);
	else
		weft_ult_unpark(t->ult);
}

#endif
