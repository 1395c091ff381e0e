/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.h - what the caller of an access needs to do it on the spot: a target's memory that is mapped,
 * and how its elements are changed one by one beside bulk accumulates.
 *
 * Accumulates of one element are atomics of the processor; one of many elements, in bulk, takes the target's
 * x_acc and then adds without (acc.c).  Both must not touch the same elements at once:
 *
 *   single                              bulk
 *   inside = 1                          x_acc = own number
 *   compiler barrier                    membarrier, over all processes
 *   x_acc?  then inside = 0, wait       waits until no member is inside
 *   the atomic                          the elements
 *   inside = 0                          x_acc = 0
 *
 * After the membarrier either the single's inside = 1 is visible, and the bulk waits; or the single looks
 * at x_acc after it, and sees the bulk.  Where several threads of a member may be inside at once
 * (MPI_THREAD_MULTIPLE), they count themselves by atomics instead.  Without membarrier a window has no bulk and no
 * inside.
 *
 * Callers   any thread; enter to leave: no wait, no call.
 */
#ifndef WEFT_RMA_DIRECT_H
#define WEFT_RMA_DIRECT_H

#include "base/base.h"

struct weft_rma_direct {
	_Atomic(char *) x_map; /* NULL: the access goes another way */
	uint64_t len;          /* I */
	int64_t unit;          /* I */
	bool atomics;          /* I: elements are changed by the processor's atomics */
	/* I; NULL: this window has no bulk */
	_Atomic uint32_t *x_inside;
	bool counted; /* I: several threads of this process may be inside */
	_Atomic int32_t *x_acc;
};

static inline void weft_rma_direct_leave(const struct weft_rma_direct *d)
{
	/* OUT -> DRAIN.  Carries: the element. */
	if (d->x_inside && d->counted)
		atomic_fetch_sub_explicit(d->x_inside, 1, memory_order_release);
	else if (d->x_inside)
		atomic_store_explicit(d->x_inside, 0, memory_order_release);
}

/* May the caller change an element now?  Then leave follows. */
static inline bool weft_rma_direct_enter(const struct weft_rma_direct *d)
{
	if (!d->x_inside)
		return true;
	/* INSIDE -> DRAIN (acc.c).  Relaxed: the bulk's membarrier orders it before the look. */
	if (d->counted)
		atomic_fetch_add_explicit(d->x_inside, 1, memory_order_relaxed);
	else
		atomic_store_explicit(d->x_inside, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	/* TAKE <- GIVE (acc.c).  Carries: the elements that a bulk has changed. */
	if (weft_likely(!atomic_load_explicit(d->x_acc, memory_order_acquire)))
		return true;
	weft_rma_direct_leave(d);
	return false;
}

#endif
