/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strategy.c - a program's own order of large messages: the one with the nearest deadline first.
 *
 *   mpiexec -n 2 build/examples/strategy
 *
 * Rank 0 sends blocks of 16 MiB whose deadline is their tag.  All wait for the network at once;
 * `nearest` chooses whose data goes next, piece by piece.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/strategy.h>

enum { BLOCKS = 6, BYTES = 16 << 20 };

static unsigned asked, chosen_late;

static unsigned nearest(void *arg, const weft_strategy_item *items, unsigned n)
{
	unsigned best = 0;

	(void)arg;
	for (unsigned i = 1; i < n; i++)
		if (items[i].tag < items[best].tag)
			best = i;
	asked++;
	chosen_late += best > 0; /* not the oldest */
	return best;
}

int main(int argc, char **argv)
{
	static const weft_strategy_plan plan = {.name = "nearest", .next = nearest};
	MPI_Request request[BLOCKS];
	int rank;

	/* Large messages must pass through the network: shared memory is copied by the receiver. */
	setenv("WEFT_DRIVERS", "tcp,self", 0);
	setenv("WEFT_STRATEGY", plan.name, 0);
	if (weft_strategy_register(&plan) != WEFT_OK) {
		fprintf(stderr, "there is a strategy %s already\n", plan.name);
		return 1;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	char *data = calloc(BLOCKS, BYTES);
	for (int i = 0; data && rank < 2 && i < BLOCKS; i++) {
		int deadline = BLOCKS - i; /* the last one is the most urgent */
		char *block = data + (size_t)i * BYTES;
		if (rank == 0)
			MPI_Isend(block, BYTES, MPI_CHAR, 1, deadline, MPI_COMM_WORLD, &request[i]);
		else
			MPI_Irecv(block, BYTES, MPI_CHAR, 0, deadline, MPI_COMM_WORLD, &request[i]);
	}
	if (rank < 2)
		MPI_Waitall(BLOCKS, request, MPI_STATUSES_IGNORE);
	if (rank == 0)
		printf("chose %u times, %u times another than the oldest\n", asked, chosen_late);
	free(data);
	MPI_Finalize();
	return rank == 0 && !asked;
}
