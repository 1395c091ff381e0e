/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - a ring of phases in shared memory, in which the members of a group on one host do small
 * collectives.
 *
 * With more ranks than cores a message costs its receiver a turn on a core.  In the ring the last
 * member to arrive does the work for all, and no other member has to run for that; members that
 * need not wait for each other get up to a ring of phases ahead, so that one switch between ranks
 * on a core serves many phases.
 *
 * Recipe    Each collective takes the next phase, the same on all members, of one of three kinds:
 *           down  The root waits until the place is free, writes it and posts x_head.  The other
 *                 members wait for x_head and read.
 *           up    Each member waits until the place is free: the root, too, or it could take what
 *                 was given to another root there.  Members write their shares and come.  The root
 *                 waits until all have come, reads, and clears x_came.
 *           meet  Each member waits until the place is free, writes its share and arrives.  The
 *                 last one combines the shares, clears x_came and posts x_head.  The other members
 *                 wait for x_head and read.
 *           Then each member passes the phase.
 * Signs     With a core for each member one counter of all is slow: each has to fetch its line in
 *           turn.  Members that meet without data exchange signs instead, which takes no phase.  In
 *           round k each member signs at the one 2^k behind it, then waits for the sign of the one
 *           2^k before it; after log2(n) rounds each knows that all have come.  A sign has a place for
 *           even and one for odd meetings by signs: a member that signs in the one after the next
 *           knows that all have come to the next, and so have read their signs of this one.
 * Free      A member that passes the last phase of a half ring counts itself; the last member to do
 *           so posts x_floor.  A place is free when all have passed the half ring before the last
 *           one, so each member counts once per half ring, not per phase.
 * Area      Shares of a meeting that do not fit into its place lie in area[m & 1], m the number of
 *           meetings before.  Two areas are enough: a member in meeting m + 2 knows that all have
 *           arrived in m + 1, and so have read what lay there in m.
 * Failure   A member that finds another one lost posts LOST instead of the number that it waits
 *           for: either that or the number is posted, so all members see the same end.
 * Callers   each member one thread at a time.
 * Owner     the memory is the first member's; every member may write all of it, so no index or
 *           length is read from it, and a result is no more worth than the job's other results.
 * Progress  come, arrive, pass: wait-free.  Waiting: eventcount.h.
 *
 *   x_head    phases down and meetings that are posted, by the root or the last member to arrive,
 *             which has passed the one before, so posts follow each other.  Members count them,
 *             too: were x_head the number of the phase, 2^30 phases up in a row would look like the
 *             next one.
 *   x_floor   phases that all have passed; by the last member of each half.  The member that passes
 *             the next half's last phase last has seen this post, or what was written after it.
 *   x_passed  members that have passed a half of this parity; zero again before x_floor says so
 *   what      and number, of a place: the poster's, before x_head; read until passed.  what 0: the
 *             members of a meeting did not mean the same.
 *   x_came    members that came or arrived; in `up` also whether the root sleeps; zero again before
 *             the root, or the last to arrive, passes
 *   gave[r]   and its share of data or area: member r's, before it comes or arrives; read until
 *             passed.  The last member's share becomes the result of a meeting that combines.
 *   x_sign    of a member, round and parity: how many meetings by signs there have been; by the
 *             member before it, which has written what and number there
 *   x_asleep  members that sleep, or are about to; a member that is lost stays counted
 *   x_note    one per member: the collective that it called last, written by it, read by all at any
 *             time (mismatch.c)
 */
#ifndef WEFT_COLL_SHM_RING_H
#define WEFT_COLL_SHM_RING_H

#include "coll/shm/eventcount.h"

#define WEFT_COLL_RING_MEMBERS WEFT_COLL_EC_SLEEPERS
#define WEFT_COLL_RING_ROUNDS 5 /* of signs; 2 to that power are all members */
#ifndef WEFT_COLL_RING_PLACES
/* Half of it shares a switch of ranks; a power of two.  16: with 32 an allreduce in pieces, whose data
 * drive a place out of the caches before its turn comes again, took 17 % longer; with 8 a broadcast of
 * 8 bytes took 19 % longer. */
#define WEFT_COLL_RING_PLACES 16u
#endif
#define WEFT_COLL_RING_HALF (WEFT_COLL_RING_PLACES / 2)
#define WEFT_COLL_RING_DATA 432
#define WEFT_COLL_RING_AREA 4096

