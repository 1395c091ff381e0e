/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.c - the slow side of the one-word lock. */
#include "base/backoff.h"
#include "comm/lock.h"

void weft_comm_spin_lock_slow(struct weft_spin *s)
{
	unsigned turns = 0;
	/* Ends when the holder leaves: sections are short and never wait. */
	while (!weft_comm_spin_try(s))
		weft_backoff(&turns);
}
