/* SPDX-License-Identifier: BSD-3-Clause */
/* hooks.c - spare moments of another runtime. */
#include <weft/hooks.h>

#include "base/counters.h"
#include "task/engine_int.h"
#include "task/waiting/app_work.h"

static int poll_by_hook(enum weft_round_kind kind)
{
	struct weft_engine *e = &weft_task_engine;
	/* READY (engine.c). */
	if (weft_task_engine_self.in_handler ||
	    !atomic_load_explicit(&e->x_running, memory_order_acquire))
		return 0;
	weft_count(WEFT_CNT_POLL_HOOK, 1);
	int found = weft_task_engine_round(e, kind) + weft_task_app_work_run();
	/* Relaxed, as in weft_engine_poll: the watcher only asks whether it moved. */
	uint32_t rounds = atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
	atomic_store_explicit(&e->x_rounds, rounds + 1, memory_order_relaxed);
	return found;
}

int weft_hook_idle(void)
{
	return poll_by_hook(WEFT_ROUND_FULL);
}

int weft_hook_switch(void)
{
	static _Thread_local uint64_t last;
	uint64_t now = weft_cycles();
	if (now - last < weft_cycles_per_us())
		return 0;
	last = now;
	return poll_by_hook(WEFT_ROUND_QUICK);
}

int weft_hook_tick(void)
{
	return poll_by_hook(WEFT_ROUND_FULL);
}

int weft_hook_entry(void)
{
	return poll_by_hook(WEFT_ROUND_QUICK);
}
