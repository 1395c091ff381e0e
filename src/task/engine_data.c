/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_data.c - the engine's one object, and what it keeps of each thread. */
#include "task/engine_int.h"

struct weft_engine weft_task_engine = {
	.watch_fd = -1,
	.kick_fd = -1,
	.kick_timer_fd = -1,
	.park_lock = PTHREAD_MUTEX_INITIALIZER,
	.slot_lock = PTHREAD_MUTEX_INITIALIZER,
};

_Thread_local struct weft_engine_self weft_task_engine_self;
_Thread_local bool weft_task_progress_off_here;

bool weft_engine_in_handler(void)
{
	return weft_task_engine_self.in_handler != 0;
}

enum weft_runner weft_task_engine_runner(void)
{
	return weft_task_engine_self.runner;
}

bool weft_task_engine_behind(void)
{
	/* Relaxed: a hint. */
	return weft_task_engine_self.runner == WEFT_RUNNER_WATCHER &&
	       (weft_task_engine_self.holds ||
		atomic_load_explicit(&weft_task_engine.baton.x_state, memory_order_relaxed) ==
			WEFT_BATON_VACANT);
}
