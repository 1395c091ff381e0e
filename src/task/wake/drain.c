/* SPDX-License-Identifier: BSD-3-Clause */
/* drain.c - the watcher's look at everything, again and again until nothing more is there. */
#include "task/wake/budget.h"
#include "task/wake/idle.h"
#include "task/wake/watcher_int.h"

void weft_task_watcher_drain(struct weft_engine *e)
{
	weft_assert(weft_task_engine_self.runner == WEFT_RUNNER_WATCHER);
	weft_assert(!weft_task_engine_self.drains && !weft_task_engine_self.in_handler);
	unsigned rounds = 0;
	uint64_t begun = weft_cycles();
	weft_task_engine_self.drains = true;
	do {
		rounds++;
		weft_task_engine_self.submitted = false;
		if (weft_cycles() - begun > 1000 * weft_cycles_per_us()) {
			(void)weft_task_budget_pause();
			begun = weft_cycles();
		}
	} while ((weft_task_engine_round(e, WEFT_ROUND_FULL) || weft_task_engine_self.submitted) &&
		 weft_task_watcher_wanted(e));
	weft_task_engine_self.drains = false;
	weft_count(WEFT_CNT_POLL_WATCHER, rounds);
	/* Relaxed: seen late, it is woken a look later. */
	uint64_t wish = atomic_load_explicit(&e->x_wish_ns, memory_order_relaxed);
	if (weft_unlikely(wish != 0)) {
		atomic_store_explicit(&e->x_wish_ns, 0, memory_order_relaxed);
		weft_task_idle_stay(wish);
	}
	if (rounds > 1 || wish)
		weft_task_idle_event();
}
