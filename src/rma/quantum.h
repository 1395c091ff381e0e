/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quantum.h - quanta of a lock that several members of a host want: a member that has had more of them than a waiter
 * does not take the free lock before that waiter.
 *
 * Recipe    waiter: says that it waits; then looks.  A lock that it finds free it takes, if it is within a quantum or
 *           may begin one.
 *           A quantum is WEFT_RMA_QUANTUM locks.  A member begins one when no waiter has had fewer; the first waiter
 *           that says so marks the lock, and as long as it is not marked nothing of this is looked at.
 *           A member that has stood back for as long as a waiter looks passes over those that it stood back for:
 *           it takes their words back, and they say again that they wait as soon as they run (skip).  So a waiter that
 *           is stopped, or dead, holds up nothing for longer than that.
 * Safety    none of this decides whether a lock is free: lock.c does.  All of it are hints, in relaxed order;
 *           a stale one costs a quantum's fairness, and is written again by the next look.
 * Bound     while it waits, a member is at most a quantum behind each other one.
 * Callers   a member's thread that takes the lock; the program orders those of one process and target.
 * Owner     x_wants: its member, and those that pass over it.  x_quanta: its member.
 */
#ifndef WEFT_RMA_QUANTUM_H
#define WEFT_RMA_QUANTUM_H

#include "base/base.h"

/* Locks: some 3 us, so that a core that changes hands between two quanta does not cost more than it gives. */
#define WEFT_RMA_QUANTUM 64

/* A member at one lock, in shared memory: a line that it writes. */
struct weft_rma_quanta {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_wants;
	_Atomic uint32_t x_quanta;
};

/* The lock as the caller sees it. */
struct weft_rma_queue {
	_Atomic uint32_t *x_marked; /* I */
	struct weft_rma_quanta
		*quanta; /* I: of each member, by place; NULL: no other member shares the lock */
	int me, places;  /* I */
	unsigned left;   /* of the own quantum */
};

/* Before each look of a waiter. */
static inline void weft_rma_quantum_want(const struct weft_rma_queue *q)
{
	_Atomic uint32_t *x_wants = &q->quanta[q->me].x_wants;
	/* Relaxed, here and below: hints (Safety).  Written only where they change, so that lines stay shared. */
	if (!atomic_load_explicit(x_wants, memory_order_relaxed))
		atomic_store_explicit(x_wants, 1, memory_order_relaxed);
	if (!atomic_load_explicit(q->x_marked, memory_order_relaxed))
		atomic_store_explicit(q->x_marked, 1, memory_order_relaxed);
}

static inline void weft_rma_quantum_unwant(const struct weft_rma_queue *q)
{
	atomic_store_explicit(&q->quanta[q->me].x_wants, 0, memory_order_relaxed);
}

static inline uint32_t weft_rma_quantum_count(const struct weft_rma_queue *q, int place)
{
	return atomic_load_explicit(&q->quanta[place].x_quanta, memory_order_relaxed);
}

/* It changes when a quantum of any member begins. */
static inline uint32_t weft_rma_quantum_sum(const struct weft_rma_queue *q)
{
	uint32_t sum = 0;
	for (int i = 0; i < q->places; i++)
		sum += weft_rma_quantum_count(q, i);
	return sum;
}

/* Does that member wait, with fewer quanta than `quanta`? */
static inline bool weft_rma_quantum_behind(const struct weft_rma_queue *q, int place,
					   uint32_t quanta)
{
	return place != q->me &&
	       atomic_load_explicit(&q->quanta[place].x_wants, memory_order_relaxed) &&
	       (int32_t)(weft_rma_quantum_count(q, place) - quanta) < 0;
}

/* A member that comes has no claim from the time when it did not want the lock: it is a quantum behind at most. */
static inline void weft_rma_quantum_join(const struct weft_rma_queue *q)
{
	uint32_t mine = weft_rma_quantum_count(q, q->me), most = mine;
	for (int i = 0; i < q->places; i++)
		if ((int32_t)(weft_rma_quantum_count(q, i) - most) > 0)
			most = weft_rma_quantum_count(q, i);
	if (most != mine)
		atomic_store_explicit(&q->quanta[q->me].x_quanta, most - 1, memory_order_relaxed);
}

/* Begins a quantum.  False: a waiter comes first. */
static inline bool weft_rma_quantum_begin(struct weft_rma_queue *q)
{
	uint32_t mine = weft_rma_quantum_count(q, q->me);
	bool wanted = false;
	for (int i = 0; i < q->places; i++) {
		if (weft_rma_quantum_behind(q, i, mine))
			return false;
		wanted |= i != q->me &&
			  atomic_load_explicit(&q->quanta[i].x_wants, memory_order_relaxed);
	}
	if (!wanted)
		atomic_store_explicit(q->x_marked, 0, memory_order_relaxed);
	atomic_store_explicit(&q->quanta[q->me].x_quanta, mine + 1, memory_order_relaxed);
	q->left = WEFT_RMA_QUANTUM;
	return true;
}

/* May the caller take the lock if it is free?  Then used() follows if it has. */
static inline bool weft_rma_quantum_mine(struct weft_rma_queue *q)
{
	if (weft_likely(!q->quanta || !atomic_load_explicit(q->x_marked, memory_order_relaxed)))
		return true;
	return q->left || weft_rma_quantum_begin(q);
}

static inline void weft_rma_quantum_used(struct weft_rma_queue *q)
{
	q->left -= q->left > 0;
}

/* Passes over the waiters that the caller has stood back for. */
static inline void weft_rma_quantum_skip(struct weft_rma_queue *q)
{
	uint32_t mine = weft_rma_quantum_count(q, q->me);
	for (int i = 0; q->quanta && i < q->places; i++)
		if (weft_rma_quantum_behind(q, i, mine))
			atomic_store_explicit(&q->quanta[i].x_wants, 0, memory_order_relaxed);
}

#endif
