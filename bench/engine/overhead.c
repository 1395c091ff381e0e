/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overhead.c - what does the engine cost a message when there is nothing to hide?  (RenPar 2008,
 * table 2; 2015, fig. 5)
 *
 * Unit      us, half of there and back, 8 bytes.
 * Bound     the row `limit`: the same without any MPI.
 * Method    overhead FLAVOUR, which is set before MPI starts.
 */
#include "bench_mpi.h"

int main(int argc, char **argv)
{
	const char *flavour = argc > 1 && argv[1][0] != '-' ? argv[1] : "threads";
	char name[64], byte[8] = {0};
	setenv("WEFT_FLAVOUR", flavour, 1);
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks < 2) {
		fprintf(stderr, "overhead: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	int blocks = bench_quick ? 5 : 21, turns = 2000;
	double t[21];
	for (int b = -2; b < blocks; b++) { /* two to warm up */
		MPI_Barrier(MPI_COMM_WORLD);
		double t0 = bench_now_us();
		for (int i = 0; i < turns && bench_rank < 2; i++) {
			if (bench_rank == 0)
				MPI_Send(byte, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
			MPI_Recv(byte, 8, MPI_CHAR, 1 - bench_rank, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			if (bench_rank == 1)
				MPI_Send(byte, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		}
		if (b >= 0)
			t[b] = (bench_now_us() - t0) / turns / 2;
	}
	snprintf(name, sizeof(name), "8 B %s", flavour);
	if (bench_rank == 0)
		bench_row(name, "latency", "us", bench_median(t, blocks));
	MPI_Finalize();
	return 0;
}
