/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ult_argobots.c - what ult.c asks, asked of Argobots.
 *
 * Unit, method   as ult.c, case by case.  Threads block on eventuals, those of "random" by suspend
 *                and resume; stacks of 4 KiB without guards.
 *
 * ult_argobots [--quick] CASE...
 */
#include "bench.h"
#include "order.h"
#include <abt.h>
#include <stdatomic.h>

#define BLOCKS 15

static int quick;
static double block[BENCH_BLOCKS_MAX];
static ABT_pool pool[2];
static ABT_thread_attr small;

static double now_ns(void)
{
	return bench_now_us() * 1e3;
}

static void row(const char *name, double ns)
{
	bench_row(name, "time", "ns", ns);
}

static void ok(int err)
{
	if (err == ABT_SUCCESS)
		return;
	fprintf(stderr, "ult_argobots: a call of Argobots fails with %d\n", err);
	exit(1);
}

static ABT_thread start(void (*fn)(void *), void *arg, int worker)
{
	ABT_thread t;
	ok(ABT_thread_create(pool[worker], fn, arg, small, &t));
	return t;
}

static void end(ABT_thread t)
{
	ok(ABT_thread_free(&t));
}

/* ---- switch, create, block and wake, mutex --------------------------------------------------- */

static long turns;

static void yields(void *arg)
{
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++)
			ABT_thread_yield();
		if (arg)
			block[b] = (now_ns() - t) / (double)turns / 2;
	}
}

static void bench_switch(void)
{
	turns = 200000;
	ABT_thread a = start(yields, NULL, 1), b = start(yields, &turns, 1);
	end(a);
	end(b);
	row("switch", bench_median(block, BLOCKS));
}

static void nothing(void *arg)
{
	(void)arg;
}

static void creates(void *arg)
{
	(void)arg;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++)
			end(start(nothing, NULL, 1));
		block[b] = (now_ns() - t) / (double)turns;
	}
}

static void bench_create(void)
{
	turns = 50000;
	end(start(creates, NULL, 1));
	row("create and join", bench_median(block, BLOCKS));
}

static ABT_eventual yours[2];

static void plays(void *arg)
{
	int me = arg != NULL;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++) {
			ABT_eventual_wait(yours[me], NULL);
			ABT_eventual_reset(yours[me]);
			ABT_eventual_set(yours[!me], NULL, 0);
		}
		if (me)
			block[b] = (now_ns() - t) / (double)turns;
	}
}

static void bench_wake(const char *name, int other)
{
	turns = other ? 5000 : 100000;
	ok(ABT_eventual_create(0, &yours[0]));
	ok(ABT_eventual_create(0, &yours[1]));
	ABT_thread a = start(plays, NULL, 1), b = start(plays, &turns, !other);
	ABT_eventual_set(yours[0], NULL, 0);
	end(a);
	end(b);
	ABT_eventual_free(&yours[0]);
	ABT_eventual_free(&yours[1]);
	row(name, bench_median(block, BLOCKS));
}

static ABT_mutex mutex;
static long shared_count;

static void locks(void *arg)
{
	(void)arg;
	for (long i = 0; i < turns; i++) {
		ABT_mutex_lock(mutex);
		shared_count++;
		ABT_mutex_unlock(mutex);
	}
}

static void bench_mutex(void)
{
	ABT_thread t[4];
	turns = 50000;
	ok(ABT_mutex_create(&mutex));
	for (int b = 0; b < BLOCKS; b++) {
		double began = now_ns();
		for (int i = 0; i < 4; i++)
			t[i] = start(locks, NULL, i % 2);
		for (int i = 0; i < 4; i++)
			end(t[i]);
		block[b] = (now_ns() - began) / (double)turns / 4;
	}
	ABT_mutex_free(&mutex);
	row("mutex of 4 on 2 cores", bench_median(block, BLOCKS));
}

/* ---- many ------------------------------------------------------------------------------------ */

static ABT_thread *many;
static int *after; /* the thread that each wakes: one random cycle */
static int count, creators;
static long hops_done, hops_first, hops_max;
static double hops_began, hops_end;

/* All on one stream: a thread that does not run is suspended. */
static void hops(void *arg)
{
	ABT_thread *next_p = &many[after[(long)arg]], next = NULL;
	for (;;) {
		ABT_self_suspend();
		if (++hops_done == hops_first)
			hops_began = now_ns();
		if (hops_done == hops_max)
			hops_end = now_ns();
		if (!next)
			next = *next_p;
		ABT_thread_resume(next);
		if (hops_done >= hops_max)
			return;
	}
}

