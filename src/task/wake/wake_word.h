/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wake_word.h - the word that a thread of the engine sleeps on (futex).
 *
 * Callers   seen: the sleeper, before it looks for work; it then sleeps while the word is still
 *           that.  ring: a thread that has published work, and wakes the sleeper by system call after it.
 * Order     what was published before ring() is found by the look that follows seen().
 * Promise   a ring after seen() ends the sleep that follows, also before that has begun.
 */
#ifndef WEFT_TASK_WAKE_WORD_H
#define WEFT_TASK_WAKE_WORD_H

#include "base/base.h"

static inline uint32_t weft_task_wake_word_seen(const _Atomic uint32_t *x_word)
{
	/* SEEN <- RING.  Acquire: the look comes after it, and finds what was published before the
	 * ring that we count.  Without it a ring could be counted whose work is not yet seen. */
	return atomic_load_explicit(x_word, memory_order_acquire);
}

static inline void weft_task_wake_word_ring(_Atomic uint32_t *x_word)
{
	/* RING -> SEEN.  Carries: the publication. */
	atomic_fetch_add_explicit(x_word, 1, memory_order_release);
}

#endif
