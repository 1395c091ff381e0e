/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A holder of the baton falls asleep while a repeat task is submitted, and while a thread begins to
 * wait for one (task/queue/repeat.h), in every order: the holder counts it, or is kicked.
 */
#include "model/explore.h"
#include "task/queue/repeat.h"

static struct weft_baton baton;
static struct weft_repeat repeat;
static _Atomic int x_pushed;
static bool counted, kicked; /* the explorer's: no order of their own */

static void setup_with(uint32_t queued)
{
	memset((void *)&baton, 0, sizeof baton);
	memset((void *)&repeat, 0, sizeof repeat);
	atomic_store_explicit(&baton.x_state, WEFT_BATON_HELD, memory_order_relaxed);
	atomic_store_explicit(&repeat.x_queued, queued, memory_order_relaxed);
	atomic_store_explicit(&x_pushed, 0, memory_order_relaxed);
	counted = kicked = false;
}

static void none_queued(void)
{
	setup_with(0);
}

static void one_queued(void)
{
	setup_with(1);
}

/* As sleep_armed() in holder.c: which nap? */
static void falls_asleep(void)
{
	weft_task_baton_sleep(&baton);
	counted = weft_task_repeat_some(&repeat);
}

static void falls_asleep_unless_awaited(void)
{
	weft_task_baton_sleep(&baton);
	counted = weft_task_repeat_awaited(&repeat);
}

/* Looks first, and says so then. */
static void looks_and_sleeps(void)
{
	counted = weft_task_repeat_some(&repeat);
	weft_task_baton_sleep(&baton);
}

static void looks_for_waits_and_sleeps(void)
{
	counted = weft_task_repeat_awaited(&repeat);
	weft_task_baton_sleep(&baton);
}

static void push(void)
{
	atomic_exchange_explicit(&x_pushed, 1, memory_order_seq_cst);
}

/* As weft_task_tqueue_push() and kick_for_task(). */
static void submits(void)
{
	weft_task_repeat_queued(&repeat);
	push();
	kicked = weft_task_baton_submit_target(&baton) == WEFT_KICK_SET;
}

/* As if the poller that takes it out of the submission queue counted it, without a kick. */
static void counts_late(void)
{
	push();
	kicked = weft_task_baton_submit_target(&baton) == WEFT_KICK_SET;
	weft_task_repeat_queued(&repeat);
}

/* A run: the task stays counted. */
static void runs_it_again(void)
{
}

/* As if it left the count for the time of its run, and without a kick afterwards. */
static void uncounts_while_it_runs(void)
{
	weft_task_repeat_left(&repeat);
	weft_task_repeat_queued(&repeat);
}

static void waits(void)
{
	kicked = weft_task_repeat_wait_begin(&repeat, &baton);
}

static void looks_before_it_counts(void)
{
	kicked = atomic_load_explicit(&baton.x_state, memory_order_seq_cst) == WEFT_BATON_ASLEEP;
	(void)weft_task_repeat_wait_begin(&repeat, &baton);
}

static void counted_or_kicked(void)
{
	MODEL_CHECK(counted || kicked);
}

int main(void)
{
	static const struct model models[] = {
		{"submitted while the holder falls asleep",
		 none_queued,
		 {falls_asleep, submits},
		 counted_or_kicked,
		 8,
		 .must = {"weft_task_repeat_some l", "weft_task_baton_sleep x"}},
		{"awaited while the holder falls asleep",
		 one_queued,
		 {falls_asleep_unless_awaited, waits},
		 counted_or_kicked,
		 8,
		 .must = {"weft_task_repeat_wait_begin x", "weft_task_repeat_wait_begin l",
			  "weft_task_repeat_awaited l", "weft_task_baton_sleep x"}},
		{"runs while the holder falls asleep",
		 one_queued,
		 {falls_asleep, runs_it_again},
		 counted_or_kicked,
		 8},
		{"is not counted while it runs",
		 one_queued,
		 {falls_asleep, uncounts_while_it_runs},
		 counted_or_kicked,
		 8,
		 .broken = true},
		{"is counted by its poller",
		 none_queued,
		 {falls_asleep, counts_late},
		 counted_or_kicked,
		 8,
		 .broken = true},
		{"the holder looks before it sleeps",
		 none_queued,
		 {looks_and_sleeps, submits},
		 counted_or_kicked,
		 8,
		 .broken = true},
		{"the holder looks for waits before it sleeps",
		 one_queued,
		 {looks_for_waits_and_sleeps, waits},
		 counted_or_kicked,
		 8,
		 .broken = true},
		{"the waiter looks before it counts",
		 one_queued,
		 {falls_asleep_unless_awaited, looks_before_it_counts},
		 counted_or_kicked,
		 8,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
