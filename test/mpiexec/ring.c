/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c - a sum that goes round all ranks, small and large: are all of them reached, on every host? */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rank, size, count = 200000;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int *all = calloc((size_t)count, sizeof *all), sum = 0;
	for (int n = 1; n <= count; n = n == 1 ? count : n + 1) {
		if (rank)
			MPI_Recv(all, n, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		all[n - 1] += rank;
		MPI_Send(all, n, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
		if (!rank)
			MPI_Recv(all, n, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sum = all[n - 1];
		all[n - 1] = 0;
	}
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (!rank)
		printf("ring of %d: %d\n", size, sum);
	free(all);
	return MPI_Finalize();
}
