/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that the invariants of workers (ult/check.c) hold at any moment while threads are created,
 * yield, sleep, are stolen, wait and end.  In builds with asserts; elsewhere it is a stress test. */
#include <stdatomic.h>
#include <weft/ult.h>
#include "check.h"
#include "ult/ult_int.h"

enum { WORKERS = 3, ROUNDS = 40, EACH = 30 };

static weft_ult_mutex mutex = WEFT_ULT_MUTEX_INIT;
static weft_ult_sem sem = WEFT_ULT_SEM_INIT(0);
static long value; /* under mutex */
static _Atomic int x_ended;

static void *works(void *arg)
{
	long i = (long)arg;
	for (int turn = 0; turn < 5; turn++) {
		weft_ult_yield();
		CHECK_EQ(weft_ult_mutex_lock(&mutex), WEFT_OK);
		value++;
		CHECK_EQ(weft_ult_mutex_unlock(&mutex), WEFT_OK);
		if (turn == i % 5)
			weft_ult_sleep_ns(10000 * (uint64_t)(i % 7));
	}
	if (i % 2)
		weft_ult_sem_post(&sem);
	else
		CHECK_EQ(weft_ult_sem_wait(&sem), WEFT_OK);
	atomic_fetch_add(&x_ended, 1);
	return arg;
}

int main(void)
{
	weft_ult *t[EACH];
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	CHECK_EQ(weft_ult_start(WORKERS), WEFT_OK);
	for (int round = 0; round < ROUNDS; round++) {
		for (long i = 0; i < EACH; i++) {
			a.priority = i % 11 == 0;
			a.worker = i % 4 ? WEFT_ULT_ANY_WORKER : 0;
			CHECK_EQ(weft_ult_create(&t[i], &a, works, (void *)i), WEFT_OK);
		}
		while (atomic_load(&x_ended) < (round + 1) * EACH) { /* ends: all have ended */
			weft_ult_check();
			weft_ult_sleep_ns(20000);
		}
		for (int i = 0; i < EACH; i++)
			CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
		weft_ult_check();
	}
	CHECK_EQ(value, (long)ROUNDS * EACH * 5);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	return 0;
}
