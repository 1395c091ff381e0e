/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steal.c - ranks share work of unequal size by counters: each takes pieces of its own part first, then
 * steals from the others'.
 *
 *   mpicc -O2 examples/steal.c -o steal && mpiexec -n 4 ./steal [PIECES]
 *
 * The counter of a part lies in its rank's memory; a piece is taken by fetch_and_op, also from a rank that
 * computes: its program takes part in nothing.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Win counters;

/* The next piece of a rank's part; pieces or more: none is left. */
static long take(int from)
{
	long one = 1, piece;
	MPI_Fetch_and_op(&one, &piece, MPI_LONG, from, 0, MPI_SUM, counters);
	MPI_Win_flush(from, counters);
	return piece;
}

/* Takes longer in the parts of higher ranks. */
static double work(int part, long piece)
{
	double x = (double)piece;
	for (long i = 0; i < 2000L * (part + 1); i++)
		x = x * 0.999 + 1;
	return x;
}

int main(int argc, char **argv)
{
	int rank, ranks;
	long *mine, pieces = argc > 1 ? atol(argv[1]) : 500, own = 0, stolen = 0, sum, most;
	volatile double result = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mine,
			 &counters);
	MPI_Win_lock_all(0, counters);
	*mine = 0;
	MPI_Win_sync(counters);
	MPI_Barrier(MPI_COMM_WORLD);

	double begin = MPI_Wtime();
	for (int i = 0; i < ranks; i++) {
		int part = (rank + i) % ranks;
		for (long piece = take(part); piece < pieces; piece = take(part)) {
			result = result + work(part, piece);
			if (i)
				stolen++;
			else
				own++;
		}
	}
	double us = (MPI_Wtime() - begin) * 1e6;
	MPI_Win_unlock_all(counters);

	long done = own + stolen;
	MPI_Reduce(&done, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&stolen, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld pieces in %.0f us; the rank that stole most stole %ld\n", sum, us,
		       most);
	int wrong = rank == 0 && sum != pieces * ranks;
	MPI_Win_free(&counters);
	MPI_Finalize();
	return wrong;
}
