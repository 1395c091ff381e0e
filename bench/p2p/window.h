/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window.h - a sender with many messages under way at once, for bandwidth.c and rate.c.
 *
 * The sender starts a window of sends, waits for them, and gets four bytes back when the receiver
 * has the whole window; all pairs at once.
 */
#ifndef WEFT_BENCH_WINDOW_H
#define WEFT_BENCH_WINDOW_H

#include "bench_mpi.h"

#define WINDOW_MAX 64

static inline void window_turns(char *buf, int bytes, int partner, int window, int n)
{
	MPI_Request req[WINDOW_MAX];
	int done = 0;
	for (int i = 0; i < n; i++) {
		for (int w = 0; w < window; w++) {
			if (bench_is_sender())
				MPI_Isend(buf, bytes, MPI_CHAR, partner, 2, MPI_COMM_WORLD,
					  &req[w]);
			else
				MPI_Irecv(buf, bytes, MPI_CHAR, partner, 2, MPI_COMM_WORLD,
					  &req[w]);
		}
		MPI_Waitall(window, req, MPI_STATUSES_IGNORE);
		if (bench_is_sender())
			MPI_Recv(&done, 1, MPI_INT, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(&done, 1, MPI_INT, partner, 3, MPI_COMM_WORLD);
	}
}

/* Microseconds of one message. */
static inline double window_timed(char *buf, int bytes, int partner, int window, int n)
{
	MPI_Barrier(MPI_COMM_WORLD);
	double t = bench_now_us();
	window_turns(buf, bytes, partner, window, n);
	return (bench_now_us() - t) / n / window;
}

/* Messages per microsecond, all pairs together; valid on rank 0. */
static inline double window_rate(char *buf, int bytes, int partner, int window)
{
	double block[BENCH_BLOCKS_MAX], rate, sum = 0;
	int blocks = bench_quick ? 7 : 15;

	int n = bench_repeat(window_timed(buf, bytes, partner, window, 2) * window, 8000, 2000);
	window_timed(buf, bytes, partner, window, n);
	for (int i = 0; i < blocks; i++)
		block[i] = window_timed(buf, bytes, partner, window, n);
	rate = bench_is_sender() ? 1 / bench_median(block, blocks) : 0;
	MPI_Reduce(&rate, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	return sum;
}

#endif
