/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No wake-up is lost between two threads that park and unpark each other with random delays on both
 * sides, so that notifications come before, during and after the park they are for; and what was
 * written before an unpark is seen after the park.  WEFT_LONG=1: a million pairs; test_park SEED N:
 * N.
 */
#include <pthread.h>
#include "check.h"
#include "wait/park.h"

struct side {
	pthread_t thread;
	struct weft_parker *_Atomic x_parker;
	_Atomic long x_turn; /* the other's: how many turns we may have taken */
	long written;        /* the other's, before it lets us go */
	uint64_t seed;
	unsigned long timeouts;
};

static struct side side[2];
static long pairs;

static void delay(uint64_t *seed)
{
	/* Mostly none, so that both run at once; now and then longer than a sleep takes. */
	uint64_t r = weft_rand_next(seed) % 1024;
	unsigned n = r < 700 ? 0 : r < 1020 ? (unsigned)r % 64 : 20000;
	for (unsigned i = 0; i < n; i++)
		weft_cpu_relax();
}

static struct weft_parker *parker_of(struct side *s)
{
	struct weft_parker *p;
	while (!(p = atomic_load_explicit(&s->x_parker, memory_order_acquire)))
		sched_yield(); /* ends: it starts */
	return p;
}

static void *run(void *arg)
{
	struct side *me = arg, *other = &side[me == side];
	atomic_store_explicit(&me->x_parker, weft_wait_parker_self(), memory_order_release);
	struct weft_parker *his = parker_of(other);
	for (long i = 1; i <= pairs; i++) {
		while (atomic_load_explicit(&me->x_turn, memory_order_relaxed) < i) {
			delay(&me->seed);
			/* Some sleeps have a deadline, and end by it or by the unpark. */
			bool bounded = weft_rand_next(&me->seed) % 8 == 0;
			if (!weft_wait_park(weft_wait_parker_self(),
					    bounded ? weft_clock_ns() + 3000 : WEFT_NEVER))
				me->timeouts++;
		}
		/* Acquire: a turn that we saw before we had to park carries it as well. */
		(void)atomic_load_explicit(&me->x_turn, memory_order_acquire);
		CHECK_EQ(me->written, i);
		delay(&me->seed);
		other->written = me == &side[0] ? i + 1 : i;
		atomic_store_explicit(&other->x_turn, other->written, memory_order_release);
		weft_wait_unpark(his);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long long seed = test_seed(argc, argv);
	pairs = argc > 2 ? atol(argv[2]) : getenv("WEFT_LONG") ? 1000000 : 5000;
	for (int i = 0; i < 2; i++)
		side[i].seed = seed + (uint64_t)i;
	/* The first turn is side 1's. */
	side[1].written = 1;
	atomic_store_explicit(&side[1].x_turn, 1, memory_order_relaxed);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&side[i].thread, NULL, run, &side[i]))
			SKIP("no thread");
	for (int i = 0; i < 2; i++)
		pthread_join(side[i].thread, NULL);
	printf("%ld pairs of park and unpark, none lost; %lu sleeps ended by their deadline\n",
	       pairs, side[0].timeouts + side[1].timeouts);
	return 0;
}
