/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks: 1 3
 *
 * file_mixed.c - records of an int and a long in external32, where both change their sizes by different factors: the
 * file type's displacements are the file's, records of the ranks lie in turns, and their bytes are those of the format.
 */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include "mpitest.h"

enum { RECORDS = 50 };

struct record {
	int a;
	long b;
};

static MPI_File f;
static MPI_Aint int_bytes, long_bytes, record_bytes;

/* A pair of an int and a long at that place, so long. */
static MPI_Datatype pair(MPI_Aint second, MPI_Aint extent)
{
	int lengths[2] = {1, 1};
	MPI_Aint at[2] = {0, second};
	MPI_Datatype parts[2] = {MPI_INT, MPI_LONG}, t, whole;
	OK(MPI_Type_create_struct(2, lengths, at, parts, &t));
	OK(MPI_Type_create_resized(t, 0, extent, &whole));
	OK(MPI_Type_commit(&whole));
	OK(MPI_Type_free(&t));
	return whole;
}

static long big_endian(const unsigned char *bytes, MPI_Aint n)
{
	long v = bytes[0] & 0x80 ? -1 : 0;
	for (MPI_Aint i = 0; i < n; i++)
		v = (long)((unsigned long)v << 8 | bytes[i]);
	return v;
}

static long second_of(int r, int i)
{
	return -(100000L * r + i) * 3;
}

static void check_bytes(void)
{
	unsigned char bytes[64];
	OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	for (int r = 0; r < size; r++)
		for (int i = 0; i < RECORDS; i++) {
			OK(MPI_File_read_at(f, (i * size + r) * record_bytes, bytes,
					    (int)record_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
			CHECK_EQ(big_endian(bytes, int_bytes), 7 * r + i);
			CHECK_EQ(big_endian(bytes + int_bytes, long_bytes), second_of(r, i));
		}
}

int main(int argc, char **argv)
{
	char name[128];
	struct record out[RECORDS], in[RECORDS];
	MPI_Datatype memory, file, one;
	MPI_Offset bytes;
	MPI_Status st;
	MPI_Aint extent;
	int n;
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	snprintf(name, sizeof name, "/tmp/test-file-mixed-%d", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &f));
	OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
	OK(MPI_File_get_type_extent(f, MPI_INT, &int_bytes));
	OK(MPI_File_get_type_extent(f, MPI_LONG, &long_bytes));
	CHECK_EQ(int_bytes, 4);
	record_bytes = int_bytes + long_bytes;
	memory = pair(offsetof(struct record, b), sizeof(struct record));
	one = pair(int_bytes, record_bytes);
	file = pair(int_bytes, record_bytes * size);
	OK(MPI_File_set_view(f, rank * record_bytes, one, file, "external32", MPI_INFO_NULL));
	OK(MPI_File_get_type_extent(f, file, &extent));
	CHECK_EQ(extent, record_bytes * size);
	memset(out, 0, sizeof out);
	memset(in, 0, sizeof in);
	for (int i = 0; i < RECORDS; i++)
		out[i] = (struct record){7 * rank + i, second_of(rank, i)};
	OK(MPI_File_write_at_all(f, 0, out, RECORDS, memory, &st));
	OK(MPI_Get_count(&st, memory, &n));
	CHECK_EQ(n, RECORDS);
	OK(MPI_File_read_at_all(f, 0, in, RECORDS, memory, &st));
	OK(MPI_Get_count(&st, memory, &n));
	CHECK_EQ(n, RECORDS);
	CHECK_EQ(memcmp(in, out, sizeof in), 0);
	OK(MPI_File_seek(f, 3, MPI_SEEK_SET));
	OK(MPI_File_read(f, in, 1, memory, MPI_STATUS_IGNORE));
	CHECK_EQ(in[0].b, out[3].b);
	OK(MPI_File_get_byte_offset(f, 2, &bytes));
	CHECK_EQ(bytes, (2 * size + rank) * record_bytes);
	OK(MPI_Type_free(&file));
	OK(MPI_File_read_at(f, 5, in, 2, memory, MPI_STATUS_IGNORE)); /* the view keeps its type */
	CHECK_EQ(in[1].b, out[6].b);
	OK(MPI_File_sync(f));
	test_barrier();
	OK(MPI_File_get_size(f, &bytes));
	CHECK_EQ(bytes, RECORDS * size * record_bytes);
	check_bytes();
	OK(MPI_Type_free(&memory));
	OK(MPI_Type_free(&one));
	OK(MPI_File_close(&f));
	return test_end();
}
