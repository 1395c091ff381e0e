/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft_task.h - what the engine keeps in a task: weft/task.h says what a task is.
 *
 * The public structure has words without a meaning; here is their meaning.
 */
#ifndef WEFT_WEFT_TASK_H
#define WEFT_WEFT_TASK_H

#include <assert.h>
#include <weft/task.h>
#include "base/base.h"
#include "queue/list.h"
#include "queue/mpsc.h"
#include "wait/completion.h"

struct weft_tqueue;

/* Over weft_task.engine: beside the function, in the line that moves to the runner. */
struct __attribute__((may_alias)) weft_task_core {
	struct weft_mpsc_node sub;   /* Q: in a submission queue */
	_Atomic uint32_t x_state;    /* any thread, see life.h */
	uint32_t counted;            /* submitter: it has a tally */
	struct weft_completion done; /* true while the task is neither queued nor running */
};

/* Over weft_task.engine_cold. */
struct __attribute__((may_alias)) weft_task_cold {
	struct weft_link link;                 /* M: in the main queue, under its mask */
	_Atomic(struct weft_tqueue *) x_queue; /* submitter: where it is queued */
};

static_assert(sizeof(struct weft_task) == 128, "programs have this size compiled in");
static_assert(offsetof(struct weft_task, engine) + sizeof(struct weft_task_core) <= 64,
	      "what a run touches is one line");
static_assert(offsetof(struct weft_task_core, done) == 2 * sizeof(void *), "weft_task_done reads");
static_assert(sizeof(struct weft_task_cold) <= 4 * sizeof(void *), "engine_cold");

static inline struct weft_task_core *weft_task_core(struct weft_task *t)
{
	return (struct weft_task_core *)t->engine;
}

static inline struct weft_task_cold *weft_task_cold(struct weft_task *t)
{
	return (struct weft_task_cold *)t->engine_cold;
}

static inline struct weft_task *weft_task_of_sub(struct weft_mpsc_node *n)
{
	return weft_container_of((void *)n, struct weft_task, engine);
}

static inline struct weft_task *weft_task_of_link(struct weft_link *l)
{
	return weft_container_of((void *)l, struct weft_task, engine_cold);
}

#endif
