/* SPDX-License-Identifier: BSD-3-Clause */
/* want.c - an operation's end is wanted though no thread waits; a thread waits where the baton does not show it. */
#include "task/wake/kick.h"
#include "task/wake/release.h"
#include "task/wake/watcher.h"

/* No thread waits, but an operation's end is wanted: arms for all. */
static void arm_for_all(struct weft_engine *e)
{
	if (weft_task_engine_self.drains)
		return; /* the watcher: looks afterwards */
	if (weft_task_engine_self.in_handler || !weft_task_baton_try_take(&e->baton)) {
		weft_task_watcher_call(e);
		return;
	}
	if (weft_task_sources_armed(e))
		(void)weft_task_sources_arm(e, weft_task_sources_level_to_leave(e, false));
	weft_task_baton_release(e, WEFT_LEAVER_WAITER, NULL);
}

void weft_task_engine_want(int n)
{
	struct weft_engine *e = &weft_task_engine;
	/* READY (start), as in engine.c. */
	if (weft_task_baton_want(&e->baton, n) &&
	    atomic_load_explicit(&e->x_running, memory_order_acquire))
		arm_for_all(e);
}

void weft_task_engine_ears(struct weft_engine *e)
{
	/* EARS -> heard (baton.h). */
	atomic_store_explicit(&e->baton.x_ears, true, memory_order_seq_cst);
	weft_task_watcher_call(e);
}