struct weft_coll_ring_place {
	/* The kind of collective and how much data; and its number among the group's. */
	alignas(WEFT_CACHELINE) uint32_t what;
	uint32_t number;
	_Atomic uint64_t x_came;
	uint32_t gave[WEFT_COLL_RING_MEMBERS]; /* as what */
	alignas(16) char data[WEFT_COLL_RING_DATA];
};

struct weft_coll_ring_note {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_note;
};

/* What a member tells another one in a round; the number of the collective, and 0: not all mean the
 * same. */
struct weft_coll_ring_sign {
	alignas(32) _Atomic uint64_t x_sign;
	uint32_t what;
	uint32_t number;
};

struct weft_coll_ring_signs {
	alignas(WEFT_CACHELINE) struct weft_coll_ring_sign of[2];
};

struct weft_coll_ring {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_head;
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_floor;
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_passed[2];
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_asleep;
	struct weft_coll_ring_note note[WEFT_COLL_RING_MEMBERS];
	struct weft_coll_ring_signs sign[WEFT_COLL_RING_MEMBERS][WEFT_COLL_RING_ROUNDS];
	struct weft_coll_ring_place place[WEFT_COLL_RING_PLACES];
	alignas(WEFT_CACHELINE) char area[2][WEFT_COLL_RING_AREA];
};

static inline struct weft_coll_ring_place *weft_coll_ring_at(struct weft_coll_ring *ring,
							     uint32_t phase)
{
	return &ring->place[phase % WEFT_COLL_RING_PLACES];
}

/* What member r is told in a round of a meeting by signs, `number`. */
static inline struct weft_coll_ring_sign *
weft_coll_ring_sign_at(struct weft_coll_ring *ring, unsigned r, unsigned round, uint32_t number)
{
	weft_assert(r < WEFT_COLL_RING_MEMBERS && round < WEFT_COLL_RING_ROUNDS);
	return &ring->sign[r][round].of[number & 1];
}

/* n members will not meet any more.  The sleepers to wake. */
static inline uint32_t weft_coll_ring_abort_signs(struct weft_coll_ring *ring, unsigned n,
						  uint32_t why)
{
	uint32_t sleepers = 0;
	for (unsigned r = 0; r < n; r++)
		for (unsigned i = 0; i < WEFT_COLL_RING_ROUNDS * 2; i++)
			sleepers |= weft_coll_ec_abort(
				&weft_coll_ring_sign_at(ring, r, i / 2, i)->x_sign, why);
	return sleepers;
}

/* Bytes of a place's data for each of n members, and of the area. */
static inline size_t weft_coll_ring_share(unsigned n)
{
	return n > WEFT_COLL_RING_MEMBERS ? 0 : WEFT_COLL_RING_DATA / n & ~(size_t)15;
}

static inline size_t weft_coll_ring_area_share(unsigned n)
{
	return n > WEFT_COLL_RING_MEMBERS ? 0
					  : WEFT_COLL_RING_AREA / n & ~(size_t)(WEFT_CACHELINE - 1);
}

/* What x_floor must say before the place of `phase` is free. */
static inline uint32_t weft_coll_ring_floor(uint32_t phase)
{
	return ((phase & ~(WEFT_COLL_RING_HALF - 1)) - WEFT_COLL_RING_HALF) & WEFT_COLL_EC_NUMBERS;
}

/* A phase up: the caller's share is written, one of n that are to come.  The sleepers to wake. */
static inline uint32_t weft_coll_ring_come(struct weft_coll_ring_place *p, unsigned n)
{
	/* POST -> SEE (weft_coll_ec_reached, of the root).  Carries: the share and gave[].  Without
	 * it the root could read what lay there a ring ago. */
	uint64_t old =
		atomic_fetch_add_explicit(&p->x_came, weft_coll_ec_of(1), memory_order_release);
	if (old >> 32 != n - 1 || !(uint32_t)old)
		return 0;
	/* Relaxed: only the bit counts.  The root comes to sleep before all are here, or not. */
	return (uint32_t)atomic_fetch_and_explicit(&p->x_came, ~(uint64_t)UINT32_MAX,
						   memory_order_relaxed);
}

