/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * part.c - what do partitioned messages cost, and how far do they hide behind the computation that makes
 * their partitions?
 *
 * Unit      ready: ns per MPI_Pready, of a thread that does nothing else; rate: millions of partitions per
 *           second that arrive; end: us from start to the end of both sides, beside the computation of all
 *           partitions, the transfer of the same bytes as one persistent message, and one partition more.
 * Bound     ready: a locked instruction (6 ns) and a call; end: the longer of computation and transfer, and one
 *           partition of the other.
 * Method    Ready: partitions of 8 B, the round's calls alone are timed.  End: 16 partitions; before each is
 *           ready the sender computes a 16th of what the transfer takes ("balanced") or of twice that.
 *           Median of rounds.
 */
#include "bench_mpi.h"

static char *data;

static void requests(MPI_Request *req, int sparts, int rparts, size_t bytes)
{
	if (bench_rank == 0)
		MPI_Psend_init(data, sparts, (MPI_Count)(bytes / (size_t)sparts), MPI_BYTE, 1, 0,
			       MPI_COMM_WORLD, MPI_INFO_NULL, req);
	else
		MPI_Precv_init(data, rparts, (MPI_Count)(bytes / (size_t)rparts), MPI_BYTE, 0, 0,
			       MPI_COMM_WORLD, MPI_INFO_NULL, req);
}

/* Partitions of 8 bytes, one after the other. */
static void small(int parts)
{
	double each[BENCH_BLOCKS_MAX], all[BENCH_BLOCKS_MAX];
	int rounds = bench_quick ? 9 : 31;
	char name[64];
	MPI_Request req;

	requests(&req, parts, parts > 64 ? 64 : 1, (size_t)parts * 8);
	for (int i = -2; i < rounds; i++) {
		double begin, end, over;
		MPI_Start(&req);
		MPI_Barrier(MPI_COMM_WORLD);
		begin = bench_now_us();
		for (int p = 0; bench_rank == 0 && p < parts; p++)
			MPI_Pready(p, req);
		end = bench_now_us();
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
		over = bench_now_us();
		if (i < 0)
			continue;
		each[i] = (end - begin) * 1e3 / parts;
		all[i] = parts / (over - begin);
	}
	MPI_Request_free(&req);
	if (bench_rank)
		return;
	snprintf(name, sizeof name, "%d partitions of 8 B", parts);
	bench_row(name, "ready", "ns", bench_median(each, rounds));
	bench_row(name, "rate", "M/s", bench_median(all, rounds));
}

static void compute(double us)
{
	for (double end = bench_now_us() + us; bench_now_us() < end;)
		;
}

/* The same bytes as one persistent message: us. */
static double one_message(size_t bytes, int rounds)
{
	double each[BENCH_BLOCKS_MAX];
	MPI_Request req;

	if (bench_rank == 0)
		MPI_Send_init(data, (int)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &req);
	else
		MPI_Recv_init(data, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &req);
	for (int i = -2; i < rounds; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = bench_now_us();
		MPI_Start(&req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
		if (i >= 0)
			each[i] = bench_now_us() - begin;
	}
	MPI_Request_free(&req);
	double us = bench_median(each, rounds);
	MPI_Bcast(&us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	return us;
}

static void large(size_t bytes, double share, const char *what)
{
	enum { PARTS = 16 };
	double each[BENCH_BLOCKS_MAX];
	int rounds = bench_quick ? 5 : 15;
	double transfer = one_message(bytes, rounds), work = transfer * share / PARTS;
	char name[64], size[32];
	MPI_Request req;

	requests(&req, PARTS, PARTS / 4, bytes);
	for (int i = -2; i < rounds; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = bench_now_us();
		MPI_Start(&req);
		for (int p = 0; bench_rank == 0 && p < PARTS; p++) {
			compute(work);
			MPI_Pready(p, req);
		}
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
		if (i >= 0)
			each[i] = bench_now_us() - begin;
	}
	MPI_Request_free(&req);
	if (bench_rank)
		return;
	double longer = share > 1 ? transfer * share : transfer;
	double other = share > 1 ? transfer / PARTS : work;
	snprintf(name, sizeof name, "16 partitions of %s %s",
		 bench_size(bytes / PARTS, size, sizeof size), what);
	bench_row(name, "end", "us", bench_median(each, rounds));
	bench_row(name, "bound", "us", longer + other);
}

int main(int argc, char **argv)
{
	size_t most = (size_t)16 << 20;

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks != 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	data = bench_alloc(most);
	memset(data, 1, most);
	small(64);
	small(4096);
	small(1 << 18);
	for (size_t bytes = (size_t)256 << 10; bytes <= (bench_quick ? (size_t)1 << 20 : most / 4);
	     bytes *= 4) {
		large(bytes, 1, "balanced");
		large(bytes, 2, "computing longer");
	}
	MPI_Finalize();
	free(data);
	return 0;
}
