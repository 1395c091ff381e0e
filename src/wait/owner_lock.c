/* SPDX-License-Identifier: BSD-3-Clause */
/* owner_lock.c - becoming the owner of a lock, interrupting one, waiting. */
#include "base/assert.h"
#include "wait/owner_lock.h"
#include "base/mechanism.h"

uint16_t weft_wait_owner_need = WEFT_OWNER_NEED;

void weft_wait_owner_lock_slow(struct weft_owner_lock *l)
{
	unsigned turns = 0;
	/* TAKE <- GIVE.  Ends when the holder leaves: sections are short and never wait. */
	while (atomic_load_explicit(&l->x_held, memory_order_relaxed) ||
	       atomic_exchange_explicit(&l->x_held, 1, memory_order_acquire))
		weft_backoff(&turns);
}

void weft_wait_owner_interrupt(struct weft_owner_lock *l)
{
	/* Relaxed: written under the lock. */
	uint32_t owner = atomic_load_explicit(&l->x_owner, memory_order_relaxed);
	weft_assert((owner & WEFT_OWNER_STATES) == WEFT_OWNER_OWNS);
	/* ASK <- IN (enter), by the membarrier.  Relaxed: it orders. */
	atomic_store_explicit(&l->x_owner, owner - WEFT_OWNER_OWNS + WEFT_OWNER_INTERRUPTED,
			      memory_order_relaxed);
	weft_membarrier_private();
	unsigned turns = 0;
	/* ASK <- OUT (leave).  Carries: what the owner wrote.  Ends: its section is short. */
	while (atomic_load_explicit(&l->x_inside, memory_order_acquire))
		weft_backoff(&turns);
}

void weft_wait_owner_claim(struct weft_owner_lock *l, uint32_t me)
{
	weft_assert((me & WEFT_OWNER_STATES) == WEFT_OWNER_OWNS);
	l->alone = 0;
	if (!weft_mechanism_on(WEFT_MECH_OWNER_BIAS))
		return;
	if (me == WEFT_OWNER_NOBODY)
		(void)weft_wait_owner_identify(); /* counts anew: another thread may have had none
						   */
	else
		/* Relaxed: the owner reads its own store, other threads read under the lock. */
		atomic_store_explicit(&l->x_owner, me, memory_order_relaxed);
}

void weft_wait_owner_enter_slow(struct weft_owner_lock *l)
{
	unsigned turns = 0;
	/* Relaxed: MINE is loaded again.  Ends: a thief stays for a few dozen instructions. */
	while (atomic_load_explicit(&l->x_owner, memory_order_relaxed) != WEFT_OWNER_FIXED)
		weft_backoff(&turns);
}
