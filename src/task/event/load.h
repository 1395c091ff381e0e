/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.h - how many cores are ours, and how many threads want them.
 *
 * Callers   any thread.  A load, and rarely, at most every so often, a file of the kernel's.
 */
#ifndef WEFT_LOAD_H
#define WEFT_LOAD_H

#include "base/base.h"

int weft_task_load_cpus(void);    /* that we may use: affinity and control group */
int weft_task_load_quota(void);   /* the control group's, rounded up; 0: none */
int weft_task_load_running(void); /* threads that run or want to, of the whole system */
/* How long the calling thread has waited for a core in all, runnable; 0: the kernel does not say.
 * A file each time, some 4 us. */
uint64_t weft_task_load_queued_ns(void);

/* For tests: the folder in which /proc and /sys are; forgets what was known.  dir stays the
 * caller's and there. */
void weft_task_load_set_root(const char *dir);

#endif
