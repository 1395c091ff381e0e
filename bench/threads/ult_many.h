/* SPDX-License-Identifier: BSD-3-Clause */
/* ult_many.h - cases of ult.c with many threads at once: one of 100,000 at random, a million. */
#ifndef WEFT_BENCH_ULT_MANY_H
#define WEFT_BENCH_ULT_MANY_H

#include "bench.h"
#include "order.h"
#include "ult_thread.h"
#include <stdatomic.h>
#include <stdint.h>

static struct thread *many;
static int *after; /* the thread that each wakes: one random cycle */
static int count;
static _Atomic long x_hops;
static long hops_first,
	hops_max; /* a round first, in which each looks up the thread that it wakes */
static double hops_began, hops_end;

/* The thread that it wakes is noted on its stack: no table is looked up in a hop. */
static void *hops(void *arg)
{
	struct thread *me = arg, *next = &many[after[me - many]];
	weft_ult *next_ult = NULL;
	for (;;) {
		if (plain)
			park(me);
		else
			weft_ult_park();
		long h = atomic_load_explicit(&x_hops, memory_order_relaxed) + 1;
		atomic_store_explicit(&x_hops, h, memory_order_relaxed);
		if (h == hops_first)
			hops_began = now_ns();
		if (h == hops_max)
			hops_end = now_ns();
		if (!next_ult)
			next_ult = next->ult;
		if (plain)
			unpark(next);
		else
			weft_ult_unpark(next_ult);
		if (h >= hops_max)
			return NULL;
	}
}

static void bench_random(void)
{
	char name[64];
	count = plain ? 1000 : 100000;
	hops_first = count;
	hops_max = hops_first + (plain ? 20000 : 1000000);
	many = calloc((size_t)count, sizeof(*many));
	after = malloc(sizeof(*after) * (size_t)count);
	order_cycle(after, count);
	for (int i = 0; i < count; i++)
		start(&many[i], hops, &many[i], 0);
	unpark(&many[0]);
	for (int i = 0; i < count; i++)
		end(&many[i]);
	snprintf(name, sizeof(name), "one of %d at random", count);
	row(name, (hops_end - hops_began) / (double)(hops_max - hops_first));
	free(many);
	free(after);
}

static _Atomic int x_blocked, x_open;

static void *blocks(void *arg)
{
	struct thread *me = arg;
	atomic_fetch_add_explicit(&x_blocked, 1, memory_order_relaxed);
	while (!atomic_load_explicit(&x_open, memory_order_acquire))
		park(me);
	return NULL;
}

static int creators;

static void *creates_part(void *arg)
{
	int part = (int)(long)arg, from = count / creators * part, to = from + count / creators;
	for (int i = from; i < to; i++)
		start(&many[i], blocks, &many[i], -1);
	return NULL;
}

static void *wakes_part(void *arg)
{
	int part = (int)(long)arg, from = count / creators * part, to = from + count / creators;
	for (int i = from; i < to; i++)
		unpark(&many[i]);
	for (int i = from; i < to; i++)
		end(&many[i]);
	return NULL;
}

static void each_part(void *(*fn)(void *))
{
	struct thread t[2];
	for (int i = 0; i < creators; i++)
		start(&t[i], fn, (void *)(long)i, i);
	for (int i = 0; i < creators; i++)
		end(&t[i]);
}

/* Threads created, blocked, woken, ended.  *memory_p: KiB while all were blocked. */
static void generation(const char *name, const char *again, long *memory_p)
{
	char what[32];
	atomic_store(&x_blocked, 0);
	atomic_store(&x_open, 0);
	double t = now_ns();
	each_part(creates_part);
	while (atomic_load(&x_blocked) < count / creators * creators)
		usleep(100);
	double blocked = now_ns();
	*memory_p = bench_memory_kib();
	atomic_store(&x_open, 1);
	double woken = now_ns();
	each_part(wakes_part);
	double ended = now_ns();
	snprintf(what, sizeof(what), "created and blocked%s", again);
	bench_row(name, what, "s", (blocked - t) / 1e9);
	snprintf(what, sizeof(what), "woken and ended%s", again);
	bench_row(name, what, "s", (ended - woken) / 1e9);
}

/* Twice: fresh memory costs its first touch, then the threads alone are measured. */
static void bench_million(void)
{
	char name[64];
	count = plain ? 5000 : quick ? 100000 : 1000000;
	creators = weft_ult_workers() > 1 && !plain ? 2 : 1;
	many = malloc(sizeof(*many) * (size_t)count);
	memset(many, 0, sizeof(*many) * (size_t)count);
	snprintf(name, sizeof(name), "%d threads on %d", count, creators);
	long before = bench_memory_kib(), first, second;
	generation(name, "", &first);
	generation(name, " again", &second);
	bench_row(name, "memory of each", "KiB", (double)(first - before) / count);
	bench_row(name, "memory of each again", "KiB", (double)(second - before) / count);
	free(many);
}

#endif
