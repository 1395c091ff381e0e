/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpsc.h - unbounded queue of embedded nodes, many producers, one consumer at a time.
 *
 * Callers   push: any thread, task handlers included; not a signal handler.
 *           pop: one at a time (the holder of the mask that covers the queue).
 *           empty: any thread.
 * Owner     the queue owns a node from push until pop hands it out; then it never touches it again.
 * Order     what was written before push is visible to the consumer; nodes of one producer come
 *           out in the order they went in.
 * Progress  push: one exchange and one store, wait-free.  pop: never waits; NULL means empty, or
 *           that the next push is half done: empty() tells them apart, a half-done push counts as
 *           not empty.
 * Full      never.
 * Destroy   when no push or pop can be running.
 */
#ifndef WEFT_MPSC_H
#define WEFT_MPSC_H

#include "base/base.h"

struct weft_mpsc_node {
	_Atomic(struct weft_mpsc_node *) x_next;
};

struct weft_mpsc {
	/* P: the node pushed last */
	alignas(WEFT_CACHELINE) _Atomic(struct weft_mpsc_node *) x_last;
	/* C: the node to pop next, or the dummy */
	alignas(WEFT_CACHELINE) struct weft_mpsc_node *first;
	struct weft_mpsc_node dummy;
};

static inline void weft_mpsc_init(struct weft_mpsc *q)
{
	atomic_store_explicit(&q->dummy.x_next, NULL, memory_order_relaxed);
	atomic_store_explicit(&q->x_last, &q->dummy, memory_order_relaxed);
	q->first = &q->dummy;
}

static inline void weft_mpsc_push(struct weft_mpsc *q, struct weft_mpsc_node *n)
{
	/* Relaxed: n is ours until it is linked below. */
	atomic_store_explicit(&n->x_next, NULL, memory_order_relaxed);
	/*
	 * CHAIN.  acq_rel: the release lets the next producer, which stores into n, find our NULL
	 * before its link; the acquire is that producer's side.  seq_cst beside a sleeper's flag:
	 * the exchange comes before the submitter's look at that flag (task/ relies on it).
	 */
	struct weft_mpsc_node *before =
		atomic_exchange_explicit(&q->x_last, n, memory_order_seq_cst);
	/* PUB -> SEE (pop).  Carries: *n and what surrounds it.  Without it pop could hand out a
	 * node whose owner's fields are not yet written. */
	atomic_store_explicit(&before->x_next, n, memory_order_release);
}

/* False also while a push is half done. */
static inline bool weft_mpsc_empty(const struct weft_mpsc *q)
{
	/* The dummy is last exactly when all that was pushed has been popped.  seq_cst: the partner
	 * of the exchange in push, for a thread that goes to sleep on the answer. */
	return atomic_load_explicit(&q->x_last, memory_order_seq_cst) == &q->dummy;
}

static inline struct weft_mpsc_node *weft_mpsc_pop(struct weft_mpsc *q)
{
	struct weft_mpsc_node *n = q->first;
	/* SEE <- PUB (push). */
	struct weft_mpsc_node *next = atomic_load_explicit(&n->x_next, memory_order_acquire);
	if (n == &q->dummy) {
		if (!next)
			return NULL;
		q->first = n = next;
		next = atomic_load_explicit(&n->x_next, memory_order_acquire);
	}
	if (next) {
		q->first = next;
		return n;
	}
	/* n looks like the last.  The dummy goes behind it, so that n can leave. */
	struct weft_mpsc_node *last = n;
	atomic_store_explicit(&q->dummy.x_next, NULL, memory_order_relaxed);
	q->first = &q->dummy;
	/* CHAIN, from the consumer's side: a producer that follows stores into the dummy and must
	 * find its NULL there first. */
	if (atomic_compare_exchange_strong_explicit(&q->x_last, &last, &q->dummy,
						    memory_order_acq_rel, memory_order_relaxed))
		return n;
	/* A producer came between and will link, or has linked, n to its node. */
	q->first = n;
	next = atomic_load_explicit(&n->x_next, memory_order_acquire);
	if (!next)
		return NULL; /* half done */
	q->first = next;
	return n;
}

#endif
