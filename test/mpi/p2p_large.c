/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages arrive whole, whichever side copies them: senders that wait, that compute first, or that
 * send several at once; receives that are too short; buffers with holes on either side.
 * ranks: 2 4
 */
#include "mpitest.h"

#include <stdlib.h>
#include <string.h>

static char *out, *in;
static int rank, ranks, peer;

#define MOST (3 << 20)

static char byte_of(int i, int seed)
{
	return (char)(i * 7 + (i >> 9) + seed * 13);
}

static void fill(char *p, int n, int seed)
{
	for (int i = 0; i < n; i++)
		p[i] = byte_of(i, seed);
}

static int whole(const char *p, int n, int seed)
{
	for (int i = 0; i < n; i++)
		if (p[i] != byte_of(i, seed))
			return 0;
	return 1;
}

/* Work that no compiler drops. */
static void compute(long turns)
{
	volatile double x = 1;
	for (long i = 0; i < turns; i++)
		x = x * 1.0000001;
}

static void to_and_fro(int bytes, int seed, int late)
{
	if (rank % 2 == 0) {
		fill(out, bytes, seed);
		if (late) {
			MPI_Request r;
			MPI_Isend(out, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &r);
			compute(late);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
		} else {
			MPI_Send(out, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
		}
		memset(out, 0, (size_t)bytes); /* it is ours again */
	} else {
		MPI_Status st;
		int got;
		memset(in, 'x', (size_t)bytes + 1);
		MPI_Recv(in, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_CHAR, &got);
		CHECK(got == bytes && whole(in, bytes, seed) && in[bytes] == 'x');
	}
}

static void several(int bytes, int seed)
{
	enum { N = 6 };
	MPI_Request r[N];
	for (int i = 0; i < N; i++) {
		if (rank % 2 == 0) {
			fill(out + i * bytes, bytes, seed + i);
			MPI_Isend(out + i * bytes, bytes, MPI_CHAR, peer, i, MPI_COMM_WORLD, &r[i]);
		} else {
			MPI_Irecv(in + i * bytes, bytes, MPI_CHAR, peer, i, MPI_COMM_WORLD, &r[i]);
		}
	}
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
	for (int i = 0; rank % 2 && i < N; i++)
		CHECK(whole(in + i * bytes, bytes, seed + i));
}

static void too_short(int bytes, int room)
{
	if (rank % 2 == 0) {
		fill(out, bytes, 5);
		MPI_Send(out, bytes, MPI_CHAR, peer, 2, MPI_COMM_WORLD);
	} else {
		int class;
		memset(in, 'x', (size_t)room + 1);
		int err = MPI_Recv(in, room, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Error_class(err, &class);
		CHECK(class == MPI_ERR_TRUNCATE && whole(in, room, 5) && in[room] == 'x');
	}
}

static void with_holes(int blocks, int holes_out, int holes_in)
{
	enum { BLOCK = 4096, STRIDE = 6000 };
	MPI_Datatype t;
	MPI_Type_vector(blocks, BLOCK, STRIDE, MPI_CHAR, &t);
	MPI_Type_commit(&t);
	int bytes = blocks * BLOCK;
	if (rank % 2 == 0) {
		for (int b = 0; b < blocks; b++)
			for (int i = 0; i < BLOCK; i++)
				out[b * (holes_out ? STRIDE : BLOCK) + i] =
					byte_of(b * BLOCK + i, 9);
		MPI_Send(out, holes_out ? 1 : bytes, holes_out ? t : MPI_CHAR, peer, 3,
			 MPI_COMM_WORLD);
	} else {
		MPI_Recv(in, holes_in ? 1 : bytes, holes_in ? t : MPI_CHAR, peer, 3, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		for (int b = 0; b < blocks; b++)
			for (int i = 0; i < BLOCK; i++)
				CHECK(in[b * (holes_in ? STRIDE : BLOCK) + i] ==
				      byte_of(b * BLOCK + i, 9));
	}
	MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
	static const int sizes[] = {8192,   8193,   16384,   32767,   32768,        32769,
				    65536,  65537,  131072,  131073,  200001,       262144,
				    300000, 524288, 1 << 20, 1000003, (2 << 20) + 1};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	peer = rank ^ 1;
	out = malloc(MOST);
	in = malloc(MOST);
	CHECK(out && in && ranks % 2 == 0);
	for (int turn = 0; turn < 3; turn++)
		for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
			to_and_fro(sizes[i], turn + (int)i, turn == 1 ? 20000 : 0);
	several(40000, 1);
	several(MOST / 6, 2);
	too_short(300000, 100000);
	too_short(100000, 50);
	for (int k = 0; k < 4; k++)
		with_holes(64, k & 1, k >> 1);
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
