/* SPDX-License-Identifier: BSD-3-Clause */
/* mpich_probe.c - compiled with another MPI's mpicc: does its program live under our mpiexec? */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int rank, size, sum;
	const char *what = argc > 1 ? argv[1] : "";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0 && strcmp(what, "sum") == 0)
		printf("sum %d of %d\n", sum, size);
	if (rank == 1 && strcmp(what, "abort") == 0)
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (rank == 1 && strcmp(what, "exit") == 0)
		exit(0);
	if (rank == 1 && strcmp(what, "crash") == 0)
		raise(SIGSEGV);
	if (strcmp(what, "spawn") == 0) {
		MPI_Comm children;
		int codes[2];
		MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
			       &children, codes);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
