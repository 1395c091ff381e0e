/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks: 1 2
 *
 * file_far.c - places and sizes of a file beyond 2^31 and 2^32: offsets, displacements, strides of a view, pointers, sizes;
 * one rank and all together.  The file is mostly holes.  With the argument "data" the data of one access is longer
 * than 2^31 bytes, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "mpitest.h"

#define GIB ((MPI_Offset)1 << 30)

static char name[128];
static MPI_File f;
static int out[100], in[100];

static void fill(int seed)
{
	for (int i = 0; i < 100; i++) {
		out[i] = seed * 1000 + rank * 100 + i;
		in[i] = -1;
	}
}

static void check_same(void)
{
	CHECK_EQ(memcmp(in, out, sizeof in), 0);
}

static void test_offsets(void)
{
	MPI_Offset at = 5 * GIB + rank * 400, now, bytes;
	MPI_Request r;
	fill(1);
	OK(MPI_File_write_at(f, at, out, 100, MPI_INT, MPI_STATUS_IGNORE));
	OK(MPI_File_read_at(f, at, in, 100, MPI_INT, MPI_STATUS_IGNORE));
	check_same();
	fill(2);
	OK(MPI_File_seek(f, at + GIB, MPI_SEEK_SET));
	OK(MPI_File_iwrite(f, out, 100, MPI_INT, &r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	OK(MPI_File_get_position(f, &now));
	CHECK_EQ(now, at + GIB + 400);
	OK(MPI_File_seek(f, -400, MPI_SEEK_CUR));
	OK(MPI_File_read(f, in, 100, MPI_INT, MPI_STATUS_IGNORE));
	check_same();
	test_barrier();
	OK(MPI_File_get_size(f, &bytes));
	CHECK_EQ(bytes, 6 * GIB + size * 400);
	test_barrier();
}

/* Ten pieces that lie 3 GiB apart, from 7 GiB on. */
static void test_view(void)
{
	MPI_Datatype one, t;
	MPI_Offset at;
	OK(MPI_Type_contiguous(10, MPI_INT, &one));
	OK(MPI_Type_create_hvector(10, 1, (MPI_Aint)(3 * GIB), one, &t));
	OK(MPI_Type_commit(&t));
	OK(MPI_File_set_view(f, 7 * GIB + rank * 40, MPI_INT, t, "native", MPI_INFO_NULL));
	fill(3);
	OK(MPI_File_write_at_all(f, 0, out, 100, MPI_INT, MPI_STATUS_IGNORE));
	OK(MPI_File_read_at_all(f, 0, in, 100, MPI_INT, MPI_STATUS_IGNORE));
	check_same();
	OK(MPI_File_get_byte_offset(f, 95, &at));
	CHECK_EQ(at, 7 * GIB + rank * 40 + 27 * GIB + 20);
	OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	memset(in, 0, sizeof in);
	OK(MPI_File_read_at(f, at, in, 5, MPI_INT, MPI_STATUS_IGNORE));
	CHECK_EQ(memcmp(in, out + 95, 5 * sizeof *in), 0);
	OK(MPI_Type_free(&one));
	OK(MPI_Type_free(&t));
	test_barrier();
}

/* A block of a global array of more than 2^32 elements in a row of blocks. */
static void test_subarray(void)
{
	int sizes[2] = {4, 1 << 30}, sub[2] = {4, 25}, starts[2] = {0, (1 << 30) - 50 + rank * 25};
	MPI_Datatype t;
	OK(MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, MPI_INT, &t));
	OK(MPI_Type_commit(&t));
	OK(MPI_File_set_view(f, 0, MPI_INT, t, "native", MPI_INFO_NULL));
	fill(4);
	OK(MPI_File_write_all(f, out, 100, MPI_INT, MPI_STATUS_IGNORE));
	OK(MPI_File_seek(f, 0, MPI_SEEK_SET));
	OK(MPI_File_read_all(f, in, 100, MPI_INT, MPI_STATUS_IGNORE));
	check_same();
	OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	OK(MPI_File_read_at(f, (3 * GIB + starts[1]) * 4, in, 25, MPI_INT, MPI_STATUS_IGNORE));
	CHECK_EQ(memcmp(in, out + 75, 25 * sizeof *in), 0);
	OK(MPI_Type_free(&t));
	test_barrier();
}

static void test_shared(void)
{
	MPI_Offset now;
	OK(MPI_File_seek_shared(f, 40 * GIB, MPI_SEEK_SET));
	fill(5);
	OK(MPI_File_write_ordered(f, out, 100, MPI_INT, MPI_STATUS_IGNORE));
	OK(MPI_File_get_position_shared(f, &now));
	CHECK_EQ(now, 40 * GIB + size * 400);
	OK(MPI_File_read_at(f, 40 * GIB + rank * 400, in, 100, MPI_INT, MPI_STATUS_IGNORE));
	check_same();
	test_barrier();
}

/* 2.5 GiB by one call, with a large count, and with a count of large elements. */
static void test_data(void)
{
	MPI_Count n = (MPI_Count)5 << 29, got;
	char *big = malloc((size_t)n);
	MPI_Status st;
	MPI_Datatype mib;
	MPI_Request r;
	CHECK(big);
	for (MPI_Count i = 0; i < n; i += 4096)
		big[i] = (char)(i >> 12);
	OK(MPI_File_write_at_c(f, 0, big, n, MPI_BYTE, &st));
	OK(MPI_Get_count_c(&st, MPI_BYTE, &got));
	CHECK_EQ(got, n);
	memset(big, 0, (size_t)n);
	OK(MPI_Type_contiguous(1 << 20, MPI_BYTE, &mib));
	OK(MPI_Type_commit(&mib));
	OK(MPI_File_iread_at(f, 0, big, (int)(n >> 20), mib, &r));
	OK(MPI_Wait(&r, &st));
	OK(MPI_Get_count_c(&st, MPI_BYTE, &got));
	CHECK_EQ(got, n);
	for (MPI_Count i = 0; i < n; i += 4096)
		CHECK_EQ(big[i], (char)(i >> 12));
	OK(MPI_Type_free(&mib));
	free(big);
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	snprintf(name, sizeof name, "/dev/shm/test-file-far-%d", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &f));
	test_offsets();
	test_view();
	test_subarray();
	test_shared();
	if (argc > 1 && !strcmp(argv[1], "data"))
		test_data();
	OK(MPI_File_close(&f));
	return test_end();
}
