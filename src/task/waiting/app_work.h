/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app_work.h - work that only application threads may do, or the watcher when it is overdue.
 */
#ifndef WEFT_TASK_APP_WORK_H
#define WEFT_TASK_APP_WORK_H

#include "base/base.h"

/* What only application threads may do.  Called outside every mask; returns how much. */
int weft_task_app_work_run(void);
bool weft_task_app_work_waiting(void);
/* The watcher: in what time it must run what was left for a while. */
uint64_t weft_task_app_work_due_ns(void);
void weft_task_app_work_run_due(void);

#endif
