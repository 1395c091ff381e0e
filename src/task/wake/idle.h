/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.h - idle workers: how many, where, and for how long they keep a core awake.
 */
#ifndef WEFT_TASK_IDLE_H
#define WEFT_TASK_IDLE_H

#include <stdio.h>
#include "base/base.h"

/* The places of idle workers: `given` of them, or (-1) one per place of the level, at
 * most `spare`; returns how many. */
int weft_task_idle_spread(const char *level, int given, int spare, int *place_p, int room);
bool weft_task_idle_bind(int place); /* the calling thread; false: it may go anywhere */

/* Called by the watcher alone, after it found something, and at the end. */
void weft_task_idle_size(int ranks, int cpus);
void weft_task_idle_given(void); /* any thread: idle_period_us, anew */
void weft_task_idle_event(void);
void weft_task_idle_stay(uint64_t ns); /* for that long, at least, after the next event */
bool weft_task_idle_wanted(void);      /* are there to be any? */
void weft_task_idle_stop(void);
/* How long the next spin lasts, after one that something came into, or nothing. */
uint64_t weft_task_idle_next_ns(uint64_t ns, uint64_t cost_ns, bool paid);
void weft_task_idle_describe(FILE *out);

#endif
