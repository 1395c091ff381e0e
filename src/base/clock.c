/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - calibrates the cycle counter against the monotonic clock. */
#include "base/base.h"

uint64_t weft_cycles_per_us(void)
{
	/* Written by the thread that measures first; later measurements agree within a percent. */
	static _Atomic uint64_t x_per_us;
	uint64_t known = atomic_load_explicit(&x_per_us, memory_order_relaxed);
	if (known)
		return known;

	uint64_t t0 = weft_clock_ns(), c0 = weft_cycles();
	while (weft_clock_ns() - t0 < 1000000)
		weft_cpu_relax();
	uint64_t t1 = weft_clock_ns(), c1 = weft_cycles();
	uint64_t per_us = (c1 - c0) * 1000 / (t1 - t0);
	if (per_us == 0)
		per_us = 1;
	atomic_store_explicit(&x_per_us, per_us, memory_order_relaxed);
	return per_us;
}
