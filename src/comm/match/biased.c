/* SPDX-License-Identifier: BSD-3-Clause */
/* biased.c - waiting for a biased lock, becoming its owner, and interrupting one. */
#include "base/backoff.h"
#include "comm/match/biased.h"

void weft_comm_biased_wait(struct weft_biased *s)
{
	unsigned turns = 0;
	/* Ends when the holder leaves: sections are short and never wait. */
	while (atomic_load_explicit(&s->x_held, memory_order_relaxed) ||
	       atomic_exchange_explicit(&s->x_held, 1, memory_order_acquire))
		weft_backoff(&turns);
}

void weft_comm_biased_interrupt(struct weft_biased *s)
{
	/* Relaxed: written under the lock. */
	uint32_t owner = atomic_load_explicit(&s->x_owner, memory_order_relaxed);
	/* ASK <- IN (enter), by the membarrier.  Relaxed: it orders. */
	atomic_store_explicit(&s->x_owner, owner - WEFT_BIASED_OWNS + WEFT_BIASED_LEFT,
			      memory_order_relaxed);
	weft_wait_solo_barrier();
	unsigned turns = 0;
	/* ASK <- OUT.  Carries: what the owner wrote.  Ends: it is short. */
	while (atomic_load_explicit(&s->x_inside, memory_order_acquire))
		weft_backoff(&turns);
}

void weft_comm_biased_claim(struct weft_biased *s, uint32_t me)
{
	s->alone = 0;
	if (weft_wait_solo_self == WEFT_SOLO_NOBODY)
		(void)weft_wait_solo_id(); /* count anew: others may have had none either */
	else
		/* Relaxed: we read it ourselves, the others under the lock. */
		atomic_store_explicit(&s->x_owner, me | WEFT_BIASED_OWNS, memory_order_relaxed);
}
