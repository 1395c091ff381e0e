/* SPDX-License-Identifier: BSD-3-Clause */
/* death.c - passes on what the launcher reports about the end of a rank. */
#include "boot/service.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*hook)(int rank, const char *why); /* under the lock */

void weft_boot_on_death(void (*fn)(int rank, const char *why))
{
	pthread_mutex_lock(&lock);
	hook = fn;
	pthread_mutex_unlock(&lock);
}

void weft_boot_died(int rank, const char *why)
{
	pthread_mutex_lock(&lock);
	if (hook)
		hook(rank, why);
	pthread_mutex_unlock(&lock);
}
