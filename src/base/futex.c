/* SPDX-License-Identifier: BSD-3-Clause */
/* futex.c - the system call. */
#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void weft_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline_ns)
{
	struct timespec ts, *until = NULL;
	if (deadline_ns != WEFT_NEVER) {
		ts.tv_sec = (time_t)(deadline_ns / 1000000000u);
		ts.tv_nsec = (long)(deadline_ns % 1000000000u);
		until = &ts;
	}
	/* Absolute, against CLOCK_MONOTONIC.  Errors are early returns. */
	(void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, until, NULL,
		      FUTEX_BITSET_MATCH_ANY);
}

void weft_futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}
