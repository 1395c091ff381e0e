/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of living and ended threads all add up, and blocks of ended threads are used again. */
#include "base/counters.h"
#include "check.h"

#include <pthread.h>

static void *counts(void *arg)
{
	for (int i = 0; i < 1000; i++)
		weft_count(WEFT_CNT_PARKS, 2);
	return arg;
}

int main(void)
{
	for (int round = 0; round < 50; round++) {
		pthread_t t[4];
		for (int i = 0; i < 4; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, counts, NULL), 0);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
	}
	CHECK_EQ(weft_counter_sum(WEFT_CNT_PARKS), 50 * 4 * 2000);
	return 0;
}
