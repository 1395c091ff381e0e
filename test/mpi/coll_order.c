/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 3 5 */
/*
 * Ranks that call collectives of one communicator in different orders, by mistake: no call says that
 * a rank has died, none waits for ever, and the communicator's next calls in order are right.  Also where all poll, on
 * intercommunicators, and (argument "odd", with more ranks than are asked at a time) where one of many is wrong.
 */
#include <stdbool.h>
#include "mpitest.h"

static void not_dead(int err)
{
	int class;
	OK(MPI_Error_class(err, &class));
	CHECK(class != MPI_ERR_PROC_ABORTED);
}

/* Rank 0 starts what the others start last, with that many integers. */
static void crossed(MPI_Comm c, int n)
{
	static int in[1000], out[1000];
	MPI_Request req;
	if (rank) {
		not_dead(MPI_Barrier(c));
		not_dead(MPI_Iallreduce(in, out, n, MPI_INT, MPI_BAND, c, &req));
	} else {
		not_dead(MPI_Iallreduce(in, out, n, MPI_INT, MPI_BAND, c, &req));
		not_dead(MPI_Barrier(c));
	}
	not_dead(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

/* The root's data waits for receives that the others post only behind their barrier. */
static void crossed_large(MPI_Comm c)
{
	static char data[1 << 20];
	if (rank) {
		not_dead(MPI_Barrier(c));
		not_dead(MPI_Bcast(data, sizeof data, MPI_CHAR, 0, c));
	} else {
		not_dead(MPI_Bcast(data, sizeof data, MPI_CHAR, 0, c));
		not_dead(MPI_Barrier(c));
	}
}

/* Each by tests alone: of one, and of several. */
static void end_by_tests(MPI_Request *req, bool several)
{
	int over = 0, err = MPI_SUCCESS, indx;
	while (!over) /* ends: the calls do not match */
		err = several ? MPI_Testany(1, req, &indx, &over, MPI_STATUS_IGNORE)
			      : MPI_Test(req, &over, MPI_STATUS_IGNORE);
	not_dead(err);
	CHECK(*req == MPI_REQUEST_NULL);
}

/* The root's data is too large to leave before the others receive it, and they are elsewhere. */
static void crossed_polling(MPI_Comm c, bool several)
{
	static char data[1 << 20];
	MPI_Request req;
	for (int i = 0; i < 2; i++) {
		if ((rank > 0) == (i > 0))
			not_dead(MPI_Ibcast(data, sizeof data, MPI_CHAR, 0, c, &req));
		else
			not_dead(MPI_Ibarrier(c, &req));
		end_by_tests(&req, several);
	}
}

/* Rank 0 of the lower half goes wrong: with polls, or asleep. */
static void crossed_inter(bool polls)
{
	static char data[1 << 20];
	MPI_Comm half, inter;
	MPI_Request req;
	int low = rank < size / 2, root = rank ? low ? MPI_PROC_NULL : 0 : MPI_ROOT;
	OK(MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half));
	OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 3, &inter));
	OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
	for (int i = 0; i < 2; i++) {
		if ((rank > 0) == (i > 0))
			not_dead(MPI_Ibcast(data, sizeof data, MPI_CHAR, root, inter, &req));
		else
			not_dead(MPI_Ibarrier(inter, &req));
		if (polls)
			end_by_tests(&req, false);
		else
			not_dead(MPI_Wait(&req, MPI_STATUS_IGNORE));
	}
	int one = 1, sum = 0, others;
	OK(MPI_Comm_remote_size(inter, &others));
	OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
	CHECK_EQ(sum, others);
	OK(MPI_Comm_free(&inter));
	OK(MPI_Comm_free(&half));
}

/* One rank of many is in a collective that none of the others calls; its receives wait for messages that do not come. */
static void odd_one(MPI_Comm c, int odd)
{
	char block[64] = {0}, *all = calloc((size_t)size, sizeof block);
	CHECK(all);
	if (rank == odd)
		not_dead(MPI_Gather(block, sizeof block, MPI_CHAR, all, sizeof block, MPI_CHAR, odd,
				    c));
	else
		not_dead(MPI_Barrier(c));
	free(all);
}

static MPI_Comm copy(void)
{
	MPI_Comm c;
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
	return c;
}

static void still_right(MPI_Comm c)
{
	int one = 1, sum = 0;
	OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(sum, size);
	OK(MPI_Comm_free(&c));
}

int main(int argc, char **argv)
{
	static const int counts[] = {1, 2, 100, 1000};
	OK(MPI_Init(&argc, &argv));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1 && strcmp(argv[1], "odd") == 0) {
		MPI_Comm c = copy();
		odd_one(c, size / 2);
		still_right(c);
		OK(MPI_Finalize());
		return 0;
	}
	for (unsigned i = 0; i <= sizeof counts / sizeof counts[0]; i++) {
		MPI_Comm c = copy();
		if (i < sizeof counts / sizeof counts[0])
			crossed(c, counts[i]);
		else
			crossed_large(c);
		still_right(c);
	}
	for (int several = 0; several < 2; several++) {
		MPI_Comm c = copy();
		crossed_polling(c, several);
		still_right(c);
	}
	crossed_inter(false);
	crossed_inter(true);
	OK(MPI_Finalize());
	return 0;
}
