/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mask.h - a try-lock that remembers that a thread was turned away.
 *
 * Callers   try: any thread.  done: the holder.
 * Owner     the holder owns what the mask covers from a successful try until done() says true.
 * Order     what one holder wrote is visible to the next.
 * Progress  no thread waits: a skipper, which finds the mask taken, leaves a bit and goes on; the
 *           holder cannot let go without seeing the bit, and then looks once more.
 * Promise   what a skipper had published before its try is seen by the holder's next look.
 *
 * Use:      if (weft_mask_try(m)) do { look and work } while (!weft_mask_done(m));
 */
#ifndef WEFT_MASK_H
#define WEFT_MASK_H

#include "base/base.h"

#define WEFT_MASK_FREE 0u
#define WEFT_MASK_HELD 1u
#define WEFT_MASK_SKIPPED 3u /* held, and a thread was turned away */

struct weft_mask {
	_Atomic uint32_t x_word;
};

static inline void weft_mask_init(struct weft_mask *m)
{
	atomic_store_explicit(&m->x_word, WEFT_MASK_FREE, memory_order_relaxed);
}

/* For weft_assert_held: a thread holds it. */
static inline bool weft_mask_held(const struct weft_mask *m)
{
	/* Relaxed: asked by the holder. */
	return atomic_load_explicit(&m->x_word, memory_order_relaxed) != WEFT_MASK_FREE;
}

/*
 * True: the caller holds it.  False: taken, and no trace is left: for callers that come back, or
 * have published nothing that the holder must see.
 */
static inline bool weft_mask_try_quiet(struct weft_mask *m)
{
	uint32_t free = WEFT_MASK_FREE;
	/* TAKE <- GIVE (done).  Carries: what the last holder wrote.  Without it we could walk the
	 * queue as it was before. */
	return atomic_compare_exchange_strong_explicit(&m->x_word, &free, WEFT_MASK_HELD,
						       memory_order_acquire, memory_order_relaxed);
}

/* True: the caller holds it.  False: the holder will look again after this call began. */
static inline bool weft_mask_try(struct weft_mask *m)
{
	if (weft_likely(weft_mask_try_quiet(m)))
		return true;
	/*
	 * SKIP -> RETEST (done).  Carries: what the caller published before.  Written even when the
	 * bit is there already: only a write after our publication hands it over.  Without it the
	 * holder could see the bit and still find the old, empty queue.  When the mask came free
	 * just now we hold it, with a bit that costs one look too many.
	 */
	return atomic_exchange_explicit(&m->x_word, WEFT_MASK_SKIPPED, memory_order_acq_rel) ==
	       WEFT_MASK_FREE;
}

/*
 * Gives the mask back.  False: a thread was turned away meanwhile, the caller holds it again and
 * must look again.
 */
static inline bool weft_mask_done(struct weft_mask *m)
{
	/* RETEST <- SKIP and GIVE -> TAKE.  Carries: the skippers' submissions to us, our writes to
	 * the next holder. */
	uint32_t old = atomic_exchange_explicit(&m->x_word, WEFT_MASK_FREE, memory_order_acq_rel);
	if (weft_likely(old == WEFT_MASK_HELD))
		return true;
	/* A thread was turned away: take it back, unless another thread took it, and looks. */
	return !weft_mask_try(m);
}

#endif
