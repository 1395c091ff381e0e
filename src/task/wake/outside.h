/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outside.h - tells a foreign event loop that something was found (weft/pollable.h).
 */
#ifndef WEFT_TASK_OUTSIDE_H
#define WEFT_TASK_OUTSIDE_H

#include "task/engine_int.h"

/* Something was found while an event loop of others is armed. */
/* outside_note.c: a thread has found something; the descriptor that it writes then. */
void weft_task_outside_ring(struct weft_engine *e);
void weft_task_outside_note(int fd);
static inline void weft_task_outside_tell(struct weft_engine *e)
{
	/* Relaxed: the loop that arms looks for itself afterwards. */
	if (weft_unlikely(atomic_load_explicit(&e->baton.x_outside, memory_order_relaxed)))
		weft_task_outside_ring(e);
}
void weft_task_outside_stop(void);

#endif
