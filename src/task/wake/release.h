/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * release.h - giving the baton back, with the duties that follow from having held it.
 *
 * A thread that submits a task while the baton is held kicks no thread: it relies on the holder.  A
 * bell that rang while the holder polled has woken no thread.  So the holder, once the baton is
 * vacant, kicks the thread that the baton names (weft_task_baton_leave), and looks at the queues
 * where no other thread will: where all bells are armed, so that each thread sleeps until something
 * rings, or where a kick for a task may have woken the holder in place of the watcher.
 *
 * Callers   the holder, once; it then holds nothing.
 * Leaver    WAITER, SLEEPER: a thread of the application that goes back to it, without or after a
 *           sleep in the watch set; a kick that can wait is left to the timer (kick_timer.h).
 *           POLLER: any thread that polls on, or after which no watcher comes: kicks at once.
 *           WATCHER: the watcher; looks at everything.
 *           TICKER: the watcher, which ticks next: its tick looks.
 * Order     the baton is vacant before the look at the queues, and a submission is published before
 *           its look at the baton: the submitter finds it vacant, or the look finds the task.
 * Cost      WAITER with the bells put away: the store of weft_task_baton_leave and two loads.
 * Checked   test/task/test_model_wake.c, test_model_baton.c, test_went_by.c.
 */
#ifndef WEFT_RELEASE_H
#define WEFT_RELEASE_H

#include "task/engine_int.h"
#include "task/wake/arm.h"

enum weft_leaver {
	WEFT_LEAVER_WAITER,
	WEFT_LEAVER_SLEEPER,
	WEFT_LEAVER_POLLER,
	WEFT_LEAVER_WATCHER,
	WEFT_LEAVER_TICKER,
};

/* What follows when the baton has been left with that kick. */
void weft_task_baton_released(struct weft_engine *e, enum weft_kick kick, enum weft_leaver leaver,
			      const void *site);

/* site: where the caller waits, for what was learned there; NULL: it does not matter. */
static inline void weft_task_baton_release(struct weft_engine *e, enum weft_leaver leaver,
					   const void *site)
{
	weft_task_baton_check_held(&e->baton);
	enum weft_kick kick = weft_task_baton_leave(&e->baton);
	if (weft_unlikely(kick != WEFT_KICK_NONE || leaver != WEFT_LEAVER_WAITER ||
			  weft_task_sources_armed(e)))
		weft_task_baton_released(e, kick, leaver, site);
}

#endif
