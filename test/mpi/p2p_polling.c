/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 8 */
/*
 * A token goes round while every rank polls for it, by each call that polls, and by threads of each
 * rank at once: none is lost, also with more ranks than cores, where pollers give up their cores.
 */
#include <pthread.h>
#include <unistd.h>
#include <weft/stats.h>
#include "mpitest.h"

enum { ROUNDS = 40, THREADS = 3, NEVER = 99 };

enum way { TEST, TESTANY, TESTSOME, TESTALL, STATUS, STATUS_ANY, IPROBE, IMPROBE, WAYS };

static int right(void)
{
	return (rank + 1) % size;
}

static int left(void)
{
	return (rank + size - 1) % size;
}

/* Beside a receive that no message ends. */
static void by_request(enum way how, int *value, int tag)
{
	MPI_Request r[2];
	MPI_Status st[2];
	int there = 0, at = -1, n = 0, which[2];
	OK(MPI_Irecv(NULL, 0, MPI_INT, left(), NEVER, MPI_COMM_WORLD, &r[0]));
	OK(MPI_Irecv(value, 1, MPI_INT, left(), tag, MPI_COMM_WORLD, &r[1]));
	while (!there) { /* ends: the token comes */
		switch (how) {
		case TEST:
			OK(MPI_Test(&r[1], &there, st));
			break;
		case TESTANY:
			OK(MPI_Testany(2, r, &at, &there, st));
			CHECK(!there || at == 1);
			break;
		case TESTSOME:
			OK(MPI_Testsome(2, r, &n, which, st));
			there = n == 1 && which[0] == 1;
			CHECK(n == 0 || there);
			break;
		case TESTALL:
			OK(MPI_Testall(1, &r[1], &there, st));
			break;
		case STATUS:
			OK(MPI_Request_get_status(r[1], &there, st));
			break;
		default:
			OK(MPI_Request_get_status_any(2, r, &at, &there, st));
			CHECK(!there || at == 1);
			break;
		}
	}
	OK(MPI_Wait(&r[1], st));
	OK(MPI_Cancel(&r[0]));
	OK(MPI_Wait(&r[0], st));
}

static void by_probe(enum way how, int *value, int tag)
{
	MPI_Message m;
	MPI_Status st;
	int there = 0;
	while (!there) { /* ends: the token comes */
		if (how == IPROBE)
			OK(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &st));
		else
			OK(MPI_Improbe(left(), tag, MPI_COMM_WORLD, &there, &m, &st));
	}
	CHECK_EQ(st.MPI_SOURCE, left());
	if (how == IPROBE)
		OK(MPI_Recv(value, 1, MPI_INT, left(), tag, MPI_COMM_WORLD, &st));
	else
		OK(MPI_Mrecv(value, 1, MPI_INT, &m, &st));
}

static void ring(enum way how, int tag)
{
	for (int i = 0; i < ROUNDS; i++) {
		int value = -1, first = 1000 * i + tag;
		if (rank == 0)
			OK(MPI_Send(&first, 1, MPI_INT, right(), tag, MPI_COMM_WORLD));
		if (how < IPROBE)
			by_request(how, &value, tag);
		else
			by_probe(how, &value, tag);
		CHECK_EQ(value, first + (rank + size - 1) % size);
		value++;
		if (rank != 0)
			OK(MPI_Send(&value, 1, MPI_INT, right(), tag, MPI_COMM_WORLD));
	}
}

static void *one_thread(void *arg)
{
	int tag = (int)(long)arg;
	for (int how = 0; how < WAYS; how++)
		ring((enum way)how, tag);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	test_barrier();
	for (int how = 0; how < WAYS; how++)
		ring((enum way)how, 1);
	/* All share what cores there are: without giving way this takes slices of the system's. */
	if (size > sysconf(_SC_NPROCESSORS_ONLN))
		CHECK(weft_task_stat("poll_yields") + weft_task_stat("poll_sleeps") > 0);
	test_barrier();
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, one_thread, (void *)(10 + i)), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	test_barrier();
	return test_end();
}
