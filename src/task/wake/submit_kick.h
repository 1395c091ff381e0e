/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * submit_kick.h - which thread looks at a task that has just been published, and how it hears of it.
 *
 * A holder that polls looks by itself.  Else the thread that the baton names is kicked, unless
 * something makes that unnecessary (kick_filter.h), or the task may wait a moment (batch_hold.h).
 *
 * Callers   a thread that has pushed a task.  any: each thread of ours may run it, else only the
 *           watcher shall look.
 * Order     the push, seq_cst, comes before.
 * Promise   a thread looks at the queues after the push: at once, or, LATER, within about 50 us.
 */
#ifndef WEFT_SUBMIT_KICK_H
#define WEFT_SUBMIT_KICK_H

#include "task/engine_int.h"

enum weft_haste {
	WEFT_HASTE_AT_ONCE,
	WEFT_HASTE_LATER, /* the submitter most likely waits in a moment, and runs it itself */
	WEFT_HASTE_SPARE, /* the submitter has other things to do: an idle core that is awake first */
};

/* submit_kick.c: no kick of that key is pending. */
void weft_task_submit_kick_at_once(struct weft_engine *e, enum weft_kick kick, uint64_t key,
				   bool any);
void weft_task_submit_kick_later(struct weft_engine *e, bool any);
void weft_task_submit_kick_spare(struct weft_engine *e);

static inline void weft_task_submit_kick_now(struct weft_engine *e, bool any)
{
	enum weft_kick kick = weft_task_baton_submit_target(&e->baton);
	uint64_t key;
	if (kick != WEFT_KICK_NONE && !weft_task_kick_filter_already(&e->kick_filter, kick, &key))
		weft_task_submit_kick_at_once(e, kick, key, any);
}

static inline void weft_task_submit_kick(struct weft_engine *e, enum weft_haste haste, bool any)
{
	if (weft_likely(haste == WEFT_HASTE_AT_ONCE))
		weft_task_submit_kick_now(e, any);
	else if (haste == WEFT_HASTE_SPARE && any)
		weft_task_submit_kick_spare(e);
	else
		weft_task_submit_kick_later(e, any);
}

#endif
