/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - threads bound to one place each, for tasks that must run there and now.
 */
#ifndef WEFT_TASK_WORKER_H
#define WEFT_TASK_WORKER_H

#include <stdio.h>
#include "base/base.h"

/* Parked threads bound to one place each, for tasks that must run there and now. */
weft_err weft_task_workers_create(void);
void weft_task_workers_stop(void);
/* Makes it look; starts it if need be.  True: there is no such thread. */
bool weft_task_worker_ring(int leaf);
void weft_task_workers_describe(FILE *out);

#endif
