/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally.h - counts up; a waiter for n sleeps until n have come.
 *
 * One word holds the count and two bits: WAITERS, the list is not empty, and LOCKED, a thread works
 * on the list.  Without waiters an add is one exchange and the last access.  With waiters the
 * same exchange takes the lock, so that no waiter can see the count reached, return and free
 * the memory before the adder is through.
 *
 * Callers   add: any thread, handlers included.  wait: see weft/task.h.
 * Owner     entries lie on their waiters' stacks; in the list until popped or withdrawn.
 * Order     what was written before add() is visible to a reader of the count that it made.
 * Progress  add without waiters: lock-free; with: spins while another walks the list.
 */
#ifndef WEFT_TASK_TALLY_H
#define WEFT_TASK_TALLY_H

#include <assert.h>
#include <weft/task.h>
#include "base/assert.h"
#include "base/base.h"
#include "wait/completion.h"
#include "wait/waiter.h"

#define WEFT_TALLY_WAITERS ((uint64_t)1)
#define WEFT_TALLY_LOCKED ((uint64_t)2)
#define WEFT_TALLY_ONE ((uint64_t)4)

struct weft_tally_entry {
	struct weft_tally_entry *next;
	uint64_t n;
	struct weft_completion come; /* n have */
};

struct __attribute__((may_alias)) weft_tally_core {
	_Atomic uint64_t x_word;
	struct weft_tally_entry *first; /* L: the holder of LOCKED */
	_Atomic bool x_polled;          /* submitters: repeat tasks count here */
};

static_assert(sizeof(struct weft_tally_core) <= sizeof(struct weft_tally), "weft/task.h");

static inline struct weft_tally_core *weft_task_tally_core(const struct weft_tally *y)
{
	return (struct weft_tally_core *)(uintptr_t)y->engine;
}

static inline uint64_t weft_task_tally_count(uint64_t word)
{
	return word / WEFT_TALLY_ONE;
}

/* Takes the lock, adding `by`; returns the word as it is now. */
static inline uint64_t weft_task_tally_lock(struct weft_tally_core *y, uint64_t by)
{
	unsigned turns = 0;
	uint64_t seen = atomic_load_explicit(&y->x_word, memory_order_relaxed);
	for (;;) { /* ends: the holder's walk ends */
		if (seen & WEFT_TALLY_LOCKED) {
			weft_backoff(&turns);
			seen = atomic_load_explicit(&y->x_word, memory_order_relaxed);
			continue;
		}
		uint64_t want = (seen + by) | WEFT_TALLY_LOCKED;
		/* TLOCK <- TGIVE.  Carries: the list.  TLOCK -> READ.  Carries: the adder's work.
		 */
		if (atomic_compare_exchange_weak_explicit(
			    &y->x_word, &seen, want, memory_order_acq_rel, memory_order_relaxed))
			return want;
	}
}

static inline void weft_task_tally_unlock(struct weft_tally_core *y, uint64_t word)
{
	weft_assert(word & WEFT_TALLY_LOCKED);
	word &= ~(WEFT_TALLY_LOCKED | WEFT_TALLY_WAITERS);
	/* TGIVE -> TLOCK.  Carries: the list.  TGIVE -> READ.  Carries: the adders' work.
	 * No other thread changes the word while it is locked, so a store will do. */
	atomic_store_explicit(&y->x_word, word | (y->first ? WEFT_TALLY_WAITERS : 0),
			      memory_order_release);
}

/* Adds one; returns the entries that have come, to be signalled.  y is not touched after. */
static inline struct weft_tally_entry *weft_task_tally_add_core(struct weft_tally_core *y)
{
	uint64_t seen = atomic_load_explicit(&y->x_word, memory_order_relaxed);
	while (!(seen &
		 (WEFT_TALLY_WAITERS | WEFT_TALLY_LOCKED))) /* ends: other threads add, or wait */
		/* ADD -> READ.  Carries: the adder's work.  Acquire: the count carries on what the
		 * adders before wrote. */
		if (atomic_compare_exchange_weak_explicit(&y->x_word, &seen, seen + WEFT_TALLY_ONE,
							  memory_order_acq_rel,
							  memory_order_relaxed))
			return NULL;
	uint64_t word = weft_task_tally_lock(y, WEFT_TALLY_ONE);
	struct weft_tally_entry *come = NULL, **at = &y->first;
	while (*at) { /* ends: the list is ours */
		struct weft_tally_entry *w = *at;
		if (w->n > weft_task_tally_count(word)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = come;
		come = w;
	}
	weft_task_tally_unlock(y, word);
	return come;
}

/* Before the submission of a repeat task that counts in y. */
static inline void weft_task_tally_will_be_polled(struct weft_tally_core *y)
{
	/* Relaxed, both: a hint; a wait that misses it is polled by the timer. */
	if (!atomic_load_explicit(&y->x_polled, memory_order_relaxed))
		atomic_store_explicit(&y->x_polled, true, memory_order_relaxed);
}

static inline bool weft_task_tally_polled(const struct weft_tally_core *y)
{
	return atomic_load_explicit(&y->x_polled, memory_order_relaxed);
}

/* Has n come?  True also says that no adder of those n will touch y again. */
static inline bool weft_task_tally_reached(const struct weft_tally_core *y, uint64_t n)
{
	/* READ <- ADD, TGIVE. */
	uint64_t word = atomic_load_explicit(&y->x_word, memory_order_acquire);
	return !(word & WEFT_TALLY_LOCKED) && weft_task_tally_count(word) >= n;
}

/* Puts w into the list; false: n has come already, w is not in use. */
static inline bool weft_task_tally_enlist(struct weft_tally_core *y, struct weft_tally_entry *w)
{
	weft_assert(w->n > 0);
	uint64_t word = weft_task_tally_lock(y, 0);
	bool in = weft_task_tally_count(word) < w->n;
	if (in) {
		w->next = y->first;
		y->first = w;
	}
	weft_task_tally_unlock(y, word);
	return in;
}

/* Takes w out again; false: an adder has it and will signal it. */
static inline bool weft_task_tally_withdraw(struct weft_tally_core *y, struct weft_tally_entry *w)
{
	uint64_t word = weft_task_tally_lock(y, 0);
	struct weft_tally_entry **at = &y->first;
	while (*at && *at != w) /* ends: the list is ours */
		at = &(*at)->next;
	bool mine = *at == w;
	if (mine)
		*at = w->next;
	weft_task_tally_unlock(y, word);
	return mine;
}

#endif
