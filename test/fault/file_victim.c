/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_victim.c - the last rank is killed at some moment of a sequence of collective writes and reads, or (files) of opening a file,
 * setting its view, an access and closing it: each call of the others ends, and from some call on with the class of a lost peer; the file can still be
 * written and read by each of them alone.
 *
 *	mpiexec -disable-auto-cleanup -n 4 fault_file_victim MICROSECONDS FOLDER [files]
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

/* Messages are not what is tested here: the last rank dies once each other has sent its own. */
static void begin(char **argv)
{
	pthread_t thread;
	if (rank < size - 1) {
		OK(MPI_Send(NULL, 0, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD));
		return;
	}
	for (int r = 0; r < size - 1; r++)
		OK(MPI_Recv(NULL, 0, MPI_BYTE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(pthread_create(&thread, NULL, die_later, argv[1]), 0);
}

static int access_of(MPI_File f, int turn)
{
	MPI_Offset at = turn % 3 * (MPI_Offset)sizeof out;
	MPI_Request r;
	memset(out, rank + turn, sizeof out);
	if (turn % 4 == 3)
		return MPI_File_read_at_all(f, at, in, sizeof in, MPI_BYTE, MPI_STATUS_IGNORE);
	if (turn % 4 != 2)
		return MPI_File_write_at_all(f, at, out, sizeof out, MPI_BYTE, MPI_STATUS_IGNORE);
	int err = MPI_File_iwrite_at_all(f, at, out, sizeof out, MPI_BYTE, &r);
	return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* A survivor can use the file, alone. */
static void own_access(MPI_File f)
{
	memset(out, 100 + rank, sizeof out);
	OK(MPI_File_write_at(f, 0, out, sizeof out, MPI_BYTE, MPI_STATUS_IGNORE));
	OK(MPI_File_read_at(f, 0, in, sizeof in, MPI_BYTE, MPI_STATUS_IGNORE));
	CHECK_EQ(memcmp(in, out, sizeof in), 0);
}

static int in_accesses(const char *name, MPI_Datatype strided, char **argv)
{
	MPI_File f;
	int err = MPI_SUCCESS, calls = 0;
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
	OK(MPI_File_set_view(f, rank * RUN, MPI_BYTE, strided, "native", MPI_INFO_NULL));
	begin(argv);
	while (!err && calls < ROUNDS) /* ends: the last rank dies */
		err = access_of(f, calls++);
	FAILS(err, MPI_ERR_PROC_ABORTED);
	/* Later ones fail, too: none waits. */
	FAILS(MPI_File_write_at_all(f, 0, out, sizeof out, MPI_BYTE, MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
	own_access(f);
	return calls;
}

/* One file after the other; the death may come in any of the calls. */
static int in_files(const char *name, MPI_Datatype strided, char **argv)
{
	int err = MPI_SUCCESS, calls = 0;
	begin(argv);
	while (!err && calls < ROUNDS) { /* ends: as above */
		MPI_File f;
		err = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE,
				    MPI_INFO_NULL, &f);
		if (err)
			break;
		err = MPI_File_set_view(f, rank * RUN, MPI_BYTE, strided, "native", MPI_INFO_NULL);
		int seen =
			!err; /* else the view may be the old one, in which the ranks share their places */
		if (!err)
			err = access_of(f, calls++);
		if (err) {
			if (seen)
				own_access(f);
			FAILS(MPI_File_close(&f), MPI_ERR_PROC_ABORTED);
		} else {
			err = MPI_File_close(&f);
		}
		CHECK(f == MPI_FILE_NULL);
	}
	FAILS(err, MPI_ERR_PROC_ABORTED);
	MPI_File own;
	OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
			 &own));
	/* They all write there: each its own part. */
	OK(MPI_File_set_view(own, rank * RUN, MPI_BYTE, strided, "native", MPI_INFO_NULL));
	own_access(own);
	OK(MPI_File_close(&own));
	return calls;
}

int main(int argc, char **argv)
{
	char name[256];
	int provided;
	MPI_Datatype strided;
	CHECK(argc == 3 || (argc == 4 && !strcmp(argv[3], "files")));
	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	snprintf(name, sizeof name, "%s/test-file-victim-%d", argv[2], (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_Type_vector(RUNS, RUN, RUN * size, MPI_BYTE, &strided));
	OK(MPI_Type_commit(&strided));
	int calls = (argc == 4 ? in_files : in_accesses)(name, strided, argv);
	printf("survivor %d is fine after %d calls\n", rank, calls);
	fflush(stdout);
	_exit(0);
}
