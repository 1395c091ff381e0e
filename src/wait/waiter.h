/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waiter.h - the list of sleepers that hangs in a completion's word.
 *
 * The word is PENDING, DONE, or the first wait node, perhaps with the bit LOCKED: then one waiter
 * is taking nodes out.  The signaller exchanges DONE into the word and never touches the completion
 * again: it wakes the list that it found, unless the word was LOCKED; then the lock's holder finds
 * DONE on letting go, and wakes.
 *
 * Callers   enlist, delist: the thread that will sleep, for its own nodes.  signal: completion.h.
 * Owner     a node belongs to its waiter; after DONE it is the waker's until x_left is set.  A
 *           waiter may leave once each node is delisted or left.
 * Order     signal -> x_left and the unpark: what the signaller wrote is visible to the woken.
 * Progress  enlist, delist: spin while another waiter of the same completion takes a node out.
 *
 *            enlist delist signal    .  together, no help needed
 *   enlist     .      S      .       S  waits for the other thread's few instructions
 *   delist     S      S      .
 */
#ifndef WEFT_WAITER_H
#define WEFT_WAITER_H

#include "base/assert.h"
#include "base/backoff.h"
#include "wait/completion.h"
#include "wait/park.h"
#include "wait/single_waiter.h"

#define WEFT_COMPLETION_LOCKED ((uintptr_t)2)

struct weft_waiter {
	struct weft_parker *parker; /* I */
	/* Completions that must still come before the waiter is woken; signallers count it down.
	 * 1 for wait-any. */
	_Atomic int x_need;
};

struct weft_wait_node {
	alignas(8) struct weft_wait_node
		*next;              /* owner until enlisted, then the lock's holder or the waker */
	struct weft_waiter *waiter; /* I */
	_Atomic bool x_left;        /* set by the waker: its last access */
};

/*
 * Wake-ups that a poller keeps back until its round is over.  While weft_wait_wake_batch_self points
 * to one, signal() appends to it instead of waking.
 */
struct weft_wake_batch {
	struct weft_wait_node *first;
	struct weft_wait_node **last_p;
	unsigned count;
};

extern _Thread_local struct weft_wake_batch *weft_wait_wake_batch_self;

static inline void weft_wait_wake_batch_init(struct weft_wake_batch *b)
{
	b->first = NULL;
	b->last_p = &b->first;
	b->count = 0;
}

/* Wakes all threads in b; returns how many other than `except` that were. */
unsigned weft_wait_wake_batch_flush(struct weft_wake_batch *b, const struct weft_parker *except);

/* Wakes, or batches, the owners of a list that came out of a completion. */
void weft_wait_list_wake(struct weft_wait_node *list);

static inline void weft_wait_node_init(struct weft_wait_node *n, struct weft_waiter *w)
{
	n->waiter = w;
	/* Relaxed: published by enlist. */
	atomic_store_explicit(&n->x_left, false, memory_order_relaxed);
}

/* False: the completion is done already and n is not in use. */
static inline bool weft_wait_completion_enlist(struct weft_completion *c, struct weft_wait_node *n)
{
	unsigned turns = 0;
	weft_assert(n->waiter && !((uintptr_t)n & (WEFT_COMPLETION_LOCKED | WEFT_COMPLETION_DONE)));
	weft_wait_single_enlisting();
	/* Acquire: DONE carries the result. */
	uintptr_t seen = atomic_load_explicit(&c->x_state, memory_order_acquire);
	for (;;) { /* ends: DONE, or our node is in; a retry follows another thread's success */
		if (seen == WEFT_COMPLETION_DONE)
			return false;
		if (seen & WEFT_COMPLETION_LOCKED) {
			weft_backoff(&turns);
			seen = atomic_load_explicit(&c->x_state, memory_order_acquire);
			continue;
		}
		n->next = (struct weft_wait_node *)seen;
		/* LIST -> WAKE (signal).  Carries: *n and *n->waiter.  Without it the signaller
		 * could follow a next that is not yet written. */
		if (atomic_compare_exchange_weak_explicit(&c->x_state, &seen, (uintptr_t)n,
							  memory_order_acq_rel,
							  memory_order_acquire))
			return true;
	}
}

/* Takes n out of the list *head; n is in it. */
static inline void weft_wait_list_unlink(struct weft_wait_node **head, struct weft_wait_node *n)
{
	while (*head != n) { /* ends at n, the list is ours */
		weft_assert(*head);
		head = &(*head)->next;
	}
	*head = n->next;
}

/*
 * Takes n, which was enlisted, out again.  False: the completion was signalled, and its waker will
 * set n->x_left and unpark our parker.
 */
static inline bool weft_wait_completion_delist(struct weft_completion *c, struct weft_wait_node *n)
{
	unsigned turns = 0;
	uintptr_t seen = atomic_load_explicit(&c->x_state, memory_order_acquire);
	for (;;) { /* ends: DONE, or we get the lock */
		if (seen == WEFT_COMPLETION_DONE)
			return false;
		if (seen & WEFT_COMPLETION_LOCKED) {
			weft_backoff(&turns);
			seen = atomic_load_explicit(&c->x_state, memory_order_acquire);
			continue;
		}
		/* HOLD <- LIST and LEAVE: see the nodes that others enlisted or relinked. */
		if (atomic_compare_exchange_weak_explicit(
			    &c->x_state, &seen, seen | WEFT_COMPLETION_LOCKED, memory_order_acq_rel,
			    memory_order_acquire))
			break;
	}
	struct weft_wait_node *list = (struct weft_wait_node *)seen;
	weft_assert(list);
	weft_wait_list_unlink(&list, n);
	uintptr_t locked = seen | WEFT_COMPLETION_LOCKED;
	/* LEAVE -> HOLD, WAKE.  Carries: the relinked nodes.  On failure acquire: DONE's result,
	 * for those we wake. */
	if (!atomic_compare_exchange_strong_explicit(&c->x_state, &locked, (uintptr_t)list,
						     memory_order_acq_rel, memory_order_acquire))
		weft_wait_list_wake(list); /* signalled meanwhile: the list was left to us */
	return true;
}

/* Makes c done; returns the list that the caller must wake, or NULL. */
static inline struct weft_wait_node *weft_wait_completion_finish(struct weft_completion *c)
{
	/* PUB -> SEE (done) and WAKE <- LIST.  Carries: the result to the waiters, their nodes to
	 * us.  Our last access to *c. */
	uintptr_t old =
		atomic_exchange_explicit(&c->x_state, WEFT_COMPLETION_DONE, memory_order_acq_rel);
	if (weft_likely(old == WEFT_COMPLETION_PENDING) || old == WEFT_COMPLETION_DONE ||
	    (old & WEFT_COMPLETION_LOCKED))
		return NULL;
	return (struct weft_wait_node *)old;
}

#endif
