/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks: 2 4
 *
 * file_alone.c - collective reads on a local file system that all ranks have agreed to make by themselves: they wait for no other
 * rank, give what is there, may be refused on one rank, and a rank that is in another call meanwhile is told so.
 */
#include <stdio.h>
#include <unistd.h>
#include "mpitest.h"

enum { RUNS = 500, RUN = 8, BYTES = RUNS * RUN, AGREED = 3 };

static MPI_File f;
static unsigned char out[BYTES], in[BYTES];

static void fill(int seed)
{
	for (int i = 0; i < BYTES; i++)
		out[i] = (unsigned char)(seed * 7 + rank * 31 + i);
}

/* One range for each rank, which goes straight however long accesses have taken so far; a new view, to begin anew. */
static void set_view(void)
{
	OK(MPI_File_set_view(f, (MPI_Offset)rank * BYTES, MPI_BYTE, MPI_BYTE, "native",
			     MPI_INFO_NULL));
}

static void read_and_check(MPI_Offset at, int bytes)
{
	MPI_Status st;
	int n;
	memset(in, 0, sizeof in);
	OK(MPI_File_read_at_all(f, at, in, bytes, MPI_BYTE, &st));
	OK(MPI_Get_count(&st, MPI_BYTE, &n));
	CHECK_EQ(n, bytes);
	CHECK_EQ(memcmp(in, out + at, (size_t)bytes), 0);
}

/* Rank 0 first, all others once it has read: none waits for another. */
static void ranks_in_turn(void)
{
	set_view();
	read_and_check(0, BYTES); /* agrees */
	if (rank)
		OK(MPI_Recv(NULL, 0, MPI_BYTE, rank - 1, 1, test_comm, MPI_STATUS_IGNORE));
	for (int i = 0; i < AGREED; i++)
		read_and_check(10 * i, BYTES - 10 * i);
	if (rank + 1 < size)
		OK(MPI_Send(NULL, 0, MPI_BYTE, rank + 1, 1, test_comm));
}

/* Of each length, blocking and not, some refused on one rank, between writes. */
static void mixed(void)
{
	MPI_Request r;
	set_view();
	for (int i = 0; i < 400; i++) {
		int refused = i % size;
		if (i % 60 == 59) {
			fill(i);
			OK(MPI_File_write_at_all(f, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
		} else if (i % 7 == 3 && refused == rank) {
			FAILS(MPI_File_read_at_all(f, -1, in, 1, MPI_BYTE, MPI_STATUS_IGNORE),
			      MPI_ERR_ARG);
		} else if (i % 3 == 1) {
			memset(in, 0, sizeof in);
			OK(MPI_File_iread_at_all(f, 0, in, BYTES, MPI_BYTE, &r));
			OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
			CHECK_EQ(memcmp(in, out, sizeof in), 0);
		} else {
			read_and_check(i % 11 * RUN, (i * 97 + rank * 13) % (BYTES - 11 * RUN));
		}
	}
}

/* Rank 0 reads, the others write: these wait for it, and are told. */
static void crossed(void)
{
	set_view();
	read_and_check(0, BYTES);
	if (!rank)
		read_and_check(0, BYTES);
	else
		FAILS(MPI_File_write_at_all(f, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
		      MPI_ERR_TRUNCATE);
}

int main(int argc, char **argv)
{
	char name[128];
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (access("/dev/shm", W_OK))
		SKIP("no tmpfs at /dev/shm");
	snprintf(name, sizeof name, "/dev/shm/test-file-alone-%d", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &f));
	set_view();
	fill(0);
	OK(MPI_File_write_at_all(f, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
	ranks_in_turn();
	mixed();
	crossed();
	OK(MPI_File_close(&f));
	return test_end();
}
