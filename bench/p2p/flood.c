/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood.c - how soon are many messages sent, to a receiver that waits and to one that computes?
 *
 * Unit      us per message: until all are received, or, where the receiver computes, until the last
 *           send is over.
 * Bound     the sender's share of the copying; an MPI without background progress stands still
 * while the receiver computes, as soon as the network is full. Method    the receiver has posted
 * all receives, and computes for COMPUTE_US or waits at once; the sender sends with MPI_Send, or in
 * windows of 64 MPI_Isend.  Up to 3,000 messages, 24 MB at most.  Median of rounds.  Ranks are not
 * bound: the kernel decides which core each computes on.
 */
#include "bench_mpi.h"

#define COMPUTE_US 100000
#define MESSAGES 3000
#define BYTES 24000000
#define WINDOW 64

static MPI_Request req[MESSAGES];
static char *buf;

static double send_all(int bytes, int n, int window, int computes)
{
	double t = bench_now_us();
	for (int i = 0; !window && i < n; i++)
		MPI_Send(buf, bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
	for (int i = 0; window && i < n; i += window) {
		int part = n - i < window ? n - i : window;
		for (int k = 0; k < part; k++)
			MPI_Isend(buf, bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &req[k]);
		MPI_Waitall(part, req, MPI_STATUSES_IGNORE);
	}
	if (!computes)
		MPI_Barrier(MPI_COMM_WORLD);
	return bench_now_us() - t;
}

/* Microseconds per message; valid on rank 0. */
static double once(int bytes, int n, int window, int computes)
{
	double us = 0;
	for (int i = 0; bench_rank == 1 && i < n; i++)
		MPI_Irecv(buf, bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &req[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	if (bench_rank == 0) {
		us = send_all(bytes, n, window, computes) / n;
	} else if (bench_rank == 1) {
		double end = bench_now_us() + COMPUTE_US;
		while (computes && bench_now_us() < end)
			;
		MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	}
	if (computes || bench_rank)
		MPI_Barrier(MPI_COMM_WORLD);
	return us;
}

int main(int argc, char **argv)
{
	static const int full[] = {8, 512, 8000, 65536, 1 << 20, 0};
	static const int quick[] = {8, 8000, 0};
	double round[9];
	char text[32], name[64];

	bench_start_on(&argc, &argv, MPI_THREAD_SINGLE, 0);
	if (argc > 1)
		bench_usage(argv[0], argv[1], "[--quick]");
	if (bench_ranks < 2)
		bench_usage(argv[0], "one rank", "with two ranks");
	int rounds = bench_quick ? 5 : 9;
	for (const int *size = bench_quick ? quick : full; *size; size++) {
		int n = BYTES / *size < MESSAGES ? BYTES / *size : MESSAGES;
		buf = bench_alloc((size_t)*size);
		for (int way = 0; way < 4; way++) {
			int window = way / 2 * WINDOW, computes = way % 2;
			(void)once(*size, n, window, computes);
			for (int i = 0; i < rounds; i++)
				round[i] = once(*size, n, window, computes);
			snprintf(name, sizeof name, "%s %s",
				 bench_size((size_t)*size, text, sizeof text),
				 window ? "MPI_Isend" : "MPI_Send");
			if (bench_rank == 0)
				bench_row(name, computes ? "computes" : "waits", "us",
					  bench_median(round, rounds));
		}
		free(buf);
	}
	MPI_Finalize();
	return 0;
}
