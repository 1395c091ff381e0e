/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 5 */
/* The request of an active collective can be neither freed nor cancelled, and still ends well. */
#include "mpitest.h"

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void refused(MPI_Request *r)
{
	MPI_Request before = *r;

	FAILS(MPI_Cancel(r), MPI_ERR_REQUEST);
	FAILS(MPI_Request_free(r), MPI_ERR_REQUEST);
	CHECK(*r == before);
}

/* Rank 0 joins in late, so that the others' are under way. */
static void join_in(MPI_Comm meet)
{
	if (rank != 0)
		OK(MPI_Send(NULL, 0, MPI_INT, 0, 1, meet));
	for (int i = 1; rank == 0 && i < size; i++)
		OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 1, meet, MPI_STATUS_IGNORE));
}

static void check_sum(MPI_Op op)
{
	MPI_Request r;
	int sum = 0;

	if (rank == 0)
		join_in(MPI_COMM_WORLD);
	OK(MPI_Iallreduce(&size, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &r));
	refused(&r);
	if (rank != 0)
		join_in(MPI_COMM_WORLD);
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_EQ(sum, size * size);
}

static void check_persistent(void)
{
	MPI_Request r, none = MPI_REQUEST_NULL;
	int root = rank == 0 ? 17 : 0;

	OK(MPI_Bcast_init(&root, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	for (int i = 0; i < 3; i++) {
		OK(MPI_Start(&r));
		refused(&r);
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK_EQ(root, 17);
	}
	FAILS(MPI_Cancel(&r), MPI_ERR_REQUEST); /* not active */
	OK(MPI_Request_free(&r));
	CHECK(r == none);
	/* Never started. */
	OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	OK(MPI_Request_free(&r));
}

int main(int argc, char **argv)
{
	MPI_Op op;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Op_create(add, 1, &op));
	check_sum(MPI_SUM);
	check_sum(op);
	check_persistent();
	OK(MPI_Op_free(&op));
	return test_end();
}
