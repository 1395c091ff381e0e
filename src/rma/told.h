/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * told.h - what members on one host tell each other by words in memory that they share: posts, completes,
 * fences, notifications; and how a member sleeps until a word has changed.
 *
 * Recipe    teller                         sleeper
 *           changes the word               says that it sleeps
 *           looks whether the other sleeps looks at the word; not yet: sleeps
 *           if so, takes that back and sends a message
 *
 *           All in the order of seq_cst: either the sleeper sees the word, or the teller the sleeper.  Before
 *           that a waiter looks for a while without saying so: then nothing is sent at all.
 * Owner     a count of posts or completes is written by one member alone, the teller.  A count of notifications is
 *           raised by all, and lowered by the member that waits.
 * Trust     every member of the host may write all of it; a wrong number ends a wait too early, or never.
 * Progress  wait-free.
 */
#ifndef WEFT_RMA_TOLD_H
#define WEFT_RMA_TOLD_H

#include "base/base.h"

/* Of one member to another: how often it has posted to it, and completed. */
struct weft_rma_told {
	_Atomic uint32_t x_posts, x_completes;
};

/* Fences of members that are all on one host. */
struct weft_rma_meet {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_arrived; /* members, all fences together */
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_round;   /* fences that all have reached */
};

/* The caller alone writes it. */
static inline void weft_rma_told_count(_Atomic uint32_t *x_count)
{
	/* Relaxed: own. */
	uint32_t n = atomic_load_explicit(x_count, memory_order_relaxed);
	/* TELL -> SEE.  Carries: the teller's stores and accesses.  seq_cst: before the look at the sleeper. */
	atomic_store_explicit(x_count, n + 1, memory_order_seq_cst);
}

static inline uint32_t weft_rma_told_read(_Atomic uint32_t *x_count)
{
	/* SEE <- TELL.  seq_cst: behind what weft_rma_sleeper_say wrote. */
	return atomic_load_explicit(x_count, memory_order_seq_cst);
}

/* A notification counts one more. */
static inline void weft_rma_note_count(_Atomic uint64_t *x_note)
{
	/* COUNT -> TAKE.  Carries: what the origin has put.  seq_cst: before the look at the sleeper. */
	atomic_fetch_add_explicit(x_note, 1, memory_order_seq_cst);
}

/* Takes n off if there are as many; false: not yet. */
static inline bool weft_rma_note_take(_Atomic uint64_t *x_note, uint64_t n)
{
	/* TAKE <- COUNT.  seq_cst: behind what weft_rma_sleeper_say wrote. */
	uint64_t was = atomic_load_explicit(x_note, memory_order_seq_cst);
	while (was >= n) /* ends: another taker's success is progress */
		/* TAKE <- COUNT of all that came before. */
		if (atomic_compare_exchange_weak_explicit(
			    x_note, &was, was - n, memory_order_acq_rel, memory_order_acquire))
			return true;
	return false;
}

/* The caller comes to fence `round`, counted from 1, of n members.  True: it is the last, and all may go. */
static inline bool weft_rma_meet_arrive(struct weft_rma_meet *m, uint64_t round, unsigned n)
{
	/* ARRIVE -> ARRIVE of the last one.  Carries: the members' stores and accesses. */
	if (atomic_fetch_add_explicit(&m->x_arrived, 1, memory_order_acq_rel) + 1 != round * n)
		return false;
	/* TELL -> SEE, as above, with what all members wrote. */
	atomic_store_explicit(&m->x_round, round, memory_order_seq_cst);
	return true;
}

static inline bool weft_rma_meet_over(struct weft_rma_meet *m, uint64_t round)
{
	return atomic_load_explicit(&m->x_round, memory_order_seq_cst) >= round; /* SEE <- TELL */
}

/* Before the last look. */
static inline void weft_rma_sleeper_say(_Atomic uint32_t *x_sleeps)
{
	atomic_store_explicit(x_sleeps, 1, memory_order_seq_cst); /* the recipe */
}

/* After a word has changed.  True: the caller sends a message. */
static inline bool weft_rma_sleeper_take(_Atomic uint32_t *x_sleeps)
{
	/* seq_cst: the recipe.  Relaxed: one teller gets it. */
	return atomic_load_explicit(x_sleeps, memory_order_seq_cst) &&
	       atomic_exchange_explicit(x_sleeps, 0, memory_order_relaxed);
}

#endif
