/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.h - what waking one of N threads on one core costs without any MPI: the rows `limit` of
 * `weft bench waiters`.
 *
 * N threads on one core, each asleep on a futex word of its own.  The holder of the token stores it in
 * the next one's word, wakes that thread, and sleeps.  A message to one of N waiting threads needs
 * exactly one such hand-over, so half of it is comparable with half of there and back: what is
 * left out is the message itself, its way there and back.
 */
#ifndef WEFT_BENCH_RELAY_H
#define WEFT_BENCH_RELAY_H

#include "bench.h"
#include "order.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

struct relay_post {
	_Alignas(128) _Atomic int x_token; /* 1: yours */
	struct relay_post *next;
	pthread_t thread;
};

static struct {
	_Atomic long x_passed; /* written by the holder of the token */
	_Atomic int x_stop;
} relay;

static inline void relay_give(struct relay_post *p)
{
	/* GIVE -> TAKE.  Carries: x_passed, whose writers take turns; x_stop, at the end. */
	atomic_store_explicit(&p->x_token, 1, memory_order_release);
	syscall(SYS_futex, &p->x_token, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *relay_main(void *arg)
{
	struct relay_post *me = arg;
	for (;;) {
		/* TAKE <- GIVE.  Ends when the token comes round, or at the end. */
		while (!atomic_exchange_explicit(&me->x_token, 0, memory_order_acquire))
			syscall(SYS_futex, &me->x_token, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		/* Relaxed: ordered by the token that main gives after it. */
		if (atomic_load_explicit(&relay.x_stop, memory_order_relaxed))
			return NULL;
		/* Relaxed: only the holder of the token writes; the reader wants a number. */
		long passed = atomic_load_explicit(&relay.x_passed, memory_order_relaxed) + 1;
		atomic_store_explicit(&relay.x_passed, passed, memory_order_relaxed);
		relay_give(me->next);
	}
}

/* Half the microseconds of one hand-over, while the threads run. */
static inline double relay_timed(double us)
{
	double t = bench_now_us();
	long n = atomic_load_explicit(&relay.x_passed, memory_order_relaxed);
	struct timespec rest = {0, (long)(us * 1e3)};
	nanosleep(&rest, NULL);
	n = atomic_load_explicit(&relay.x_passed, memory_order_relaxed) - n;
	return n ? (bench_now_us() - t) / (double)n / 2 : 0;
}

static inline void relay_case(int n, int random, int blocks)
{
	struct relay_post *post = aligned_alloc(128, sizeof(*post) * (size_t)n);
	int *order = malloc(sizeof(*order) * (size_t)n);
	double block[BENCH_BLOCKS_MAX];
	pthread_attr_t attr;
	char name[64];

	order_fill(order, n, random);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	atomic_store_explicit(&relay.x_stop, 0, memory_order_relaxed);
	for (int i = 0; i < n; i++) {
		atomic_init(&post[i].x_token, 0);
		post[order[i]].next = &post[order[(i + 1) % n]];
	}
	for (int i = 0; i < n; i++) {
		errno = pthread_create(&post[i].thread, &attr, relay_main, &post[i]);
		if (errno) {
			perror("limit: pthread_create");
			exit(1);
		}
	}
	relay_give(&post[0]);
	relay_timed(50e3);
	for (int i = 0; i < blocks; i++)
		block[i] = relay_timed(20e3);
	atomic_store_explicit(&relay.x_stop, 1, memory_order_relaxed);
	for (int i = 0; i < n; i++)
		relay_give(&post[i]);
	for (int i = 0; i < n; i++)
		pthread_join(post[i].thread, NULL);
	pthread_attr_destroy(&attr);
	free(order);
	free(post);
	snprintf(name, sizeof(name), "%d %s", n, random ? "random" : "round robin");
	bench_row(name, "latency", "us", bench_median(block, blocks));
}

/* The threads share the second core, as rank 1's do; the measuring thread sleeps. */
static inline void relay_run(int quick)
{
	static const int full[] = {2, 16, 64, 512, 0};
	static const int few[] = {2, 64, 0};
	bench_pin(1);
	for (const int *n = quick ? few : full; *n; n++) {
		relay_case(*n, 0, quick ? 7 : 15);
		relay_case(*n, 1, quick ? 7 : 15);
	}
}

#endif
