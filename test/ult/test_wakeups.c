/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random wake-ups between threads of three workers and a plain one: none is lost, none is counted
 * twice.  WEFT_LONG=1: 10^8 of them.  test_wakeups [SEED [COUNT]]
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <weft/ult.h>
#include "base/settings.h"
#include "check.h"
#include "ult/stack/san.h"

#define THREADS 100
#define BALLS 10

static weft_ult *thread[THREADS];
static _Atomic uint32_t x_balls[THREADS]; /* that lie before each */
static _Atomic uint64_t x_thrown;
static uint64_t count, caught_by[THREADS];
static _Atomic int x_over;
static uint32_t seed;
static weft_ult_sem outside = WEFT_ULT_SEM_INIT(0), all_done = WEFT_ULT_SEM_INIT(0);

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* To any thread; now and then by way of the plain thread. */
static void throws(uint32_t *state)
{
	if (atomic_fetch_add(&x_thrown, 1) >= count) {
		weft_ult_sem_post(&all_done); /* this ball is out */
		return;
	}
	uint32_t to = next(state) % THREADS;
	if (next(state) % 256 == 0) {
		weft_ult_sem_post(&outside);
		return;
	}
	atomic_fetch_add(&x_balls[to], 1);
	weft_ult_unpark(thread[to]);
}

static void *catches(void *arg)
{
	long me = (long)arg;
	uint32_t state = seed + (uint32_t)me * 2654435761u;
	while (!atomic_load(&x_over)) {
		while (atomic_load(&x_balls[me])) {
			atomic_fetch_sub(&x_balls[me], 1);
			caught_by[me]++;
			throws(&state);
			if (next(&state) % 8 == 0)
				weft_ult_yield();
		}
		if (next(&state) % 64 == 0)
			(void)weft_ult_park_for(next(&state) % 100000);
		else
			weft_ult_park();
	}
	return NULL;
}

/* The plain one: throws what comes to it back. */
static uint64_t throw_back(uint32_t *state)
{
	uint64_t n = 0;
	int out = 0;
	while (out < BALLS) { /* ends: every ball is out once COUNT have been thrown */
		if (weft_ult_sem_wait_for(&outside, 1000000) == WEFT_OK) {
			n++;
			throws(state);
		}
		while (weft_ult_sem_try(&all_done) == WEFT_OK)
			out++;
	}
	return n;
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? (uint32_t)atol(argv[1]) : 20161121;
	count = argc > 2              ? (uint64_t)atoll(argv[2])
		: getenv("WEFT_LONG") ? 100000000
		: WEFT_ULT_SANITIZED  ? 5000
				      : 200000;
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	printf("seed %u, %llu wake-ups\n", seed, (unsigned long long)count);
	CHECK_EQ(weft_ult_start(3), WEFT_OK);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(weft_ult_create(&thread[i], NULL, catches, (void *)i), WEFT_OK);
	uint32_t state = seed;
	for (int i = 0; i < BALLS; i++)
		throws(&state);
	uint64_t sum = throw_back(&state);
	atomic_store(&x_over, 1);
	for (int i = 0; i < THREADS; i++)
		weft_ult_unpark(thread[i]);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(weft_ult_join(thread[i], NULL), WEFT_OK);
		CHECK_EQ(atomic_load(&x_balls[i]), 0);
		sum += caught_by[i];
	}
	printf("%llu caught\n", (unsigned long long)sum);
	CHECK_EQ((long long)sum, (long long)count);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	return 0;
}
