/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waiters.c - what does a message cost when many threads wait, each for its own?
 *
 * Unit      microseconds, half of there and back.
 * Bound     one thread: the latency.  More: half of what one futex wake and one futex wait cost,
 * with the switch between them: the rows `limit`, see relay.h. Method    rank 1 runs N threads on
 * its one core, each blocked in MPI_Recv on its own tag; rank 0 sends to one after the other (round
 * robin, or in random order) and waits for the answer.  Where waiters spin, this takes half a time
 * slice or more: a case ends after its time budget, and is no row when not one message got through
 * in time.
 *
 * waiters [--quick] [--ult] [--seconds S] [N...]
 */
#include "bench_mpi.h"
#include "order.h"
#include <pthread.h>
#if defined(__has_include)
#if __has_include(<weft/ult.h>)
#include <weft/ult.h>
#define HAVE_ULT 1
#endif
#endif

static int light; /* --ult: user-level threads wait */

#define TAG_BASE 100
#define STOP (-1)

static void *waiter(void *arg)
{
	int tag = (int)(long)arg, value;
	do {
		MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
	} while (value != STOP);
	return NULL;
}

#ifdef HAVE_ULT
static void receive_light(int n)
{
	weft_ult **thread = malloc(sizeof(*thread) * (size_t)n);
	struct weft_ult_attr attr = WEFT_ULT_ATTR_INIT;
	attr.stack_size = 4096;
	if (weft_ult_workers() == 0)
		weft_ult_start(1);
	for (long i = 0; i < n; i++) {
		if (weft_ult_create(&thread[i], &attr, waiter, (void *)(TAG_BASE + i))) {
			fprintf(stderr, "waiters: cannot start thread %ld of %d\n", i, n);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	for (int i = 0; i < n; i++)
		weft_ult_join(thread[i], NULL);
	free(thread);
}
#else
static void receive_light(int n)
{
	fprintf(stderr, "waiters: this MPI has no user-level threads\n");
	MPI_Abort(MPI_COMM_WORLD, 1);
}
#endif

static void receive(int n)
{
	if (light) {
		receive_light(n);
		return;
	}
	pthread_t *thread = malloc(sizeof(*thread) * (size_t)n);
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (long i = 0; i < n; i++) {
		if (pthread_create(&thread[i], &attr, waiter, (void *)(TAG_BASE + i)) != 0) {
			fprintf(stderr, "waiters: cannot start thread %ld of %d\n", i, n);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	pthread_attr_destroy(&attr);
	free(thread);
}

static void ping(int which, int value)
{
	MPI_Send(&value, 1, MPI_INT, 1, TAG_BASE + which, MPI_COMM_WORLD);
	MPI_Recv(&value, 1, MPI_INT, 1, TAG_BASE + which, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The median of blocks, each a few rounds over all threads. */
static void measure(int n, int random, double seconds)
{
	double block[BENCH_BLOCKS_MAX], began = bench_now_us(), end = began + seconds * 1e6;
	int *order = malloc(sizeof(*order) * (size_t)n), blocks = 0, next = 0;
	int most = bench_quick ? 7 : 15;
	char name[64];

	order_fill(order, n, random);
	/* Warm-up: each thread once, as far as time allows. */
	for (int i = 0; i < n && bench_now_us() < began + seconds * 0.3e6; i++)
		ping(order[i], 0);
	while (blocks < most && (blocks == 0 || bench_now_us() < end)) {
		double t = bench_now_us(), now = t;
		int sent = 0;
		/* At least a round, at least 2 ms, and not beyond the end. */
		while ((sent < n || now < t + 2000) && (sent == 0 || now < end)) {
			ping(order[next], sent);
			next = (next + 1) % n;
			sent++;
			now = bench_now_us();
		}
		block[blocks++] = (now - t) / sent / 2;
	}
	snprintf(name, sizeof(name), "%d %s", n, random ? "random" : "round robin");
	bench_row(name, "latency", "us", bench_median(block, blocks));
	free(order);
}

int main(int argc, char **argv)
{
	static const int full[] = {1, 2, 16, 64, 512, 0};
	static const int quick[] = {1, 16, 0};
	int given[32] = {0}, count = 0;
	double seconds = 2;

	bench_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
			seconds = atof(argv[++i]);
		else if (strcmp(argv[i], "--ult") == 0)
			light = 1;
		else if (atoi(argv[i]) > 0 && atoi(argv[i]) <= 100000 && count < 31)
			given[count++] = atoi(argv[i]);
		else
			bench_usage(argv[0], argv[i], "[--quick] [--ult] [--seconds S] [N...]");
	}
	if (bench_ranks != 2) {
		if (bench_rank == 0)
			fprintf(stderr, "waiters: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	for (const int *n = count ? given : bench_quick ? quick : full; *n; n++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (bench_rank == 1) {
			receive(*n);
			continue;
		}
		measure(*n, 0, seconds);
		measure(*n, 1, seconds);
		for (int i = 0; i < *n; i++)
			ping(i, STOP);
	}
	MPI_Finalize();
	return 0;
}
