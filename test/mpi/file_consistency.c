/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks: 1 2 4
 *
 * file_consistency.c - what the standard's chapter on consistency (14.6) promises: a write of one rank is read by another in
 * atomic mode after a barrier, else after sync, barrier, sync, or after close and open; through one handle, two
 * handles of the group, or handles of each rank's own; blocking, non-blocking, split, and by the shared pointer.
 *
 *	file_consistency [FOLDER [FOLDER2]]	odd ranks find the file in the second one, another mount of the first
 */
#include <stdio.h>
#include <unistd.h>
#include "mpitest.h"

enum { N = 1000 };

static char name[128];
static int out[N], in[N];

static MPI_File open_on(MPI_Comm comm)
{
	MPI_File f;
	OK(MPI_File_open(comm, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
	OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	return f;
}

static void fill(int seed)
{
	for (int i = 0; i < N; i++) {
		out[i] = seed * 100003 + rank * N + i;
		in[i] = -1;
	}
}

/* What the next rank has written for this seed. */
static void check_next(int seed)
{
	for (int i = 0; i < N; i++)
		CHECK_EQ(in[i], seed * 100003 + (rank + 1) % size * N + i);
}

static void sync_barrier_sync(MPI_File w, MPI_File r)
{
	OK(MPI_File_sync(w));
	test_barrier();
	OK(MPI_File_sync(r));
}

enum how { BLOCKING, NONBLOCKING, ALL, NONBLOCKING_ALL, SPLIT, HOWS };

static void write_own(MPI_File f, enum how how)
{
	MPI_Request r;
	switch (how) {
	case BLOCKING:
		OK(MPI_File_write_at(f, rank * N, out, N, MPI_INT, MPI_STATUS_IGNORE));
		break;
	case NONBLOCKING:
		OK(MPI_File_iwrite_at(f, rank * N, out, N, MPI_INT, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		break;
	case ALL:
		OK(MPI_File_write_at_all(f, rank * N, out, N, MPI_INT, MPI_STATUS_IGNORE));
		break;
	case NONBLOCKING_ALL:
		OK(MPI_File_iwrite_at_all(f, rank * N, out, N, MPI_INT, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		break;
	default:
		OK(MPI_File_write_at_all_begin(f, rank * N, out, N, MPI_INT));
		OK(MPI_File_write_at_all_end(f, out, MPI_STATUS_IGNORE));
	}
}

static void read_next(MPI_File f, enum how how)
{
	MPI_Request r;
	int at = (rank + 1) % size * N;
	switch (how) {
	case BLOCKING:
		OK(MPI_File_read_at(f, at, in, N, MPI_INT, MPI_STATUS_IGNORE));
		break;
	case NONBLOCKING:
		OK(MPI_File_iread_at(f, at, in, N, MPI_INT, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		break;
	case ALL:
		OK(MPI_File_read_at_all(f, at, in, N, MPI_INT, MPI_STATUS_IGNORE));
		break;
	case NONBLOCKING_ALL:
		OK(MPI_File_iread_at_all(f, at, in, N, MPI_INT, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		break;
	default:
		OK(MPI_File_read_at_all_begin(f, at, in, N, MPI_INT));
		OK(MPI_File_read_at_all_end(f, in, MPI_STATUS_IGNORE));
	}
}

/* w writes, r reads; atomic: a barrier is enough. */
static void exchange(MPI_File w, MPI_File r, int atomic)
{
	for (int i = 0; i < HOWS * HOWS; i++) {
		fill(i + 1);
		write_own(w, (enum how)(i / HOWS));
		if (atomic)
			test_barrier();
		else
			sync_barrier_sync(w, r);
		read_next(r, (enum how)(i % HOWS));
		check_next(i + 1);
		test_barrier(); /* the next write comes after this read */
	}
}

static void test_one_handle(int atomic)
{
	MPI_File f = open_on(MPI_COMM_WORLD);
	OK(MPI_File_set_atomicity(f, atomic));
	exchange(f, f, atomic);
	OK(MPI_File_close(&f));
}

static void test_two_handles(int atomic)
{
	MPI_File a = open_on(MPI_COMM_WORLD), b = open_on(MPI_COMM_WORLD);
	OK(MPI_File_set_atomicity(a, atomic));
	OK(MPI_File_set_atomicity(b, atomic));
	exchange(a, b, atomic);
	OK(MPI_File_close(&a));
	OK(MPI_File_close(&b));
}

/* Each rank opens it alone: nothing but the file is common. */
static void test_own_handles(void)
{
	MPI_File f = open_on(MPI_COMM_SELF);
	fill(50);
	OK(MPI_File_write_at(f, rank * N, out, N, MPI_INT, MPI_STATUS_IGNORE));
	sync_barrier_sync(f, f);
	OK(MPI_File_read_at(f, (rank + 1) % size * N, in, N, MPI_INT, MPI_STATUS_IGNORE));
	check_next(50);
	test_barrier();
	OK(MPI_File_close(&f));
}

static void test_close_open(void)
{
	MPI_File f = open_on(MPI_COMM_WORLD);
	MPI_Request r;
	fill(60);
	OK(MPI_File_iwrite_at(f, rank * N, out, N, MPI_INT, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	OK(MPI_File_close(&f));
	f = open_on(MPI_COMM_WORLD);
	OK(MPI_File_read_at(f, (rank + 1) % size * N, in, N, MPI_INT, MPI_STATUS_IGNORE));
	check_next(60);
	OK(MPI_File_close(&f));
}

/* Through one handle a rank's own accesses are in its order, with two requests of the same place waited for in turn. */
static void test_own_order(void)
{
	MPI_File f = open_on(MPI_COMM_WORLD);
	MPI_Request r;
	fill(70);
	for (int i = 0; i < 20; i++) {
		out[0] = i;
		OK(MPI_File_iwrite_at(f, rank * N, out, N, MPI_INT, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_File_iread_at(f, rank * N, in, N, MPI_INT, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK_EQ(memcmp(in, out, sizeof in), 0);
	}
	OK(MPI_File_close(&f));
}

/* Records of the shared pointer do not overlap, and after sync, barrier, sync each rank reads all of them. */
static void test_shared(void)
{
	MPI_File f = open_on(MPI_COMM_WORLD);
	int seen[4] = {0}, record[4], each = 25;
	test_barrier();
	for (int i = 0; i < each; i++) {
		for (int k = 0; k < 4; k++)
			record[k] = rank;
		OK(MPI_File_write_shared(f, record, 4, MPI_INT, MPI_STATUS_IGNORE));
	}
	sync_barrier_sync(f, f);
	for (int i = 0; i < each * size; i++) {
		OK(MPI_File_read_at(f, i * 4, record, 4, MPI_INT, MPI_STATUS_IGNORE));
		CHECK(record[0] >= 0 && record[0] < size);
		CHECK(record[1] == record[0] && record[2] == record[0] && record[3] == record[0]);
		seen[record[0]]++;
	}
	for (int r = 0; r < size; r++)
		CHECK_EQ(seen[r], each);
	OK(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	int number = (int)getpid();
	OK(MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD));
	snprintf(name, sizeof name, "%s/test-file-consistency-%d",
		 argc > 2 && rank % 2 ? argv[2]
		 : argc > 1           ? argv[1]
				      : "/tmp",
		 number);
	for (int atomic = 0; atomic < 2; atomic++) {
		test_one_handle(atomic);
		test_two_handles(atomic);
	}
	test_own_handles();
	test_close_open();
	test_own_order();
	test_shared();
	test_barrier();
	if (!rank)
		unlink(name);
	return test_end();
}
