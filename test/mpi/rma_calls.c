/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * What accesses that the target's engine serves cost in messages and in system calls: 64 puts and a flush travel
 * together, an access that is flushed is one message and one answer; on one host there are none.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weft/stats.h>
#include "mpitest.h"

enum { PUTS = 64, ROUNDS = 200 };

static MPI_Win win;
static bool served; /* else accesses are the origin's own, and no message */
static long value = 1;

static void puts_and_flush(void)
{
	for (int i = 0; i < PUTS; i++)
		OK(MPI_Put(&value, 1, MPI_LONG, 1, i, 1, MPI_LONG, win));
	OK(MPI_Win_flush(1, win));
}

static void put(void)
{
	OK(MPI_Put(&value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
	OK(MPI_Win_flush(1, win));
}

static void accumulate(void)
{
	OK(MPI_Accumulate(&value, 1, MPI_LONG, 1, 1, 1, MPI_LONG, MPI_SUM, win));
	OK(MPI_Win_flush(1, win));
}

static void fetch(void)
{
	long was;
	OK(MPI_Fetch_and_op(&value, &was, MPI_LONG, 1, 2, MPI_SUM, win));
	OK(MPI_Win_flush(1, win));
}

static void get(void)
{
	long was;
	OK(MPI_Get(&was, 1, MPI_LONG, 1, 3, 1, MPI_LONG, win));
	OK(MPI_Win_flush(1, win));
}

/* A put that no flush follows, and then one that does, again and again. */
static void put_and_puts(void)
{
	put();
	OK(MPI_Put(&value, 1, MPI_LONG, 1, 4, 1, MPI_LONG, win));
	put();
}

/* By rank 0, between two meetings; at most so many messages and, over tcp, system calls of each rank for a round. */
static void count(const char *what, void (*round)(void), double messages, double calls)
{
	uint64_t sent, sends;
	for (int i = 0; rank == 0 && i < 20; i++)
		round();
	test_barrier();
	sent = weft_task_stat("eager_sent");
	sends = weft_task_stat("tcp_sends");
	for (int i = 0; rank == 0 && i < ROUNDS; i++)
		round();
	if (rank == 1) /* its answers */
		test_barrier();
	double each = (double)(weft_task_stat("eager_sent") - sent) / ROUNDS;
	double each_call = (double)(weft_task_stat("tcp_sends") - sends) / ROUNDS;
	if (rank == 0)
		test_barrier();
	fprintf(stderr, "rank %d: %s: %.2f messages, %.2f calls\n", rank, what, each, each_call);
	CHECK(each <= (served ? messages : 0) + 0.1);
	CHECK(each_call <= calls);
}

int main(int argc, char **argv)
{
	long *mine;
	const char *path = getenv("WEFT_RMA_PATH");
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	served = path && strcmp(path, "owed") == 0;
	OK(MPI_Win_allocate(PUTS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
	OK(MPI_Win_lock_all(0, win));
	/* The barrier's own messages are some of the tenth. */
	count("64 puts, flush", puts_and_flush, PUTS + 1, 16); /* 3 to 8, by load */
	count("put, flush", put, 1, 1.5);
	count("accumulate, flush", accumulate, 1, 1.5);
	count("fetch_and_op, flush", fetch, 1, 1.5);
	count("get, flush", get, 1, 1.5);
	count("put, flush, put, put, flush", put_and_puts, 5, 5.5);
	OK(MPI_Win_unlock_all(win));
	if (rank == 1)
		CHECK_EQ(mine[2], value + ROUNDS + 20);
	OK(MPI_Win_free(&win));
	return test_end();
}
