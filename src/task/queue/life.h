/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h - a task's word: which thread may do what with it, and what follows.
 *
 *   IDLE --submit--> QUEUED --claim--> RUNNING --settle--> IDLE
 *   RUNNING --submit--> RUNNING|RESUBMITTED --settle--> QUEUED
 *   QUEUED, RUNNING --cancel--> the same|CANCELLED; QUEUED|CANCELLED goes when a runner claims it,
 *   RUNNING|CANCELLED does not start again.
 *   any --mask--> the same|MASKED; QUEUED|MASKED --claim--> SHELVED: it lies in no queue, and
 *   unmask puts it back.
 *
 * Callers   submit, cancel, mask, unmask: any thread.  claim: the runner that took the task out
 *           of a queue.
 *           settle: its runner.
 * Order     each step is an exchange on one word, so they come one after the other.  What was
 *           written before submit is visible to the next run; what a run wrote, to the next one.
 * Progress  each call loops only while other threads' steps succeed: lock-free.
 * Done      the completion beside the word follows it: the thread that makes the word idle signals
 *           next and touches nothing after that; a submitter of an idle task waits those few
 *           instructions.
 *
 *             submit claim settle cancel mask     .  together, no help needed
 *   submit      .      .     .      .     .       -  cannot meet: one runner at a time
 *   claim              -     -      .     .
 *   settle                   -      .     .
 *   cancel                          .     .
 *   mask                                  .
 */
#ifndef WEFT_TASK_LIFE_H
#define WEFT_TASK_LIFE_H

#include "base/assert.h"
#include "base/backoff.h"
#include "base/base.h"
#include "wait/completion.h"

enum {
	WEFT_LIFE_QUEUED = 1,
	WEFT_LIFE_RUNNING = 2,
	WEFT_LIFE_RESUBMITTED = 4, /* run once more */
	WEFT_LIFE_CANCELLED = 8,
	WEFT_LIFE_MASKED = 16,  /* may not start */
	WEFT_LIFE_SHELVED = 32, /* queued in words, but in no queue: unmask queues it */
};

enum weft_life_step {
	WEFT_LIFE_NOTHING, /* nothing follows */
	WEFT_LIFE_ENQUEUE, /* the caller puts it into a queue */
	WEFT_LIFE_RUN,     /* the caller runs it */
	WEFT_LIFE_SHELF,   /* it is out of our hands: touch it no more */
	WEFT_LIFE_FINISH,  /* the word is idle: the caller signals */
};

/* ENQUEUE: it was idle; the caller also makes the completion pending, before it queues it. */
static inline enum weft_life_step weft_task_life_submit(_Atomic uint32_t *x_state)
{
	uint32_t seen = atomic_load_explicit(x_state, memory_order_relaxed);
	for (;;) { /* ends: each failure is another thread's step */
		uint32_t want = seen & WEFT_LIFE_MASKED;
		/* It takes back a cancel that has not been acted on. */
		if (seen & WEFT_LIFE_RUNNING)
			want |= WEFT_LIFE_RUNNING | WEFT_LIFE_RESUBMITTED;
		else
			want |= WEFT_LIFE_QUEUED | (seen & WEFT_LIFE_SHELVED);
		/* SUBMIT -> RUN (claim).  Carries: what the caller wrote, also when the task is
		 * queued already: so the word is written even if it stays the same.  Without it a
		 * run that starts later could miss the work it was submitted for.
		 * SUBMIT <- IDLE (settle).  Carries: what the last run wrote, and its unlinking. */
		if (atomic_compare_exchange_weak_explicit(
			    x_state, &seen, want, memory_order_acq_rel, memory_order_relaxed))
			break;
	}
	return seen & (WEFT_LIFE_QUEUED | WEFT_LIFE_RUNNING) ? WEFT_LIFE_NOTHING
							     : WEFT_LIFE_ENQUEUE;
}

/*
 * A task that runs one time has no steps between: its completion alone says whether it is idle.
 * True: the caller queues it.
 */
