/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * argobots.c - threads of Argobots, each waiting for its own message.
 *
 *   mpicc argobots.c $(pkg-config --cflags --libs argobots) -o argobots && mpiexec -n 2 ./argobots
 *
 * Rank 1 has the threads, on one execution stream; rank 0 asks them in random order.  On both, one
 * more thread lends the stream's spare moments to weft.  argobots [THREADS [MESSAGES]]
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <weft/hooks.h>

#include "argobots.h"

enum { STOP = -1 };

static int alive; /* threads that wait for messages */

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void answers(void *arg)
{
	int tag = (int)(long)arg, value;
	do {
		MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		value += value == STOP ? 0 : tag;
		MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
	} while (value != STOP);
	alive--;
}

/* Between the others: messages come without a kernel thread in the background being woken. */
static void lends(void *arg)
{
	(void)arg;
	while (alive > 0) {
		if (!weft_hook_idle())
			sched_yield(); /* other processes may want the core */
		ABT_thread_yield();
	}
}

static ABT_thread start(void (*fn)(void *), long arg)
{
	ABT_xstream stream;
	ABT_pool pool;
	ABT_thread t;
	if (ABT_xstream_self(&stream) != ABT_SUCCESS ||
	    ABT_xstream_get_main_pools(stream, 1, &pool) != ABT_SUCCESS ||
	    ABT_thread_create(pool, fn, (void *)arg, ABT_THREAD_ATTR_NULL, &t) != ABT_SUCCESS)
		fail("Argobots does not start a thread");
	return t;
}

static void have_threads(int n)
{
	ABT_thread *t = malloc(sizeof(*t) * (size_t)n);
	if (!t)
		fail("no memory");
	for (int i = 0; i < n; i++)
		t[i] = start(answers, i);
	for (int i = 0; i < n; i++)
		ABT_thread_free(&t[i]); /* joins it */
	free(t);
}

static double ask(int n, int messages)
{
	unsigned seed = 20161121;
	double t = MPI_Wtime();
	for (int i = 0; i < messages; i++) {
		seed = seed * 1664525u + 1013904223u;
		int tag = (int)((unsigned long long)seed * (unsigned)n >> 32), value = i;
		MPI_Send(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
		MPI_Recv(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (value != i + tag)
			fail("a wrong answer");
	}
	t = MPI_Wtime() - t;
	for (int i = 0; i < n; i++) {
		int value = STOP;
		MPI_Send(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
		MPI_Recv(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return t * 1e6 / messages / 2;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100, messages = argc > 2 ? atoi(argv[2]) : 200;
	int got, rank, size;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (got < MPI_THREAD_MULTIPLE || size != 2 || n < 1 || messages < 1)
		fail("needs 2 ranks and MPI_THREAD_MULTIPLE; argobots [THREADS [MESSAGES]]");
	if (ABT_init(argc, argv) != ABT_SUCCESS || argobots_plug_in() != WEFT_OK)
		fail("cannot plug Argobots in");
	alive = rank == 0 ? 1 : n;
	ABT_thread lender = start(lends, 0);
	if (rank == 0) {
		printf("%d threads of Argobots: %.2f us per message\n", n, ask(n, messages));
		alive = 0;
	} else {
		have_threads(n);
	}
	ABT_thread_free(&lender);
	argobots_plug_out();
	MPI_Finalize();
	ABT_finalize();
	return 0;
}
