/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_victim.c - the last rank is killed at some moment of a sequence of collective writes and reads: each call of
 * the others ends, and from some call on with the class of a lost peer; the file can still be written and read
 * by each of them alone.
 *
 *	mpiexec -disable-auto-cleanup -n 4 fault_file_victim MICROSECONDS FOLDER
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "mpi/mpitest.h"

enum { RUNS = 400, RUN = 64, ROUNDS = 100000 };

static char out[RUNS * RUN], in[RUNS * RUN];

static void *die_later(void *arg)
{
	usleep((useconds_t)atoi(arg));
	raise(SIGKILL);
	return NULL;
}

int main(int argc, char **argv)
{
	char name[256];
	int provided, class = 0, calls = 0;
	pthread_t thread;
	MPI_File f;
	MPI_Datatype strided;
	CHECK_EQ(argc, 3);
	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	snprintf(name, sizeof name, "%s/test-file-victim-%d", argv[2], (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
	OK(MPI_Type_vector(RUNS, RUN, RUN * size, MPI_BYTE, &strided));
	OK(MPI_Type_commit(&strided));
	OK(MPI_File_set_view(f, rank * RUN, MPI_BYTE, strided, "native", MPI_INFO_NULL));
	/* Collective calls of coll/ are not what is tested here: they end before, and none follows. */
	OK(MPI_Barrier(MPI_COMM_WORLD));
	if (rank == size - 1)
		CHECK_EQ(pthread_create(&thread, NULL, die_later, argv[1]), 0);
	/* ends: the last rank dies */
	while (class == 0 && calls < ROUNDS) {
		MPI_Offset at = calls % 3 * (MPI_Offset)sizeof out;
		int err;
		memset(out, rank + calls, sizeof out);
		if (calls % 4 == 3) {
			err = MPI_File_read_at_all(f, at, in, sizeof in, MPI_BYTE,
						   MPI_STATUS_IGNORE);
		} else if (calls % 4 == 2) {
			MPI_Request r;
			err = MPI_File_iwrite_at_all(f, at, out, sizeof out, MPI_BYTE, &r);
			err = err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
		} else {
			err = MPI_File_write_at_all(f, at, out, sizeof out, MPI_BYTE,
						    MPI_STATUS_IGNORE);
		}
		calls++;
		if (err)
			OK(MPI_Error_class(err, &class));
	}
	CHECK_EQ(class, MPI_ERR_PROC_ABORTED);
	/* Later ones fail, too: none waits. */
	FAILS(MPI_File_write_at_all(f, 0, out, sizeof out, MPI_BYTE, MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
	memset(out, 100 + rank, sizeof out);
	OK(MPI_File_write_at(f, 0, out, sizeof out, MPI_BYTE, MPI_STATUS_IGNORE));
	OK(MPI_File_read_at(f, 0, in, sizeof in, MPI_BYTE, MPI_STATUS_IGNORE));
	CHECK_EQ(memcmp(in, out, sizeof in), 0);
	unlink(name);
	printf("survivor %d is fine after %d calls\n", rank, calls);
	fflush(stdout);
	_exit(0);
}
