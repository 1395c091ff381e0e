/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.c - rank 1 waits a second in MPI_Recv: its process uses hardly any of a core; says how much.
 *
 * The bound is loose, for a busy machine measures as well; the figure is for people.
 */
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../mpi/mpitest.h"

static double cpu_seconds(void)
{
	struct rusage u;

	CHECK_EQ(getrusage(RUSAGE_SELF, &u), 0);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	double cpu, began, share;
	int v = 0;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	test_barrier();
	cpu = cpu_seconds();
	began = seconds();
	if (rank == 0)
		sleep(1); /* the second that is measured */
	for (int r = 1; r < size; r++) {
		if (rank == 0)
			OK(MPI_Send(&v, 1, MPI_INT, r, 1, MPI_COMM_WORLD));
		else if (rank == r)
			OK(MPI_Recv(&v, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	}
	share = (cpu_seconds() - cpu) / (seconds() - began);
	printf("rank %d: %.2f %% of a core in %.2f s\n", rank, 100 * share, seconds() - began);
	CHECK(share < 0.20);
	return test_end();
}
