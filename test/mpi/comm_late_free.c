/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 4 */
/*
 * A communicator's number is not used again while one member has still to free it, however many
 * others come and go meanwhile; and it is used again after that: a program that makes and frees
 * communicators for hours does not grow.
 *
 * Here MPI_Comm_free waits for no other member, so that a member may be late without another thread.
 */
#include "mpitest.h"

enum { LATE = 40, TURNS = 6000 };

static void exchange(MPI_Comm comm, int value)
{
	int me, n, got = -1;
	OK(MPI_Comm_rank(comm, &me));
	OK(MPI_Comm_size(comm, &n));
	OK(MPI_Sendrecv(&value, 1, MPI_INT, (me + 1) % n, 3, &got, 1, MPI_INT, (me + n - 1) % n, 3,
			comm, MPI_STATUS_IGNORE));
	CHECK_EQ(got, value);
}

static void turns(MPI_Comm of, int n)
{
	int inter;
	OK(MPI_Comm_test_inter(of, &inter));
	for (int i = 0; i < n; i++) {
		MPI_Comm c;
		MPI_Request req;
		if (inter) {
			OK(MPI_Comm_idup(of, &c, &req));
			OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
		} else {
			OK(MPI_Comm_dup(of, &c));
		}
		if (i % 16 == 0 && !inter)
			exchange(c, i);
		OK(MPI_Comm_free(&c));
	}
}

/* Rank `behind` frees its communicators when the others have had TURNS more. */
static void late(int behind)
{
	MPI_Comm c[LATE];
	MPI_Request req;
	int never = 0;
	for (int i = 0; i < LATE; i++)
		OK(MPI_Comm_dup(test_comm, &c[i]));
	for (int i = 0; i < LATE && rank != behind; i++)
		OK(MPI_Comm_free(&c[i]));
	/* What is posted there meets no message of a communicator that came later. */
	if (rank == behind)
		OK(MPI_Irecv(&never, 1, MPI_INT, (rank + size - 1) % size, 3, c[0], &req));
	turns(test_comm, TURNS);
	if (rank == behind) {
		OK(MPI_Cancel(&req));
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
		for (int i = 0; i < LATE; i++)
			OK(MPI_Comm_free(&c[i]));
	}
}

static long memory_kib(void)
{
	long pages = 0, shared = 0, all = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f && fscanf(f, "%ld %ld %ld", &all, &pages, &shared) == 3);
	fclose(f);
	return (pages - shared) * 4;
}

/*
 * A communicator that is never used again takes two records of some 400 bytes; one that is, a line
 * of the table for the tag by which its members agree, or two, until all of that was touched once.
 */
static void no_growth(MPI_Comm of, int n)
{
	turns(of, 2 * TURNS);
	long before = memory_kib();
	turns(of, n);
	long grown = memory_kib() - before;
	printf("rank %d: %d communicators more took %ld KiB\n", rank, n, grown);
	CHECK(grown < 4096 + n / 4);
}

/* Those between two groups, and their inner ones, whose keepers are others. */
static void between_groups(void)
{
	MPI_Comm half, inter, copy, all;
	OK(MPI_Comm_split(test_comm, rank % 2, rank, &half));
	OK(MPI_Intercomm_create(half, 0, test_comm, 1 - rank % 2, 5, &inter));
	for (int i = 0; i < 2200; i++) {
		OK(MPI_Comm_dup(inter, &copy));
		OK(MPI_Intercomm_merge(copy, rank % 2, &all));
		if (i % 16 == 0)
			exchange(all, i);
		OK(MPI_Comm_free(&all));
		OK(MPI_Comm_free(&copy));
	}
	/* The giver hands an id to the other side's inner communicator, too. */
	if (size == 2)
		no_growth(inter, 10000);
	OK(MPI_Comm_free(&inter));
	OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	late(0);
	late(size - 1);
	if (size == 2)
		no_growth(test_comm, 24000);
	between_groups();
	return test_end();
}
