/* SPDX-License-Identifier: BSD-3-Clause */
/* home.c - moves a rank to its own part of the host's cores. */
#include "task/waiting/home.h"
#include "base/assert.h"
#include "base/counters.h"
#include "base/mechanism.h"
#include "task/event/load.h"

/* All of the thread that called set, but for the flag, which other threads leave false. */
static _Thread_local bool rank_thread;
static cpu_set_t all_cores, home;
static uint64_t looked_ns, since_ns, queued_ns;

void weft_task_home_part(const cpu_set_t *cores, int index, int ranks, cpu_set_t *part_p)
{
	int n = CPU_COUNT(cores), at = 0;
	weft_assert(index >= 0 && index < ranks && ranks <= n);
	int first = (int)((long)index * n / ranks), end = (int)((long)(index + 1) * n / ranks);
	CPU_ZERO(part_p);
	for (int cpu = 0; at < end; cpu++) { /* ends: the mask has that many */
		if (!CPU_ISSET(cpu, cores))
			continue;
		if (at++ >= first)
			CPU_SET(cpu, part_p);
	}
}

void weft_task_home_set(int index, int ranks, int cores)
{
	rank_thread = false;
	/* A mask smaller than what the ranks share: bound. */
	if (ranks < 2 || index < 0 || index >= ranks || !weft_mechanism_on(WEFT_MECH_HOME) ||
	    sched_getaffinity(0, sizeof all_cores, &all_cores) || ranks > CPU_COUNT(&all_cores) ||
	    CPU_COUNT(&all_cores) != cores)
		return;
	weft_task_home_part(&all_cores, index, ranks, &home);
	looked_ns = since_ns = 0;
	rank_thread = true;
}

bool weft_task_home_go(void)
{
	cpu_set_t now;
	if (!rank_thread)
		return false;
	if (sched_getaffinity(0, sizeof now, &now) || !CPU_EQUAL(&now, &all_cores) ||
	    sched_setaffinity(0, sizeof home, &home)) {
		rank_thread = false;
		return false;
	}
	if (sched_setaffinity(0, sizeof all_cores, &all_cores))
		rank_thread = false; /* the cores of the job have changed meanwhile */
	weft_count(WEFT_CNT_HOME_MOVES, 1);
	return true;
}

void weft_task_home_look(void)
{
	if (!rank_thread)
		return;
	uint64_t now = weft_clock_ns();
	if (now - looked_ns < WEFT_HOME_LOOK_NS)
		return;
	looked_ns = now;
	int cpu = sched_getcpu();
	if (cpu < 0 || CPU_ISSET(cpu, &home)) {
		since_ns = 0;
		return;
	}
	uint64_t queued = weft_task_load_queued_ns(), waited = queued - queued_ns;
	bool moves = since_ns && waited * WEFT_HOME_QUEUED_SHARE >= now - since_ns;
	since_ns = now;
	queued_ns = queued;
	if (moves) {
		since_ns = 0;
		(void)weft_task_home_go();
	}
}
