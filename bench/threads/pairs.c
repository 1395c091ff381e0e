/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairs.c - what does a message cost when N pairs of threads exchange one byte at once?  (2015,
 * fig. 11)
 *
 * Unit      microseconds, half of there and back of one pair; all pairs at the same time.
 * Bound     N times the latency on one core per side; less where messages travel together.
 * Method    N threads on each of two ranks, thread i plays ping-pong with its like on tag i.  A
 *           block is a fixed time; what counts is time by turns, the mean over the threads.  Each
 *           rank is on one core.
 *
 * pairs [--quick] N...
 */
#include "bench_mpi.h"
#include <pthread.h>
#include <stdatomic.h>

#define TAG 100
#define THREADS_MAX 1024

static double budget_us;
static double mean_us[THREADS_MAX];
static pthread_barrier_t go;

static void *sender(void *arg)
{
	int i = (int)(long)arg, tag = TAG + i;
	long turns = 0;
	char byte = 0, more = 1;

	pthread_barrier_wait(&go);
	double t = bench_now_us(), now;
	do {
		now = bench_now_us();
		byte = more = now - t < budget_us;
		MPI_Send(&byte, 1, MPI_CHAR, 1, tag, MPI_COMM_WORLD);
		MPI_Recv(&byte, 1, MPI_CHAR, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		turns++;
	} while (more);
	mean_us[i] = (bench_now_us() - t) / (double)turns / 2;
	return NULL;
}

static void *receiver(void *arg)
{
	int tag = TAG + (int)(long)arg;
	char byte;

	pthread_barrier_wait(&go);
	do {
		MPI_Recv(&byte, 1, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&byte, 1, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
	} while (byte);
	return NULL;
}

static void run(int n)
{
	pthread_t *thread = malloc(sizeof(*thread) * (size_t)n);
	char name[32];
	double sum = 0;

	pthread_barrier_init(&go, NULL, (unsigned)n);
	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = 0; i < n; i++) {
		if (pthread_create(&thread[i], NULL, bench_rank ? receiver : sender, (void *)i)) {
			fprintf(stderr, "pairs: cannot start thread %ld of %d\n", i, n);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&go);
	for (int i = 0; i < n; i++)
		sum += mean_us[i];
	snprintf(name, sizeof(name), "%d pairs", n);
	if (bench_rank == 0)
		bench_row(name, "latency", "us", sum / n);
	free(thread);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	if (argc < 2)
		bench_usage(argv[0], "", "[--quick] N...");
	if (bench_ranks != 2) {
		fprintf(stderr, "pairs: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	budget_us = bench_quick ? 100e3 : 400e3;
	for (int i = 1; i < argc; i++) {
		int n = atoi(argv[i]);
		if (n < 1 || n > THREADS_MAX)
			bench_usage(argv[0], argv[i], "[--quick] N...");
		run(n);
	}
	MPI_Finalize();
	return 0;
}
