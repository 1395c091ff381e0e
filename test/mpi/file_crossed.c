/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_crossed.c - ranks that call different collective functions on one file: the calls end, and MPI_File_close succeeds on all
 * ranks whatever came before, also where some ranks close while others wait in another call.
 *
 * ranks: 2 3
 *
 *	file_crossed [all]	all pairs of calls, not only some of them
 */
#include <stdio.h>
#include <unistd.h>
#include "mpitest.h"

static MPI_File f;
static char data[64];

static int by_write(void)
{
	return MPI_File_write_at_all(f, 64 * rank, data, 64, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int by_read(void)
{
	return MPI_File_read_at_all(f, 0, data, 64, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int by_iwrite(void)
{
	MPI_Request r;
	int err = MPI_File_iwrite_at_all(f, 64 * rank, data, 64, MPI_BYTE, &r);
	return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static int by_split(void)
{
	int err = MPI_File_write_all_begin(f, data, 64, MPI_BYTE);
	return err ? err : MPI_File_write_all_end(f, data, MPI_STATUS_IGNORE);
}

static int by_ordered(void)
{
	return MPI_File_write_ordered(f, data, 64, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int by_view(void)
{
	return MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
}

static int by_size(void)
{
	return MPI_File_set_size(f, 4096);
}

static int by_sync(void)
{
	return MPI_File_sync(f);
}

static int by_seek(void)
{
	return MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
}

static int by_atomicity(void)
{
	return MPI_File_set_atomicity(f, 0);
}

/* Closed by the test itself. */
static int by_close(void)
{
	return MPI_SUCCESS;
}

static int (*const calls[])(void) = {by_write, by_view,   by_close,    by_ordered,
				     by_sync,  by_iwrite, by_size,     by_split,
				     by_read,  by_seek,   by_atomicity};
#define CALLS (int)(sizeof calls / sizeof calls[0])

/* Even ranks make one call, odd ranks the other; then all of them another one, which may fail as well. */
static void cross(int a, int b, const char *name)
{
	int class;
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &f));
	for (int turn = 0; turn < 2; turn++) {
		int call = turn ? 0 : rank % 2 ? b : a;
		if (turn && (a + b) % 2) /* some pairs close at once */
			break;
		int err = calls[call]();
		OK(MPI_Error_class(err, &class));
		CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE ||
		      class == MPI_ERR_NOT_SAME || class == MPI_ERR_ARG);
	}
	OK(MPI_File_close(&f));
	CHECK(f == MPI_FILE_NULL);
	test_barrier();
}

int main(int argc, char **argv)
{
	char name[128];
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	snprintf(name, sizeof name, "/tmp/test-file-crossed-%d", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	for (int a = 0; a < CALLS; a++)
		for (int b = a + 1; b < CALLS; b++)
			if (argc > 1 || b == a + 1)
				cross(a, b, name);
	/* And a file after all that is as any other. */
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &f));
	OK(by_write());
	OK(by_read());
	OK(MPI_File_close(&f));
	return test_end();
}
