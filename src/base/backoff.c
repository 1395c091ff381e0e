/* SPDX-License-Identifier: BSD-3-Clause */
/* backoff.c - when looking has not helped. */
#include "base/backoff.h"

#include <sched.h>
#include <time.h>
#include "base/cancel.h"

void weft_backoff_slow(unsigned turns)
{
	struct timespec nap = {.tv_nsec = 50000};
	if (turns < WEFT_BACKOFF_LOOKS + WEFT_BACKOFF_YIELDS) {
		sched_yield();
		return;
	}
	int was = weft_cancel_off();
	nanosleep(&nap, NULL);
	weft_cancel_back(was);
}
