/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * Small messages in a row arrive in order, each once, however many receives wait for them, exact or
 * wildcards, and whatever is sent between them.
 */
#include "mpitest.h"

enum { ROUNDS = 400, MOST = 24, ANSWER = 9 };

static unsigned next(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

/* What both ranks know of a round. */
struct plan {
	int n, early;       /* messages; receives that are posted before they may come */
	int size[MOST];     /* bytes of each */
	int tag[MOST];      /* of each */
	int wildcard[MOST]; /* is its receive one? */
};

static struct plan plan_of(unsigned *seed)
{
	struct plan p = {.n = 1 + (int)(next(seed) % MOST)};
	int size = (int)(next(seed) % 9), wild = next(seed) % 4 == 0;
	p.early = (int)(next(seed) % (unsigned)(p.n + 1));
	for (int i = 0; i < p.n; i++) {
		p.size[i] = next(seed) % 16 ? size : (int)(next(seed) % 40);
		p.tag[i] = wild && next(seed) % 4 == 0;
		p.wildcard[i] = wild && next(seed) % 4 == 0;
	}
	return p;
}

static void send_round(const struct plan *p, int round)
{
	MPI_Request req[MOST];
	unsigned char data[MOST][40];
	int go;
	OK(MPI_Recv(&go, 1, MPI_INT, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	for (int i = 0; i < p->n; i++) {
		memset(data[i], round + i, sizeof data[i]);
		OK(MPI_Isend(data[i], p->size[i], MPI_BYTE, 1, 0, MPI_COMM_WORLD, &req[i]));
		if (p->tag[i])
			OK(MPI_Send(&i, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
	}
	OK(MPI_Waitall(p->n, req, MPI_STATUSES_IGNORE));
}

static void receive_round(const struct plan *p, int round)
{
	MPI_Request req[MOST];
	MPI_Status st[MOST];
	unsigned char data[MOST][40];
	memset(data, 255, sizeof data);
	for (int i = 0; i < p->n; i++) {
		if (i == p->early)
			OK(MPI_Send(&i, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD));
		OK(MPI_Irecv(data[i], sizeof data[i], MPI_BYTE, p->wildcard[i] ? MPI_ANY_SOURCE : 0,
			     0, MPI_COMM_WORLD, &req[i]));
	}
	if (p->early == p->n)
		OK(MPI_Send(&round, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD));
	OK(MPI_Waitall(p->n, req, st));
	for (int i = 0; i < p->n; i++) {
		int got = -1;
		OK(MPI_Get_count(&st[i], MPI_BYTE, &got));
		CHECK_EQ(got, p->size[i]);
		for (int k = 0; k < (int)sizeof data[i]; k++)
			CHECK_EQ(data[i][k], k < got ? (unsigned char)(round + i) : 255);
		if (p->tag[i]) {
			int which = -1;
			OK(MPI_Recv(&which, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			CHECK_EQ(which, i);
		}
	}
}

int main(int argc, char **argv)
{
	unsigned seed = 1;
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	for (int round = 0; round < ROUNDS; round++) {
		struct plan p = plan_of(&seed);
		if (rank == 0)
			send_round(&p, round);
		else
			receive_round(&p, round);
	}
	return test_end();
}
