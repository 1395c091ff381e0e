/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.h - the word by which the two sides of a large message share out its pieces.
 *
 * The receiver fetches pieces from the front; a sender that only waits writes pieces from the back,
 * until both meet, or claims all that is left at once and posts it.  The word lies in memory that
 * both map; it holds the message's number, how many pieces the front has claimed, and where those
 * of the back begin.
 *
 * Callers   open: the receiver, while the word belongs to no message.  front, close: the receiver.
 *           back, rest: the sender, with the number that the receiver told it.
 * Owner     a piece belongs to the side that claimed it; each is claimed once.
 * Order     none: the word hands out numbers.  The bytes are ordered by the packets before (offer)
 *           and after (report).
 * Progress  lock-free.
 * Stale     a claim with the number of an earlier message gets nothing.
 * Checked   test/comm/large/test_model_share.c, every order.
 */
#ifndef WEFT_COMM_SHARE_H
#define WEFT_COMM_SHARE_H

#include "base/assert.h"
#include "base/base.h"

#define WEFT_SHARE_BITS 12
#define WEFT_SHARE_PIECES ((1u << WEFT_SHARE_BITS) - 1)
#define WEFT_SHARE_NUMBER_MASK (((uint64_t)1 << (64 - 2 * WEFT_SHARE_BITS)) - 1)

static inline uint64_t weft_comm_share_word(uint64_t number, unsigned front, unsigned back)
{
	return number << (2 * WEFT_SHARE_BITS) | (uint64_t)front << WEFT_SHARE_BITS | back;
}

static inline uint64_t weft_comm_share_number(uint64_t word)
{
	return word >> (2 * WEFT_SHARE_BITS);
}

static inline unsigned weft_comm_share_front_of(uint64_t word)
{
	return (unsigned)(word >> WEFT_SHARE_BITS) & WEFT_SHARE_PIECES;
}

static inline unsigned weft_comm_share_back_of(uint64_t word)
{
	return (unsigned)word & WEFT_SHARE_PIECES;
}

/* Either side, of a word that no peer outside the protocol has written. */
static inline void weft_comm_share_check(const _Atomic uint64_t *x_word, uint64_t number)
{
	/* Relaxed: one word. */
	uint64_t w = atomic_load_explicit(x_word, memory_order_relaxed);
	/* No piece is claimed from both ends. */
	weft_assert(weft_comm_share_front_of(w) <= weft_comm_share_back_of(w));
	/* A number's word is not written over by an earlier one's. */
	weft_assert(weft_comm_share_number(w) >= number);
}

/* n pieces, none of them claimed. */
static inline void weft_comm_share_open(_Atomic uint64_t *x_word, uint64_t number, unsigned n)
{
	weft_assert(n <= WEFT_SHARE_PIECES && number <= WEFT_SHARE_NUMBER_MASK);
	/* Relaxed: the packet that names the number carries it; a stale claim fails either way. */
	atomic_store_explicit(x_word, weft_comm_share_word(number, 0, n), memory_order_relaxed);
}

/* Claims the next `most` pieces or what is left; returns how many, from *first_p on. */
static inline unsigned weft_comm_share_front(_Atomic uint64_t *x_word, uint64_t number,
					     unsigned most, unsigned *first_p)
{
	/* Relaxed, all: each change is a compare-exchange, which sees the newest word. */
	uint64_t w = atomic_load_explicit(x_word, memory_order_relaxed);
	for (;;) { /* ends: a retry means that the other side has claimed a piece */
		unsigned front = weft_comm_share_front_of(w), back = weft_comm_share_back_of(w);
		if (weft_comm_share_number(w) != number || front >= back)
			return 0;
		unsigned n = back - front < most ? back - front : most;
		if (atomic_compare_exchange_weak_explicit(
			    x_word, &w, weft_comm_share_word(number, front + n, back),
			    memory_order_relaxed, memory_order_relaxed)) {
			*first_p = front;
			return n;
		}
	}
}

/* Claims the last piece that is left.  False: none. */
static inline bool weft_comm_share_back(_Atomic uint64_t *x_word, uint64_t number,
					unsigned *piece_p)
{
	/* Relaxed, all: as in front. */
	uint64_t w = atomic_load_explicit(x_word, memory_order_relaxed);
	for (;;) { /* ends: a retry means that the other side has claimed pieces */
		unsigned front = weft_comm_share_front_of(w), back = weft_comm_share_back_of(w);
		if (weft_comm_share_number(w) != number || front >= back)
			return false;
		if (atomic_compare_exchange_weak_explicit(
			    x_word, &w, weft_comm_share_word(number, front, back - 1),
			    memory_order_relaxed, memory_order_relaxed)) {
			*piece_p = back - 1;
			return true;
		}
	}
}

/* Claims all that is left; returns how many pieces, from *first_p on. */
static inline unsigned weft_comm_share_rest(_Atomic uint64_t *x_word, uint64_t number,
					    unsigned *first_p)
{
	/* Relaxed, all: as in front. */
	uint64_t w = atomic_load_explicit(x_word, memory_order_relaxed);
	for (;;) { /* ends: a retry means that the other side has claimed pieces */
		unsigned front = weft_comm_share_front_of(w), back = weft_comm_share_back_of(w);
		if (weft_comm_share_number(w) != number || front >= back)
			return 0;
		if (atomic_compare_exchange_weak_explicit(
			    x_word, &w, weft_comm_share_word(number, front, front),
			    memory_order_relaxed, memory_order_relaxed)) {
			*first_p = front;
			return back - front;
		}
	}
}

/* Nothing can be claimed from now on; returns how many of the n pieces the back has claimed. */
static inline unsigned weft_comm_share_close(_Atomic uint64_t *x_word, uint64_t number, unsigned n)
{
	/* Relaxed: as in front.  The number's end; a sender that comes late gets nothing. */
	uint64_t w = atomic_exchange_explicit(x_word, weft_comm_share_word(number, 0, 0),
					      memory_order_relaxed);
	unsigned back = weft_comm_share_back_of(w);
	return weft_comm_share_number(w) == number && back < n ? n - back : 0;
}

#endif
