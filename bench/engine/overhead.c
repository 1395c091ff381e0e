/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overhead.c - what does the engine cost a message when there is nothing to hide?  (RenPar 2008,
 * table 2; 2015, fig. 5)
 *
 * Unit      us, half of there and back, by size.
 * Bound     the row `limit`: the same without any MPI.
 * Method    overhead explicit|threads|server, set before MPI starts; threads is printed as weft.
 */
#include "bench_mpi.h"

static const struct {
	size_t bytes;
	int turns;
} sizes[] = {{8, 2000},    {64, 2000},    {1024, 2000}, {4096, 1000},
	     {65536, 100}, {1 << 20, 10}, {4 << 20, 4}};

static void exchange(char *buffer, size_t bytes, int turns)
{
	for (int i = 0; i < turns && bench_rank < 2; i++) {
		if (bench_rank == 0)
			MPI_Send(buffer, (int)bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(buffer, (int)bytes, MPI_CHAR, 1 - bench_rank, 1, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (bench_rank == 1)
			MPI_Send(buffer, (int)bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	}
}

static void one_size(const char *flavour, char *buffer, size_t bytes, int turns)
{
	int blocks = bench_quick ? 5 : 21;
	double t[21];
	char size[32];
	for (int b = -2; b < blocks; b++) { /* two to warm up */
		MPI_Barrier(MPI_COMM_WORLD);
		double t0 = bench_now_us();
		exchange(buffer, bytes, turns);
		if (b >= 0)
			t[b] = (bench_now_us() - t0) / turns / 2;
	}
	if (bench_rank != 0)
		return;
	int is_default = strcmp(flavour, "threads") == 0;
	printf("weft%s%s,%s,latency,us,%.6g\n", is_default ? "" : " ", is_default ? "" : flavour,
	       bench_size(bytes, size, sizeof(size)), bench_median(t, blocks));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *flavour = argc > 1 && argv[1][0] != '-' ? argv[1] : "threads";
	setenv("WEFT_FLAVOUR", flavour, 1);
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks < 2) {
		fprintf(stderr, "overhead: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	int n = (int)(sizeof(sizes) / sizeof(sizes[0]));
	char *buffer = bench_alloc(sizes[n - 1].bytes);
	for (int i = 0; i < n; i += bench_quick ? 2 : 1)
		one_size(flavour, buffer, sizes[i].bytes, sizes[i].turns);
	free(buffer);
	MPI_Finalize();
	return 0;
}
