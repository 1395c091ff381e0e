/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 4 5 13 */
/* Intercommunicators: made, used, copied, split, merged. */
#include "mpitest.h"

static MPI_Comm half, inter;
static int side, mine, ours, theirs;

/* Each rank of a side sends to each of the other and hears from all. */
static void works(MPI_Comm comm, int n)
{
	int r, flag = 0, m = 0;
	MPI_Request req[64];
	int v;
	char seen[64] = {0};

	OK(MPI_Comm_rank(comm, &r));
	OK(MPI_Comm_test_inter(comm, &flag));
	CHECK(flag);
	OK(MPI_Comm_remote_size(comm, &m));
	CHECK_EQ(m, n);
	for (int i = 0; i < n; i++)
		OK(MPI_Isend(&rank, 1, MPI_INT, i, r, comm, &req[i]));
	for (int i = 0; i < n; i++) {
		MPI_Status st;
		OK(MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &st));
		CHECK_EQ(st.MPI_TAG, st.MPI_SOURCE);
		CHECK(st.MPI_SOURCE >= 0 && st.MPI_SOURCE < n && !seen[st.MPI_SOURCE]);
		CHECK_EQ(v % 2, 1 - side);
		seen[st.MPI_SOURCE] = 1;
	}
	OK(MPI_Waitall(n, req, MPI_STATUSES_IGNORE));
	test_barrier();
}

static void make(void)
{
	side = rank % 2;
	OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half));
	OK(MPI_Comm_rank(half, &mine));
	OK(MPI_Comm_size(half, &ours));
	theirs = size - ours;
	OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 12, &inter));
	works(inter, theirs);
}

static void groups(void)
{
	MPI_Group local, remote;
	int n, result;
	MPI_Comm copy;

	OK(MPI_Comm_group(inter, &local));
	OK(MPI_Comm_remote_group(inter, &remote));
	OK(MPI_Group_size(local, &n));
	CHECK_EQ(n, ours);
	OK(MPI_Group_size(remote, &n));
	CHECK_EQ(n, theirs);
	OK(MPI_Group_free(&local));
	OK(MPI_Group_free(&remote));
	OK(MPI_Comm_dup(inter, &copy));
	works(copy, theirs);
	OK(MPI_Comm_compare(inter, copy, &result));
	CHECK_EQ(result, MPI_CONGRUENT);
	OK(MPI_Comm_compare(inter, half, &result));
	CHECK_EQ(result, MPI_UNEQUAL);
	OK(MPI_Comm_free(&copy));
	/* Two copies under way at once, completed in the other order. */
	MPI_Comm more[2];
	MPI_Request req[2];
	OK(MPI_Comm_idup(inter, &more[0], &req[0]));
	OK(MPI_Comm_idup(inter, &more[1], &req[1]));
	OK(MPI_Wait(&req[1], MPI_STATUS_IGNORE));
	works(more[1], theirs);
	OK(MPI_Wait(&req[0], MPI_STATUS_IGNORE));
	works(more[0], theirs);
	/* Collectives that are under way do not meet the messages of the copying. */
	MPI_Comm among[5];
	MPI_Request ten[10];
	for (int i = 0; i < 5; i++) {
		OK(MPI_Ibarrier(more[0], &ten[i]));
		OK(MPI_Comm_idup(more[0], &among[i], &ten[5 + i]));
	}
	OK(MPI_Waitall(10, ten, MPI_STATUSES_IGNORE));
	for (int i = 0; i < 5; i++) {
		works(among[i], theirs);
		OK(MPI_Comm_free(&among[i]));
	}
	/* Its inner communicator works as well. */
	OK(MPI_Comm_dup(more[0], &copy));
	works(copy, theirs);
	OK(MPI_Comm_free(&copy));
	OK(MPI_Comm_free(&more[0]));
	OK(MPI_Comm_free(&more[1]));
	FAILS(MPI_Comm_remote_size(half, &n), MPI_ERR_COMM);
}

static void merge(void)
{
	MPI_Comm all;
	int r = -1, n = -1;

	OK(MPI_Intercomm_merge(inter, side == 0, &all));
	OK(MPI_Comm_rank(all, &r));
	OK(MPI_Comm_size(all, &n));
	CHECK_EQ(n, size);
	CHECK_EQ(r, side == 1 ? mine : theirs + mine);
	int v = -1;
	OK(MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 0, &v, 1, MPI_INT, (r + n - 1) % n, 0, all,
			MPI_STATUS_IGNORE));
	CHECK_EQ(v, (r + n - 1) % n);
	OK(MPI_Comm_free(&all));
	OK(MPI_Intercomm_merge(inter, 0, &all));
	OK(MPI_Comm_rank(all, &r));
	CHECK_EQ(r, side == 0 ? mine : theirs + mine);
	OK(MPI_Comm_free(&all));
}

static void parts(void)
{
	MPI_Group local, first;
	MPI_Comm some;
	int zero = 0;

	OK(MPI_Comm_group(inter, &local));
	OK(MPI_Group_incl(local, 1, &zero, &first));
	OK(MPI_Comm_create(inter, first, &some));
	CHECK((some == MPI_COMM_NULL) == (mine != 0));
	if (mine == 0) {
		int v = -1, r = rank;
		OK(MPI_Sendrecv(&r, 1, MPI_INT, 0, 0, &v, 1, MPI_INT, 0, 0, some,
				MPI_STATUS_IGNORE));
		CHECK_EQ(v, 1 - side);
		OK(MPI_Comm_free(&some));
	}
	OK(MPI_Comm_split(inter, mine, 0, &some));
	CHECK((some == MPI_COMM_NULL) == (mine >= theirs));
	if (some != MPI_COMM_NULL) {
		int v = -1;
		OK(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &v, 1, MPI_INT, 0, 0, some,
				MPI_STATUS_IGNORE));
		CHECK_EQ(v, mine);
		OK(MPI_Comm_free(&some));
	}
	OK(MPI_Group_free(&first));
	OK(MPI_Group_free(&local));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	make();
	groups();
	merge();
	parts();
	OK(MPI_Comm_free(&inter));
	OK(MPI_Comm_free(&half));
	return test_end();
}
