/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * million.c - many threads, user-level or not, each blocked in MPI_Recv on its own tag: what does a
 * message cost, and what a thread?
 *
 * Unit      us half there and back (one message at a time, random threads); messages per second (32
 *           under way); KiB for each thread; seconds to start and to end all of them.
 * Bound     a message: its latency and two or three cache misses for a thread that was not thought
 *           of for long.  Memory: a page of stack.
 * Method    rank 1 has the threads, with stacks of 4 KiB; rank 0 sends and gets the answers.
 *           --pthreads, and other MPIs: pthreads with 64 KiB, up to 30,000 of them.
 *
 * million [--quick] [--pthreads] [N...]
 */
#include "bench_mpi.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#if defined(__has_include)
#if __has_include(<weft/ult.h>)
#include <weft/ult.h>
#define HAVE_ULT 1
#endif
#endif

#define TAG_BASE 100
#define WINDOW 32
#define STOP (-1)
#define PLAIN_MAX 30000

static int plain; /* --pthreads */

static _Atomic long x_begun;

static void *answers(void *arg)
{
	int tag = (int)(long)arg, value;
	atomic_fetch_add_explicit(&x_begun, 1, memory_order_relaxed);
	do {
		MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (value != STOP)
			MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
	} while (value != STOP);
	return NULL;
}

/* ---- a thread of either kind ----------------------------------------------------------------- */

union thread {
	pthread_t plain;
	void *light;
};

static int start(union thread *t, long tag)
{
#ifdef HAVE_ULT
	struct weft_ult_attr light = WEFT_ULT_ATTR_INIT;
	light.stack_size = 4096;
	if (!plain)
		return weft_ult_create((weft_ult **)&t->light, &light, answers, (void *)tag);
#endif
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	int err = pthread_create(&t->plain, &attr, answers, (void *)tag);
	pthread_attr_destroy(&attr);
	return err;
}

static void end(union thread *t)
{
#ifdef HAVE_ULT
	if (!plain) {
		weft_ult_join(t->light, NULL);
		return;
	}
#endif
	pthread_join(t->plain, NULL);
}

struct many {
	union thread *thread;
	int n;
};

static void *starts(void *arg)
{
	struct many *m = arg;
	for (long i = 0; i < m->n; i++) {
		if (start(&m->thread[i], TAG_BASE + i)) {
			fprintf(stderr, "million: cannot start thread %ld of %d\n", i, m->n);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	return NULL;
}

/* User-level threads are started by one of them, so that no more threads want cores than run
 * afterwards. */
static void start_all(struct many *m)
{
#ifdef HAVE_ULT
	struct weft_ult_attr light = WEFT_ULT_ATTR_INIT;
	weft_ult *starter;
	light.stack_size = 64 << 10;
	if (!plain && weft_ult_create(&starter, &light, starts, m) == 0) {
		weft_ult_join(starter, NULL);
		return;
	}
#endif
	starts(m);
}

/* Rank 1; tells rank 0 the seconds of the start, KiB each, and the seconds of the end. */
static void have_threads(int n)
{
	union thread *thread = malloc(sizeof(*thread) * (size_t)n);
	double told[3], t;
	memset(thread, 0, sizeof(*thread) * (size_t)n);
	long before = bench_memory_kib();
	t = bench_now_us();
	atomic_store(&x_begun, 0);
	start_all(&(struct many){thread, n});
	while (atomic_load(&x_begun) < n)
		usleep(200);
	told[0] = (bench_now_us() - t) / 1e6;
	told[1] = (double)(bench_memory_kib() - before) / n;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD); /* all the messages */
	t = bench_now_us();
	for (int i = 0; i < n; i++)
		end(&thread[i]);
	told[2] = (bench_now_us() - t) / 1e6;
	MPI_Send(told, 3, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
	free(thread);
}

static int pick(unsigned *seed, int n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (int)((uint64_t)*seed * (unsigned)n >> 32);
}

static double one_at_a_time(int n, double seconds)
{
	double block[BENCH_BLOCKS_MAX], end = bench_now_us() + seconds * 1e6;
	unsigned seed = 20161121;
	int blocks = 0, value = 0;
	while (blocks < 15 && (blocks == 0 || bench_now_us() < end)) {
		double t = bench_now_us();
		for (int i = 0; i < 2000; i++) {
			int tag = TAG_BASE + pick(&seed, n);
			MPI_Send(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
			MPI_Recv(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
		block[blocks++] = (bench_now_us() - t) / 2000 / 2;
	}
	return bench_median(block, blocks);
}

static double many_at_a_time(int n)
{
	MPI_Request req[WINDOW];
	int in[WINDOW], out[WINDOW] = {0}, rounds = bench_quick ? 500 : 3000;
	unsigned seed = 20161121;
	double t = bench_now_us();
	for (int r = 0; r < rounds; r++) {
		int first = pick(&seed, n - WINDOW); /* each thread once at a time */
		for (int i = 0; i < WINDOW; i++)
			MPI_Irecv(&in[i], 1, MPI_INT, 1, TAG_BASE + first + i, MPI_COMM_WORLD,
				  &req[i]);
		for (int i = 0; i < WINDOW; i++)
			MPI_Send(&out[i], 1, MPI_INT, 1, TAG_BASE + first + i, MPI_COMM_WORLD);
		MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
	}
	/* There and back. */
	return 2.0 * rounds * WINDOW / ((bench_now_us() - t) / 1e6);
}

static void ask(int n)
{
	char name[64];
	double told[3];
	int stop = STOP;
	MPI_Barrier(MPI_COMM_WORLD);
	double us = one_at_a_time(n, bench_quick ? 1 : 3), rate = many_at_a_time(n);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		MPI_Send(&stop, 1, MPI_INT, 1, TAG_BASE + i, MPI_COMM_WORLD);
	MPI_Recv(told, 3, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	snprintf(name, sizeof(name), "%d threads", n);
	bench_row(name, "message", "us", us);
	bench_row(name, "messages", "per second", rate);
	bench_row(name, "memory of each", "KiB", told[1]);
	bench_row(name, "started", "s", told[0]);
	bench_row(name, "ended", "s", told[2]);
}

int main(int argc, char **argv)
{
	static const int full[] = {1000, 10000, 100000, 1000000, 0};
	static const int quick[] = {1000, 10000, 0};
	int given[32] = {0}, count = 0;
	bench_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--pthreads") == 0)
			plain = 1;
		else if (atoi(argv[i]) > WINDOW && count < 31)
			given[count++] = atoi(argv[i]);
		else
			bench_usage(argv[0], argv[i], "[--quick] [--pthreads] [N...]");
	}
	if (bench_ranks != 2) {
		fprintf(stderr, "million: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
#ifdef HAVE_ULT
	if (bench_rank == 1 && !plain)
		weft_ult_start(1);
#else
	plain = 1;
#endif
	for (const int *n = count ? given : bench_quick ? quick : full; *n; n++) {
		if (plain && *n > (bench_quick ? PLAIN_MAX / 30 : PLAIN_MAX))
			fprintf(stderr, "million: %d pthreads are too many\n", *n);
		else
			bench_rank ? have_threads(*n) : ask(*n);
	}
	MPI_Finalize();
	return 0;
}
