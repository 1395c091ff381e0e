/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_model.h - for models of the ring (src/coll/shm/ring.h): its members, and how they wait. */
#ifndef WEFT_TEST_COLL_RING_MODEL_H
#define WEFT_TEST_COLL_RING_MODEL_H

#define WEFT_COLL_RING_PLACES 2u

#include "check.h"
#include "model/explore.h"
#include "coll/shm/ring.h"

#define WORDS 3 /* head, floor, came */

static struct weft_coll_ring ring;
static int data[WEFT_COLL_RING_PLACES][3], n;
static uint32_t first, heads[3]; /* the first phase; how many posts of x_head each has counted */
static bool woken[3][WORDS];

/* What a mutant does otherwise. */
static struct {
	bool greedy;  /* does not ask whether the place is free */
	bool hasty;   /* nor does the root that collects */
	bool by_turn; /* x_head is the number of a phase */
	bool deaf;    /* posts without looking for sleepers at that moment */
} mutant;

static void setup(int members)
{
	memset(&ring, 0, sizeof ring);
	memset(data, 0, sizeof data);
	memset(woken, 0, sizeof woken);
	memset(heads, 0, sizeof heads);
	memset(&mutant, 0, sizeof mutant);
	n = members;
	first = 0;
}

static inline void setup_two(void)
{
	setup(2);
}

static inline void setup_three(void)
{
	setup(3);
}

static bool asleep(void *arg)
{
	return !*(bool *)arg;
}

static int index_of(_Atomic uint64_t *x_ec)
{
	return x_ec == &ring.x_head ? 0 : x_ec == &ring.x_floor ? 1 : 2;
}

static void wake(_Atomic uint64_t *x_ec, uint32_t sleepers)
{
	for (int i = 0; i < n; i++)
		if (sleepers & 1u << i)
			woken[i][index_of(x_ec)] = true;
}

/* As wait.c waits, without its patience. */
static void wait_for(unsigned me, _Atomic uint64_t *x_ec, uint32_t number, bool sleeps)
{
	bool *up = &woken[me][index_of(x_ec)];
	while (!weft_coll_ec_reached(x_ec, number)) {
		if (!sleeps) {
			model_relax();
			continue;
		}
		if (weft_coll_ec_prepare_sleep(x_ec, me, number) ||
		    weft_coll_ec_cancel_sleep(x_ec, me)) {
			model_block(asleep, up);
			*up = false;
		}
		/* The wake-up is a message: it carries what its sender knew. */
		model_fresh((void *)x_ec, sizeof *x_ec);
	}
}

static void post(_Atomic uint64_t *x_ec, uint32_t number)
{
	uint32_t sleepers = 0;
	if (mutant.deaf) {
		sleepers = (uint32_t)atomic_load_explicit(x_ec, memory_order_relaxed);
		atomic_store_explicit(x_ec, weft_coll_ec_of(number), memory_order_release);
	} else {
		MODEL_CHECK(weft_coll_ec_post(x_ec, number, &sleepers));
	}
	wake(x_ec, sleepers);
}

static inline void begin(unsigned me, uint32_t t, bool sleeps)
{
	if (!mutant.greedy)
		wait_for(me, &ring.x_floor, weft_coll_ring_floor(t), sleeps);
}

static inline void pass(uint32_t t)
{
	if (weft_coll_ring_pass(&ring, t, (unsigned)n))
		post(&ring.x_floor, weft_coll_ec_next(t));
}

/* Once all members are through. */
static inline void consistent(void)
{
	uint32_t floor = (uint32_t)(atomic_load(&ring.x_floor) >> 32);
	weft_coll_ring_check(&ring, floor, heads[0], (unsigned)n);
	MODEL_CHECK(!atomic_load(&ring.x_passed[0]) && !atomic_load(&ring.x_passed[1]));
	for (unsigned i = 0; i < WEFT_COLL_RING_PLACES; i++)
		MODEL_CHECK(!(atomic_load(&ring.place[i].x_came) >> 32));
}

#define THREAD(name, kind, me, root, turns, sleeps)                                                \
	static void name(void)                                                                     \
	{                                                                                          \
		for (uint32_t t = first; t - first < (turns); t++)                                 \
			kind(me, t, root, sleeps);                                                 \
	}

#endif
