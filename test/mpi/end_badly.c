/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* A program that breaks MPI's rules in the way its argument says; without one it ends well. */
#include <stdlib.h>
#include <unistd.h>

#include "mpitest.h"

static void wait_for_the_dead(void)
{
	int v = 0;

	if (rank == 1)
		_exit(3);
	OK(MPI_Recv(&v, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* The status of a message that is too long is asked for among others. */
static void look_at_truncated(void)
{
	int v[4] = {0}, flag = 0;
	MPI_Request req[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Status st[2];

	if (rank == 0)
		MPI_Send(v, 4, MPI_INT, 1, 0, MPI_COMM_WORLD);
	else
		MPI_Irecv(v, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &req[1]);
	while (rank == 1 && !flag) /* ends: the message comes */
		MPI_Request_get_status_all(2, req, &flag, st);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int v[4] = {0};

	if (strcmp(how, "before") == 0)
		MPI_Comm_rank(MPI_COMM_WORLD, v);
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (strcmp(how, "rank") == 0 && rank == 1)
		MPI_Send(v, 1, MPI_INT, 7, 0, MPI_COMM_WORLD);
	if (strcmp(how, "truncate") == 0) {
		if (rank == 0)
			MPI_Send(v, 4, MPI_INT, 1, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(v, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (strcmp(how, "truncate-look") == 0)
		look_at_truncated();
	if (strcmp(how, "abort") == 0 && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 3);
	if (strcmp(how, "peer") == 0)
		wait_for_the_dead();
	test_end();
	if (strcmp(how, "after") == 0)
		MPI_Comm_rank(MPI_COMM_WORLD, v);
	return 0;
}
