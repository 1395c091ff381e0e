/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ult.c - what does it cost to switch, create, block and wake a thread?
 *
 * Unit      nanoseconds; a million threads: seconds and KiB for each.
 * Bound     rows "limit": a switch is no faster than two stacks exchanged with their control words,
 *           two workers no faster than a word that goes from one core to the other and back.
 *           One of 100,000 at random: cache and TLB misses for its stack and its descriptor.  A
 *           million: a page of stack each.
 * Method    medians of blocks of some milliseconds.  The same with kernel threads: --pthreads.
 *
 * ult [--quick] [--pthreads] [CASE...]
 */
#include "bench.h"
#include "ult_limits.h"
#include "ult_many.h"
#include "ult_thread.h"
#include <weft/ult.h>

/* ---- switch ------------------------------------------------------------------------------------
 */

static void *yields(void *arg)
{
	int first = arg != NULL;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++)
			plain ? (void)sched_yield() : weft_ult_yield();
		if (first)
			block[b] = (now_ns() - t) / (double)turns / 2;
	}
	return NULL;
}

static void bench_switch(void)
{
	struct thread t[2];
	turns = plain ? 20000 : 200000;
	start(&t[0], yields, NULL, 0);
	start(&t[1], yields, &turns, 0);
	end(&t[0]);
	end(&t[1]);
	row("switch", bench_median(block, BLOCKS));
}

/* All are ready, and take turns: many stacks, but the next one is known. */
static void *yields_among(void *arg)
{
	(void)arg;
	for (long i = 0; i < turns; i++)
		weft_ult_yield();
	return NULL;
}

static struct thread *yielders;
static int yielder_count;
static double yielders_ns;

/* A thread of their worker: none of them begins before all are there. */
static void *starts_yielders(void *arg)
{
	(void)arg;
	for (int i = 0; i < yielder_count; i++)
		start(&yielders[i], yields_among, NULL, 0);
	/* Behind the first turn of each, which makes the page of its stack; its end counts as well.
	 */
	weft_ult_yield();
	double began = now_ns();
	for (int i = 0; i < yielder_count; i++)
		end(&yielders[i]);
	yielders_ns = now_ns() - began;
	return NULL;
}

static void bench_switch_many(void)
{
	char name[64];
	struct thread t;
	yielder_count = quick ? 10000 : 100000;
	yielders = calloc((size_t)yielder_count, sizeof(*yielders));
	turns = 10;
	start(&t, starts_yielders, NULL, 0);
	end(&t);
	snprintf(name, sizeof(name), "switch among %d", yielder_count);
	row(name, yielders_ns / yielder_count / (double)turns);
	free(yielders);
}

/* ---- block and wake ----------------------------------------------------------------------------
 */

static struct thread pair[2];
static _Atomic int x_turn;

static void *plays(void *arg)
{
	int me = arg != NULL;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++) {
			while (atomic_load_explicit(&x_turn, memory_order_acquire) != me)
				park(&pair[me]);
			atomic_store_explicit(&x_turn, !me, memory_order_release);
			unpark(&pair[!me]);
		}
		if (me)
			block[b] = (now_ns() - t) / (double)turns;
	}
	return NULL;
}

static void bench_wake(const char *name, int other)
{
	turns = plain ? (quick ? 1000 : 5000) : other ? 20000 : 100000;
	atomic_store(&x_turn, 2);
	start(&pair[0], plays, NULL, 0);
	start(&pair[1], plays, &turns, other);
	atomic_store(&x_turn, 0);
	unpark(&pair[0]);
	end(&pair[0]);
	end(&pair[1]);
	row(name, bench_median(block, BLOCKS));
}

/* ---- create and join ---------------------------------------------------------------------------
 */

static void *nothing(void *arg)
{
	return arg;
}

static void *creates(void *arg)
{
	(void)arg;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++) {
			struct thread child;
			start(&child, nothing, NULL, -1);
			end(&child);
		}
		block[b] = (now_ns() - t) / (double)turns;
	}
	return NULL;
}

static void bench_create(void)
{
	struct thread t;
	turns = plain ? 200 : 50000;
	start(&t, creates, NULL, 0);
	end(&t);
	row("create and join", bench_median(block, BLOCKS));
}

/* ---- a mutex that four threads want ------------------------------------------------------------
 */

static weft_ult_mutex mutex = WEFT_ULT_MUTEX_INIT;
static pthread_mutex_t plain_mutex = PTHREAD_MUTEX_INITIALIZER;
static long shared_count;

static void *locks(void *arg)
{
	(void)arg;
	for (long i = 0; i < turns; i++) {
		if (plain) {
			pthread_mutex_lock(&plain_mutex);
			shared_count++;
			pthread_mutex_unlock(&plain_mutex);
		} else {
			weft_ult_mutex_lock(&mutex);
			shared_count++;
			weft_ult_mutex_unlock(&mutex);
		}
	}
	return NULL;
}

static void bench_mutex(void)
{
	struct thread t[4];
	turns = 50000;
	for (int b = 0; b < BLOCKS; b++) {
		double began = now_ns();
		for (int i = 0; i < 4; i++)
			start(&t[i], locks, NULL, i % 2);
		for (int i = 0; i < 4; i++)
			end(&t[i]);
		block[b] = (now_ns() - began) / (double)turns / 4;
	}
	row("mutex of 4 on 2 cores", bench_median(block, BLOCKS));
}

static int wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return argc == 1;
}

int main(int argc, char **argv)
{
	int kept = 1, workers = 2;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0)
			quick = 1;
		else if (strcmp(argv[i], "--pthreads") == 0)
			plain = 1;
		else
			argv[kept++] = argv[i];
	}
	argc = kept;
	cpu_set_t may;
	sched_getaffinity(0, sizeof(may), &may);
	if (wanted(argc, argv, "million-on-1"))
		workers = argc > 1 ? 1 : 2;
	if (!plain && weft_ult_start(workers))
		return 1;
	if (wanted(argc, argv, "switch"))
		bench_switch();
	if (!plain && wanted(argc, argv, "switch-many"))
		bench_switch_many();
	if (!plain && wanted(argc, argv, "limit")) {
		bench_limit_switch();
		bench_limit_random();
		if (CPU_COUNT(&may) > 1)
			bench_limit_cores();
	}
	if (wanted(argc, argv, "create"))
		bench_create();
	if (wanted(argc, argv, "wake"))
		bench_wake("block and wake on one worker", 0);
	if (wanted(argc, argv, "wake2"))
		bench_wake("block and wake over two workers", 1);
	if (wanted(argc, argv, "mutex"))
		bench_mutex();
	if (wanted(argc, argv, "random"))
		bench_random();
	if (!plain && wanted(argc, argv, "million-on-1"))
		bench_limit_million(1);
	if (!plain && wanted(argc, argv, "million") && workers > 1 && CPU_COUNT(&may) > 1)
		bench_limit_million(2);
	if (wanted(argc, argv, "million") || wanted(argc, argv, "million-on-1"))
		bench_million();
	return 0;
}
