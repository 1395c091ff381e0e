/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watcher.h - starts, stops and calls the watcher.
 */
#ifndef WEFT_TASK_WATCHER_H
#define WEFT_TASK_WATCHER_H

#include "task/engine_int.h"

weft_err weft_task_watcher_start(struct weft_engine *e);
void weft_task_watcher_stop(struct weft_engine *e);
/* kick.c: makes the watcher look up wherever it is. */
void weft_task_watcher_call(struct weft_engine *e);
/* Wakes again the thread that was meant when a kick has woken us instead.  Not asleep in the set
 * ourselves. */
void weft_task_watcher_redirect(struct weft_engine *e);

#endif
