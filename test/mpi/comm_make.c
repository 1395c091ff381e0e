/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/* Communicators made in every way have the right members, and keep their messages apart. */
#include "mpitest.h"

/* Rank and size are as told, and a message goes round. */
static void works(MPI_Comm comm, int want_rank, int want_size)
{
	int r = -1, n = -1, v = -1;

	OK(MPI_Comm_rank(comm, &r));
	OK(MPI_Comm_size(comm, &n));
	CHECK_EQ(r, want_rank);
	CHECK_EQ(n, want_size);
	OK(MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 1, &v, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm,
			MPI_STATUS_IGNORE));
	CHECK_EQ(v, (r + n - 1) % n);
}

static void compared(MPI_Comm a, MPI_Comm b, int want)
{
	int result = -1;

	OK(MPI_Comm_compare(a, b, &result));
	CHECK_EQ(result, want);
}

static void dup(void)
{
	MPI_Comm a, b, c;
	MPI_Request req[2];
	int v = 1, w = 0;

	OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
	works(a, rank, size);
	compared(a, MPI_COMM_WORLD, MPI_CONGRUENT);
	compared(a, a, MPI_IDENT);
	OK(MPI_Comm_idup(a, &b, &req[0]));
	OK(MPI_Comm_idup(MPI_COMM_WORLD, &c, &req[1]));
	OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
	works(b, rank, size);
	works(c, rank, size);
	/* A message on one is not seen on the other. */
	OK(MPI_Isend(&v, 1, MPI_INT, rank, 0, a, &req[0]));
	OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, b, &w, MPI_STATUS_IGNORE));
	CHECK(!w);
	OK(MPI_Recv(&w, 1, MPI_INT, rank, 0, a, MPI_STATUS_IGNORE));
	OK(MPI_Wait(&req[0], MPI_STATUS_IGNORE));
	OK(MPI_Comm_free(&a));
	OK(MPI_Comm_free(&b));
	OK(MPI_Comm_disconnect(&c));
	CHECK(a == MPI_COMM_NULL && c == MPI_COMM_NULL);
}

static void split(void)
{
	MPI_Comm a, b;
	int halves = (size + 1) / 2;

	OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &a));
	int n = rank % 2 ? size / 2 : halves;
	works(a, n - 1 - rank / 2, n);
	OK(MPI_Comm_split(a, MPI_UNDEFINED, 0, &b));
	CHECK(b == MPI_COMM_NULL);
	OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 7, 0, &b));
	CHECK((b == MPI_COMM_NULL) == (rank == 0));
	if (rank) {
		works(b, rank - 1, size - 1);
		OK(MPI_Comm_free(&b));
	}
	OK(MPI_Comm_free(&a));
	OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &a));
	works(a, rank, size);
	OK(MPI_Comm_free(&a));
	OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &a));
	/* Ranks that are bound apart: a strict subset. */
	CHECK(a == MPI_COMM_NULL || (MPI_Comm_size(a, &n) == MPI_SUCCESS && n < size));
	if (a != MPI_COMM_NULL)
		OK(MPI_Comm_free(&a));
	OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &a));
	CHECK(a == MPI_COMM_NULL);
	FAILS(MPI_Comm_split(MPI_COMM_WORLD, -1, 0, &a), MPI_ERR_ARG);
	FAILS(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &a), MPI_ERR_ARG);
}

static void create(void)
{
	MPI_Group world, evens, none = MPI_GROUP_EMPTY;
	MPI_Comm a, b;
	int range[1][3] = {{0, size - 1, 2}};
	int n = (size + 1) / 2;

	OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
	OK(MPI_Group_range_incl(world, 1, range, &evens));
	OK(MPI_Comm_create(MPI_COMM_WORLD, evens, &a));
	CHECK((a == MPI_COMM_NULL) == (rank % 2 == 1));
	if (rank % 2 == 0) {
		works(a, rank / 2, n);
		compared(a, MPI_COMM_WORLD, size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
		OK(MPI_Comm_create_group(MPI_COMM_WORLD, evens, 5, &b));
		works(b, rank / 2, n);
		OK(MPI_Comm_free(&a));
		OK(MPI_Comm_free(&b));
	}
	OK(MPI_Comm_create(MPI_COMM_WORLD, none, &a));
	CHECK(a == MPI_COMM_NULL);
	OK(MPI_Group_free(&evens));
	OK(MPI_Group_free(&world));
}

static void free_with_messages_under_way(void)
{
	MPI_Comm a;
	MPI_Request req[2];
	int v = rank, w = -1;

	OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
	OK(MPI_Irecv(&w, 1, MPI_INT, (rank + 1) % size, 1, a, &req[0]));
	OK(MPI_Isend(&v, 1, MPI_INT, (rank + size - 1) % size, 1, a, &req[1]));
	OK(MPI_Comm_free(&a));
	OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
	CHECK_EQ(w, (rank + 1) % size);
}

static void names(void)
{
	char name[MPI_MAX_OBJECT_NAME];
	int n = -1;
	MPI_Comm a;

	OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &n));
	CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && n == 14);
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
	OK(MPI_Comm_get_name(a, name, &n));
	CHECK(n == 0 && name[0] == 0);
	OK(MPI_Comm_set_name(a, "mine"));
	OK(MPI_Comm_get_name(a, name, &n));
	CHECK(strcmp(name, "mine") == 0 && n == 4);
	OK(MPI_Comm_free(&a));
}

