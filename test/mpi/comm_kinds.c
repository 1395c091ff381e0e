/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 4 */
/* Every constructor of communicators on every kind of communicator: world, a part, a topology, an
 * intercommunicator.  Each gives what MPI says, or the error class, on all ranks, and hangs on none. */
#include "mpitest.h"

static int half_size, far_size;
/* Not MPI_UNWEIGHTED: the compiler takes its address for that of an array. */
static int no_weights[1];

static void check_inter(MPI_Comm c, int local, int remote)
{
	int inter = -1, n = -1;

	CHECK(c != MPI_COMM_NULL);
	OK(MPI_Comm_test_inter(c, &inter));
	CHECK(inter);
	OK(MPI_Comm_size(c, &n));
	CHECK_EQ(n, local);
	OK(MPI_Comm_remote_size(c, &n));
	CHECK_EQ(n, remote);
	/* It works: the sum of the other side's ones. */
	int one = 1, sum = 0;
	OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(sum, remote);
	OK(MPI_Comm_free(&c));
}

static void check_intra(MPI_Comm c, int members)
{
	int inter = -1, n = -1, one = 1, sum = 0;

	CHECK(c != MPI_COMM_NULL);
	OK(MPI_Comm_test_inter(c, &inter));
	CHECK(!inter);
	OK(MPI_Comm_size(c, &n));
	CHECK_EQ(n, members);
	OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(sum, members);
	OK(MPI_Comm_free(&c));
}

static void on_inter(MPI_Comm inter)
{
	MPI_Comm c = MPI_COMM_SELF;
	MPI_Request r;
	MPI_Group g;
	int dims[1] = {1}, periods[1] = {0}, index[1] = {0}, far[1] = {0}, n = -1;

	OK(MPI_Comm_dup(inter, &c));
	check_inter(c, half_size, far_size);
	OK(MPI_Comm_idup(inter, &c, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	check_inter(c, half_size, far_size);
	OK(MPI_Comm_split(inter, 5, 0, &c));
	check_inter(c, half_size, far_size);
	/* A colour that only this side has. */
	OK(MPI_Comm_split(inter, rank % 2, 0, &c));
	CHECK(c == MPI_COMM_NULL);
	OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c));
	check_inter(c, half_size, far_size);
	c = MPI_COMM_SELF;
	OK(MPI_Comm_split_type(inter, MPI_UNDEFINED, 0, MPI_INFO_NULL, &c));
	CHECK(c == MPI_COMM_NULL);
	/* Nothing splits a domain that holds both sides whole. */
	c = MPI_COMM_SELF;
	OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &c));
	CHECK(c == MPI_COMM_NULL);
	OK(MPI_Comm_group(inter, &g));
	OK(MPI_Comm_create(inter, g, &c));
	check_inter(c, half_size, far_size);
	FAILS(MPI_Comm_create_group(inter, g, 0, &c), MPI_ERR_COMM);
	OK(MPI_Group_free(&g));
	OK(MPI_Intercomm_merge(inter, rank % 2, &c));
	check_intra(c, half_size + far_size);
	FAILS(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 3, &c), MPI_ERR_COMM);
	FAILS(MPI_Cart_create(inter, 1, dims, periods, 0, &c), MPI_ERR_COMM);
	FAILS(MPI_Graph_create(inter, 1, index, index, 0, &c), MPI_ERR_COMM);
	FAILS(MPI_Dist_graph_create(inter, 0, NULL, NULL, NULL, no_weights, MPI_INFO_NULL, 0, &c),
	      MPI_ERR_COMM);
	FAILS(MPI_Dist_graph_create_adjacent(inter, 0, far, no_weights, 0, far, no_weights,
					     MPI_INFO_NULL, 0, &c),
	      MPI_ERR_COMM);
	FAILS(MPI_Cart_sub(inter, periods, &c), MPI_ERR_TOPOLOGY);
	FAILS(MPI_Cart_map(inter, 1, dims, periods, &n), MPI_ERR_COMM);
	FAILS(MPI_Graph_map(inter, 1, index, index, &n), MPI_ERR_COMM);
}

static void on_intra(MPI_Comm intra)
{
	MPI_Comm c = MPI_COMM_SELF;
	MPI_Request r;
	MPI_Group g;
	int n, dims[1], periods[1] = {1}, keep[1] = {1};

	OK(MPI_Comm_size(intra, &n));
	dims[0] = n;
	OK(MPI_Comm_dup(intra, &c));
	check_intra(c, n);
	OK(MPI_Comm_idup(intra, &c, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	check_intra(c, n);
	OK(MPI_Comm_idup_with_info(intra, MPI_INFO_NULL, &c, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	check_intra(c, n);
	OK(MPI_Comm_split(intra, 0, 0, &c));
	check_intra(c, n);
	OK(MPI_Comm_split_type(intra, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c));
	check_intra(c, n);
	OK(MPI_Comm_group(intra, &g));
	OK(MPI_Comm_create(intra, g, &c));
	check_intra(c, n);
	OK(MPI_Comm_create_group(intra, g, 4, &c));
	check_intra(c, n);
	OK(MPI_Group_free(&g));
	FAILS(MPI_Intercomm_merge(intra, 0, &c), MPI_ERR_COMM);
	FAILS(MPI_Comm_remote_size(intra, &n), MPI_ERR_COMM);
	FAILS(MPI_Comm_remote_group(intra, &g), MPI_ERR_COMM);
	OK(MPI_Cart_create(intra, 1, dims, periods, 1, &c));
	MPI_Comm line;
	OK(MPI_Cart_sub(c, keep, &line));
	check_intra(line, dims[0]);
	check_intra(c, dims[0]);
	/* Without neighbours, and of fewer ranks than there are. */
	OK(MPI_Dist_graph_create_adjacent(intra, 0, NULL, no_weights, 0, NULL, no_weights,
					  MPI_INFO_NULL, 0, &c));
	check_intra(c, dims[0]);
	OK(MPI_Cart_create(intra, 0, NULL, NULL, 0, &c));
	if (c != MPI_COMM_NULL)
		check_intra(c, 1);
	OK(MPI_Graph_create(intra, 0, NULL, NULL, 0, &c));
	CHECK(c == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
	MPI_Comm half, inter, ring;
	int periodic = 1;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
	OK(MPI_Comm_size(half, &half_size));
	far_size = size - half_size;
	OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 5, &inter));
	OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
	on_intra(MPI_COMM_WORLD);
	on_intra(half);
	on_intra(ring);
	on_inter(inter);
	OK(MPI_Comm_free(&ring));
	OK(MPI_Comm_free(&inter));
	OK(MPI_Comm_free(&half));
	return test_end();
}
