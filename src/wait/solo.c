/* SPDX-License-Identifier: BSD-3-Clause */
/* solo.c - becoming the owner of a lock, and interrupting one. */
#include "wait/solo.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/backoff.h"
#include "base/log.h"

#define NEED_MAX 4096u /* an interruption then costs the owner less than a nanosecond each time */

_Thread_local uint32_t weft_wait_solo_self = WEFT_SOLO_NOBODY;

static long membarrier(int cmd)
{
	return syscall(SYS_membarrier, cmd, 0, 0);
}

static bool possible(void)
{
	static _Atomic int x_answer; /* 0: not asked yet, 1: yes, 2: no */
	/* Relaxed: who finds it 0 finds out the same. */
	int answer = atomic_load_explicit(&x_answer, memory_order_relaxed);
	if (!answer) {
		answer = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
					 membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0
				 ? 1
				 : 2;
		atomic_store_explicit(&x_answer, answer, memory_order_relaxed);
	}
	return answer == 1;
}

/* Never used twice: an owner that has ended is interrupted like any other. */
static uint32_t new_id(void)
{
	static _Atomic uint32_t x_last;
	uint32_t last = atomic_load_explicit(&x_last, memory_order_relaxed);
	do /* ends: whoever comes between has got one */
		if (last == WEFT_SOLO_LAST)
			return WEFT_SOLO_NOBODY;
	while (!atomic_compare_exchange_weak_explicit(&x_last, &last, last + 1,
						      memory_order_relaxed, memory_order_relaxed));
	return last + 1;
}

void weft_wait_solo_claim(struct weft_solo *s, uint32_t me)
{
	s->alone = 0;
	if (!possible()) {
		s->need = UINT16_MAX;
	} else if (me == WEFT_SOLO_NOBODY) {
		weft_wait_solo_self = new_id(); /* count anew: others may have had none either */
	} else if (!s->left) {
		/* Relaxed: we read it ourselves, the others under the lock. */
		atomic_store_explicit(&s->x_owner, me, memory_order_relaxed);
	}
}

uint32_t weft_wait_solo_id(void)
{
	if (weft_wait_solo_self == WEFT_SOLO_NOBODY && possible())
		weft_wait_solo_self = new_id();
	return weft_wait_solo_self;
}

void weft_wait_solo_barrier(void)
{
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
		weft_panic("membarrier failed after it had worked: %s", strerror(errno));
}

void weft_wait_solo_interrupt(struct weft_solo *s)
{
	/* Relaxed: written under the lock. */
	s->left = atomic_load_explicit(&s->x_owner, memory_order_relaxed);
	/* ASK <- IN (weft_wait_solo_enter), by the membarrier.  Relaxed: it orders. */
	atomic_store_explicit(&s->x_owner, 0, memory_order_relaxed);
	weft_wait_solo_barrier();
	unsigned turns = 0;
	/* ASK <- OUT (weft_wait_solo_leave).  Carries: what the owner wrote.  Ends: it is short. */
	while (atomic_load_explicit(&s->x_inside, memory_order_acquire))
		weft_backoff(&turns);
	if (s->need <= NEED_MAX / 2)
		s->need *= 2;
}
