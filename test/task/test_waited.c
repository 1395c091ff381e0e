/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that has waited for a word in memory ends that as a wait: what has come is handled, and
 * the bells that such waits put away are armed again when it computes.
 */
#include "fake_source.h"
#include "task/engine_int.h"
#include "task/wake/arm.h"

static struct fake_source net;
static _Atomic int handled; /* by the thread that polls: this one, or the watcher */

static void handle(void *arg)
{
	(void)arg;
	atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
}

static bool armed(void)
{
	return atomic_load(&net.x_armed) && weft_task_sources_armed(&weft_task_engine);
}

static void until_armed(void)
{
	uint64_t begun = weft_clock_ns();
	while (!armed()) { /* ends: the watcher arms, or the test has failed */
		CHECK(weft_clock_ns() - begun < 20000000000u);
		usleep(1000);
	}
}

/* A message that rings no bell is handled by the end of a wait, unless another thread polls then. */
static void comes(void)
{
	static struct fake_msg message = {.fn = handle};
	int before = atomic_load(&handled);
	uint64_t begun = weft_clock_ns();
	weft_mpsc_push(&net.inbox, &message.node);
	while (atomic_load(&handled) == before) {
		weft_task_engine_waited();
		CHECK(weft_clock_ns() - begun < 20000000000u);
	}
}

int main(void)
{
	weft_task_engine_waited(); /* nothing runs */
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	fake_add(&net, "fake", true);
	for (int i = 0; i < 10; i++) {
		until_armed();
		comes();
		for (int j = 0; j < 1000 && armed(); j++)
			weft_task_engine_waited();
		comes();
	}
	until_armed();
	CHECK_EQ(atomic_load(&handled), 20);
	fake_remove(&net);
	weft_engine_stop();
	return 0;
}
