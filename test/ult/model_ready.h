/* SPDX-License-Identifier: BSD-3-Clause */
/* model_ready.h - a worker's lock and ready vector as the models of threads set them up. */
#ifndef WEFT_TEST_MODEL_READY_H
#define WEFT_TEST_MODEL_READY_H

#include "model/explore.h"
#define WEFT_OWNER_LOOKS 2
/* The production headers, compiled against the explorer's atomics. */
#include "ult/sched/ready.h"
#include "wait/owner_lock.c"

static struct weft_owner_lock lock;
static struct weft_ready ready;
static struct weft_ready_chunk chunk[2];
static int context[3]; /* of the threads in slots 0, 1 and 4096 */

static void ready_setup(void)
{
	memset(&ready, 0, sizeof ready);
	memset(chunk, 0, sizeof chunk);
	memset(context, 0, sizeof context);
	atomic_store_explicit(&ready.x_chunk[0], &chunk[0], memory_order_relaxed);
	atomic_store_explicit(&ready.x_chunk[1], &chunk[1], memory_order_relaxed);
}

/* Something is signalled as far as the newest values tell: what a sleeping worker is woken for. */
static bool nothing_signalled(void *arg)
{
	uint64_t top;
	uint32_t mail, count;
	memcpy(&count, (void *)&ready.x_count, sizeof count);
	memcpy(&top, (void *)&ready.x_top, sizeof top);
	memcpy(&mail, (void *)&ready.x_mail, sizeof mail);
	return !top && !mail && !count;
}

static void see_newest(void)
{
	model_fresh((void *)&ready.x_top, sizeof(uint64_t));
	model_fresh((void *)&ready.x_mail, sizeof(uint32_t));
}

#endif
