/* SPDX-License-Identifier: BSD-3-Clause */
/* turn.c - when a waiter's turn ends, and the slice with which it sleeps. */
#include "base/assert.h"
#include "task/waiting/turn.h"
#include "task/engine_int.h"
#include "task/thread.h"

#include <sched.h>

static _Thread_local uint64_t begun;

void weft_task_turn_begins(void)
{
	begun = weft_clock_ns();
}

uint64_t weft_task_turn_left_ns(void)
{
	uint64_t since = weft_clock_ns() - begun;
	return since < WEFT_TURN_NS ? WEFT_TURN_NS - since : 0;
}

uint64_t weft_task_turn_sleeps(void)
{
	struct weft_sched_attr a;
	if (!weft_task_sched_get(&a) || (a.policy != SCHED_OTHER && a.policy != SCHED_BATCH) ||
	    a.runtime <= WEFT_SLICE_NS)
		return 0;
	weft_assert(a.runtime > WEFT_SLICE_NS);
	uint64_t own = a.runtime;
	a.runtime = WEFT_SLICE_NS;
	return weft_task_sched_set(&a) ? own : 0;
}

void weft_task_turn_wakes(uint64_t slice_ns)
{
	struct weft_sched_attr a;
	/* Read anew: its nice value may have changed meanwhile. */
	if (!slice_ns || !weft_task_sched_get(&a))
		return;
	a.runtime = slice_ns;
	(void)weft_task_sched_set(&a);
}
