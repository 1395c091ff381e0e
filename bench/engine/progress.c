/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.c - how long does a send take while the receiver computes 50 ms?  (RenPar 2008, fig. 3)
 *
 * Unit      ms that MPI_Send takes; median.
 * Bound     the transfer alone; without background progress the rest of the 50 ms.
 * Method    rank 1 posts the receive and computes; rank 0 sends 1 ms later.
 */
#include "bench_mpi.h"

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1024, 16384, 65536, 262144, 1048576, 4194304};
	bench_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	if (argc > 1)
		bench_usage(argv[0], argv[1], "[--quick]");
	if (bench_ranks < 2) {
		fprintf(stderr, "progress: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	char *buffer = bench_alloc(sizes[5]), name[32], byte = 0;
	long turns = bench_turns(50e3);
	for (int s = 0; s < 6; s += bench_quick ? 2 : 1) {
		double t[9];
		int n = bench_quick ? 3 : 9;
		for (int i = 0; i < n; i++) {
			MPI_Request r;
			MPI_Barrier(MPI_COMM_WORLD);
			if (bench_rank == 1) {
				MPI_Irecv(buffer, (int)sizes[s], MPI_CHAR, 0, 1, MPI_COMM_WORLD,
					  &r);
				MPI_Send(&byte, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
				bench_compute(turns);
				MPI_Wait(&r, MPI_STATUS_IGNORE);
			} else if (bench_rank == 0) {
				MPI_Recv(&byte, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD,
					 MPI_STATUS_IGNORE);
				struct timespec ms = {0, 1000000};
				nanosleep(&ms, NULL);
				t[i] = bench_now_us();
				MPI_Send(buffer, (int)sizes[s], MPI_CHAR, 1, 1, MPI_COMM_WORLD);
				t[i] = bench_now_us() - t[i];
			}
		}
		if (bench_rank == 0)
			bench_row(bench_size(sizes[s], name, sizeof(name)), "send", "ms",
				  bench_median(t, n) * 1e-3);
	}
	MPI_Finalize();
	return 0;
}
