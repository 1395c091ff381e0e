/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tqueue.h - queues of tasks, one per place of the machine tree.
 *
 * Callers   push: any thread.  round, visit_all, purge: any thread that may run tasks.
 * Owner     a queue owns its tasks while they wait in it.
 * Order     see mask.h and mpsc.h: what a submitter wrote is visible to the function.
 * Progress  push: lock-free.  A queue that somebody else is working on is skipped; that one looks
 *           once more before it lets go.
 *
 *           push round purge    .  together, no help needed
 *   push      .    .     .      M  one holds the mask, the other skips (round) or comes back
 * (purge) round     .    M     M
 */
#ifndef WEFT_TQUEUE_H
#define WEFT_TQUEUE_H

#include <stdio.h>
#include "base/base.h"
#include "queue/list.h"
#include "queue/mask.h"
#include "queue/mpsc.h"
#include "task/weft_task.h"

struct weft_tqueue {
	alignas(WEFT_CACHELINE) struct weft_mask mask;
	_Atomic uint32_t x_main;    /* M: tasks in main; read without the mask as a hint */
	_Atomic uint32_t x_once;    /* M: of these, tasks that anybody may run and finish */
	_Atomic uint32_t x_visits;  /* pollers, relaxed: visits, also those that found nothing */
	struct weft_list main;      /* M: by priority, then in order of submission */
	struct weft_tqueue *parent; /* I; NULL: the root */
	uint32_t siblings;          /* I: children of the parent; a visit in so many goes up */
	uint32_t rank;              /* I: which of them */
	int place;                  /* I: number in the tree */
	struct weft_mpsc sub;       /* submitters push, holder of the mask pops */
};

/* A queue for each place of the loaded topology. */
weft_err weft_tqueues_create(void) weft_must_use;
/* Reports tasks that are still queued, then frees the queues. */
void weft_tqueues_destroy(void);

struct weft_tqueue *weft_tqueue_of_place(int place);
struct weft_tqueue *weft_tqueue_here(void); /* of the leaf where the caller runs */

void weft_tqueue_push(struct weft_tqueue *q, struct weft_task *t);

static inline bool weft_tqueue_idle(const struct weft_tqueue *q)
{
	/* Relaxed for main: who puts something there holds the mask and looks himself. */
	return weft_mpsc_empty(&q->sub) &&
	       atomic_load_explicit(&q->x_main, memory_order_relaxed) == 0;
}

/*
 * From leaf up: each queue once, a parent with N children every Nth time.  quiet: leave no trace at
 * queues that others work on.  Returns how many tasks ran.
 */
int weft_tqueues_round(struct weft_tqueue *leaf, bool quiet);

/* From leaf up, every queue; waits for queues that others work on. */
int weft_tqueues_branch(struct weft_tqueue *leaf);

/* Every queue of the machine. */
int weft_tqueues_visit_all(void);

/* Is there a submission that no poller has seen yet? */
bool weft_tqueues_submitted(void);

/* Takes cancelled tasks out of q, without running others.  May wait for a repeat task to return. */
void weft_tqueue_purge(struct weft_tqueue *q);

void weft_tqueues_describe(FILE *out);

/* Bits of a task's word. */
enum {
	WEFT_TASK_QUEUED = 1,
	WEFT_TASK_RUNNING = 2,
	WEFT_TASK_RESUBMITTED = 4, /* run once more */
	WEFT_TASK_CANCELLED = 8,
};

/* task.c: runs t, which was taken out of q; true: put it back into the main queue (mask held). */
bool weft_task_run(struct weft_task *t, struct weft_tqueue *q, bool masked);
/* Was t cancelled?  Then finishes it. */
bool weft_task_drop_cancelled(struct weft_task *t);
/* May the calling thread run it? */
bool weft_task_allowed(const struct weft_task *t);

#endif
