/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.c - what does waiting cost?
 *
 * Unit      percent of a core, all threads of the process together, while MPI_Recv waits a second.
 * Bound     0: a thread that sleeps costs nothing.
 * Method    rank 0 sleeps a second and then sends; getrusage on rank 1, a warm-up wait before.
 */
#include "bench_mpi.h"
#include <sys/resource.h>

static double cpu_us(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* Rank 1 waits; rank 0 lets it wait for `us`.  The share of a core that rank 1 used, in percent. */
static double wait_for(unsigned us)
{
	char byte = 0;
	double percent = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	if (bench_rank == 0) {
		struct timespec ts = {us / 1000000, (long)(us % 1000000) * 1000};
		nanosleep(&ts, NULL);
		MPI_Send(&byte, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(&percent, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (bench_rank == 1) {
		double cpu = cpu_us(), t = bench_now_us();
		MPI_Recv(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		percent = 100 * (cpu_us() - cpu) / (bench_now_us() - t);
		MPI_Send(&percent, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
	}
	return percent;
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	if (argc > 1)
		bench_usage(argv[0], argv[1], "[--quick]");
	if (bench_ranks < 2) {
		fprintf(stderr, "idle: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	wait_for(50000);
	double percent = wait_for(1000000);
	if (bench_rank == 0)
		bench_row("1 s receive", "cpu", "%", percent);
	MPI_Finalize();
	return 0;
}
