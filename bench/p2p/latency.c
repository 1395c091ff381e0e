/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * latency.c - how long is a message under way?
 *
 * Unit      microseconds, half of there and back; ranks / 2 pairs at once, the mean over the pairs.
 * Bound     shm, 8 B: a cache line per direction (about 0.14 us); large: one copy of the message.
 *           tcp: a polling send and recv on a raw socket.  `weft bench` prints both as `limit`.
 * Method    MPI_Send and MPI_Recv in turn.  A block lasts a few milliseconds; the median of the
 *           blocks counts, so that one disturbance by the host does not.  --posted: the receive
 *           of the next message is posted before the answer to this one is sent.
 */
#include "bench_mpi.h"

static void round_trips(char *out, char *in, int bytes, int partner, int n)
{
	for (int i = 0; i < n; i++) {
		if (bench_is_sender()) {
			MPI_Send(out, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
			MPI_Recv(in, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(in, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			MPI_Send(out, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
		}
	}
}

/* The same, each receive posted one message ahead; in: two buffers. */
static void round_trips_posted(char *out, char *in, int bytes, int partner, int n)
{
	MPI_Request ahead[2];
	MPI_Irecv(in, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD, &ahead[0]);
	MPI_Barrier(MPI_COMM_WORLD);
	if (bench_is_sender())
		MPI_Send(out, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		MPI_Wait(&ahead[i % 2], MPI_STATUS_IGNORE);
		if (i + 1 < n)
			MPI_Irecv(in + (size_t)bytes * ((i + 1) % 2), bytes, MPI_CHAR, partner, 1,
				  MPI_COMM_WORLD, &ahead[(i + 1) % 2]);
		if (i + 1 < n || !bench_is_sender())
			MPI_Send(out, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
	}
}

static int posted;

static double timed(char *out, char *in, int bytes, int partner, int n)
{
	MPI_Barrier(MPI_COMM_WORLD);
	double t = bench_now_us();
	(posted ? round_trips_posted : round_trips)(out, in, bytes, partner, n);
	return (bench_now_us() - t) / n / 2;
}

static double latency_us(char *out, char *in, int bytes, int partner)
{
	double block[BENCH_BLOCKS_MAX], median, sum;
	int blocks = bench_quick ? 11 : 21;

	round_trips(out, in, bytes, partner, 3);
	int n = bench_repeat(timed(out, in, bytes, partner, 5) * 2, 4000, 5000);
	timed(out, in, bytes, partner, n);
	for (int i = 0; i < blocks; i++)
		block[i] = timed(out, in, bytes, partner, n);
	median = bench_is_sender() ? bench_median(block, blocks) : 0;
	MPI_Reduce(&median, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	return sum / (bench_ranks / 2);
}

int main(int argc, char **argv)
{
	static const int full[] = {8, 64, 1024, 4096, 65536, 1 << 20, 4 << 20, 0};
	static const int quick[] = {8, 65536, 0};
	char text[32];

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc > 1 && !strcmp(argv[1], "--posted"))
		posted = 1;
	else if (argc > 1)
		bench_usage(argv[0], argv[1], "[--quick] [--posted]");
	int partner = bench_partner();
	char *out = bench_alloc(4 << 20), *in = bench_alloc(8 << 20);
	for (const int *size = bench_quick ? quick : full; *size; size++) {
		double us = latency_us(out, in, *size, partner);
		if (bench_rank == 0)
			bench_row(bench_size((size_t)*size, text, sizeof(text)), "latency", "us",
				  us);
	}
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
