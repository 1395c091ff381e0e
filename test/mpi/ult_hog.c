/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * One user-level thread computes for ever on the only worker, and no thread of this rank is in a
 * call: the messages of another one come in and go out all the same, small and large.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <weft/ult.h>
#include "mpitest.h"

enum { ROUNDS = 5, LARGE = 1 << 20 };

static char *in, *out;
static volatile int stop; /* what the last message brings; nothing else writes it */
static _Atomic int x_posted;
static sem_t ended;

static void *talks(void *arg)
{
	MPI_Request r[3];
	int round = (int)(long)arg;
	OK(MPI_Irecv(in, LARGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r[0]));
	OK(MPI_Isend(out, LARGE, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &r[1]));
	OK(MPI_Irecv((void *)&stop, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &r[2]));
	OK(MPI_Send(NULL, 0, MPI_CHAR, 0, 4, MPI_COMM_WORLD));
	atomic_store(&x_posted, 1);
	OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE)); /* parks; the worker runs the other */
	for (int i = 0; i < LARGE; i += 1023)
		CHECK_EQ(in[i], (char)(round + 1));
	sem_post(&ended);
	return NULL;
}

/* Calls nothing from here on until the message is there. */
static void *computes(void *arg)
{
	double x = 1;
	(void)arg;
	while (!atomic_load(&x_posted))
		weft_ult_yield();
	while (!stop) /* ends: another thread progresses */
		for (int i = 0; i < 1000; i++)
			x = x * 0.999 + 1;
	CHECK(x > 0);
	sem_post(&ended);
	return NULL;
}

static void has_a_hog(int round)
{
	weft_ult *t[2];
	stop = 0;
	atomic_store(&x_posted, 0);
	memset(out, round + 2, LARGE);
	CHECK_EQ(weft_ult_create(&t[0], NULL, talks, (void *)(long)round), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t[1], NULL, computes, NULL), WEFT_OK);
	/* Not in a join, which would poll. */
	for (int i = 0; i < 2; i++)
		while (sem_wait(&ended)) /* ends: a signal came between */
			;
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
}

static void is_the_peer(int round)
{
	int one = 1;
	memset(out, round + 1, LARGE);
	OK(MPI_Recv(NULL, 0, MPI_CHAR, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	OK(MPI_Send(out, LARGE, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
	OK(MPI_Recv(in, LARGE, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	for (int i = 0; i < LARGE; i += 1023)
		CHECK_EQ(in[i], (char)(round + 2));
	OK(MPI_Send(&one, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	in = malloc(LARGE);
	out = malloc(LARGE);
	CHECK(in && out && sem_init(&ended, 0, 0) == 0);
	if (rank == 1) {
		CHECK_EQ(weft_ult_start(1), WEFT_OK);
		for (int i = 0; i < ROUNDS; i++)
			has_a_hog(i);
		CHECK_EQ(weft_ult_stop(), WEFT_OK);
	} else {
		for (int i = 0; rank == 0 && i < ROUNDS; i++)
			is_the_peer(i);
	}
	free(in);
	free(out);
	return test_end();
}
