/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instructions.c - run by tools/count-instructions under callgrind: 8 bytes go from rank 0 to rank
 * 1 by MPI_Send and MPI_Recv, one message at a time, and only these calls are counted.
 *
 * With a third argument: windows of 64 MPI_Isend and MPI_Irecv with their MPI_Waitall; all receives
 * of a window are posted before its sends, and all sends are over before the receiver waits.
 *
 * A byte through a FIFO tells rank 1 that the message lies in the ring, so that MPI_Recv finds it
 * in its first look: no count depends on the order in which the ranks run.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

/* Warm: until the locks that one thread uses alone are its own. */
enum { WARM = 50, WARM_SINGLE = 1200, COUNTED = 200, WINDOW = 64 };

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static void say(int fd)
{
	char byte = 0;
	check(write(fd, &byte, 1) == 1, "write");
}

static void hear(int fd)
{
	char byte;
	check(read(fd, &byte, 1) == 1, "read");
}

static void window(int rank, int there, int back, int counted)
{
	MPI_Request req[WINDOW];
	long value[WINDOW];

	if (rank == 0)
		hear(back);
	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	for (int i = 0; i < WINDOW; i++) {
		if (rank == 0)
			MPI_Isend(&value[0], 1, MPI_LONG, 1, 7, MPI_COMM_WORLD, &req[i]);
		else
			MPI_Irecv(&value[i], 1, MPI_LONG, 0, 7, MPI_COMM_WORLD, &req[i]);
	}
	if (rank == 1) {
		if (counted)
			CALLGRIND_TOGGLE_COLLECT;
		say(back);
		hear(there);
		if (counted)
			CALLGRIND_TOGGLE_COLLECT;
	}
	MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	if (rank == 0)
		say(there);
}

int main(int argc, char **argv)
{
	int rank;
	long value = 0;
	char byte = 0;

	if (argc != 3 && argc != 4)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	/* Connects both ways: from here on no rank waits in MPI for one that does not poll. */
	for (int i = 0; i < 10; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	/* Both at once: each open waits for the other side. */
	int there = open(argv[1], rank == 0 ? O_WRONLY : O_RDONLY);
	int back = open(argv[2], rank == 0 ? O_RDONLY : O_WRONLY);
	check(there >= 0 && back >= 0, "open");
	for (int i = 0; argc == 4 && i < WARM + COUNTED; i++)
		window(rank, there, back, i >= WARM);
	for (long i = 0; argc == 3 && i < WARM_SINGLE + COUNTED; i++) {
		if (rank == 0) {
			if (i >= WARM_SINGLE)
				CALLGRIND_TOGGLE_COLLECT;
			MPI_Send(&i, 1, MPI_LONG, 1, 7, MPI_COMM_WORLD);
			if (i >= WARM_SINGLE)
				CALLGRIND_TOGGLE_COLLECT;
			check(write(there, &byte, 1) == 1, "write");
			check(read(back, &byte, 1) == 1, "read");
		} else {
			check(read(there, &byte, 1) == 1, "read");
			if (i >= WARM_SINGLE)
				CALLGRIND_TOGGLE_COLLECT;
			MPI_Recv(&value, 1, MPI_LONG, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (i >= WARM_SINGLE)
				CALLGRIND_TOGGLE_COLLECT;
			if (value != i)
				MPI_Abort(MPI_COMM_WORLD, 1);
			check(write(back, &byte, 1) == 1, "write");
		}
	}
	MPI_Finalize();
	return 0;
}
