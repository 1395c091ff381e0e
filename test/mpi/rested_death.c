/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rested_death.c - a rank dies whose connections have been closed for want of descriptors: receives and probes that wait for it
 * end all the same, those from before and new ones, and so does a send that it has not answered.
 *
 * ranks: 1 (nothing dies); CMakeLists.txt starts eight with -disable-auto-cleanup, and each survivor says so.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "mpitest.h"

#define FILES 30 /* for three connections or so, with what stays free */
#define ROUNDS 3
#define LONG 300000 /* bytes: asked for first */

static char much[LONG];

static void swap(int to, int from, int tag, const int *out, int *in)
{
	OK(MPI_Sendrecv(out, 1, MPI_INT, to, tag, in, 1, MPI_INT, from, tag, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE));
}

/* The survivors among themselves, so often that the connections with the victim are those used longest ago. */
static void talk(int victim)
{
	for (int round = 0; round < ROUNDS; round++)
		for (int step = 1; step < victim; step++) {
			int from = (rank - step + victim) % victim, in = -1;
			swap((rank + step) % victim, from, 4, &rank, &in);
			CHECK_EQ(in, from);
		}
}

static void end_victim(int victim, int pid)
{
	MPI_Request req = MPI_REQUEST_NULL;
	MPI_Status st;
	int word, code;

	if (rank == 0)
		OK(MPI_Irecv(&word, 1, MPI_INT, victim, 3, MPI_COMM_WORLD, &req));
	if (rank == 1)
		OK(MPI_Irecv(&word, 1, MPI_INT, victim, MPI_ANY_TAG, MPI_COMM_WORLD, &req));
	if (rank == 2)
		OK(MPI_Isend(much, LONG, MPI_CHAR, victim, 3, MPI_COMM_WORLD, &req));
	talk(victim);
	if (rank == 0)
		CHECK(kill(pid, SIGKILL) == 0);
	if (rank <= 2)
		code = MPI_Wait(&req, &st);
	else if (rank == 3)
		code = MPI_Probe(victim, 3, MPI_COMM_WORLD, &st);
	else
		code = MPI_Recv(&word, 1, MPI_INT, victim, 3, MPI_COMM_WORLD, &st);
	FAILS(code, MPI_ERR_PROC_ABORTED);
}

int main(int argc, char **argv)
{
	struct rlimit files;
	int provided, pid = (int)getpid(), victims = 0;

	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = FILES;
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(setenv("WEFT_DRIVERS", "tcp,self", 1) == 0);
	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	if (size == 1) {
		OK(MPI_Finalize());
		return 0;
	}
	int victim = size - 1;
	if (rank == victim) {
		for (int r = 0; r < victim; r++)
			swap(r, r, 2, &pid, &victims);
		/* Serves its connections until it is killed. */
		OK(MPI_Recv(&victims, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		return 1;
	}
	swap(victim, victim, 2, &rank, &victims);
	end_victim(victim, victims);
	printf("survivor %d is fine\n", rank);
	fflush(stdout);
	talk(victim);
	_exit(0);
}
