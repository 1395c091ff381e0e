/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instructions.c - run by tools/count-instructions under callgrind: 8 bytes go from rank 0 to rank
 * 1 by MPI_Send and MPI_Recv, one message at a time, and only these calls are counted.
 *
 * A byte through a FIFO tells rank 1 that the message lies in the ring, so that MPI_Recv finds it
 * in its first look: no count depends on who runs when.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { WARM = 50, COUNTED = 200 };

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	int rank;
	long value = 0;
	char byte = 0;

	if (argc != 3)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	/* Connects both ways: from here on nobody waits in MPI for a rank that does not look. */
	for (int i = 0; i < 10; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	/* Both at once: each open waits for the other side. */
	int there = open(argv[1], rank == 0 ? O_WRONLY : O_RDONLY);
	int back = open(argv[2], rank == 0 ? O_RDONLY : O_WRONLY);
	check(there >= 0 && back >= 0, "open");
	for (long i = 0; i < WARM + COUNTED; i++) {
		if (rank == 0) {
			if (i >= WARM)
				CALLGRIND_TOGGLE_COLLECT;
			MPI_Send(&i, 1, MPI_LONG, 1, 7, MPI_COMM_WORLD);
			if (i >= WARM)
				CALLGRIND_TOGGLE_COLLECT;
			check(write(there, &byte, 1) == 1, "write");
			check(read(back, &byte, 1) == 1, "read");
		} else {
			check(read(there, &byte, 1) == 1, "read");
			if (i >= WARM)
				CALLGRIND_TOGGLE_COLLECT;
			MPI_Recv(&value, 1, MPI_LONG, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (i >= WARM)
				CALLGRIND_TOGGLE_COLLECT;
			if (value != i)
				MPI_Abort(MPI_COMM_WORLD, 1);
			check(write(back, &byte, 1) == 1, "write");
		}
	}
	MPI_Finalize();
	return 0;
}
