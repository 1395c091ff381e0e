/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The homes of a host's ranks (waiting/home.h) share out all cores without overlap, at least one each.  A rank that goes home
 * runs there with the mask that it had; one that has been bound, outnumbers the cores or is alone never moves, nor does another
 * thread, nor a thread that the program has bound meanwhile; at home it stays.
 */
#include "task/waiting/home.h"
#include <pthread.h>
#include "base/counters.h"
#include "base/mechanism.h"
#include "base/settings.h"
#include "check.h"

static cpu_set_t all;

static void parts_cover_the_cores(void)
{
	for (int cores = 1; cores <= 40; cores++) {
		cpu_set_t mask;
		CPU_ZERO(&mask);
		for (int i = 0; i < cores; i++)
			CPU_SET(3 * i + 1, &mask); /* with holes */
		for (int ranks = 1; ranks <= cores; ranks++) {
			cpu_set_t sum, part, both;
			int n = 0;
			CPU_ZERO(&sum);
			for (int i = 0; i < ranks; i++) {
				weft_task_home_part(&mask, i, ranks, &part);
				CHECK(CPU_COUNT(&part) >= cores / ranks);
				CHECK(CPU_COUNT(&part) <= (cores + ranks - 1) / ranks);
				CPU_AND(&both, &sum, &part);
				CHECK_EQ(CPU_COUNT(&both), 0);
				CPU_OR(&sum, &sum, &part);
				n += CPU_COUNT(&part);
			}
			CHECK_EQ(n, cores);
			CHECK(CPU_EQUAL(&sum, &mask));
		}
	}
}

static bool mask_is(const cpu_set_t *want)
{
	cpu_set_t now;
	CHECK_EQ(sched_getaffinity(0, sizeof now, &now), 0);
	return CPU_EQUAL(&now, want);
}

/* On a busy machine the kernel may move it on at once. */
static void goes_home(int index, int ranks)
{
	cpu_set_t part;
	weft_task_home_part(&all, index, ranks, &part);
	weft_task_home_set(index, ranks, CPU_COUNT(&all));
	int there = 0;
	for (int i = 0; i < 1000 && !there; i++) {
		CHECK(weft_task_home_go());
		there = CPU_ISSET(sched_getcpu(), &part);
		CHECK(mask_is(&all));
	}
	CHECK(there);
}

static void *moves(void *arg)
{
	*(bool *)arg = weft_task_home_go();
	return NULL;
}

static void other_threads_stay(void)
{
	pthread_t t;
	bool moved = true;
	CHECK_EQ(pthread_create(&t, NULL, moves, &moved), 0);
	pthread_join(t, NULL);
	CHECK(!moved);
}

static void some_ranks_stay(void)
{
	int n = CPU_COUNT(&all);
	uint64_t before = weft_counter_sum(WEFT_CNT_HOME_MOVES);
	weft_task_home_set(0, 1, n); /* alone */
	CHECK(!weft_task_home_go());
	weft_task_home_set(n, n + 1, n); /* more ranks than cores */
	CHECK(!weft_task_home_go());
	weft_task_home_set(0, n, n + 1); /* bound */
	CHECK(!weft_task_home_go());
	weft_task_home_set(0, n, n);
	cpu_set_t one;
	weft_task_home_part(&all, n - 1, n, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
	CHECK(!weft_task_home_go()); /* the program has bound it */
	CHECK(mask_is(&one));
	CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
	CHECK(!weft_task_home_go()); /* and does not wonder any more */
	weft_task_home_look();
	CHECK_EQ(weft_counter_sum(WEFT_CNT_HOME_MOVES), before);
}

int main(void)
{
	CHECK_EQ(weft_mechanisms_init(), WEFT_OK);
	parts_cover_the_cores();
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	int n = CPU_COUNT(&all);
	if (n < 2)
		return 77;
	for (int i = 0; i < n && i < 8; i++)
		goes_home(i, n);
	other_threads_stay();
	some_ranks_stay();
	return 0;
}
