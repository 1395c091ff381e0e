/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 4 */
/* Groups behave as ordered sets. */
#include "mpitest.h"

static MPI_Group world;

static void is(MPI_Group g, int n, const int *members)
{
	int m = -1, there[64], ranks[64];

	OK(MPI_Group_size(g, &m));
	CHECK_EQ(m, n);
	for (int i = 0; i < n; i++)
		ranks[i] = i;
	OK(MPI_Group_translate_ranks(g, n, ranks, world, there));
	for (int i = 0; i < n; i++)
		CHECK_EQ(there[i], members[i]);
}

static MPI_Group pick(int n, const int *ranks)
{
	MPI_Group g;

	OK(MPI_Group_incl(world, n, ranks, &g));
	return g;
}

static void four(void)
{
	int ab[] = {0, 1}, bc[] = {2, 1}, all[] = {0, 1, 2}, b[] = {1}, a[] = {0}, rest[] = {2, 3};
	int back[] = {3, 2, 1, 0}, result, flag[2], odd[] = {1, 3};
	int ranges[2][3] = {{3, 2, -1}, {0, 0, 5}}, want[] = {3, 2, 0}, left[] = {1};
	MPI_Group x = pick(2, ab), y = pick(2, bc), z, r = pick(4, back);

	OK(MPI_Group_union(x, y, &z));
	is(z, 3, (int[]){0, 1, 2});
	(void)all;
	OK(MPI_Group_free(&z));
	OK(MPI_Group_intersection(x, y, &z));
	is(z, 1, b);
	OK(MPI_Group_free(&z));
	OK(MPI_Group_difference(x, y, &z));
	is(z, 1, a);
	OK(MPI_Group_free(&z));
	OK(MPI_Group_excl(world, 2, ab, &z));
	is(z, 2, rest);
	OK(MPI_Group_free(&z));
	OK(MPI_Group_range_incl(world, 2, ranges, &z));
	is(z, 3, want);
	OK(MPI_Group_free(&z));
	OK(MPI_Group_range_excl(world, 2, ranges, &z));
	is(z, 1, left);
	OK(MPI_Group_free(&z));
	OK(MPI_Group_compare(r, world, &result));
	CHECK_EQ(result, MPI_SIMILAR);
	OK(MPI_Group_compare(x, world, &result));
	CHECK_EQ(result, MPI_UNEQUAL);
	OK(MPI_Group_rank(r, &result));
	CHECK_EQ(result, 3 - rank);
	OK(MPI_Group_translate_ranks(world, 2, odd, x, flag));
	CHECK(flag[0] == 1 && flag[1] == MPI_UNDEFINED);
	OK(MPI_Group_free(&x));
	OK(MPI_Group_free(&y));
	OK(MPI_Group_free(&r));
}

static void empty_and_wrong(void)
{
	int twice[] = {0, 0}, far[] = {size}, nobody = MPI_PROC_NULL, out = 0, result;
	int stuck[1][3] = {{0, 0, 0}};
	MPI_Group z, same;

	OK(MPI_Group_incl(world, 0, NULL, &z));
	CHECK(z == MPI_GROUP_EMPTY);
	OK(MPI_Group_difference(world, world, &z));
	CHECK(z == MPI_GROUP_EMPTY);
	OK(MPI_Group_size(MPI_GROUP_EMPTY, &out));
	CHECK_EQ(out, 0);
	OK(MPI_Group_rank(MPI_GROUP_EMPTY, &out));
	CHECK_EQ(out, MPI_UNDEFINED);
	OK(MPI_Group_translate_ranks(world, 1, &nobody, MPI_GROUP_EMPTY, &out));
	CHECK_EQ(out, MPI_PROC_NULL);
	OK(MPI_Group_excl(world, 0, NULL, &same));
	OK(MPI_Group_compare(world, same, &result));
	CHECK_EQ(result, MPI_IDENT);
	OK(MPI_Group_free(&same));
	FAILS(MPI_Group_incl(world, 2, twice, &z), MPI_ERR_RANK);
	FAILS(MPI_Group_incl(world, 1, far, &z), MPI_ERR_RANK);
	FAILS(MPI_Group_incl(world, -1, far, &z), MPI_ERR_ARG);
	FAILS(MPI_Group_range_incl(world, 1, stuck, &z), MPI_ERR_ARG);
	FAILS(MPI_Group_size(MPI_GROUP_NULL, &out), MPI_ERR_GROUP);
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
	if (size == 4)
		four();
	empty_and_wrong();
	OK(MPI_Group_free(&world));
	return test_end();
}