/* A meeting of n: the caller's share is written.  True: all are here, and the caller must combine
 * them, clear the place and post x_head. */
static inline bool weft_coll_ring_arrive(struct weft_coll_ring_place *p, unsigned n)
{
	/* ARRIVE -> LAST (the same operation of the last member).  Carries: the share and gave[],
	 * and that the caller has read what lies in the other area.  Without it the last member
	 * could combine an old share, and a member could write over what another still reads. */
	return atomic_fetch_add_explicit(&p->x_came, weft_coll_ec_of(1), memory_order_acq_rel) >>
		       32 ==
	       n - 1;
}

/* All that came there is read.  No member comes there before x_floor says that all have passed. */
static inline void weft_coll_ring_clear(struct weft_coll_ring_place *p)
{
	/* Relaxed: published by PASS. */
	atomic_store_explicit(&p->x_came, 0, memory_order_relaxed);
}

/* The caller, one of n members, is through with `phase`.  True: as the last one of a half ring;
 * then it must post x_floor, with weft_coll_ec_next(phase). */
static inline bool weft_coll_ring_pass(struct weft_coll_ring *ring, uint32_t phase, unsigned n)
{
	if (weft_coll_ec_next(phase) % WEFT_COLL_RING_HALF)
		return false;
	_Atomic uint32_t *x_passed = &ring->x_passed[phase / WEFT_COLL_RING_HALF & 1];
	/* PASS -> PASS (the last member's).  Carries: the caller has read this half's places, or
	 * cleared them.  Without it the last member could free a place that another still reads. */
	if (atomic_fetch_add_explicit(x_passed, 1, memory_order_acq_rel) != n - 1)
		return false;
	/* Relaxed: published by the post of x_floor. */
	atomic_store_explicit(x_passed, 0, memory_order_relaxed);
	return true;
}

/* For its next group. */
static inline void weft_coll_ring_reset(struct weft_coll_ring *ring)
{
	/* Relaxed, all: the message that offers the ring publishes them. */
	atomic_store_explicit(&ring->x_head, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->x_floor, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->x_passed[0], 0, memory_order_relaxed);
	atomic_store_explicit(&ring->x_passed[1], 0, memory_order_relaxed);
	atomic_store_explicit(&ring->x_asleep, 0, memory_order_relaxed);
	for (unsigned i = 0; i < WEFT_COLL_RING_PLACES; i++) {
		weft_coll_ring_clear(&ring->place[i]);
		ring->place[i].number = UINT32_MAX; /* the last group's could be equal */
	}
	for (unsigned r = 0; r < WEFT_COLL_RING_MEMBERS; r++) {
		atomic_store_explicit(&ring->note[r].x_note, 0, memory_order_relaxed);
		for (unsigned i = 0; i < WEFT_COLL_RING_ROUNDS * 2; i++)
			atomic_store_explicit(&weft_coll_ring_sign_at(ring, r, i / 2, i)->x_sign, 0,
					      memory_order_relaxed);
	}
}

/*
 * Asserts what holds at any time in a ring of n members, none of which writes what it may not, for
 * a member that is in `phase`, after `heads` posts of x_head.
 */
static inline void weft_coll_ring_check(struct weft_coll_ring *ring, uint32_t phase, uint32_t heads,
					unsigned n)
{
	/* Relaxed, all: the member's own view. */
	uint64_t head = atomic_load_explicit(&ring->x_head, memory_order_relaxed);
	uint64_t floor = atomic_load_explicit(&ring->x_floor, memory_order_relaxed);
	uint64_t sleepers = ~(uint64_t)0 >> (64 - n);
	if (head >> 63 || floor >> 63)
		return;
	weft_assert(weft_coll_ec_has(head, heads));
	/* The floor is the end of a half ring, and the caller has not passed `phase`. */
	weft_assert((uint32_t)(floor >> 32) % WEFT_COLL_RING_HALF == 0);
	weft_assert(weft_coll_ec_has(weft_coll_ec_of(phase), (uint32_t)(floor >> 32)));
	weft_assert(((uint32_t)head | (uint32_t)floor) <= sleepers);
	weft_assert(atomic_load_explicit(&ring->x_passed[0], memory_order_relaxed) <= n);
	weft_assert(atomic_load_explicit(&ring->x_passed[1], memory_order_relaxed) <= n);
	(void)sleepers;
}

#endif
