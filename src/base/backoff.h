/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backoff.h - waiting until another thread leaves a section of a few dozen instructions.
 *
 * The holder runs on another core and leaves at once; or it was preempted, perhaps by the waiter,
 * and needs the core.  So the waiter looks first, then calls sched_yield.  That gives the core to
 * no thread of a lower scheduling class, so a real-time waiter sleeps in the end.
 *
 * Callers   any thread, in a loop around its own look; turns starts at 0.  Not for what may take
 *           longer than a short section: that has a completion.
 * Progress  one look per call; the kernel from the 64th on, asleep for 50 us from the 128th on.
 */
#ifndef WEFT_BACKOFF_H
#define WEFT_BACKOFF_H

#include "base/base.h"

#define WEFT_BACKOFF_LOOKS 64u
#define WEFT_BACKOFF_YIELDS 64u

void weft_backoff_slow(unsigned turns);

static inline void weft_backoff(unsigned *turns_p)
{
	if (weft_likely(++*turns_p < WEFT_BACKOFF_LOOKS))
		weft_cpu_relax();
	else
		weft_backoff_slow(*turns_p);
}

#endif
