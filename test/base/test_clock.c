/* SPDX-License-Identifier: BSD-3-Clause */
/* The cycle counter's rate, as the first question finds it, is the one that a longer look finds, and a process is
 * registered for membarriers as soon as it has loaded the library. */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "base/membarrier.h"
#include "check.h"

#define LOOK_NS 20000000u

/* Both clocks, with no interruption between them that would show. */
static uint64_t both(uint64_t *cycles_p)
{
	for (;;) { /* ends: by a look that is not interrupted */
		uint64_t before = weft_clock_ns();
		*cycles_p = weft_cycles();
		if (weft_clock_ns() - before < 20000)
			return before;
	}
}

static void rate(void)
{
	uint64_t rate = weft_cycles_per_us(), from, to;
	uint64_t begin = both(&from), end;
	do
		end = both(&to);
	while (end - begin < LOOK_NS); /* ends after that time */
	uint64_t longer = (to - from) * 1000 / (end - begin);
	CHECK(rate > 0);
	CHECK(rate * 50 >= longer * 49 && rate * 50 <= longer * 51);
	CHECK_EQ(rate, weft_cycles_per_us());
}

static void registered(void)
{
	/* A command that works for registered processes alone. */
	bool works = syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
	CHECK_EQ(works, weft_membarrier_private_register());
}

int main(void)
{
	registered();
	rate();
	return 0;
}
