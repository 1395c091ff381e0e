/* SPDX-License-Identifier: BSD-3-Clause */
/* owner_id.c - ids of threads that may own locks. */
#include "wait/owner_lock.h"

_Thread_local uint32_t weft_wait_owner_self = WEFT_OWNER_NOBODY;

static bool have_membarrier(void)
{
	static _Atomic int x_answer; /* 0: not asked yet, 1: yes, 2: no */
	/* Relaxed: a thread that finds it 0 finds out the same. */
	int answer = atomic_load_explicit(&x_answer, memory_order_relaxed);
	if (!answer) {
		answer = weft_membarrier_private_register() ? 1 : 2;
		atomic_store_explicit(&x_answer, answer, memory_order_relaxed);
	}
	return answer == 1;
}

bool weft_wait_owner_identify(void)
{
	/* Each number once, so that an owner that has ended is interrupted like any other.  After
	 * the last one new threads own nothing. */
	static _Atomic uint32_t x_last;
	const uint32_t most = WEFT_OWNER_FIXED / 4 - 1;
	if (weft_wait_owner_self != WEFT_OWNER_NOBODY)
		return true;
	if (!have_membarrier())
		return false;
	uint32_t last = atomic_load_explicit(&x_last, memory_order_relaxed);
	do /* ends: a retry follows another thread's success */
		if (last == most)
			return false;
	while (!atomic_compare_exchange_weak_explicit(&x_last, &last, last + 1,
						      memory_order_relaxed, memory_order_relaxed));
	weft_wait_owner_self = (last + 1) * 4 + WEFT_OWNER_OWNS;
	return true;
}
