/* SPDX-License-Identifier: BSD-3-Clause */
/* single_waiter.c - becoming the only thread that waits, and ceasing to be. */
#include "wait/single_waiter.h"

struct weft_owner_lock weft_wait_single;

void weft_wait_single_begin(void)
{
	static _Atomic bool x_begun;
	/* Relaxed: the first call comes before any other thread can wait. */
	if (atomic_exchange_explicit(&x_begun, true, memory_order_relaxed))
		return;
	if (weft_wait_owner_identify())
		weft_wait_owner_init(&weft_wait_single, weft_wait_owner_self);
}

void weft_wait_single_end(void)
{
	weft_wait_owner_lock(&weft_wait_single); /* interrupts the single waiter, if there is one */
	/* END -> ENDED (enlisting).  Carries: what it has signalled. */
	atomic_store_explicit(&weft_wait_single.x_owner, 0, memory_order_release);
	weft_wait_owner_unlock(&weft_wait_single);
}
