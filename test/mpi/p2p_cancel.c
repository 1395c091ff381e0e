/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* A receive that is not matched can be cancelled; one that is matched, and sends, complete. */
#include "mpitest.h"

static void unmatched(void)
{
	int v = 1, flag = 0;
	MPI_Request req;
	MPI_Status st;

	for (int i = 0; i < 50; i++) {
		OK(MPI_Irecv(&v, 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : rank, 3, MPI_COMM_WORLD,
			     &req));
		OK(MPI_Cancel(&req));
		OK(MPI_Wait(&req, &st));
		OK(MPI_Test_cancelled(&st, &flag));
		CHECK(flag);
		CHECK(req == MPI_REQUEST_NULL);
	}
	CHECK_EQ(v, 1);
}

static void matched(void)
{
	int v = 0, w = 8, flag = 1;
	MPI_Request req, tx;
	MPI_Status st;

	OK(MPI_Irecv(&v, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &req));
	OK(MPI_Send(&w, 1, MPI_INT, rank, 4, MPI_COMM_WORLD));
	OK(MPI_Cancel(&req));
	OK(MPI_Wait(&req, &st));
	OK(MPI_Test_cancelled(&st, &flag));
	CHECK(!flag);
	CHECK_EQ(v, 8);
	OK(MPI_Isend(&w, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &tx));
	OK(MPI_Cancel(&tx));
	OK(MPI_Recv(&v, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	OK(MPI_Wait(&tx, &st));
	OK(MPI_Test_cancelled(&st, &flag));
	CHECK(!flag);
}

static void persistent(void)
{
	int v = 0, w = 6, flag = 0;
	MPI_Request req;
	MPI_Status st;

	OK(MPI_Recv_init(&v, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, &req));
	OK(MPI_Start(&req));
	OK(MPI_Cancel(&req));
	OK(MPI_Wait(&req, &st));
	OK(MPI_Test_cancelled(&st, &flag));
	CHECK(flag && req != MPI_REQUEST_NULL);
	OK(MPI_Start(&req));
	OK(MPI_Send(&w, 1, MPI_INT, rank, 6, MPI_COMM_WORLD));
	OK(MPI_Wait(&req, &st));
	OK(MPI_Test_cancelled(&st, &flag));
	CHECK(!flag && v == 6);
	OK(MPI_Request_free(&req));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	unmatched();
	matched();
	persistent();
	return test_end();
}
