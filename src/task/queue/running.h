/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * running.h - what a thread says of the task that it runs, for the overseer, which watches how
 * long; the same for a task's completion action and a source's callbacks.
 *
 * Callers   begin, end: the thread that runs it.  now, pin, unpin: the overseer alone.
 * Order     what was written before begin() is visible to the overseer once now() gives its number.
 * Cost      begin, end: two stores, a store and a load, of the thread's own line.
 * Promise   the name that pin() returns stays until unpin(): end() waits, so the task and its name
 *           are not freed meanwhile.
 *
 * Either the overseer sees after its membarrier that the run has ended, or the runner, which loads
 * after that, sees itself pinned.
 */
#ifndef WEFT_RUNNING_H
#define WEFT_RUNNING_H

#include <string.h>
#include "base/base.h"
#include "base/backoff.h"

#define WEFT_RUNNING_TEXT 48

enum weft_running_what {
	WEFT_RUNNING_TASK,
	WEFT_RUNNING_ACTION, /* of a task that may be gone: its name has been copied */
	WEFT_RUNNING_SOURCE,
};

struct weft_running {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_runs; /* runner: odd while one runs */
	_Atomic bool x_pinned;                           /* overseer */
	_Atomic bool x_taken;                            /* a thread's */
	_Atomic uint32_t x_told;                         /* overseer: the run that was reported */
	_Atomic(const char *) x_name;                    /* runner */
	_Atomic uint8_t x_what;                          /* runner: of enum weft_running_what */
	uint32_t seen;                                   /* overseer, as all below */
	unsigned ticks, next;                            /* for so many it has been the same */
	uint64_t since_ns;
	char text[WEFT_RUNNING_TEXT]; /* runner, between runs */
};

/* The number of the run, for end(). */
static inline uint32_t weft_task_running_begin(struct weft_running *r, const char *name)
{
	uint32_t runs = atomic_load_explicit(&r->x_runs, memory_order_relaxed); /* ours */
	/* Relaxed: goes with the number. */
	atomic_store_explicit(&r->x_name, name, memory_order_relaxed);
	/* BEGUN -> NOW.  Carries: the name and its letters.  The overseer's membarrier, after it
	 * has seen the number, would do; ThreadSanitizer does not know of that. */
	atomic_store_explicit(&r->x_runs, runs + 1, memory_order_release);
	return runs + 1;
}

static inline void weft_task_running_end(struct weft_running *r, uint32_t run)
{
	unsigned turns = 0;
	/* Relaxed: carries nothing; the overseer's membarrier orders it before the load below. */
	atomic_store_explicit(&r->x_runs, run + 1, memory_order_relaxed);
	weft_compiler_barrier();
	/* END <- UNPIN, also of a reading that is over.  Without it the name could be freed before
	 * its letters have been read.  Ends: it copies some letters. */
	while (weft_unlikely(atomic_load_explicit(&r->x_pinned, memory_order_acquire)))
		weft_backoff(&turns);
}

/* Something else than a task's function. */
static inline uint32_t weft_task_running_begin_what(struct weft_running *r,
						    enum weft_running_what what, const char *name)
{
	if (what == WEFT_RUNNING_ACTION && name) {
		size_t n = strnlen(name, sizeof r->text - 1);
		memcpy(r->text, name, n);
		r->text[n] = 0;
		name = r->text;
	}
	/* Relaxed: goes with the number. */
	atomic_store_explicit(&r->x_what, (uint8_t)what, memory_order_relaxed);
	return weft_task_running_begin(r, name);
}

static inline void weft_task_running_end_what(struct weft_running *r, uint32_t run)
{
	weft_task_running_end(r, run);
	atomic_store_explicit(&r->x_what, WEFT_RUNNING_TASK, memory_order_relaxed);
}

static inline uint32_t weft_task_running_now(const struct weft_running *r)
{
	/* NOW <- BEGUN. */
	return atomic_load_explicit(&r->x_runs, memory_order_acquire);
}

/* True: it is still that run, and *name_p stays until unpin.  False: nothing is pinned. */
static inline bool weft_task_running_pin(struct weft_running *r, uint32_t run,
					 void (*membarrier)(void), const char **name_p)
{
	atomic_store_explicit(&r->x_pinned, true, memory_order_relaxed); /* the barrier orders */
	membarrier();
	if (atomic_load_explicit(&r->x_runs, memory_order_relaxed) != run) {
		atomic_store_explicit(&r->x_pinned, false, memory_order_relaxed);
		return false;
	}
	/* Relaxed: came with the number. */
	*name_p = atomic_load_explicit(&r->x_name, memory_order_relaxed);
	return true;
}

static inline void weft_task_running_unpin(struct weft_running *r)
{
	/* UNPIN -> END.  Carries: our reading is over. */
	atomic_store_explicit(&r->x_pinned, false, memory_order_release);
}

#endif
