/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_death.c - a rank dies while the others are in collective calls on a file: these end, with the class of a
 * lost peer; the survivors' own accesses go on, and what was written is there.
 *
 * ranks: 1 (nothing dies); CMakeLists.txt starts three with -disable-auto-cleanup, and each survivor says so.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "mpitest.h"

int main(int argc, char **argv)
{
	char name[256];
	int out[100], in[100], at = 0, provided;
	MPI_File f;
	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	snprintf(name, sizeof name, "/tmp/test-file-death-%d", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
	/* Its last message may be on the way when the report of its death comes. */
	int err = MPI_File_sync(f);
	if (err)
		FAILS(err, MPI_ERR_PROC_ABORTED);
	if (size > 1 && rank == size - 1)
		raise(SIGKILL);
	for (int i = 0; i < 100; i++)
		out[i] = 100 * rank + i;
	if (size == 1) {
		unlink(name);
		OK(MPI_File_close(&f));
		OK(MPI_Finalize());
		return 0;
	}
	/* May succeed as long as it needs no word of the dead rank. */
	err = MPI_File_write_at_all(f, rank * 400, out, 100, MPI_INT, MPI_STATUS_IGNORE);
	if (err)
		FAILS(err, MPI_ERR_PROC_ABORTED);
	FAILS(MPI_File_sync(f), MPI_ERR_PROC_ABORTED);
	FAILS(MPI_File_write_ordered(f, &at, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
	OK(MPI_File_write_at(f, rank * 400, out, 100, MPI_INT, MPI_STATUS_IGNORE));
	OK(MPI_File_read_at(f, rank * 400, in, 100, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(!memcmp(in, out, sizeof in));
	FAILS(MPI_File_close(&f), MPI_ERR_PROC_ABORTED);
	CHECK(f == MPI_FILE_NULL);
	if (!rank)
		unlink(name);
	printf("survivor %d is fine\n", rank);
	fflush(stdout);
	_exit(0);
}
