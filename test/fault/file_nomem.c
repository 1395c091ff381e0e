/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_nomem.c - each allocation that a collective access to a file makes, in the calling thread of one rank,
 * fails once: every rank's call ends, a write that fails on one rank fails on all, and the next access is whole.
 *
 *	LD_PRELOAD=libfault_shim.so mpiexec -n 3 fault_file_nomem
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
#include "mpi/mpitest.h"

enum { RUNS = 2000, RUN = 16, VICTIM = 1 };

static void (*arm)(long k);
static long (*disarm)(void);
static MPI_File f;
static char out[RUNS * RUN], in[RUNS * RUN];
static MPI_Datatype strided, holes; /* of the file; of memory */
static int turn;

/* Members' runs in turns; the displacement differs from access to access, so that views are sent each time. */
static void new_view(void)
{
	turn++;
	OK(MPI_File_set_view(f, (turn % 3 * size + rank) * RUN, MPI_BYTE, strided, "native",
			     MPI_INFO_NULL));
	for (int i = 0; i < RUNS * RUN; i++)
		out[i] = (char)(i * 5 + rank + turn);
}

static int blocking(void)
{
	return MPI_File_write_at_all(f, 0, out, sizeof out, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int waited(void)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int err = MPI_File_iwrite_at_all(f, 0, out, sizeof out, MPI_BYTE, &r);
	return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static int split(void)
{
	int err = MPI_File_write_at_all_begin(f, 0, out, sizeof out, MPI_BYTE);
	return err ? err : MPI_File_write_at_all_end(f, out, MPI_STATUS_IGNORE);
}

static int typed(void)
{
	return MPI_File_write_at_all(f, 0, out, 1, holes, MPI_STATUS_IGNORE);
}

static int ordered(void)
{
	return MPI_File_write_ordered(f, out, 100, MPI_BYTE, MPI_STATUS_IGNORE);
}

static const struct {
	const char *name;
	int (*fn)(void);
} step[] = {{"write_at_all", blocking},
	    {"iwrite_at_all", waited},
	    {"write_at_all_begin", split},
	    {"write_at_all of a type", typed},
	    {"write_ordered", ordered}};

/* Nothing of what has failed is left in the next one. */
static void whole_access(void)
{
	new_view();
	OK(blocking());
	memset(in, 0, sizeof in);
	OK(MPI_File_read_at_all(f, 0, in, sizeof in, MPI_BYTE, MPI_STATUS_IGNORE));
	CHECK_EQ(memcmp(in, out, sizeof in), 0);
}

static void sweep(const char *name, int (*fn)(void))
{
	long k = 0, fails = 0;
	int reached = 1;
	while (reached) { /* ends: a call makes finitely many allocations */
		int codes[64], err;
		k++;
		new_view();
		if (rank == VICTIM)
			arm(k);
		err = fn();
		if (rank == VICTIM)
			reached = disarm() == 0;
		OK(MPI_Bcast(&reached, 1, MPI_INT, VICTIM, MPI_COMM_WORLD));
		OK(MPI_Allgather(&err, 1, MPI_INT, codes, 1, MPI_INT, MPI_COMM_WORLD));
		if (codes[VICTIM] && !codes[0])
			fprintf(stderr, "%s, allocation %ld: rank 0 does not hear of code %d\n",
				name, k, codes[VICTIM]);
		for (int r = 0; fn != ordered && r < size; r++)
			CHECK_EQ(codes[r] != 0, codes[VICTIM] != 0);
		if (rank == VICTIM && err)
			FAILS(err, MPI_ERR_NO_MEM);
		fails += codes[VICTIM] != 0;
		whole_access();
	}
	if (rank == VICTIM)
		printf("%-24s %ld allocations, %ld of them are missed\n", name, k - 1, fails);
}

/* An unexpected message for which there is no memory costs the peer: so that there is some, many have come before. */
static void unexpected_before(void)
{
	enum { MESSAGES = 64 };
	MPI_Request r[MESSAGES];
	for (int i = 0; rank != VICTIM && i < MESSAGES; i++)
		OK(MPI_Isend(out, 100, MPI_BYTE, VICTIM, 7, MPI_COMM_WORLD, &r[i]));
	OK(MPI_Barrier(MPI_COMM_WORLD));
	for (int i = 0; rank == VICTIM && i < MESSAGES * (size - 1); i++)
		OK(MPI_Recv(in, 100, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD,
			    MPI_STATUS_IGNORE));
	if (rank != VICTIM)
		OK(MPI_Waitall(MESSAGES, r, MPI_STATUSES_IGNORE));
}

int main(int argc, char **argv)
{
	char name[128];
	*(void **)&arm = dlsym(RTLD_DEFAULT, "fault_arm");
	*(void **)&disarm = dlsym(RTLD_DEFAULT, "fault_disarm");
	CHECK(arm && disarm);
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	CHECK(size > VICTIM && size <= 64);
	snprintf(name, sizeof name, "%s/test-file-nomem-%d", argc > 1 ? argv[1] : "/tmp",
		 (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &f));
	OK(MPI_Type_vector(RUNS, RUN, RUN * size, MPI_BYTE, &strided));
	OK(MPI_Type_commit(&strided));
	OK(MPI_Type_vector(RUNS / 4, RUN, RUN * 2, MPI_BYTE, &holes));
	OK(MPI_Type_commit(&holes));
	unexpected_before();
	whole_access();
	for (size_t i = 0; i < sizeof step / sizeof *step; i++)
		sweep(step[i].name, step[i].fn);
	OK(MPI_Type_free(&strided));
	OK(MPI_Type_free(&holes));
	OK(MPI_File_close(&f));
	return test_end();
}
