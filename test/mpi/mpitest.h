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
static MPI_Comm test_comm; /* for test_barrier: its messages meet no wildcard of a test */

static inline void test_start(int *argc, char ***argv, int level)
{
	int provided = -1;

	OK(MPI_Init_thread(argc, argv, level, &provided));
	CHECK(provided >= level);
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &test_comm));
}

static inline int test_end(void)
{
	OK(MPI_Comm_free(&test_comm));
	OK(MPI_Finalize());
	return 0;
}

/* A barrier that needs point-to-point alone: the tests of the core do not rest on collectives. */
static inline void test_barrier(void)
{
	for (int step = 1; step < size; step *= 2)
		OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + step) % size, step, NULL, 0, MPI_BYTE,
				(rank - step + size) % size, step, test_comm, MPI_STATUS_IGNORE));
}

#endif
