/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange_mpi.h - what exchange.h asks of two ranks, by MPI; the transfer itself is the program's. */
#ifndef WEFT_BENCH_EXCHANGE_MPI_H
#define WEFT_BENCH_EXCHANGE_MPI_H

#include "bench_mpi.h"
#include "exchange.h"

static MPI_Request exchange_request; /* the program's start() sets it */

static void exchange_sync(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void exchange_wait(void)
{
	MPI_Wait(&exchange_request, MPI_STATUS_IGNORE);
}

static void exchange_answer(void)
{
	char byte = 0;
	if (bench_rank == 0)
		MPI_Recv(&byte, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&byte, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

static long exchange_tell(long value)
{
	MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	return value;
}

static double exchange_slower(double us)
{
	double most;
	MPI_Allreduce(&us, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static inline struct exchange_ops exchange_by_mpi(void (*start)(char *buf, int bytes))
{
	return (struct exchange_ops){exchange_sync,   start,         exchange_wait,
				     exchange_answer, exchange_tell, exchange_slower};
}

#endif
