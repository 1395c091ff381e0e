/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - calibrates the cycle counter against the monotonic clock. */
#include "base/base.h"

#define LONG_AGO_NS 1000000000u /* the machine may have slept since, with another counter */
#define LEAST_NS 100000u        /* the clock's own cost is a thousandth of this */
#define CLOSE_NS 1000u          /* a look that took longer was interrupted */
#define LOOKS 16

struct instant {
	uint64_t ns, cycles;
};

/* Both clocks at one time: of several looks the quickest. */
static struct instant read_both_clocks(void)
{
	struct instant best = {0};
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < LOOKS && least > CLOSE_NS; i++) {
		uint64_t before = weft_clock_ns(), cycles = weft_cycles(), after = weft_clock_ns();
		if (after - before < least) {
			least = after - before;
			best = (struct instant){before + least / 2, cycles};
		}
	}
	return best;
}

/* When the library was loaded: by the first question enough time has passed, mostly. */
static struct instant loaded;

__attribute__((constructor)) static void note_load(void)
{
	loaded = read_both_clocks();
}

uint64_t weft_cycles_per_us(void)
{
	/* Written by the thread that measures first; later measurements agree within a percent. */
	static _Atomic uint64_t x_per_us;
	uint64_t known = atomic_load_explicit(&x_per_us, memory_order_relaxed);
	if (known)
		return known;

	struct instant from = loaded;
	if (weft_clock_ns() - from.ns > LONG_AGO_NS) /* or there was no such look */
		from = read_both_clocks();
	while (weft_clock_ns() - from.ns < LEAST_NS)
		weft_cpu_relax();
	struct instant to = read_both_clocks();
	uint64_t per_us = (to.cycles - from.cycles) * 1000 / (to.ns - from.ns);
	if (per_us == 0)
		per_us = 1;
	atomic_store_explicit(&x_per_us, per_us, memory_order_relaxed);
	return per_us;
}
