/* SPDX-License-Identifier: BSD-3-Clause */
/* death.c - passes on what the launcher reports about the end of a rank. */
#include "boot/service.h"

#include <stdatomic.h>

static void (*_Atomic x_hook)(int rank, const char *why);

void weft_boot_on_death(void (*hook)(int rank, const char *why))
{
	/* Sequential: set and cleared by the starting thread, which owns what the hook touches. */
	atomic_store(&x_hook, hook);
}

void weft_boot_died(int rank, const char *why)
{
	void (*hook)(int, const char *) = atomic_load(&x_hook);
	if (hook)
		hook(rank, why);
}
