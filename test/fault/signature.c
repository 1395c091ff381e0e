/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signature.c - a message received as another type than it was sent as brings its bytes as they
 * were sent, never more than fit, and says how many of the receiver's type they are.
 */
#include <stdlib.h>

#include "../mpi/mpitest.h"

/* Bytes: eager, asked for, in pieces. */
static const int sizes[] = {24, 6000, 240000};
#define MOST 240000
#define EDGE 64

static unsigned char out[MOST], in[MOST + EDGE];

static void fill(void)
{
	for (int i = 0; i < MOST; i++)
		out[i] = (unsigned char)(i * 7 + (i >> 8));
}

/* Rank 0 sends bytes as `sent`, rank 1 receives room bytes as `wanted`. */
static void pass(int bytes, MPI_Datatype sent, MPI_Datatype wanted, int room)
{
	MPI_Status status;
	int of_sent, of_wanted, n, err, got = bytes < room ? bytes : room;

	OK(MPI_Type_size(sent, &of_sent));
	OK(MPI_Type_size(wanted, &of_wanted));
	if (rank == 0)
		OK(MPI_Send(out, bytes / of_sent, sent, 1, 0, MPI_COMM_WORLD));
	if (rank != 1)
		return;
	memset(in, 0xee, sizeof in);
	err = MPI_Recv(in, room / of_wanted, wanted, 0, 0, MPI_COMM_WORLD, &status);
	if (bytes > room)
		FAILS(err, MPI_ERR_TRUNCATE);
	else
		OK(err);
	CHECK(memcmp(in, out, (size_t)got) == 0);
	for (int i = got; i < MOST + EDGE; i++)
		CHECK_EQ(in[i], 0xee);
	if (bytes > room)
		return;
	OK(MPI_Get_count(&status, wanted, &n));
	CHECK_EQ(n, bytes % of_wanted ? MPI_UNDEFINED : bytes / of_wanted);
	OK(MPI_Get_count(&status, MPI_BYTE, &n));
	CHECK_EQ(n, bytes);
}

/* The same bytes at every rank, whatever they are called. */
static void broadcast(int bytes)
{
	memset(in, 0xee, sizeof in);
	if (rank == 0)
		memcpy(in, out, (size_t)bytes);
	OK(rank == 0 ? MPI_Bcast(in, bytes / 4, MPI_INT, 0, MPI_COMM_WORLD)
		     : MPI_Bcast(in, bytes / 8, MPI_DOUBLE, 0, MPI_COMM_WORLD));
	CHECK(memcmp(in, out, (size_t)bytes) == 0);
	for (int i = bytes; i < MOST + EDGE; i++)
		CHECK_EQ(in[i], 0xee);
}

int main(int argc, char **argv)
{
	MPI_Datatype triple;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Type_contiguous(3, MPI_SHORT, &triple));
	OK(MPI_Type_commit(&triple));
	fill();
	for (int i = 0; i < 3; i++) {
		int bytes = sizes[i];

		pass(bytes, MPI_INT, MPI_DOUBLE, bytes);
		pass(bytes, MPI_DOUBLE, MPI_FLOAT, bytes);
		pass(bytes, triple, MPI_BYTE, bytes);
		pass(bytes, MPI_BYTE, triple, bytes);
		pass(bytes - 4, MPI_INT, MPI_DOUBLE, bytes); /* no whole number of them */
		pass(bytes, MPI_DOUBLE, MPI_INT, bytes / 2);
		broadcast(bytes);
	}
	OK(MPI_Type_free(&triple));
	return test_end();
}
