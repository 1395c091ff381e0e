/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells of weft/source.h in every order: a ring is seen by the look before the sleep or ends
 * the sleep, from any ringer, and what the ringer wrote is visible to a reader of the count.
 */
#include "model/explore.h"
#include <unistd.h>

static bool bell_rang; /* the eventfd is readable */

static long model_write_bell(void)
{
	bell_rang = true;
	return 8;
}

#define write(fd, p, n) ((void)(p), model_write_bell())
/* The production source, compiled against the explorer's atomics. */
#include "task/event/ev_bell.c"

static struct weft_doorbell bell;
static int payload[2];

static void setup(void)
{
	weft_doorbell_init(&bell);
	payload[0] = payload[1] = 0;
	bell_rang = false;
}

static void rings(void)
{
	model_write(&payload[0], 7);
	weft_doorbell_ring(&bell, 0);
}

static void rings_too(void)
{
	weft_doorbell_ring(&bell, 0);
}

/* Looks at the bell without having counted. */
static void rings_badly(void)
{
	struct bell *b = bell_of(&bell);
	if (atomic_load_explicit(&b->x_armed, memory_order_seq_cst))
		model_write_bell();
	atomic_fetch_add_explicit(&b->x_count, 1, memory_order_seq_cst);
}

static bool silent(void *arg)
{
	return !bell_rang;
}

static void wait_for(uint64_t count)
{
	struct bell *b = bell_of(&bell);
	for (int turn = 0; weft_doorbell_count(&bell) < count; turn++) {
		MODEL_CHECK(turn < 6);
		if (arm_bell(b, count - 1))
			continue;
		model_block(silent, NULL);
		bell_rang = false;
		model_fresh((void *)&b->x_count, sizeof b->x_count); /* a system call */
	}
}

static void waits(void)
{
	wait_for(1);
	MODEL_CHECK(model_read(&payload[0]) == 7);
}

static void waits_for_two(void)
{
	wait_for(2);
	MODEL_CHECK(model_read(&payload[0]) == 7);
}

static void waits_silently(void) /* does not say that it sleeps */
{
	if (weft_doorbell_count(&bell) < 1)
		model_block(silent, NULL);
}

int main(void)
{
	static const struct model models[] = {
		{"one ringer",
		 setup,
		 {waits, rings},
		 NULL,
		 6,
		 .must = {"weft_doorbell_ring l", "arm_bell l"}},
		{"two ringers", setup, {waits_for_two, rings, rings_too}, NULL, 2},
		{"rings before it counts", setup, {waits, rings_badly}, NULL, 6, .broken = true},
		{"sleeps without saying so",
		 setup,
		 {waits_silently, rings},
		 NULL,
		 6,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
