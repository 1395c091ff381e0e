/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 3 8 13 */
/*
 * A collective whose data would arrive where it is sent from fails with MPI_ERR_BUFFER before it
 * takes part, so that the right call afterwards still meets those of its peers.  What only looks alike
 * works.
 */
#include "mpitest.h"

#define C MPI_COMM_WORLD
#define SAME(call) FAILS(call, MPI_ERR_BUFFER)

static int a[64], b[64];
static int ones[64], at[64], zeros[64];
static MPI_Datatype types[64];

static void everywhere(void)
{
	MPI_Request req;

	SAME(MPI_Allreduce(a, a, 2, MPI_INT, MPI_SUM, C));
	SAME(MPI_Iallreduce(a, a, 2, MPI_INT, MPI_SUM, C, &req));
	SAME(MPI_Allreduce_init(a, a, 2, MPI_INT, MPI_SUM, C, MPI_INFO_NULL, &req));
	SAME(MPI_Reduce_scatter(a, a, ones, MPI_INT, MPI_SUM, C));
	SAME(MPI_Reduce_scatter_block(a, a, 1, MPI_INT, MPI_SUM, C));
	SAME(MPI_Scan(a, a, 1, MPI_INT, MPI_SUM, C));
	SAME(MPI_Exscan(a, a, 1, MPI_INT, MPI_SUM, C));
	SAME(MPI_Allgather(a + rank, 1, MPI_INT, a, 1, MPI_INT, C));
	SAME(MPI_Allgatherv(a + rank, 1, MPI_INT, a, ones, at, MPI_INT, C));
	SAME(MPI_Alltoall(a, 1, MPI_INT, a, 1, MPI_INT, C));
	SAME(MPI_Alltoallv(a, ones, at, MPI_INT, a, ones, at, MPI_INT, C));
	SAME(MPI_Alltoallw(a, ones, zeros, types, a, ones, zeros, types, C));
	SAME(MPI_Reduce_local(a, a, 1, MPI_INT, MPI_SUM));
}

/* Only the root can know; its peers are in the middle of it when the root calls again. */
static void at_the_root(void)
{
	if (rank == 0) {
		SAME(MPI_Reduce(a, a, 1, MPI_INT, MPI_SUM, 0, C));
		SAME(MPI_Gather(a, 1, MPI_INT, a, 1, MPI_INT, 0, C));
		SAME(MPI_Gatherv(a, 1, MPI_INT, a, ones, at, MPI_INT, 0, C));
		SAME(MPI_Scatter(a, 1, MPI_INT, a, 1, MPI_INT, 0, C));
		SAME(MPI_Scatterv(a, ones, at, MPI_INT, a, 1, MPI_INT, 0, C));
	}
	a[0] = rank + 1;
	OK(MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, 0, C));
	if (rank == 0)
		CHECK_EQ(b[0], size * (size + 1) / 2);
	OK(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, 0, C));
	for (int r = 0; rank == 0 && r < size; r++)
		CHECK_EQ(b[r], r + 1);
}

static void allowed(void)
{
	/* No data, one buffer for two areas, and the same buffer where only one counts. */
	OK(MPI_Allreduce(a, a, 0, MPI_INT, MPI_SUM, C));
	OK(MPI_Alltoall(a, 0, MPI_INT, a, 0, MPI_INT, C));
	for (int r = 0; r < size; r++)
		at[r] = 32 + r;
	a[0] = 7 * rank;
	OK(MPI_Allgatherv(a, 1, MPI_INT, a, ones, at, MPI_INT, C));
	for (int r = 0; r < size; r++)
		CHECK_EQ(a[32 + r], 7 * r);
	a[0] = 5;
	OK(MPI_Reduce(rank ? a : MPI_IN_PLACE, a, 1, MPI_INT, MPI_SUM, 0, C));
	if (rank == 0)
		CHECK_EQ(a[0], 5 * size);
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(C, MPI_ERRORS_RETURN));
	for (int i = 0; i < 64; i++) {
		ones[i] = 1;
		at[i] = i;
		types[i] = MPI_INT;
	}
	everywhere();
	at_the_root();
	allowed();
	return test_end();
}
