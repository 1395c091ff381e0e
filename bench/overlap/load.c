/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.c - what does a message of 1 MiB cost beside N computing threads on each core?  (2015, fig.
 * 12)
 *
 * Unit      microseconds, half of there and back; median and maximum over the messages.
 * Bound     no load.  A thread that must wait for its turn of the core waits N time slices.
 * Method    one thread per rank sends and receives in turn; N others on the same core compute and
 *           call nothing.
 *
 * load [--quick] N...
 */
#include "bench_mpi.h"
#include <pthread.h>
#include <stdatomic.h>

#define BYTES (1 << 20)
#define MESSAGES_MAX 400

static _Atomic int x_stop;

static void *computes(void *arg)
{
	(void)arg;
	/* Relaxed: it only ends the loop. */
	while (!atomic_load_explicit(&x_stop, memory_order_relaxed))
		bench_compute(10000);
	return NULL;
}

static void exchange(char *buf, int partner)
{
	if (bench_is_sender()) {
		MPI_Send(buf, BYTES, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
		MPI_Recv(buf, BYTES, MPI_CHAR, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buf, BYTES, MPI_CHAR, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(buf, BYTES, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
	}
}

static void run(char *buf, int partner, int n, double budget_us)
{
	pthread_t *thread = malloc(sizeof(*thread) * (size_t)(n + 1));
	double us[MESSAGES_MAX], begun, most = 0;
	char name[32];
	int got = 0, more = 1;

	exchange(buf, partner);
	atomic_store_explicit(&x_stop, 0, memory_order_relaxed);
	for (int i = 0; i < n; i++) {
		if (pthread_create(&thread[i], NULL, computes, NULL)) {
			fprintf(stderr, "load: cannot start thread %d of %d\n", i, n);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	begun = bench_now_us();
	while (more) { /* ends: the sender's budget or room is used up */
		double t = bench_now_us();
		exchange(buf, partner);
		us[got] = (bench_now_us() - t) / 2;
		most = us[got] > most ? us[got] : most;
		got++;
		more = got < MESSAGES_MAX && bench_now_us() - begun < budget_us;
		if (bench_is_sender())
			MPI_Send(&more, 1, MPI_INT, partner, 2, MPI_COMM_WORLD);
		else
			MPI_Recv(&more, 1, MPI_INT, partner, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	atomic_store_explicit(&x_stop, 1, memory_order_relaxed);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	snprintf(name, sizeof(name), "%d threads", n);
	if (bench_rank == 0) {
		bench_row(name, "median", "us", bench_median(us, got));
		bench_row(name, "maximum", "us", most);
	}
	free(thread);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc < 2)
		bench_usage(argv[0], "", "[--quick] N...");
	int partner = bench_partner();
	char *buf = bench_alloc(BYTES);
	for (int i = 1; i < argc; i++) {
		int n = atoi(argv[i]);
		if (n < 0 || n > 256)
			bench_usage(argv[0], argv[i], "[--quick] N...");
		run(buf, partner, n, bench_quick ? 150e3 : 1500e3);
	}
	MPI_Finalize();
	free(buf);
	return 0;
}
