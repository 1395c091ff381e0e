/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agree_death.c - a rank in the midst of the members' tree dies before calls that make something of all members:
 * each living rank's call ends, also where what it waits for is a living rank that has given up.
 *
 * ranks: 1 (nothing dies); CMakeLists.txt starts eight with -disable-auto-cleanup, and each survivor says so.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "mpitest.h"

/* It may succeed on ranks that do not depend on the dead one. */
static void may_fail(int code)
{
	if (code)
		FAILS(code, MPI_ERR_PROC_ABORTED);
}

int main(int argc, char **argv)
{
	int provided, word = 0, all[8];
	MPI_Comm made = MPI_COMM_NULL, other;
	MPI_Win win = MPI_WIN_NULL;
	MPI_Group group;
	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
	if (size == 1) {
		OK(MPI_Group_free(&group));
		OK(MPI_Finalize());
		return 0;
	}
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
	/* 4 stands before 5 and 6, 6 before 7. */
	if (rank == 4)
		raise(SIGKILL);
	FAILS(MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made), MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made),
	      MPI_ERR_PROC_ABORTED);
	may_fail(MPI_Comm_dup(MPI_COMM_WORLD, &made));
	may_fail(MPI_Comm_create(MPI_COMM_WORLD, group, &made));
	may_fail(MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &made));
	may_fail(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	/* A rank that has had its error stays away: the others wait for it as well, and it lives. */
	if (rank)
		FAILS(MPI_Barrier(MPI_COMM_WORLD), MPI_ERR_PROC_ABORTED);
	for (int i = 0; rank && i < 3; i++)
		FAILS(MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, other),
		      MPI_ERR_PROC_ABORTED);
	for (int i = 1, in; rank == 0 && i < size; i++)
		if (i != 4)
			OK(MPI_Recv(&in, 1, MPI_INT, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	if (rank)
		OK(MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
	printf("survivor %d is fine\n", rank);
	fflush(stdout);
	_exit(0);
}