static inline bool weft_task_life_submit_once(_Atomic uint32_t *x_state,
					      struct weft_completion *done)
{
	uintptr_t seen = WEFT_COMPLETION_DONE;
	/* BEGIN <- PUB (signal).  Carries: what the last run wrote.  One of two submitters wins. */
	if (!atomic_compare_exchange_strong_explicit(&done->x_state, &seen, WEFT_COMPLETION_PENDING,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	/* Relaxed: published with the task. */
	atomic_store_explicit(x_state, WEFT_LIFE_QUEUED, memory_order_relaxed);
	return true;
}

/* RUN, SHELF, or FINISH: it was cancelled. */
static inline enum weft_life_step weft_task_life_claim(_Atomic uint32_t *x_state)
{
	uint32_t seen = WEFT_LIFE_QUEUED;
	for (;;) { /* ends: as above */
		uint32_t want = WEFT_LIFE_RUNNING;
		enum weft_life_step step = WEFT_LIFE_RUN;
		if (weft_unlikely(seen & WEFT_LIFE_CANCELLED)) {
			want = seen & WEFT_LIFE_MASKED;
			step = WEFT_LIFE_FINISH;
		} else if (weft_unlikely(seen & WEFT_LIFE_MASKED)) {
			want = seen | WEFT_LIFE_SHELVED;
			step = WEFT_LIFE_SHELF;
		}
		/* RUN <- SUBMIT, IDLE.  Carries: what submitters wrote, and the last run.
		 * RUN -> SHELF (unmask).  Carries: our unlinking; without it the unmasker could
		 * link the task while we still do. */
		if (atomic_compare_exchange_weak_explicit(
			    x_state, &seen, want, memory_order_acq_rel, memory_order_relaxed)) {
			weft_assert(seen & WEFT_LIFE_QUEUED);
			return step;
		}
	}
}

/* After a run: ENQUEUE: it shall run again, or FINISH. */
static inline enum weft_life_step weft_task_life_settle(_Atomic uint32_t *x_state, bool again)
{
	uint32_t seen = WEFT_LIFE_RUNNING;
	for (;;) { /* ends: each failure is a submit, a cancel or a mask */
		bool more =
			!(seen & WEFT_LIFE_CANCELLED) && (again || (seen & WEFT_LIFE_RESUBMITTED));
		uint32_t want = (seen & WEFT_LIFE_MASKED) | (more ? WEFT_LIFE_QUEUED : 0);
		/* IDLE -> SUBMIT, RUN.  Carries: what this run wrote, to the next one and to the
		 * next submitter.  Acquire: a canceller's words, for the completion's action. */
		if (atomic_compare_exchange_weak_explicit(
			    x_state, &seen, want, memory_order_acq_rel, memory_order_relaxed)) {
			weft_assert(seen & WEFT_LIFE_RUNNING);
			return more ? WEFT_LIFE_ENQUEUE : WEFT_LIFE_FINISH;
		}
	}
}

/* False: it was idle.  *step_p: FINISH when it lay on the shelf. */
static inline bool weft_task_life_cancel(_Atomic uint32_t *x_state, enum weft_life_step *step_p)
{
	uint32_t seen = atomic_load_explicit(x_state, memory_order_relaxed);
	for (;;) { /* ends: as above */
		if (!(seen & (WEFT_LIFE_QUEUED | WEFT_LIFE_RUNNING)))
			return false;
		bool shelved = seen & WEFT_LIFE_SHELVED;
		uint32_t want = shelved ? WEFT_LIFE_MASKED : seen | WEFT_LIFE_CANCELLED;
		/* CANCEL -> RUN, IDLE.  Carries: what the canceller wrote, for the action.
		 * CANCEL <- RUN: the runner that shelved it has let go of it. */
		if (atomic_compare_exchange_weak_explicit(
			    x_state, &seen, want, memory_order_acq_rel, memory_order_relaxed)) {
			*step_p = shelved ? WEFT_LIFE_FINISH : WEFT_LIFE_NOTHING;
			return true;
		}
	}
}

/* True: a run is under way at this moment. */
static inline bool weft_task_life_mask(_Atomic uint32_t *x_state)
{
	/* MASK <- IDLE.  Carries: what the last run wrote, to the thread that works on its data now. */
	return atomic_fetch_or_explicit(x_state, WEFT_LIFE_MASKED, memory_order_acq_rel) &
	       WEFT_LIFE_RUNNING;
}

static inline bool weft_task_life_running(const _Atomic uint32_t *x_state)
{
	/* MASK <- IDLE, as above. */
	return atomic_load_explicit(x_state, memory_order_acquire) & WEFT_LIFE_RUNNING;
}

/* ENQUEUE: the caller queues it; its completion is pending already. */
static inline enum weft_life_step weft_task_life_unmask(_Atomic uint32_t *x_state)
{
	/* SHELF <- RUN.  Carries: the unlinking.  UNMASK -> RUN.  Carries: what was done meanwhile
	 * with the task's data; without it the run could see the data half changed. */
	uint32_t seen = atomic_fetch_and_explicit(
		x_state, ~(uint32_t)(WEFT_LIFE_MASKED | WEFT_LIFE_SHELVED), memory_order_acq_rel);
	return seen & WEFT_LIFE_SHELVED ? WEFT_LIFE_ENQUEUE : WEFT_LIFE_NOTHING;
}

/* The last run has made the task idle and is about to signal; a few instructions. */
static inline void weft_task_life_await(struct weft_completion *done)
{
	unsigned turns = 0;
	while (!weft_wait_completion_done(done))
		weft_backoff(&turns);
}

#endif
