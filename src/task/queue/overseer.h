/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overseer.h - reports tasks, actions and callbacks that run for too long.
 */
#ifndef WEFT_TASK_OVERSEER_H
#define WEFT_TASK_OVERSEER_H

#include "task/engine_int.h"
#include "task/queue/running.h"

/* Tasks that run for too long are reported while they do. */
extern _Atomic bool weft_task_overseer_x_asleep;
struct weft_running *weft_task_overseer_join(void); /* the calling thread's place; never NULL */
void weft_task_overseer_wake(void);
static inline void weft_task_overseer_begun(void)
{
	weft_compiler_barrier(); /* its membarrier does the rest */
	/* Relaxed: either we see it asleep, or its last look sees us. */
	if (weft_unlikely(atomic_load_explicit(&weft_task_overseer_x_asleep, memory_order_relaxed)))
		weft_task_overseer_wake();
}
/* Something else than a task's function begins and ends in the calling thread. */
uint32_t weft_task_overseer_begin(enum weft_running_what what, const char *name);
void weft_task_overseer_end(uint32_t run);
void weft_task_overseer_allow(struct weft_engine *e); /* the next task starts it */
void weft_task_overseer_stop_begins(struct weft_engine *e);
void weft_task_overseer_stop(void);

#endif
