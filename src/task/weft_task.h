/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft_task.h - a piece of work that the engine runs on whoever polls: embedded, never allocated.
 *
 * Callers   init: the owner.  submit, cancel: any thread, handlers and tasks included, the task
 *           itself too.  wait, cancel_wait: any thread, not a handler.
 * Owner     the caller owns the memory; the engine uses it from submit until the task is done.  Its
 *           last access is the exchange that makes `done` true: after a wait it may be freed at
 * once. A function may also free its task, and must then answer WEFT_TASK_GONE. Order     what was
 * written before submit is visible to the function, also when submit found the task queued; what
 * the function wrote is visible after done. Promise   a task never runs on two cores at once.
 * Submitted while queued it runs once; submitted while running it runs once more afterwards.
 */
#ifndef WEFT_WEFT_TASK_H
#define WEFT_WEFT_TASK_H

#include <sched.h>
#include "base/base.h"
#include "queue/list.h"
#include "queue/mpsc.h"
#include "wait/completion.h"

enum weft_task_verdict {
	WEFT_TASK_DONE = 0,
	WEFT_TASK_AGAIN = 1, /* run me again in a later round */
	WEFT_TASK_GONE = 2,  /* the task's memory is no longer ours: touch nothing */
};

enum weft_task_option {
	/*
	 * A poll: looks, works a little (below 20 us) and comes back, usually with AGAIN.  Runs
	 * under its queue's mask, so of all repeat tasks of a queue one runs at a time.  The others
	 * run outside it and may take their time: copies, reductions.
	 */
	WEFT_TASK_REPEAT = 1,
	/* Runs at once, on its CPU set even when that is busy; see `cpus`. */
	WEFT_TASK_URGENT = 2,
	/* Runs only on threads whose own affinity lies within `cpus`. */
	WEFT_TASK_STRICT = 4,
};

struct weft_tqueue;

struct weft_task {
	struct weft_mpsc_node sub;   /* Q: in the submission queue */
	struct weft_link link;       /* M: in the main queue, under its mask */
	_Atomic uint32_t x_state;    /* everybody, see task.c */
	struct weft_completion done; /* true while the task is neither queued nor running */
	_Atomic(struct weft_tqueue *) x_queue; /* submitter: where it is queued */

	/* Set by the owner before submit, left alone until done. */
	enum weft_task_verdict (*fn)(struct weft_task *t, void *arg);
	void *arg;
	const cpu_set_t *cpus; /* where it should run; NULL: anywhere.  Read at submit; STRICT: also
				* later */
	const char *name;      /* for dumps and traces */
	unsigned options;      /* of enum weft_task_option */
	int priority;          /* higher runs first within its queue */
	/* Called once when done, after the engine's last access to the task, from whoever ran it;
	 * may free the task, submit, start operations; may not wait.  Or NULL. */
	void (*on_complete)(void *arg);
	void *on_complete_arg;
};

/* Fills in what every task needs; further fields may be set between this and submit. */
void weft_task_init(struct weft_task *t, const char *name,
		    enum weft_task_verdict (*fn)(struct weft_task *t, void *arg), void *arg,
		    unsigned options);

/* Hands t to the engine.  Never blocks.  The result says whether it was idle before. */
bool weft_task_submit(struct weft_task *t);

static inline bool weft_task_done(const struct weft_task *t)
{
	return weft_completion_done(&t->done);
}

/* Waits until t is done. */
weft_err weft_task_wait(struct weft_task *t);

/* After it t does not start again; it may be running.  False: it was done already. */
bool weft_task_cancel(struct weft_task *t);

/* The same, and returns after the engine's last access to t. */
weft_err weft_task_cancel_wait(struct weft_task *t);

#endif
