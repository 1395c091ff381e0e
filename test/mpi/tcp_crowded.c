/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 24
 *
 * More peers than descriptors, over tcp: connections that have been quiet are closed and made anew, and every message
 * arrives once and in order. */
#include <dirent.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "mpitest.h"

#define FILES 34 /* some 15 are the library's own: for 12 connections or so, with what stays free */
#define ROUNDS 4
#define LONG 20000 /* bytes of the message that is not small */

static int open_files(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A small and a long message to each peer and from each, which say where from and when. */
static void talk_to_all(int round)
{
	static char out[LONG], in[LONG];

	for (int step = 1; step < size; step++) {
		int to = (rank + step) % size, from = (rank - step + size) % size;
		int sent = round * 1000 + rank, got = -1;
		OK(MPI_Sendrecv(&sent, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from, 1, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE));
		CHECK_EQ(got, round * 1000 + from);
		memset(out, rank + round, LONG);
		OK(MPI_Sendrecv(out, LONG, MPI_CHAR, to, 2, in, LONG, MPI_CHAR, from, 2,
				MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		for (int i = 0; i < LONG; i++)
			CHECK(in[i] == (char)(from + round));
	}
}

/* Many at once: each pair may close while the other end sends. */
static void talk_at_once(int round)
{
	int sent[64], got[64];
	MPI_Request req[128];

	for (int p = 0; p < size; p++) {
		sent[p] = round * 10000 + rank * 100 + p;
		OK(MPI_Irecv(&got[p], 1, MPI_INT, p, 3, MPI_COMM_WORLD, &req[p]));
		OK(MPI_Isend(&sent[p], 1, MPI_INT, p, 3, MPI_COMM_WORLD, &req[size + p]));
	}
	OK(MPI_Waitall(2 * size, req, MPI_STATUSES_IGNORE));
	for (int p = 0; p < size; p++)
		CHECK_EQ(got[p], round * 10000 + p * 100 + rank);
}

int main(int argc, char **argv)
{
	struct rlimit files;

	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = FILES;
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(setenv("WEFT_DRIVERS", "tcp,self", 1) == 0);
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	/* Else it would prove nothing. */
	CHECK(open_files() + size - 1 > FILES);
	for (int round = 0; round < ROUNDS; round++) {
		talk_to_all(round);
		talk_at_once(round);
		OK(MPI_Barrier(MPI_COMM_WORLD));
	}
	return test_end();
}
