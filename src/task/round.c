/* SPDX-License-Identifier: BSD-3-Clause */
/* round.c - one round of everything: the queues, then the sources; and whether tasks lie there. */
#include "task/engine_int.h"
#include "task/queue/tqueue.h"
#include "task/wake/outside.h"
#include "task/wake/source_int.h"

int weft_task_engine_round(struct weft_engine *e, enum weft_round_kind kind)
{
	int found = kind == WEFT_ROUND_FULL
			    ? weft_task_tqueues_visit_all()
			    : weft_task_tqueues_round(weft_task_tqueue_here(), true);
	if (found)
		weft_task_outside_tell(e);
	return found + weft_task_sources_round(e, kind);
}

bool weft_task_engine_tasks_waiting(struct weft_engine *e)
{
	return weft_task_tqueues_submitted();
}

bool weft_task_engine_tasks_left(struct weft_engine *e)
{
	return weft_task_tqueues_left() || weft_task_repeat_awaited(&e->repeat);
}
