/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late.h - how late something was noticed whose time is known: timers, doorbells, wake-ups.
 *
 * Callers   any thread.  Cost: two counters.
 */
#ifndef WEFT_LATE_H
#define WEFT_LATE_H

#include "base/counters.h"

static inline void weft_task_late(uint64_t ns)
{
	weft_count(ns < 10000       ? WEFT_CNT_LATE_10US
		   : ns < 100000    ? WEFT_CNT_LATE_100US
		   : ns < 1000000   ? WEFT_CNT_LATE_1MS
		   : ns < 10000000u ? WEFT_CNT_LATE_10MS
				    : WEFT_CNT_LATE_MORE,
		   1);
}

#endif
