/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load_limit.h - what load.c measures, without any MPI: the row `limit` of `weft bench load`.
 *
 * Two processes, a core each, fetch 1 MiB from each other in turn (process_vm_readv); N threads of
 * each compute on the same core.  The waiter looks for 1 ms at most, as a waiter of weft does among
 * strangers, then sleeps on a futex.
 */
#ifndef WEFT_BENCH_LOAD_LIMIT_H
#define WEFT_BENCH_LOAD_LIMIT_H

#include "bench.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define LOAD_BYTES ((size_t)1 << 20)
#define LOAD_MOST 400
#define LOAD_TURN_US 1000

/* In memory of both. */
struct load_shared {
	_Alignas(64) _Atomic uint32_t
		x_turns;      /* turns taken so far; even: the sender has the next */
	_Atomic int x_asleep; /* waiter: it sleeps, wake it */
	_Atomic int x_over;   /* sender, before it ends a turn */
	uint64_t address[2];  /* each its own, before its first turn */
	pid_t pid[2];
};

static _Atomic int load_x_stop;

static void *load_computes(void *arg)
{
	(void)arg;
	/* Relaxed: it only ends the loop. */
	while (!atomic_load_explicit(&load_x_stop, memory_order_relaxed))
		bench_compute(10000);
	return NULL;
}

static inline void load_pass(struct load_shared *s)
{
	/* PASS -> SEEN.  seq_cst, with SLEEPS: either we see the other asleep, or it sees its turn.
	 */
	atomic_fetch_add_explicit(&s->x_turns, 1, memory_order_seq_cst);
	if (atomic_exchange_explicit(&s->x_asleep, 0, memory_order_seq_cst))
		syscall(SYS_futex, &s->x_turns, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline void load_await(struct load_shared *s, int odd)
{
	double begun = bench_now_us();
	uint32_t seen;
	/* SEEN <- PASS.  Carries: the other's buffer and x_over.  Ends when the turn is ours. */
	while ((int)((seen = atomic_load_explicit(&s->x_turns, memory_order_seq_cst)) & 1) != odd) {
		if (bench_now_us() - begun < LOAD_TURN_US)
			continue;
		/* SLEEPS: before the kernel looks at the word once more. */
		atomic_store_explicit(&s->x_asleep, 1, memory_order_seq_cst);
		syscall(SYS_futex, &s->x_turns, FUTEX_WAIT, seen, NULL, NULL, 0);
		begun = bench_now_us();
	}
}

/* False: the other's memory cannot be read here. */
static inline int load_fetch(const struct load_shared *s, int odd, char *buf)
{
	struct iovec to = {buf, LOAD_BYTES};
	struct iovec from = {(void *)(uintptr_t)s->address[!odd], LOAD_BYTES};
	return process_vm_readv(s->pid[!odd], &to, 1, &from, 1, 0) == (ssize_t)LOAD_BYTES;
}

/* The sender's turns are the even ones; it measures.  Turns begin and end with it. */
static inline int load_messages(struct load_shared *s, int odd, char *buf, double budget_us,
				double *us)
{
	double begun = bench_now_us();
	int got = 0, fine = 1;
	for (;;) { /* ends: the sender's budget or room is used up */
		double t = bench_now_us();
		if (odd)
			load_await(s, odd);
		/* Relaxed: came with the turn. */
		if (odd && atomic_load_explicit(&s->x_over, memory_order_relaxed))
			break;
		if (odd)
			fine &= load_fetch(s, odd, buf);
		load_pass(s);
		if (odd)
			continue;
		load_await(s, odd);
		fine &= load_fetch(s, odd, buf);
		us[got++] = (bench_now_us() - t) / 2;
		if (got == LOAD_MOST || bench_now_us() - begun > budget_us) {
			atomic_store_explicit(&s->x_over, 1, memory_order_relaxed);
			load_pass(s);
			break;
		}
	}
	if (!fine) {
		perror("limit: process_vm_readv");
		exit(1);
	}
	return got;
}

static inline void load_case(struct load_shared *s, int odd, char *buf, int n, double budget_us)
{
	pthread_t *thread = malloc(sizeof(*thread) * (size_t)(n + 1));
	double us[LOAD_MOST], most = 0;
	char name[32];

	atomic_store_explicit(&load_x_stop, 0, memory_order_relaxed);
	for (int i = 0; i < n; i++) {
		if (pthread_create(&thread[i], NULL, load_computes, NULL)) {
			perror("limit: pthread_create");
			exit(1);
		}
	}
	int got = load_messages(s, odd, buf, budget_us, us);
	atomic_store_explicit(&load_x_stop, 1, memory_order_relaxed);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	/* The other gives the turn back when its threads have ended, too. */
	if (odd) {
		atomic_store_explicit(&s->x_over, 0, memory_order_relaxed);
		load_pass(s);
		return;
	}
	load_await(s, odd);
	for (int i = 0; i < got; i++)
		most = us[i] > most ? us[i] : most;
	snprintf(name, sizeof(name), "%d threads", n);
	bench_row(name, "median", "us", bench_median(us, got));
	bench_row(name, "maximum", "us", most);
}

static inline void load_run(struct load_shared *s, int odd, int quick)
{
	static const int full[] = {0, 1, 2, 4, 8, -1}, few[] = {0, 2, -1};
	char *buf = bench_alloc(LOAD_BYTES);

	s->address[odd] = (uint64_t)(uintptr_t)buf;
	s->pid[odd] = getpid();
	/* Both are there: a turn each before the first message. */
	if (odd)
		load_await(s, odd);
	load_pass(s);
	if (!odd)
		load_await(s, odd);
	for (const int *n = quick ? few : full; *n >= 0; n++)
		load_case(s, odd, buf, *n, quick ? 150e3 : 1500e3);
	free(buf);
}

#endif
