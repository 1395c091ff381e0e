/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eventcount.h - a number in shared memory that grows, and the members that sleep until it has
 * grown.
 *
 * The number and a bit per sleeper are one word and change together: a poster takes the bits of
 * the sleepers that it has to wake, and a member that sets its bit sees in the same operation
 * whether its number is there.  So no wake-up is lost, and one message wakes each sleeper.  Why it
 * has failed is a number, too, which stays.
 *
 * Callers   any process that shares the memory; one thread of each at a time.
 * Order     what a poster wrote before post() is visible to a caller for which reached() is true.
 * Progress  reached, prepare_sleep, cancel_sleep: wait-free.  post, fail: repeat when a sleeper
 *           comes or leaves.
 *
 *             post   fail   prepare   cancel     .  together, no help needed
 *   post       L      .        .        .        L  one after the other, by the user's rules
 *   fail              .        .        .
 *
 * post_once is a post for numbers with one poster and one sleeper, in one exchange.
 */
#ifndef WEFT_COLL_SHM_EVENTCOUNT_H
#define WEFT_COLL_SHM_EVENTCOUNT_H

#include "base/assert.h"
#include "base/base.h"

#define WEFT_COLL_EC_SLEEPERS 32
#define WEFT_COLL_EC_NUMBERS 0x7fffffffu /* the largest number; they wrap */
/* What it has failed for; a few more may be counted there. */
#define WEFT_COLL_EC_LOST 0x80000000u     /* a member is lost */
#define WEFT_COLL_EC_MISMATCH 0xc0000000u /* the members' calls do not match */

static inline uint64_t weft_coll_ec_of(uint32_t number)
{
	return (uint64_t)number << 32;
}

static inline uint32_t weft_coll_ec_next(uint32_t number)
{
	return (number + 1) & WEFT_COLL_EC_NUMBERS;
}

/* Has it grown so far, or failed?  Numbers are less than 2^30 apart. */
static inline bool weft_coll_ec_has(uint64_t word, uint32_t number)
{
	weft_assert(number <= WEFT_COLL_EC_NUMBERS);
	return word >> 63 || (int32_t)(((uint32_t)(word >> 32) - number) << 1) >= 0;
}

/* `number` is posted, or never will be; which of both, weft_coll_ec_failed() says. */
static inline bool weft_coll_ec_reached(_Atomic uint64_t *x_ec, uint32_t number)
{
	/* SEE <- POST (weft_coll_ec_post, and members that count in one).  Carries: what the poster
	 * wrote or had read.  Without it the caller could see what lay there before. */
	return weft_coll_ec_has(atomic_load_explicit(x_ec, memory_order_acquire), number);
}

/* WEFT_ERR_PEER, WEFT_ERR_TRUNC: it has failed, for LOST or MISMATCH. */
static inline weft_err weft_coll_ec_failed(_Atomic uint64_t *x_ec)
{
	/* Relaxed: nothing is read on the strength of it. */
	uint64_t word = atomic_load_explicit(x_ec, memory_order_relaxed);
	return weft_likely(!(word >> 63)) ? WEFT_OK
	       : word >> 62 & 1           ? WEFT_ERR_TRUNC
					  : WEFT_ERR_PEER;
}

/* The sleepers to wake, a bit each; false: it has failed. */
static inline bool weft_coll_ec_post(_Atomic uint64_t *x_ec, uint32_t number, uint32_t *sleepers_p)
{
	weft_assert(number <= WEFT_COLL_EC_NUMBERS);
	/* Relaxed: a guess, which the exchange checks. */
	uint64_t old = atomic_load_explicit(x_ec, memory_order_relaxed);
	/* Ends: the exchange fails when a member comes to sleep, leaves or fails it, each once. */
	do {
		if (weft_unlikely(old >> 63))
			return false;
		/* POST -> SEE (weft_coll_ec_reached).  Carries: what the user wrote before. */
	} while (!atomic_compare_exchange_weak_explicit(
		x_ec, &old, weft_coll_ec_of(number), memory_order_release, memory_order_relaxed));
	*sleepers_p = (uint32_t)old;
	return true;
}

/* The same where no other member posts there: the cache line is fetched once, not twice.  If it has
 * failed, the number shows for a moment, and it has failed again. */
static inline bool weft_coll_ec_post_once(_Atomic uint64_t *x_ec, uint32_t number,
					  uint32_t *sleepers_p)
{
	weft_assert(number <= WEFT_COLL_EC_NUMBERS);
	/* POST -> SEE (weft_coll_ec_reached).  Carries: what the user wrote before.  Without it the
	 * sleeper could read what lay there before. */
	uint64_t old =
		atomic_exchange_explicit(x_ec, weft_coll_ec_of(number), memory_order_release);
	*sleepers_p = (uint32_t)old;
	if (weft_likely(!(old >> 63)))
		return true;
	/* Relaxed: carries nothing but itself. */
	*sleepers_p |= (uint32_t)atomic_exchange_explicit(x_ec, old & ~(uint64_t)UINT32_MAX,
							  memory_order_relaxed);
	return false;
}

/* Posts `why` (LOST or MISMATCH), unless `number` is posted already or it has failed: then false. */
static inline bool weft_coll_ec_fail(_Atomic uint64_t *x_ec, uint32_t number, uint32_t why,
				     uint32_t *sleepers_p)
{
	weft_assert(why > WEFT_COLL_EC_NUMBERS);
	/* Relaxed, both: carries nothing but itself. */
	uint64_t old = atomic_load_explicit(x_ec, memory_order_relaxed);
	/* Ends: as in weft_coll_ec_post. */
	do {
		if (weft_coll_ec_has(old, number))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		x_ec, &old, weft_coll_ec_of(why), memory_order_relaxed, memory_order_relaxed));
	*sleepers_p = (uint32_t)old;
	return true;
}

/* Posts `why`, whatever is posted.  The sleepers to wake. */
static inline uint32_t weft_coll_ec_abort(_Atomic uint64_t *x_ec, uint32_t why)
{
	weft_assert(why > WEFT_COLL_EC_NUMBERS);
	/* Relaxed: as above. */
	return (uint32_t)atomic_exchange_explicit(x_ec, weft_coll_ec_of(why), memory_order_relaxed);
}

/* True: sleep, a poster will send a wake-up.  False: it is reached; ask weft_coll_ec_cancel_sleep().
 */
static inline bool weft_coll_ec_prepare_sleep(_Atomic uint64_t *x_ec, unsigned me, uint32_t number)
{
	weft_assert(me < WEFT_COLL_EC_SLEEPERS);
	/* Relaxed: either the poster's exchange takes the bit, or this sees the number; what that
	 * carries is read after SEE. */
	uint64_t bit = (uint64_t)1 << me;
	return !weft_coll_ec_has(atomic_fetch_or_explicit(x_ec, bit, memory_order_relaxed), number);
}

/* The caller does not sleep after all.  True: its bit was taken, a wake-up is on its way to it. */
static inline bool weft_coll_ec_cancel_sleep(_Atomic uint64_t *x_ec, unsigned me)
{
	weft_assert(me < WEFT_COLL_EC_SLEEPERS);
	/* Relaxed: only the bit counts. */
	uint64_t bit = (uint64_t)1 << me;
	return !(atomic_fetch_and_explicit(x_ec, ~bit, memory_order_relaxed) & bit);
}

#endif
