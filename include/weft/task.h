/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.h - pieces of work that run on whichever core polls: the progress engine without MPI.
 *
 * A task is a structure inside yours: a function, its argument, where it may run, options.  The
 * engine never allocates one and never copies one.  Tasks run on threads that wait, on threads that
 * call weft_engine_poll, and, while no thread does either, on one of the engine's own.
 *
 * Callers   submit, cancel, mask, unmask, done: any thread, handlers included; not signal handlers.
 *           wait, cancel_wait, mask_wait, tally_wait: any thread, not a handler
 *           (WEFT_ERR_DEADLOCK).
 * Owner     the memory is yours; the engine uses it from submit until the task is done.  After a
 *           wait it may be freed at once.
 * Order     what was written before submit is visible to the function, also when submit found the
 *           task queued; what the function wrote is visible once the task is done.
 * Cancel    a thread that is cancelled inside a wait goes after it.  The application's threads run
 *           functions, too: one of a program that cancels threads holds no cancellation point.
 * Promise   a task never runs on two cores at once.  Submitted while queued it runs once; submitted
 *           while running it runs once more.
 *
 * Link with `pkg-config --libs weft-task`, or with an MPI program's libmpi_abi, which has all of
 * this too; then tasks and messages share one engine.
 */
#ifndef WEFT_PUBLIC_TASK_H
#define WEFT_PUBLIC_TASK_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <weft/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_TASK_API __attribute__((visibility("default")))
#else
#define WEFT_TASK_API
#endif

/* ---- the engine ------------------------------------------------------------------------------ */

/*
 * Starts the engine of this process, or counts one more user of it.  Settings come from WEFT_*
 * variables (`weft info`).  WEFT_ERR_STATE in a child of fork.
 */
WEFT_TASK_API weft_err weft_engine_start(void);

/*
 * The last user's call stops the engine's threads.  Tasks that are still queued are reported and
 * never run; they count as done, so that no wait hangs.  Other waits that threads are in
 * (a tally, an event) end with WEFT_ERR_STATE.  Waits for handlers that run; a handler is refused.
 */
WEFT_TASK_API void weft_engine_stop(void);

/* One look from the caller's own core up; returns how many tasks and events it ran, polls that
 * answer AGAIN not counted.  Never blocks. */
WEFT_TASK_API int weft_engine_poll(void);

/* Is the calling thread inside a task's function or a callback?  It may then not wait. */
WEFT_TASK_API bool weft_engine_in_handler(void);

/* The machine as the engine sees it, its queues and threads. */
WEFT_TASK_API void weft_engine_describe(FILE *out);

#define WEFT_FOREVER UINT64_MAX

/* ---- tasks ----------------------------------------------------------------------------------- */

enum weft_task_verdict {
	WEFT_TASK_DONE = 0,
	WEFT_TASK_AGAIN = 1, /* run me again in a later round */
	WEFT_TASK_GONE = 2,  /* the task's memory is no longer the engine's: touch nothing */
};

enum weft_task_option {
	/*
	 * A poll: looks, works a little (below 20 us) and comes back, usually with AGAIN.  Runs
	 * under its queue's mask, so of all repeat tasks of a queue one runs at a time.  A thread
	 * that waits for one polls until it is done; where no thread waits, the timer does.
	 * Tasks without this run outside the mask and may take their time: copies, reductions.
	 */
	WEFT_TASK_REPEAT = 1,
	/* Runs at once, on its CPU set even when that is busy: interrupts the application there. */
	WEFT_TASK_URGENT = 2,
	/* Runs only on threads whose own affinity lies within `cpus`; where no thread has these cores
	 * it runs all the same, with one warning. */
	WEFT_TASK_STRICT = 4,
	/*
	 * Runs one time from submit to done, whatever the function answers; a submit before it is
	 * done is refused, and it cannot be masked.  The cheapest kind.
	 */
	WEFT_TASK_ONCE = 8,
};

struct weft_task;
struct weft_tally;

typedef enum weft_task_verdict weft_task_fn(struct weft_task *t, void *arg);

/*
 * 128 bytes, in this order for ever.  The first 64 are what running it touches: aligned to a cache
 * line it moves between cores with one line.
 */
