/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source_int.h - one round over the sources, and what sources with requests of their own (event.c) ask
 * of their slot.
 */
#ifndef WEFT_TASK_SOURCE_INT_H
#define WEFT_TASK_SOURCE_INT_H

#include "task/engine_int.h"

int weft_task_sources_round(struct weft_engine *e, enum weft_round_kind kind);
void weft_task_sources_describe(FILE *out);
/*
 * For sources that have requests of their own (event.c).  enter waits until the source's
 * mask is ours, a few us, and makes the caller a handler of it; within a callback of that source it
 * nests, within one of another source it is not allowed: two could wait for each other.
 */
void weft_task_source_enter(struct weft_source *src, struct weft_source_inside *inside);
void weft_task_source_exit(struct weft_source *src, struct weft_source_inside *inside);
/* Looks at it now, or makes the holder of its mask look once more. */
void weft_task_source_look(struct weft_source *src);
/* Mask held: does the engine rely on its bell?  Must the timer look after it?  Is anything wanted?
 */
bool weft_task_source_armed_locked(const struct weft_source *src);
void weft_task_source_timed_locked(struct weft_source *src, bool timed);
void weft_task_source_idle_locked(struct weft_source *src, bool idle);
void weft_task_source_rare_locked(struct weft_source *src, bool rare);

#endif
