/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unmet_death.c - a rank that no other has talked to dies: receives, probes and collectives that wait for it end all the
 * same, and messages of others are received.
 *
 * ranks: 1 (nothing dies); CMakeLists.txt starts five with -disable-auto-cleanup, and each survivor says so.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "mpitest.h"

static void wait_for(int victim)
{
	int word, flag = 0, code = MPI_SUCCESS;
	MPI_Message message;
	MPI_Request req;
	MPI_Status st;
	switch (rank) {
	case 0:
		code = MPI_Recv(&word, 1, MPI_INT, victim, 3, MPI_COMM_WORLD, &st);
		break;
	case 1:
		code = MPI_Probe(victim, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		break;
	case 2:
		while (!flag && !code) /* ends with the error */
			code = MPI_Iprobe(victim, 3, MPI_COMM_WORLD, &flag, &st);
		break;
	case 3:
		/* At once, if the death is known. */
		code = MPI_Irecv(&word, 1, MPI_INT, victim, MPI_ANY_TAG, MPI_COMM_WORLD, &req);
		if (!code)
			code = MPI_Wait(&req, &st);
		break;
	}
	FAILS(code, MPI_ERR_PROC_ABORTED);
	flag = 0;
	FAILS(MPI_Improbe(victim, 3, MPI_COMM_WORLD, &flag, &message, &st), MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Send(&word, 1, MPI_INT, victim, 3, MPI_COMM_WORLD), MPI_ERR_PROC_ABORTED);
}

int main(int argc, char **argv)
{
	int provided, sum, one = 1, in;
	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	if (size == 1) {
		OK(MPI_Finalize());
		return 0;
	}
	if (rank == size - 1)
		raise(SIGKILL);
	/* Half of them meet it in a collective first. */
	if (rank % 2)
		FAILS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
		      MPI_ERR_PROC_ABORTED);
	wait_for(size - 1);
	if (rank % 2 == 0)
		FAILS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
		      MPI_ERR_PROC_ABORTED);
	OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % (size - 1), 4, &in, 1, MPI_INT,
			(rank + size - 2) % (size - 1), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(in, (rank + size - 2) % (size - 1));
	printf("survivor %d is fine\n", rank);
	fflush(stdout);
	/* No rank leaves before the others have had its message. */
	for (int i = 1; i < size - 1; i++)
		OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + i) % (size - 1), 5, &in, 1, MPI_INT,
				(rank + size - 1 - i) % (size - 1), 5, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE));
	_exit(0);
}
