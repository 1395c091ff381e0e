/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A real-time thread that waits on a core for a holder there of a lower scheduling class lets it
 * have the core: by sched_yield alone it would look until the system's limit on such threads.
 */
#include <pthread.h>
#include <sched.h>
#include "base/backoff.h"
#include "check.h"

#define SECTION 200000u /* turns that the one inside needs the core for */

static _Atomic bool x_inside, x_asked;

static void bind_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof set, &set), 0);
}

static void *insider(void *arg)
{
	bind_to(*(int *)arg);
	atomic_store(&x_inside, true);
	while (!atomic_load(&x_asked))
		sched_yield();
	for (volatile unsigned i = 0; i < SECTION; i++)
		;
	atomic_store(&x_inside, false);
	return NULL;
}

int main(void)
{
	int cpu = sched_getcpu();
	unsigned turns = 0;
	pthread_t thread;
	CHECK(cpu >= 0);
	bind_to(cpu);
	CHECK_EQ(pthread_create(&thread, NULL, insider, &cpu), 0);
	while (!atomic_load(&x_inside))
		sched_yield();
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}))
		SKIP("no right to real-time priority here");
	atomic_store(&x_asked, true);
	while (atomic_load(&x_inside))
		weft_backoff(&turns);
	printf("%u turns\n", turns);
	CHECK(turns > 0 && turns < 10000); /* 10^6 by sched_yield alone, until the limit */
	pthread_join(thread, NULL);
	return 0;
}