struct weft_task {
	/* Set by the owner before submit, left alone until done. */
	weft_task_fn *fn;
	void *arg;
	unsigned options; /* of enum weft_task_option */
	int priority;     /* higher runs first within its queue */
	/* Called once when done, after the engine's last access to the task, from the thread that ran it;
	 * may free the task, submit, start operations; may not wait.  Or NULL. */
	void (*on_complete)(void *arg);
	const char *name; /* for reports */
	void *engine[3];  /* the engine's */

	void *on_complete_arg;
	const cpu_set_t *cpus; /* where it should run; NULL: anywhere.  Read at submit; STRICT: also
				* later */
	size_t cpus_bytes;     /* of *cpus; 0: sizeof(cpu_set_t) */
	struct weft_tally *tally; /* counts this task when it is done; or NULL */
	void *engine_cold[4];     /* the engine's */
};

/* Fills in what every task needs; further fields may be set between this and submit. */
WEFT_TASK_API void weft_task_init(struct weft_task *t, const char *name, weft_task_fn *fn,
				  void *arg, unsigned options);

/* Hands t to the engine.  Never blocks.  The result says whether it was idle before. */
WEFT_TASK_API bool weft_task_submit(struct weft_task *t);

/* Init and submit in one, with WEFT_TASK_ONCE: for a task that no other thread knows yet. */
WEFT_TASK_API void weft_task_launch(struct weft_task *t, const char *name, weft_task_fn *fn,
				    void *arg);

/* Neither queued nor running. */
static inline bool weft_task_done(const struct weft_task *t)
{
	/* Acquire: what the function wrote is visible. */
	return __atomic_load_n((const uintptr_t *)&t->engine[2], __ATOMIC_ACQUIRE) == 1;
}

/* Any number of threads may wait for the same task.  Timeouts are relative, in ns, or WEFT_FOREVER;
 * WEFT_ERR_TIMEOUT. */
WEFT_TASK_API weft_err weft_task_wait(struct weft_task *t);
WEFT_TASK_API weft_err weft_task_wait_for(struct weft_task *t, uint64_t timeout_ns);
/* NULL entries count as done; which_p (or NULL): the first that is. */
WEFT_TASK_API weft_err weft_task_wait_any(struct weft_task *const *t, size_t n, uint64_t timeout_ns,
					  size_t *which_p);
WEFT_TASK_API weft_err weft_task_wait_all(struct weft_task *const *t, size_t n,
					  uint64_t timeout_ns);

/* After it t does not start again; it may be running.  False: it was done already.  A later submit
 * takes it back as long as it has not been acted on. */
WEFT_TASK_API bool weft_task_cancel(struct weft_task *t);
/* The same, and returns after the engine's last access to t. */
WEFT_TASK_API weft_err weft_task_cancel_wait(struct weft_task *t);

/*
 * Masked, t does not start; queued or submitted meanwhile it starts after unmask.  It costs
 * nothing while it is masked.  mask_wait also waits until a run that is under way has ended.
 * WEFT_ERR_UNSUPPORTED for WEFT_TASK_ONCE.
 */
WEFT_TASK_API weft_err weft_task_mask(struct weft_task *t);
WEFT_TASK_API weft_err weft_task_mask_wait(struct weft_task *t);
WEFT_TASK_API void weft_task_unmask(struct weft_task *t);

/* ---- counting: wait until n tasks are done ----------------------------------------------------
 */

/* Counts the tasks whose field `tally` points to it, and whatever else is added. */
struct weft_tally {
	void *engine[4];
};

WEFT_TASK_API void weft_tally_init(struct weft_tally *y);
/* Any thread, handlers included; never blocks for long. */
WEFT_TASK_API void weft_tally_add(struct weft_tally *y);
WEFT_TASK_API uint64_t weft_tally_read(const struct weft_tally *y);
/*
 * Until at least n have been added since init.  The n-th add is the engine's last access to its
 * task and, when no more are to come, to y: both may be freed then.
 */
WEFT_TASK_API weft_err weft_tally_wait(struct weft_tally *y, uint64_t n, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
