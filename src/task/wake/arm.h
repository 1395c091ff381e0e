/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arm.h - brings all sources to a level (base/arm_level.h); how armed they are.
 */
#ifndef WEFT_TASK_ARM_H
#define WEFT_TASK_ARM_H

#include "task/engine_int.h"

/* The caller holds the baton. */
weft_err weft_task_sources_arm(struct weft_engine *e, enum weft_arm_level level);
/* For stress tests: asserts what is always so of the baton and each slot.  Any thread. */
void weft_task_sources_check(struct weft_engine *e);
/* The level for a thread that goes away: for all only if another thread waits, or an operation's
 * end is wanted.  soon: the thread is likely to be back before a wake-up could pay. */
enum weft_arm_level weft_task_sources_level_to_leave(struct weft_engine *e, bool soon);
static inline enum weft_arm_level weft_task_sources_level(const struct weft_engine *e)
{
	/* Relaxed: the holder's own word, or taken back by a woken thread, which arms again. */
	return (enum weft_arm_level)atomic_load_explicit(&e->baton.x_level, memory_order_relaxed);
}
static inline bool weft_task_sources_armed(const struct weft_engine *e)
{
	return weft_task_sources_level(e) != WEFT_ARM_OFF;
}
static inline bool weft_task_sources_unchecked(const struct weft_engine *e)
{
	return weft_arm_is_unchecked(weft_task_sources_level(e));
}

#endif
