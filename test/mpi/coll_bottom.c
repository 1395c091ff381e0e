/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 3 5 16 */
/* MPI_BOTTOM with addresses as displacements and a predefined type: right data from every v, w and
 * neighbourhood form that can hold an address, in all three forms; an address of zero is still refused. */
#include "mpitest.h"

#define MOST 16

static int given[MOST], got[MOST];
static MPI_Aint from[MOST], to[MOST];
static MPI_Count one[MOST], bytes[MOST], none[MOST];
static int int_one[MOST];
static MPI_Datatype ints[MOST];
static MPI_Request req;

static void clear(void)
{
	for (int i = 0; i < MOST; i++)
		got[i] = -1;
}

static void run_persistent(void)
{
	OK(MPI_Start(&req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	OK(MPI_Request_free(&req));
}

/* After an alltoall: rank r's element for this rank. */
static void check_all(void)
{
	for (int r = 0; r < size; r++)
		CHECK_EQ(got[r], 100 * r + rank);
	clear();
}

static void check_gathered(void)
{
	for (int r = 0; r < size; r++)
		CHECK_EQ(got[r], 100 * r);
	clear();
}

static void all_to_all(MPI_Comm c)
{
	OK(MPI_Alltoallw_c(MPI_BOTTOM, one, from, ints, MPI_BOTTOM, one, to, ints, c));
	check_all();
	OK(MPI_Ialltoallw_c(MPI_BOTTOM, one, from, ints, MPI_BOTTOM, one, to, ints, c, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	check_all();
	OK(MPI_Alltoallw_init_c(MPI_BOTTOM, one, from, ints, MPI_BOTTOM, one, to, ints, c,
				MPI_INFO_NULL, &req));
	run_persistent();
	check_all();
	OK(MPI_Alltoallv_c(MPI_BOTTOM, bytes, from, MPI_BYTE, MPI_BOTTOM, bytes, to, MPI_BYTE, c));
	check_all();
	OK(MPI_Ialltoallv_c(MPI_BOTTOM, bytes, from, MPI_BYTE, MPI_BOTTOM, bytes, to, MPI_BYTE, c,
			    &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	check_all();
	OK(MPI_Alltoallv_init_c(MPI_BOTTOM, bytes, from, MPI_BYTE, MPI_BOTTOM, bytes, to, MPI_BYTE,
				c, MPI_INFO_NULL, &req));
	run_persistent();
	check_all();
}

static void gathers_and_scatters(MPI_Comm c)
{
	OK(MPI_Allgatherv_c(given, 4, MPI_BYTE, MPI_BOTTOM, bytes, to, MPI_BYTE, c));
	check_gathered();
	OK(MPI_Iallgatherv_c(given, 4, MPI_BYTE, MPI_BOTTOM, bytes, to, MPI_BYTE, c, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	check_gathered();
	for (int root = 0; root < size; root++) {
		OK(MPI_Gatherv_c(given, 4, MPI_BYTE, MPI_BOTTOM, bytes, to, MPI_BYTE, root, c));
		if (rank == root)
			check_gathered();
		OK(MPI_Scatterv_c(MPI_BOTTOM, bytes, from, MPI_BYTE, got, 4, MPI_BYTE, root, c));
		CHECK_EQ(got[0], 100 * root + rank);
		clear();
	}
}

static void neighbors(MPI_Comm c, int left, int right)
{
	MPI_Aint offsets[2] = {0, sizeof(int)};

#define CHECK_NEIGHBORS(first, second)                                                             \
	do {                                                                                       \
		CHECK_EQ(got[0], first);                                                           \
		CHECK_EQ(got[1], second);                                                          \
		clear();                                                                           \
	} while (0)
	OK(MPI_Neighbor_alltoallw(MPI_BOTTOM, int_one, from, ints, MPI_BOTTOM, int_one, to, ints,
				  c));
	CHECK_NEIGHBORS(100 * left + 1, 100 * right);
	OK(MPI_Ineighbor_alltoallw(MPI_BOTTOM, int_one, from, ints, MPI_BOTTOM, int_one, to, ints,
				   c, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	CHECK_NEIGHBORS(100 * left + 1, 100 * right);
	OK(MPI_Neighbor_alltoallw_init(MPI_BOTTOM, int_one, from, ints, MPI_BOTTOM, int_one, to,
				       ints, c, MPI_INFO_NULL, &req));
	run_persistent();
	CHECK_NEIGHBORS(100 * left + 1, 100 * right);
	OK(MPI_Neighbor_alltoallw(given, int_one, offsets, ints, MPI_BOTTOM, int_one, to, ints, c));
	CHECK_NEIGHBORS(100 * left + 1, 100 * right);
	OK(MPI_Neighbor_alltoallv_c(MPI_BOTTOM, bytes, from, MPI_BYTE, MPI_BOTTOM, bytes, to,
				    MPI_BYTE, c));
	CHECK_NEIGHBORS(100 * left + 1, 100 * right);
	OK(MPI_Neighbor_allgatherv_c(given, 4, MPI_BYTE, MPI_BOTTOM, bytes, to, MPI_BYTE, c));
	CHECK_NEIGHBORS(100 * left, 100 * right);
}

/* Zero is no address: with a count it is a mistake, without one it is not looked at. */
static void zero_is_refused(MPI_Comm c)
{
	static const MPI_Aint zero[MOST];
	MPI_Datatype untyped[MOST];

	for (int i = 0; i < MOST; i++)
		untyped[i] = MPI_DATATYPE_NULL;
	FAILS(MPI_Alltoallw_c(MPI_BOTTOM, one, zero, ints, MPI_BOTTOM, one, to, ints, c),
	      MPI_ERR_BUFFER);
	FAILS(MPI_Allgatherv_c(given, 4, MPI_BYTE, MPI_BOTTOM, bytes, zero, MPI_BYTE, c),
	      MPI_ERR_BUFFER);
	FAILS(MPI_Alltoallw_c(MPI_BOTTOM, one, from, untyped, MPI_BOTTOM, one, to, ints, c),
	      MPI_ERR_TYPE);
	OK(MPI_Alltoallw_c(MPI_BOTTOM, none, zero, ints, MPI_BOTTOM, none, zero, ints, c));
	/* An extension: no type is needed for no data. */
	OK(MPI_Alltoallw_c(NULL, none, zero, untyped, NULL, none, zero, untyped, c));
}

int main(int argc, char **argv)
{
	int periodic = 1;
	MPI_Comm ring;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	for (int i = 0; i < MOST; i++) {
		given[i] = 100 * rank + i;
		OK(MPI_Get_address(&given[i], &from[i]));
		OK(MPI_Get_address(&got[i], &to[i]));
		one[i] = int_one[i] = 1;
		bytes[i] = sizeof(int);
		ints[i] = MPI_INT;
	}
	clear();
	all_to_all(MPI_COMM_WORLD);
	gathers_and_scatters(MPI_COMM_WORLD);
	OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
	neighbors(ring, (rank + size - 1) % size, (rank + 1) % size);
	OK(MPI_Comm_free(&ring));
	zero_is_refused(MPI_COMM_WORLD);
	return test_end();
}
