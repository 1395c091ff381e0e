/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * budget.c - what the engine's threads may cost, and what they have cost.
 *
 * A bucket of nanoseconds: it fills with the stated share of one core, holds what 100 ms bring, and
 * each thread takes out what it has used.  A thread that finds it overdrawn pauses until it is full
 * to zero again.  The server is exempt: its core was given to it.
 */
#include "base/assert.h"
#include "base/counters.h"
#include "base/settings.h"
#include "task/engine_int.h"
#include "task/wake/budget.h"

#include <time.h>

#define BURST_NS 100000000ll
#define PAUSE_MAX_NS 100000000ll

/* All relaxed: sums of many small amounts, exact to one thread's last amount. */
static _Atomic int64_t x_left_ns;    /* in the bucket */
static _Atomic uint64_t x_filled_ns; /* the clock when it was filled last */
static _Atomic uint64_t x_used_ns;
static _Atomic int64_t x_percent; /* an idle worker of before may still read */

void weft_task_budget_init(void)
{
	int64_t percent = weft_setting_int(WEFT_SET_PROGRESS_BUDGET);
	atomic_store_explicit(&x_percent, percent, memory_order_relaxed);
	atomic_store_explicit(&x_left_ns, BURST_NS * percent / 100, memory_order_relaxed);
	atomic_store_explicit(&x_filled_ns, weft_clock_ns(), memory_order_relaxed);
}

void weft_task_budget_given(void)
{
	/* Relaxed: as in spend. */
	atomic_store_explicit(&x_percent, weft_setting_int(WEFT_SET_PROGRESS_BUDGET),
			      memory_order_relaxed);
}

uint64_t weft_task_budget_used_ns(void)
{
	return atomic_load_explicit(&x_used_ns, memory_order_relaxed);
}

static uint64_t thread_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void refill_budget(uint64_t now)
{
	uint64_t last = atomic_load_explicit(&x_filled_ns, memory_order_relaxed);
	if (now - last < 1000000 ||
	    !atomic_compare_exchange_strong_explicit(&x_filled_ns, &last, now, memory_order_relaxed,
						     memory_order_relaxed))
		return;
	uint64_t ns = now - last > 10u * (uint64_t)BURST_NS ? 10u * (uint64_t)BURST_NS : now - last;
	int64_t percent = atomic_load_explicit(&x_percent, memory_order_relaxed);
	int64_t more = (int64_t)ns * percent / 100, full = BURST_NS * percent / 100;
	int64_t left = atomic_fetch_add_explicit(&x_left_ns, more, memory_order_relaxed) + more;
	if (left > full)
		atomic_fetch_sub_explicit(&x_left_ns, left - full, memory_order_relaxed);
}

int64_t weft_task_budget_spend(void)
{
	static _Thread_local uint64_t before;
	uint64_t used = thread_ns(), ns = used - before;
	before = used;
	atomic_fetch_add_explicit(&x_used_ns, ns, memory_order_relaxed);
	int64_t percent = atomic_load_explicit(&x_percent, memory_order_relaxed);
	if (!percent)
		return 0;
	refill_budget(weft_clock_ns());
	int64_t left = atomic_fetch_sub_explicit(&x_left_ns, (int64_t)ns, memory_order_relaxed) -
		       (int64_t)ns;
	if (left >= 0)
		return 0;
	weft_assert(left < 0 && percent > 0);
	int64_t pause = -left * 100 / percent;
	return pause > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause;
}

bool weft_task_budget_pause(void)
{
	int64_t ns = weft_task_budget_spend();
	if (ns < 1000000) /* the bucket is filled no finer than that */
		return false;
	weft_count(WEFT_CNT_BUDGET_PAUSES, 1);
	struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns - 1};
	nanosleep(&ts, NULL);
	return true;
}
