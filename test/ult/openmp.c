/* SPDX-License-Identifier: BSD-3-Clause */
/* User-level threads beside OpenMP: its threads create, signal and join some while others block;
 * and a user-level thread has a parallel region of its own while its like go on. */
#include <omp.h>
#include <stdatomic.h>
#include <weft/ult.h>
#include "check.h"

#define TEAM 3
#define PIECES 40
#define REGIONS 5

static weft_ult_sem full = WEFT_ULT_SEM_INIT(0);
static _Atomic long x_sum;

/* Blocks until an OpenMP thread posts. */
static void *adds(void *arg)
{
	CHECK_EQ(weft_ult_sem_wait(&full), WEFT_OK);
	atomic_fetch_add(&x_sum, (long)arg);
	return arg;
}

static void threads_of_a_team(void)
{
	weft_ult *t[PIECES];
	void *got;
	atomic_store(&x_sum, 0);
#pragma omp parallel for num_threads(TEAM) schedule(static, 1)
	for (long i = 0; i < PIECES; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, adds, (void *)i), WEFT_OK);
	CHECK_EQ(atomic_load(&x_sum), 0); /* all of them wait */
#pragma omp parallel for num_threads(TEAM) schedule(dynamic)
	for (long i = 0; i < PIECES; i++)
		weft_ult_sem_post(&full);
#pragma omp parallel for num_threads(TEAM) schedule(dynamic) private(got)
	for (long i = 0; i < PIECES; i++) { /* not by its creator */
		CHECK_EQ(weft_ult_join(t[i], &got), WEFT_OK);
		CHECK((long)got == i);
	}
	CHECK_EQ(atomic_load(&x_sum), PIECES * (PIECES - 1) / 2);
}

static _Atomic long x_turns;
static _Atomic bool x_over;

static void *takes_turns(void *arg)
{
	while (!atomic_load(&x_over)) {
		atomic_fetch_add(&x_turns, 1);
		weft_ult_yield();
	}
	return arg;
}

/* It stays on its worker, whose kernel thread is the team's first. */
static void *has_regions(void *arg)
{
	long *sum_p = arg, sum = 0;
	for (int r = 0; r < REGIONS; r++) {
		long before = atomic_load(&x_turns);
#pragma omp parallel for num_threads(TEAM) reduction(+ : sum)
		for (long i = 0; i < 1000; i++)
			sum += i;
		weft_ult_yield(); /* outside: the other threads here run now */
		while (atomic_load(&x_turns) == before)
			weft_ult_yield();
	}
	*sum_p = sum;
	return arg;
}

static void region_of_a_thread(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t, *other[2];
	long sum = 0;
	for (int i = 0; i < 2; i++) {
		a.worker = i;
		CHECK_EQ(weft_ult_create(&other[i], &a, takes_turns, NULL), WEFT_OK);
	}
	a.worker = 0;
	a.stack_size = 256 << 10;
	CHECK_EQ(weft_ult_create(&t, &a, has_regions, &sum), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	CHECK_EQ(sum, REGIONS * 499500);
	atomic_store(&x_over, true);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_ult_join(other[i], NULL), WEFT_OK);
}

int main(void)
{
	CHECK_EQ(weft_ult_start(2), WEFT_OK);
	for (int i = 0; i < REGIONS; i++)
		threads_of_a_team();
	region_of_a_thread();
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	return 0;
}
