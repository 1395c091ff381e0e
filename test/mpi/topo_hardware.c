/* ranks: 2 4 */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of members that share hardware, and topologies whose neighbours come near each other:
 * ranks bind themselves in turn to two cores. */
#include <mpi.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

static int rank, size, cpu[2], mine;

static void bind_self(void)
{
	cpu_set_t own;
	int n = 0;
	CHECK(sched_getaffinity(0, sizeof own, &own) == 0);
	for (int c = 0; c < CPU_SETSIZE && n < 2; c++)
		if (CPU_ISSET(c, &own))
			cpu[n++] = c;
	int most = 0;
	MPI_Allreduce(&n, &most, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (most < 2) {
		MPI_Finalize();
		exit(77);
	}
	mine = rank % 2;
	CPU_ZERO(&own);
	CPU_SET(cpu[mine], &own);
	CHECK(sched_setaffinity(getpid(), sizeof own, &own) == 0);
}

static int split(int type, const char *key, const char *value)
{
	MPI_Info info;
	MPI_Comm c;
	int n = 0;
	MPI_Info_create(&info);
	if (key)
		MPI_Info_set(info, key, value);
	CHECK_EQ(MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, info, &c), MPI_SUCCESS);
	MPI_Info_free(&info);
	if (c == MPI_COMM_NULL)
		return 0;
	MPI_Comm_size(c, &n);
	int core = mine, sum;
	MPI_Allreduce(&core, &sum, 1, MPI_INT, MPI_SUM, c);
	if (n < size) /* all members are on our core */
		CHECK_EQ(sum, n * mine);
	MPI_Comm_free(&c);
	return n;
}

static void by_hardware(void)
{
	MPI_Info info;
	char value[16];
	int flag, here = (size + 1 - mine) / 2;
	CHECK_EQ(MPI_Get_hw_resource_info(&info), MPI_SUCCESS);
	MPI_Info_get(info, "hwloc://PU", sizeof value - 1, value, &flag);
	CHECK(flag && strcmp(value, "true") == 0);
	MPI_Info_free(&info);
	CHECK_EQ(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "hwloc://PU"), here);
	CHECK_EQ(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "hwloc://Machine"), size);
	CHECK_EQ(split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_hw_resource_type", "hwloc://pu"), here);
	CHECK_EQ(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "hwloc://none"), 0);
	CHECK_EQ(split(MPI_COMM_TYPE_HW_GUIDED, NULL, NULL), 0);
	CHECK_EQ(split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD"), size);
	CHECK_EQ(split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF"), 1);
	CHECK_EQ(split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "app://none"), 0);
}

/* Each unguided split is a strict subset of the one before, until nothing is left to split. */
static void unguided(void)
{
	MPI_Comm c = MPI_COMM_WORLD, finer;
	int n = size, m;
	for (;;) {
		CHECK_EQ(MPI_Comm_split_type(c, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &finer),
			 MPI_SUCCESS);
		if (c != MPI_COMM_WORLD)
			MPI_Comm_free(&c);
		if (finer == MPI_COMM_NULL)
			break;
		MPI_Comm_size(finer, &m);
		CHECK(m < n);
		n = m;
		c = finer;
	}
	CHECK_EQ(n, (size + 1 - mine) / 2);
}

/* Ranks of c by core; weight of the edges that cross between the two cores. */
static int crossing(MPI_Comm c, int n, const int *to)
{
	int all[8], cross = 0;
	MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, c);
	int me;
	MPI_Comm_rank(c, &me);
	for (int i = 0; i < n; i++)
		cross += all[me] != all[to[i]];
	MPI_Allreduce(MPI_IN_PLACE, &cross, 1, MPI_INT, MPI_SUM, c);
	return cross;
}

static void ring(void)
{
	MPI_Comm c;
	int periods = 1, to[2];
	CHECK_EQ(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 1, &c), MPI_SUCCESS);
	MPI_Cart_shift(c, 0, 1, &to[0], &to[1]);
	CHECK(crossing(c, 2, to) == 4); /* two edges, from both ends; 8 as they are */
	MPI_Comm_free(&c);
}

/* Nodes 2k and 2k + 1 talk to each other, which the ranks as they are put on different cores. */
static void pairs(void)
{
	MPI_Comm c;
	int index[8], edges[8], me, other, got, n, m, weighted;
	for (int i = 0; i < size; i++) {
		index[i] = i + 1;
		edges[i] = i ^ 1;
	}
	CHECK_EQ(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 1, &c), MPI_SUCCESS);
	MPI_Comm_rank(c, &me);
	other = me ^ 1;
	CHECK_EQ(crossing(c, 1, &other), 0);
	MPI_Comm_free(&c);

	int weight = 5, partner = rank ^ 1, source = -1, sw = 0, dest = -1, dw = 0;
	CHECK_EQ(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &partner, &weight, 1, &partner,
						&weight, MPI_INFO_NULL, 1, &c),
		 MPI_SUCCESS);
	MPI_Comm_rank(c, &me);
	MPI_Dist_graph_neighbors_count(c, &n, &m, &weighted);
	CHECK(n == 1 && m == 1 && weighted);
	MPI_Dist_graph_neighbors(c, 1, &source, &sw, 1, &dest, &dw);
	CHECK(source == (me ^ 1) && dest == source && sw == 5 && dw == 5);
	CHECK_EQ(crossing(c, 1, &dest), 0);
	CHECK_EQ(MPI_Neighbor_allgather(&me, 1, MPI_INT, &got, 1, MPI_INT, c), MPI_SUCCESS);
	CHECK_EQ(got, me ^ 1);
	MPI_Comm_free(&c);

	int degree = 1;
	CHECK_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &partner, &weight,
				       MPI_INFO_NULL, 1, &c),
		 MPI_SUCCESS);
	MPI_Comm_rank(c, &me);
	MPI_Dist_graph_neighbors(c, 1, &source, &sw, 1, &dest, &dw);
	CHECK(source == (me ^ 1) && dest == source && sw == 5 && dw == 5);
	CHECK_EQ(crossing(c, 1, &dest), 0);
	MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	bind_self();
	MPI_Barrier(MPI_COMM_WORLD);
	by_hardware();
	unguided();
	if (size == 4) {
		ring();
		pairs();
	}
	MPI_Finalize();
	return 0;
}
