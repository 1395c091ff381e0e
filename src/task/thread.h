/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.h - how a thread of the engine starts.
 */
#ifndef WEFT_TASK_THREAD_H
#define WEFT_TASK_THREAD_H

#include <pthread.h>
#include "base/base.h"

/* Before the first thread: on which cores. */
void weft_task_engine_threads_init(void);
/* A thread of the engine: no signals, its name, timer slack. */
weft_err weft_task_engine_thread(pthread_t *thread_p, void *(*run)(void *), void *arg);
bool weft_task_engine_thread_settle(const char *name); /* true: the slice is honoured */
/* The kernel's structure; of a normal thread `runtime` is its slice. */
struct weft_sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
#define WEFT_SLICE_NS 100000u /* the kernel's smallest: wakes us before others' slices end */
bool weft_task_sched_get(struct weft_sched_attr *a); /* the calling thread's */
bool weft_task_sched_set(struct weft_sched_attr *a);

#endif
