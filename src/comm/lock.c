/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.c - the slow side of the one-word lock. */
#include <sched.h>
#include "comm/lock.h"

/* Spins that cover a holder who runs (sections last well under a microsecond); after that the
 * holder was most likely preempted, and our core is what it needs. */
#define SPINS 128

void weft_spin_lock_slow(struct weft_spin *s)
{
	/* Ends when the holder leaves: sections are short and never wait. */
	for (;;) {
		for (int i = 0; i < SPINS; i++) {
			if (weft_spin_try(s))
				return;
			weft_cpu_relax();
		}
		sched_yield();
	}
}
