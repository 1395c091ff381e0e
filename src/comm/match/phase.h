/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * phase.h - does a context keep its unexpected messages in lists?
 *
 * As long as no wildcard was ever used, the order in which messages of different keys came does not
 * matter: an unexpected message goes into its bucket and nowhere else ("loose"), and threads that
 * match exact keys share nothing.  The first wildcard receive or probe turns the context: from then
 * on messages are linked by arrival, and the loose ones are collected.
 *
 * Callers   may_stay: the thread that puts a message into a bucket, inside the bucket's lock.
 *           turn: holder of the context's lock; then looks into every bucket page that is marked.
 *           mark: the thread that puts a node into a page of buckets, first of all.
 * Order     a message that stays loose is found by the turn, or its putter sees the turn.
 * Progress  wait-free.
 */
#ifndef WEFT_COMM_PHASE_H
#define WEFT_COMM_PHASE_H

#include "base/base.h"

struct weft_phase {
	_Atomic bool x_lists; /* holder of the context's lock writes */
	_Atomic bool x_loose; /* some message may have stayed loose */
};

/* Sets bit in word, if it is not set: "that page is used". */
static inline void weft_comm_phase_mark(_Atomic uint64_t *word, uint64_t bit)
{
	/* MARK -> SCAN (marked).  seq_cst: before the caller reads what the scanner stored first
	 * (the phase, a peer's end).  Without it the scan could miss the page, and the caller the
	 * reason for the scan. */
	if (weft_unlikely(!(atomic_load_explicit(word, memory_order_seq_cst) & bit)))
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
}

static inline uint64_t weft_comm_phase_marked(_Atomic uint64_t *word)
{
	/* SCAN <- MARK, after what was stored before the scan. */
	return atomic_load_explicit(word, memory_order_seq_cst);
}

static inline bool weft_comm_phase_lists(struct weft_phase *p)
{
	/* Relaxed: under the context's lock, or a hint. */
	return atomic_load_explicit(&p->x_lists, memory_order_relaxed);
}

/* May a message stay loose?  Page marked, bucket locked. */
static inline bool weft_comm_phase_may_stay(struct weft_phase *p)
{
	/* Relaxed: a hint that saves the store; set once, and then seen by the exchange below. */
	if (weft_unlikely(!atomic_load_explicit(&p->x_loose, memory_order_relaxed)))
		/* STAY -> TURN: seq_cst, before x_lists is read below. */
		atomic_store_explicit(&p->x_loose, true, memory_order_seq_cst);
	/* LOOK <- TURN: seq_cst, after the mark.  Without it the message could lie in a page that
	 * the turn did not look at. */
	return !atomic_load_explicit(&p->x_lists, memory_order_seq_cst);
}

/* From now on messages are linked.  True: look for loose ones. */
static inline bool weft_comm_phase_turn(struct weft_phase *p)
{
	/* TURN -> LOOK: seq_cst, before x_loose and the marks are read. */
	atomic_store_explicit(&p->x_lists, true, memory_order_seq_cst);
	return atomic_load_explicit(&p->x_loose, memory_order_seq_cst);
}

/* Nothing is listed and no wildcard posted: begins anew.  Context locked. */
static inline void weft_comm_phase_reset(struct weft_phase *p)
{
	/* Relaxed: a thread that still sees lists takes the context's lock, and looks again. */
	atomic_store_explicit(&p->x_loose, true, memory_order_relaxed);
	atomic_store_explicit(&p->x_lists, false, memory_order_relaxed);
}

#endif
