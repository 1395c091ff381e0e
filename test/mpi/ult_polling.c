/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/*
 * User-level threads on one worker poll for messages that others of the same worker send: a thread
 * that polls in vain lets the others run, or none of this would end.
 */
#include <stdlib.h>
#include <weft/ult.h>

#include "mpitest.h"

enum { PAIRS = 4, ROUNDS = 60 };

static int peer(int way)
{
	return (rank + (way ? 1 : size - 1)) % size;
}

static void take(int how, int *value, int tag)
{
	MPI_Request r;
	int there = 0;
	if (how == 0) {
		while (!there) /* ends: the message comes */
			OK(MPI_Iprobe(peer(0), tag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
		OK(MPI_Recv(value, 1, MPI_INT, peer(0), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		return;
	}
	OK(MPI_Irecv(value, 1, MPI_INT, peer(0), tag, MPI_COMM_WORLD, &r));
	while (!there) /* ends: the message comes */
		OK(how == 1 ? MPI_Test(&r, &there, MPI_STATUS_IGNORE)
			    : MPI_Testall(1, &r, &there, MPI_STATUSES_IGNORE));
}

/* The number tells what it waits for: the answer of the thread after it. */
static void *polls(void *arg)
{
	int me = (int)(long)arg, next = me ^ 1;
	for (int i = 0; i < ROUNDS; i++) {
		int value = -1;
		if ((me & 1) == 0)
			OK(MPI_Send(&i, 1, MPI_INT, peer(1), next, MPI_COMM_WORLD));
		take((me + i) % 3, &value, me);
		CHECK_EQ(value, i);
		if (me & 1)
			OK(MPI_Send(&i, 1, MPI_INT, peer(1), next, MPI_COMM_WORLD));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	weft_ult *t[2 * PAIRS];
	setenv("WEFT_ULT_WORKERS", "1", 1);
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	for (long i = 0; i < 2 * PAIRS; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, polls, (void *)i), WEFT_OK);
	for (int i = 0; i < 2 * PAIRS; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	test_barrier();
	return test_end();
}