static void bench_random(void)
{
	char name[64];
	count = 100000;
	hops_first = count;
	hops_max = hops_first + 1000000;
	many = calloc((size_t)count, sizeof(*many));
	after = malloc(sizeof(*after) * (size_t)count);
	order_cycle(after, count);
	for (long i = 0; i < count; i++)
		many[i] = start(hops, (void *)i, 0);
	ABT_thread_yield(); /* the main stream's: all of them run until they suspend */
	ABT_thread_resume(many[0]);
	for (int i = 0; i < count; i++)
		end(many[i]);
	snprintf(name, sizeof(name), "one of %d at random", count);
	row(name, (hops_end - hops_began) / (double)(hops_max - hops_first));
	free(many);
	free(after);
}

static ABT_eventual open_all;
static _Atomic int x_blocked;

static void blocks(void *arg)
{
	(void)arg;
	atomic_fetch_add_explicit(&x_blocked, 1, memory_order_relaxed);
	ABT_eventual_wait(open_all, NULL);
}

static void part(long which, int *from, int *to)
{
	*from = count / creators * (int)which;
	*to = *from + count / creators;
}

static void creates_part(void *arg)
{
	int from, to;
	part((long)arg, &from, &to);
	for (int i = from; i < to; i++)
		many[i] = start(blocks, NULL, (int)(long)arg);
}

static void ends_part(void *arg)
{
	int from, to;
	part((long)arg, &from, &to);
	for (int i = from; i < to; i++)
		end(many[i]);
}

static void each_part(void (*fn)(void *))
{
	ABT_thread t[2];
	ABT_thread_attr roomy;
	ok(ABT_thread_attr_create(&roomy));
	ok(ABT_thread_attr_set_stacksize(roomy, 65536));
	for (long i = 0; i < creators; i++)
		ok(ABT_thread_create(pool[i], fn, (void *)i, roomy, &t[i]));
	for (int i = 0; i < creators; i++)
		end(t[i]);
	ABT_thread_attr_free(&roomy);
}

static void bench_million(int on)
{
	char name[64];
	count = quick ? 100000 : 1000000;
	creators = on;
	many = malloc(sizeof(*many) * (size_t)count);
	memset(many, 0, sizeof(*many) * (size_t)count);
	ok(ABT_eventual_create(0, &open_all));
	long before = bench_memory_kib();
	double t = now_ns();
	each_part(creates_part);
	while (atomic_load(&x_blocked) < count / creators * creators)
		ABT_thread_yield();
	double created = (now_ns() - t) / 1e9;
	long blocked = bench_memory_kib();
	double woken = now_ns();
	ABT_eventual_set(open_all, NULL, 0);
	each_part(ends_part);
	snprintf(name, sizeof(name), "%d threads on %d", count, creators);
	bench_row(name, "created and blocked", "s", created);
	bench_row(name, "woken and ended", "s", (now_ns() - woken) / 1e9);
	bench_row(name, "memory of each", "KiB", (double)(blocked - before) / count);
	free(many);
}

static int wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return 0;
}

static void binds(void *arg)
{
	(void)arg;
	bench_pin(1);
}

/* A stream on each of two cores; the first is this thread. */
static void streams(void)
{
	ABT_xstream me, other;
	ok(ABT_xstream_self(&me));
	ok(ABT_xstream_get_main_pools(me, 1, &pool[0]));
	ok(ABT_xstream_create(ABT_SCHED_NULL, &other));
	ok(ABT_xstream_get_main_pools(other, 1, &pool[1]));
	ok(ABT_thread_attr_create(&small));
	end(start(binds, NULL, 1));
	bench_pin(0);
	ok(ABT_thread_attr_set_stacksize(small, 4096));
}

int main(int argc, char **argv)
{
	ok(ABT_init(0, NULL));
	quick = wanted(argc, argv, "--quick");
	streams();
	if (wanted(argc, argv, "switch"))
		bench_switch();
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
	if (wanted(argc, argv, "million-on-1"))
		bench_million(1);
	if (wanted(argc, argv, "million"))
		bench_million(2);
	return 0; /* the process ends with its streams */
}