static void hints(void)
{
	MPI_Info info, used;
	MPI_Comm a;
	char value[16];
	int flag = 0, n = sizeof(value);

	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
	OK(MPI_Info_set(info, "a_key_that_nobody_knows", "true"));
	OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &a));
	OK(MPI_Comm_get_info(a, &used));
	OK(MPI_Info_get_string(used, "mpi_assert_no_any_tag", &n, value, &flag));
	CHECK(flag && strcmp(value, "true") == 0);
	/* A hint that is ignored is not among those in use. */
	n = sizeof(value);
	OK(MPI_Info_get_string(used, "a_key_that_nobody_knows", &n, value, &flag));
	CHECK(!flag);
	works(a, rank, size);
	OK(MPI_Info_free(&used));
	OK(MPI_Info_free(&info));
	OK(MPI_Comm_free(&a));
}

/* With leave to overtake, a message goes to the receive that names it, though an older one would
 * take it, too: the hint has reached matching.  Without, to the older one. */
static void overtaking(void)
{
	MPI_Info info;
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "mpi_assert_allow_overtaking", "true"));
	for (int leave = 0; leave < 2; leave++) {
		MPI_Comm own;
		MPI_Request req[2];
		int got[2] = {-1, -1};
		OK(MPI_Comm_dup_with_info(MPI_COMM_SELF, leave ? info : MPI_INFO_NULL, &own));
		OK(MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, own, &req[0]));
		OK(MPI_Irecv(&got[1], 1, MPI_INT, 0, 5, own, &req[1]));
		for (int i = 0; i < 2; i++)
			OK(MPI_Send(&i, 1, MPI_INT, 0, 5, own));
		OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
		CHECK(got[0] == leave && got[1] == !leave);
		OK(MPI_Comm_free(&own));
	}
	OK(MPI_Info_free(&info));
}

/* Collectives that are under way must not meet the messages that make communicators. */
static void among_collectives(void)
{
	enum { MANY = 40 };
	MPI_Request bars[MANY], dups[MANY], sums[MANY];
	MPI_Comm base, made[MANY], split;
	int in = 1, out[MANY];

	OK(MPI_Comm_dup(MPI_COMM_WORLD, &base));
	for (int i = 0; i < MANY; i++) {
		OK(MPI_Ibarrier(base, &bars[i]));
		OK(MPI_Comm_idup(base, &made[i], &dups[i]));
		OK(MPI_Iallreduce(&in, &out[i], 1, MPI_INT, MPI_SUM, base, &sums[i]));
	}
	for (int i = 0; i < MANY / 2; i++) {
		OK(MPI_Comm_split(base, 0, rank, &split));
		OK(MPI_Comm_free(&split));
	}
	OK(MPI_Waitall(MANY, dups, MPI_STATUSES_IGNORE));
	OK(MPI_Waitall(MANY, sums, MPI_STATUSES_IGNORE));
	OK(MPI_Waitall(MANY, bars, MPI_STATUSES_IGNORE));
	for (int i = 0; i < MANY; i++) {
		int sum = 0, result;
		CHECK_EQ(out[i], size);
		OK(MPI_Comm_compare(base, made[i], &result));
		CHECK_EQ(result, MPI_CONGRUENT);
		OK(MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, made[i]));
		CHECK_EQ(sum, size);
		OK(MPI_Comm_free(&made[i]));
	}
	OK(MPI_Comm_free(&base));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	for (int turn = 0; turn < 3; turn++) {
		dup();
		split();
		create();
		free_with_messages_under_way();
	}
	among_collectives();
	names();
	hints();
	overtaking();
	return test_end();
}
