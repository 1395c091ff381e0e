/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpitest.h - what the MPI test programs need: the plain checks, and one for error classes.
 */
#ifndef WEFT_MPITEST_H
#define WEFT_MPITEST_H

#include <mpi.h>
#include <string.h>
#include "check.h"

#define OK(call) CHECK_EQ(call, MPI_SUCCESS)

/* The call must fail with that class. */
#define FAILS(call, want)                                                                          \
	do {                                                                                       \
		int fails_code = (call), fails_class = -1;                                         \
		MPI_Error_class(fails_code, &fails_class);                                         \
		CHECK_EQ(fails_class, want);                                                       \
	} while (0)

static int rank, size;

static inline void test_start(int *argc, char ***argv, int level)
{
	int provided = -1;

	OK(MPI_Init_thread(argc, argv, level, &provided));
	CHECK(provided >= level);
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
}

static inline int test_end(void)
{
	OK(MPI_Finalize());
	return 0;
}

/* A barrier that needs point-to-point alone: the tests of the core do not rest on collectives. */
static inline void test_barrier(MPI_Comm comm)
{
	int me, n;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &n);
	for (int step = 1; step < n; step *= 2)
		OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, (me + step) % n, 32000, NULL, 0, MPI_BYTE,
				(me - step + n) % n, 32000, comm, MPI_STATUS_IGNORE));
}

#endif
