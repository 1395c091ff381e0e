/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * feed.h - a ring of turns in shared memory for small collectives with a root.
 *
 * On the board (board.h) nobody leaves before all have come.  A root that hands out need not wait
 * for those who read, nor those who give for a root that collects: here each turn has a place of
 * its own, so who is quick gets a ring of turns ahead, and one switch between ranks that share a
 * core serves many turns.
 *
 * Recipe    Each collective takes the next turn, the same on all members, of one of two kinds:
 *           down  the root waits until the place is free, writes it, posts x_head; the others
 *                 wait for x_head and read.
 *           up    all wait until the place is free: the root, too, or it could take what was
 *                 given to another there.  The others write their shares, come; the root waits
 *                 until all have come, reads, and clears x_came.
 *           Then each passes the turn.
 * Free      Who passes the last turn of a half ring counts himself; the last member to do so posts
 *           x_floor.  A place is free when all have passed the half ring before the last one, so
 *           each member says one word per half ring, not per turn.
 * Callers   each member one thread at a time.
 * Owner     as a board's: all of it may be written by each member, no index or length is read
 *           from it.
 * Progress  come, pass: wait-free.  Words: word.h.
 *
 *   x_head    turns that went down and are posted; by the root of such a turn.  The next one has
 *             passed that turn before, so posts follow each other.  Each member counts them, too:
 *             were it the number of the turn, 2^30 turns up in a row would look like the next one.
 *   x_floor   turns that all have passed; by the last member of each half.  Who passes the next
 *             half's last turn last has seen this post, or what others wrote after it.
 *   x_passed  members that have passed a half of this parity; zero again before x_floor says so
 *   what      and number, data, down: the root's, before x_head; read until passed
 *   x_came    up: members that gave, and whether the root sleeps; zero again before the root passes
 *   gave[r]   and shares of data, up: member r's, before it comes; the root reads until it passes
 */
#ifndef WEFT_COLL_FEED_H
#define WEFT_COLL_FEED_H

#include "coll/shm/shared_word.h"

#define WEFT_FEED_MEMBERS WEFT_WORD_SLEEPERS
#ifndef WEFT_FEED_TURNS
#define WEFT_FEED_TURNS 32u /* half of it shares a switch of ranks; a power of two */
#endif
#define WEFT_FEED_HALF (WEFT_FEED_TURNS / 2)
#define WEFT_FEED_DATA 480 /* places are apart by no power of two */

struct weft_feed_turn {
	alignas(WEFT_CACHELINE) uint32_t what; /* which collective, and how much data */
	uint32_t number;                       /* and of all of the group's */
	alignas(16) char data[WEFT_FEED_DATA];
	_Atomic uint64_t x_came;
	uint16_t gave[WEFT_FEED_MEMBERS]; /* as what, shorter */
};

struct weft_feed {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_head;
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_floor;
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_passed[2];
	struct weft_feed_turn turn[WEFT_FEED_TURNS];
};

static inline struct weft_feed_turn *weft_coll_feed_at(struct weft_feed *f, uint32_t turn)
{
	return &f->turn[turn % WEFT_FEED_TURNS];
}

static inline uint32_t weft_coll_feed_next(uint32_t turn)
{
	return (turn + 1) & WEFT_WORD_NUMBERS;
}

/* Of the data of a turn, for each of n members. */
static inline size_t weft_coll_feed_share(unsigned n)
{
	return n > WEFT_FEED_MEMBERS ? 0 : WEFT_FEED_DATA / n & ~(size_t)15;
}

/* What x_floor must say before the place of `turn` is free. */
static inline uint32_t weft_coll_feed_floor(uint32_t turn)
{
	return ((turn & ~(WEFT_FEED_HALF - 1)) - WEFT_FEED_HALF) & WEFT_WORD_NUMBERS;
}

/* My share is written, one of n that are to come.  The sleepers to wake, a bit each. */
static inline uint32_t weft_coll_feed_come(struct weft_feed_turn *t, unsigned n)
{
	/* POST -> SEE (weft_coll_shared_word_over, of the root).  Carries: the share and gave[].  Without it
	 * the root could read what lay there a ring ago. */
	uint64_t old = atomic_fetch_add_explicit(&t->x_came, weft_coll_shared_word_of(1),
						 memory_order_release);
	if (old >> 32 != n - 1 || !(uint32_t)old)
		return 0;
	/* Relaxed: only the bit counts.  The root comes to sleep before all are here, or not. */
	return (uint32_t)atomic_fetch_and_explicit(&t->x_came, ~(uint64_t)UINT32_MAX,
						   memory_order_relaxed);
}

/* I have read all.  Nobody comes there before x_floor says that all have passed. */
static inline void weft_coll_feed_clear(struct weft_feed_turn *t)
{
	/* Relaxed: published by PASS. */
	atomic_store_explicit(&t->x_came, 0, memory_order_relaxed);
}

/* I am through with `turn`, of n members.  True: as the last one of a half ring; then post x_floor,
 * with weft_coll_feed_next(turn). */
static inline bool weft_coll_feed_pass(struct weft_feed *f, uint32_t turn, unsigned n)
{
	if (weft_coll_feed_next(turn) % WEFT_FEED_HALF)
		return false;
	_Atomic uint32_t *x_passed = &f->x_passed[turn / WEFT_FEED_HALF & 1];
	/* PASS -> PASS (the last member's).  Carries: we have read this half's places, or cleared
	 * them.  Without it the last one could free a place that another still reads. */
	if (atomic_fetch_add_explicit(x_passed, 1, memory_order_acq_rel) != n - 1)
		return false;
	/* Relaxed: published by the post of x_floor. */
	atomic_store_explicit(x_passed, 0, memory_order_relaxed);
	return true;
}

#endif
