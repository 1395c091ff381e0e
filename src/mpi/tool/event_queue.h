/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_queue.h - events on their way to callbacks: a bounded queue, many producers, one consumer at
 * a time.
 *
 * Callers   put: any thread, under any lock.  take: one at a time.
 * Order     what you wrote before put() is visible to the taker.
 * Progress  put: lock-free.  take: never waits; false may also mean that the oldest put is half done.
 * Full      put() returns false and keeps nothing.
 *
 * A cell's sequence number says whose turn it is: pos: a putter's; pos + 1: the taker's.
 */
#ifndef WEFT_MPI_TOOL_EVENT_QUEUE_H
#define WEFT_MPI_TOOL_EVENT_QUEUE_H

#include <string.h>
#include "mpi/tool/event.h"

#define WEFT_EVENT_QUEUE 4096u /* events; a power of two */

struct weft_event_cell {
	_Atomic uint64_t x_seq;
	struct weft_event event;
};

struct weft_event_queue {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_put;  /* producers */
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_take; /* the consumer writes */
	struct weft_event_cell cell[WEFT_EVENT_QUEUE];
};

static inline void weft_event_queue_init(struct weft_event_queue *q)
{
	memset(q, 0, sizeof *q);
	for (uint64_t i = 0; i < WEFT_EVENT_QUEUE; i++)
		/* Relaxed: no other thread knows it yet. */
		atomic_store_explicit(&q->cell[i].x_seq, i, memory_order_relaxed);
}

static inline bool weft_event_queue_put(struct weft_event_queue *q, const struct weft_event *e)
{
	/* Relaxed: the cell's number decides. */
	uint64_t pos = atomic_load_explicit(&q->x_put, memory_order_relaxed);
	struct weft_event_cell *c;
	for (;;) { /* ends: another producer has taken the place, or the queue is full */
		c = &q->cell[pos % WEFT_EVENT_QUEUE];
		/* REUSE <- FREE (take).  Carries: the taker's copy is over. */
		uint64_t seq = atomic_load_explicit(&c->x_seq, memory_order_acquire);
		if (seq < pos)
			return false;
		if (seq > pos)
			pos = atomic_load_explicit(&q->x_put, memory_order_relaxed);
		else if (atomic_compare_exchange_weak_explicit(&q->x_put, &pos, pos + 1,
							       memory_order_relaxed,
							       memory_order_relaxed))
			break;
	}
	c->event = *e;
	/* PUT -> TAKE.  Carries: the event.  Without it the taker could copy the old one. */
	atomic_store_explicit(&c->x_seq, pos + 1, memory_order_release);
	return true;
}

static inline bool weft_event_queue_take(struct weft_event_queue *q, struct weft_event *e_p)
{
	/* Relaxed: the taker's own. */
	uint64_t pos = atomic_load_explicit(&q->x_take, memory_order_relaxed);
	struct weft_event_cell *c = &q->cell[pos % WEFT_EVENT_QUEUE];
	/* TAKE <- PUT. */
	if (atomic_load_explicit(&c->x_seq, memory_order_acquire) != pos + 1)
		return false;
	*e_p = c->event;
	/* FREE -> REUSE (put).  Carries: our read of the event is over. */
	atomic_store_explicit(&c->x_seq, pos + WEFT_EVENT_QUEUE, memory_order_release);
	atomic_store_explicit(&q->x_take, pos + 1, memory_order_relaxed);
	return true;
}

/* A hint. */
static inline bool weft_event_queue_empty(struct weft_event_queue *q)
{
	return atomic_load_explicit(&q->x_take, memory_order_relaxed) ==
	       atomic_load_explicit(&q->x_put, memory_order_relaxed);
}

#endif
