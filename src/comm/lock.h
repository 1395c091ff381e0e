/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h - a one-word lock for sections of a few dozen instructions: bounded spin, then yield.
 *
 * Callers   any thread, task handlers included; not a signal handler.
 * Order     what the last holder wrote is visible to the next.
 * Progress  the holder never blocks, never makes an upcall and never takes a lock of lower order
 *           (context before bucket; see match.c).
 */
#ifndef WEFT_COMM_LOCK_H
#define WEFT_COMM_LOCK_H

#include "base/assert.h"

struct weft_spin {
	_Atomic uint32_t x_held;
};

/* Waits until the lock looks free, then takes it. */
void weft_comm_spin_lock_slow(struct weft_spin *s);

/* For weft_assert_held: a thread holds it. */
static inline bool weft_comm_spin_held(const struct weft_spin *s)
{
	/* Relaxed: asked by the holder. */
	return atomic_load_explicit(&s->x_held, memory_order_relaxed) != 0;
}

static inline bool weft_comm_spin_try(struct weft_spin *s)
{
	/* Relaxed: a hint that saves the exchange; the exchange decides. */
	if (atomic_load_explicit(&s->x_held, memory_order_relaxed))
		return false;
	/* TAKE <- GIVE (unlock).  Carries: everything the lock protects. */
	return !atomic_exchange_explicit(&s->x_held, 1, memory_order_acquire);
}

static inline void weft_comm_spin_lock(struct weft_spin *s)
{
	/* TAKE <- GIVE (unlock).  Carries: everything the lock protects. */
	if (weft_unlikely(atomic_exchange_explicit(&s->x_held, 1, memory_order_acquire)))
		weft_comm_spin_lock_slow(s);
}

static inline void weft_comm_spin_unlock(struct weft_spin *s)
{
	weft_assert_held(weft_comm_spin, s);
	/* GIVE -> TAKE (lock, try).  Carries: everything the lock protects.
	 * Without it, the next holder could walk lists that are half linked. */
	atomic_store_explicit(&s->x_held, 0, memory_order_release);
}

#endif
