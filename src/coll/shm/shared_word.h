/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_word.h - a number in shared memory that grows, and who sleeps until it has grown.
 *
 * The number and a bit per sleeper are one word and change together: who posts a number takes the
 * bits of those whom he has to wake, and who sets his bit sees whether his number is there.  So no
 * wake-up is lost, and one message wakes each sleeper.  FAILED is a number, too, which stays.
 *
 * Callers   any process that shares it; one thread of each at a time.
 * Order     what you wrote before post() is visible to whom over() says that it is posted.
 * Progress  over, doze, undoze: wait-free.  post, fail: they repeat when a sleeper comes or leaves.
 *
 *            post   fail   doze   undoze     .  together, no help needed
 *     post    L      .      .      .         L  one after the other, by the user's rules
 *     fail           .      .      .
 */
#ifndef WEFT_COLL_SHARED_WORD_H
#define WEFT_COLL_SHARED_WORD_H

#include "base/base.h"

#define WEFT_WORD_SLEEPERS 32
#define WEFT_WORD_FAILED 0x80000000u  /* and a few more */
#define WEFT_WORD_NUMBERS 0x7fffffffu /* the largest one; they wrap */

static inline uint64_t weft_coll_shared_word_of(uint32_t number)
{
	return (uint64_t)number << 32;
}

/* Has it grown so far, or failed?  Numbers are less than 2^30 apart. */
static inline bool weft_coll_shared_word_has(uint64_t word, uint32_t number)
{
	return word >> 63 || (int32_t)(((uint32_t)(word >> 32) - number) << 1) >= 0;
}

/* `number` is posted, or never will be; which, weft_coll_shared_word_failed() says. */
static inline bool weft_coll_shared_word_over(_Atomic uint64_t *x_word, uint32_t number)
{
	/* SEE <- POST (weft_coll_shared_word_post, and who counts in one).  Carries: what the poster wrote or
	 * had read.  Without it we could see what lay there before. */
	return weft_coll_shared_word_has(atomic_load_explicit(x_word, memory_order_acquire),
					 number);
}

static inline bool weft_coll_shared_word_failed(_Atomic uint64_t *x_word)
{
	/* Relaxed: nothing is read on the strength of it. */
	return atomic_load_explicit(x_word, memory_order_relaxed) >> 63;
}

/* Those whom to wake now, a bit each; false: it has failed. */
static inline bool weft_coll_shared_word_post(_Atomic uint64_t *x_word, uint32_t number,
					      uint32_t *sleepers_p)
{
	/* Relaxed: a guess, which the exchange checks. */
	uint64_t old = atomic_load_explicit(x_word, memory_order_relaxed);
	/* Ends: who makes the exchange fail has come to sleep, left or failed it, each once. */
	do {
		if (weft_unlikely(old >> 63))
			return false;
		/* POST -> SEE (weft_coll_shared_word_over).  Carries: what the user wrote before. */
	} while (!atomic_compare_exchange_weak_explicit(
		x_word, &old, weft_coll_shared_word_of(number), memory_order_release,
		memory_order_relaxed));
	*sleepers_p = (uint32_t)old;
	return true;
}

/* Unless `number` is posted already, or it has failed: then false.  Else as weft_coll_shared_word_post. */
static inline bool weft_coll_shared_word_fail(_Atomic uint64_t *x_word, uint32_t number,
					      uint32_t *sleepers_p)
{
	/* Relaxed, both: carries nothing but itself. */
	uint64_t old = atomic_load_explicit(x_word, memory_order_relaxed);
	/* Ends: as in weft_coll_shared_word_post. */
	do {
		if (weft_coll_shared_word_has(old, number))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		x_word, &old, weft_coll_shared_word_of(WEFT_WORD_FAILED), memory_order_relaxed,
		memory_order_relaxed));
	*sleepers_p = (uint32_t)old;
	return true;
}

/* Whatever is posted. */
static inline uint32_t weft_coll_shared_word_break(_Atomic uint64_t *x_word)
{
	/* Relaxed: as above. */
	return (uint32_t)atomic_exchange_explicit(
		x_word, weft_coll_shared_word_of(WEFT_WORD_FAILED), memory_order_relaxed);
}

/* True: sleep, you will be woken.  False: it is over; ask weft_coll_shared_word_undoze(). */
static inline bool weft_coll_shared_word_doze(_Atomic uint64_t *x_word, unsigned me,
					      uint32_t number)
{
	/* Relaxed: either the poster's exchange takes the bit, or this sees the number; what that
	 * carries is read after SEE. */
	uint64_t bit = (uint64_t)1 << me;
	return !weft_coll_shared_word_has(
		atomic_fetch_or_explicit(x_word, bit, memory_order_relaxed), number);
}

/* I do not sleep after all.  True: the bit was taken, a wake-up is on its way to me. */
static inline bool weft_coll_shared_word_undoze(_Atomic uint64_t *x_word, unsigned me)
{
	/* Relaxed: only the bit counts. */
	uint64_t bit = (uint64_t)1 << me;
	return !(atomic_fetch_and_explicit(x_word, ~bit, memory_order_relaxed) & bit);
}

#endif
