/* SPDX-License-Identifier: BSD-3-Clause */
/* sole.c - becoming the only thread that waits, and ceasing to be. */
#include "wait/sole.h"
#include "base/backoff.h"

struct weft_sole weft_wait_sole;

void weft_wait_sole_begin(void)
{
	static _Atomic bool x_begun;
	if (atomic_exchange_explicit(&x_begun, true, memory_order_relaxed))
		return;
	uint32_t me = weft_wait_solo_id();
	if (me != WEFT_SOLO_NOBODY)
		/* Relaxed: we read it ourselves; the others start to wait later. */
		atomic_store_explicit(&weft_wait_sole.x_owner, me, memory_order_relaxed);
}

/* Several may be here at once: each has made sure for itself when it says NONE. */
void weft_wait_sole_end(void)
{
	/* ASK <- IN (weft_wait_sole_signal), by the membarrier.  Relaxed: it orders. */
	atomic_store_explicit(&weft_wait_sole.x_owner, WEFT_SOLE_ENDING, memory_order_relaxed);
	weft_wait_solo_barrier();
	unsigned turns = 0;
	/* ASK <- OUT.  Carries: DONE.  Ends: a signal is a few instructions. */
	while (atomic_load_explicit(&weft_wait_sole.x_inside, memory_order_acquire))
		weft_backoff(&turns);
	/* END -> ENDED (weft_wait_sole_enlisting).  Carries: the same. */
	atomic_store_explicit(&weft_wait_sole.x_owner, WEFT_SOLE_NONE, memory_order_release);
}
