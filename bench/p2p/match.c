/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match.c - what does a message cost when N others lie in matching?
 *
 * Unit      microseconds, half of there and back for 8 bytes; drained: per message.
 * Bound     the latency with nothing there: a list of N costs some ns for each, a table nothing.
 * Method    posted: rank 1 has N receives posted, each with its own tag, before the one that is
 *           measured.  unexpected: N messages lie with rank 1 before it.  drained: rank 1 receives
 *           these N, the newest first.
 *
 * match [--quick] [N...]
 */
#include "bench_mpi.h"

#define TAG_BASE 1000

static double ping(int rounds)
{
	long v = 0;
	double t = bench_now_us();
	for (int i = 0; i < rounds; i++) {
		if (bench_is_sender()) {
			MPI_Send(&v, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD);
			MPI_Recv(&v, 1, MPI_LONG, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(&v, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(&v, 1, MPI_LONG, 0, 2, MPI_COMM_WORLD);
		}
	}
	return (bench_now_us() - t) / rounds / 2;
}

/* Median of blocks of about a millisecond. */
static double latency(void)
{
	double block[BENCH_BLOCKS_MAX];
	int blocks = bench_quick ? 7 : 15, n = bench_repeat(ping(3) * 2, 1000, 2000);
	for (int i = 0; i < blocks; i++)
		block[i] = ping(n);
	return bench_median(block, blocks);
}

static void row(int n, const char *what, double us)
{
	char name[64];
	snprintf(name, sizeof(name), "%d %s", n, what);
	bench_row(name, "time", "us", us);
}

static void posted(int n)
{
	MPI_Request *req = malloc(sizeof(*req) * (size_t)n);
	long *v = calloc((size_t)n, sizeof(*v));
	for (int i = 0; i < n && !bench_is_sender(); i++)
		MPI_Irecv(&v[i], 1, MPI_LONG, 0, TAG_BASE + i, MPI_COMM_WORLD, &req[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	double us = latency();
	if (bench_is_sender())
		row(n, "posted", us);
	/* The oldest first: the cheap end of a list. */
	for (int i = 0; i < n && bench_is_sender(); i++)
		MPI_Send(&v[i], 1, MPI_LONG, 1, TAG_BASE + i, MPI_COMM_WORLD);
	if (!bench_is_sender())
		MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	free(req);
	free(v);
}

static void unexpected(int n)
{
	long v = 0;
	for (int i = 0; i < n && bench_is_sender(); i++)
		MPI_Send(&v, 1, MPI_LONG, 1, TAG_BASE + i, MPI_COMM_WORLD);
	/* Behind them all: when this is through they lie there. */
	ping(1);
	double us = latency();
	if (bench_is_sender())
		row(n, "unexpected", us);
	MPI_Barrier(MPI_COMM_WORLD);
	double t = bench_now_us();
	for (int i = n - 1; i >= 0 && !bench_is_sender(); i--)
		MPI_Recv(&v, 1, MPI_LONG, 0, TAG_BASE + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	if (bench_is_sender() && n >= 100) /* fewer: the barriers would be most of it */
		row(n, "drained", (bench_now_us() - t) / n);
}

int main(int argc, char **argv)
{
	static const int full[] = {1, 100, 10000, 100000, 0};
	static const int quick[] = {1, 1000, 0};
	int given[32] = {0}, count = 0;

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	for (int i = 1; i < argc; i++) {
		if (atoi(argv[i]) > 0 && atoi(argv[i]) <= 1000000 && count < 31)
			given[count++] = atoi(argv[i]);
		else
			bench_usage(argv[0], argv[i], "[--quick] [N...]");
	}
	if (bench_ranks != 2) {
		if (bench_rank == 0)
			fprintf(stderr, "match: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	for (const int *n = count ? given : bench_quick ? quick : full; *n; n++) {
		posted(*n);
		unexpected(*n);
	}
	MPI_Finalize();
	return 0;
}
