/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* What is not matched can be cancelled, receives and sends; what is matched completes. */
#include <stdlib.h>

#include "mpitest.h"

static void unmatched(void)
{
	int v = 1, flag = 0;
	MPI_Request req;
	MPI_Status st;

	for (int i = 0; i < 50; i++) {
		OK(MPI_Irecv(&v, 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : rank, 3, MPI_COMM_WORLD,
			     &req));
		OK(MPI_Cancel(&req));
		OK(MPI_Wait(&req, &st));
		OK(MPI_Test_cancelled(&st, &flag));
		CHECK(flag);
		CHECK(req == MPI_REQUEST_NULL);
	}
	CHECK_EQ(v, 1);
}

static void matched(void)
{
	int v = 0, w = 8, flag = 1;
	MPI_Request req, tx;
	MPI_Status st;

	OK(MPI_Irecv(&v, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &req));
	OK(MPI_Send(&w, 1, MPI_INT, rank, 4, MPI_COMM_WORLD));
	OK(MPI_Cancel(&req));
	OK(MPI_Wait(&req, &st));
	OK(MPI_Test_cancelled(&st, &flag));
	CHECK(!flag);
	CHECK_EQ(v, 8);
	OK(MPI_Isend(&w, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &tx));
	OK(MPI_Cancel(&tx));
	OK(MPI_Recv(&v, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	OK(MPI_Wait(&tx, &st));
	OK(MPI_Test_cancelled(&st, &flag));
	CHECK(!flag);
}

/* A send that no receive has yet: its wait is over whatever the receiver does.  What is said to be
 * cancelled never arrives, all else does. */
static void sends(int to, int from, size_t bytes, int synchronous, int persist)
{
	char *data = calloc(1, bytes), *in = calloc(1, bytes);
	int cancelled = -1, said = -1, there = 1;
	MPI_Request r;
	MPI_Status st;

	CHECK(data && in);
	data[bytes - 1] = 5;
	if (persist)
		OK((synchronous ? MPI_Ssend_init : MPI_Send_init)(data, (int)bytes, MPI_BYTE, to, 8,
								  MPI_COMM_WORLD, &r));
	else
		OK((synchronous ? MPI_Issend : MPI_Isend)(data, (int)bytes, MPI_BYTE, to, 8,
							  MPI_COMM_WORLD, &r));
	if (persist)
		OK(MPI_Start(&r));
	OK(MPI_Cancel(&r));
	OK(MPI_Wait(&r, &st));
	OK(MPI_Test_cancelled(&st, &cancelled));
	if (synchronous || bytes > (1 << 20))
		CHECK(cancelled); /* no receive was posted, and no room holds so much */
	if (persist)
		OK(MPI_Request_free(&r));
	OK(MPI_Sendrecv(&cancelled, 1, MPI_INT, to, 9, &said, 1, MPI_INT, from, 9, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE));
	OK(MPI_Iprobe(from, 8, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
	if (said)
		CHECK(!there);
	else
		OK(MPI_Recv(in, (int)bytes, MPI_BYTE, from, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(in[bytes - 1], said ? 0 : 5);
	test_barrier(); /* no rank probes any more */
	/* What comes after it is matched in its place. */
	OK(MPI_Sendrecv(data, (int)bytes, MPI_BYTE, to, 8, in, (int)bytes, MPI_BYTE, from, 8,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(in[bytes - 1], 5);
	free(data);
	free(in);
}

/* Cancel and receive at once: one of both wins, for certain. */
static void race(int to, int from)
{
	enum { BYTES = 200000, ROUNDS = 200 };
	char *out = calloc(1, BYTES), *in = calloc(1, BYTES);
	int cancelled, said, got;
	MPI_Request tx, rx;
	MPI_Status st;

	CHECK(out && in);
	for (int i = 0; i < ROUNDS; i++) {
		OK(MPI_Issend(out, i % 3 ? BYTES : 8, MPI_BYTE, to, 10, MPI_COMM_WORLD, &tx));
		OK(MPI_Irecv(in, BYTES, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : from, 10, MPI_COMM_WORLD,
			     &rx));
		OK(MPI_Cancel(&tx));
		OK(MPI_Wait(&tx, &st));
		OK(MPI_Test_cancelled(&st, &cancelled));
		OK(MPI_Sendrecv(&cancelled, 1, MPI_INT, to, 11, &said, 1, MPI_INT, from, 11,
				MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		if (said)
			OK(MPI_Cancel(&rx));
		OK(MPI_Wait(&rx, &st));
		OK(MPI_Test_cancelled(&st, &got));
		CHECK_EQ(got, said);
		test_barrier(); /* the next round's send is not for this receive */
	}
	free(out);
	free(in);
}

static void persistent(void)
{
	int v = 0, w = 6, flag = 0;
	MPI_Request req;
	MPI_Status st;

	OK(MPI_Recv_init(&v, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, &req));
	OK(MPI_Start(&req));
	OK(MPI_Cancel(&req));
	OK(MPI_Wait(&req, &st));
	OK(MPI_Test_cancelled(&st, &flag));
	CHECK(flag && req != MPI_REQUEST_NULL);
	OK(MPI_Start(&req));
	OK(MPI_Send(&w, 1, MPI_INT, rank, 6, MPI_COMM_WORLD));
	OK(MPI_Wait(&req, &st));
	OK(MPI_Test_cancelled(&st, &flag));
	CHECK(!flag && v == 6);
	OK(MPI_Request_free(&req));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	unmatched();
	matched();
	persistent();
	for (int mode = 0; mode < 4; mode++) {
		int to = (rank + 1) % size, from = (rank + size - 1) % size;
		sends(to, from, 8, mode & 1, mode >> 1);
		sends(to, from, 100000, mode & 1, mode >> 1);
		sends(to, from, 4 << 20, mode & 1, mode >> 1);
	}
	race((rank + 1) % size, (rank + size - 1) % size);
	return test_end();
}
