/* SPDX-License-Identifier: BSD-3-Clause */
/* A called thread waits for one round of the others at most, whatever calls it and whatever they
 * do; the calls that led to a thread can be walked. */
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <weft/ult.h>
#include "base/settings.h"
#include "check.h"
#include "ult/stack/san.h"

#define OTHERS (WEFT_ULT_SANITIZED ? 70 : 300) /* more than a word of the vector */
#define CALLS (WEFT_ULT_SANITIZED ? 20 : 200)

static _Atomic long x_turns; /* of the others */
static _Atomic int x_over;
static _Atomic long x_ran;  /* which call the victim has seen */
static _Atomic long x_when; /* at which turn */
static weft_ult *victim, *other[300];

static void *takes_turns(void *arg)
{
	while (!atomic_load(&x_over)) {
		atomic_fetch_add(&x_turns, 1);
		weft_ult_yield();
	}
	return NULL;
}

static void *is_called(void *arg)
{
	for (long i = 1; i <= CALLS; i++) {
		weft_ult_park();
		atomic_store(&x_when, atomic_load(&x_turns));
		atomic_store(&x_ran, i);
	}
	return NULL;
}

/* The turns of others between a call, after which it is looked at the clock, and the victim. */
static void call_and_count(long i, void (*let_others)(void))
{
	weft_ult_unpark(victim);
	long called = atomic_load(&x_turns);
	while (atomic_load(&x_ran) < i) /* ends: it runs */
		let_others();
	/* All of them once, and those of its word that were claimed before. */
	if (atomic_load(&x_when) - called > OTHERS + 64)
		fprintf(stderr, "call %ld: waited for %ld turns of %d threads\n", i,
			atomic_load(&x_when) - called, OTHERS);
	CHECK(atomic_load(&x_when) - called <= OTHERS + 64);
}

static void yield_plain(void)
{
	sched_yield();
}

static void *calls_inside(void *arg)
{
	for (long i = 1; i <= CALLS; i++) {
		for (long k = 0; k < i % 7; k++)
			weft_ult_yield(); /* from all places of the round */
		call_and_count(i, weft_ult_yield);
	}
	return NULL;
}

static void rounds(bool inside)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *caller;
	atomic_store(&x_over, 0);
	atomic_store(&x_ran, 0);
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	for (int i = 0; i < OTHERS / 2; i++)
		CHECK_EQ(weft_ult_create(&other[i], &a, takes_turns, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_create(&victim, &a, is_called, NULL), WEFT_OK);
	for (int i = OTHERS / 2; i < OTHERS; i++)
		CHECK_EQ(weft_ult_create(&other[i], &a, takes_turns, NULL), WEFT_OK);
	if (inside) {
		CHECK_EQ(weft_ult_create(&caller, &a, calls_inside, NULL), WEFT_OK);
		CHECK_EQ(weft_ult_join(caller, NULL), WEFT_OK);
	} else {
		for (long i = 1; i <= CALLS; i++)
			call_and_count(i, yield_plain);
	}
	CHECK_EQ(weft_ult_join(victim, NULL), WEFT_OK);
	atomic_store(&x_over, 1);
	for (int i = 0; i < OTHERS; i++)
		CHECK_EQ(weft_ult_join(other[i], NULL), WEFT_OK);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

/* ---- backtrace ------------------------------------------------------------------------------- */

#define DEPTH 8

static int frames;

static __attribute__((noinline)) int walks(int depth)
{
	void *frame[64];
	if (depth > 0) {
		int n = walks(depth - 1);
		__asm__ volatile("" : "+r"(n)); /* no jump instead of the call */
		return n;
	}
	weft_ult_yield(); /* and after a switch */
	return backtrace(frame, 64);
}

static void *walked(void *arg)
{
	frames = walks(DEPTH);
	return NULL;
}

static void backtraces(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t;
	a.stack_size = 65536;
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t, &a, walked, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	/* walks, walked, how it began; and no further. */
	CHECK(frames >= DEPTH + 3 && frames <= DEPTH + 6);
}

int main(void)
{
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	rounds(true);
	rounds(false);
	backtraces();
	return 0;
}
