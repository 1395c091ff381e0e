/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * polling.c - what does a message cost where ranks poll instead of waiting, and cores are short?
 *
 * Unit      microseconds per hop of a token that goes round the ranks; the mean of a second.
 * Bound     a core per rank: the latency.  More ranks: a switch to the rank that gets the token, about
 *           1 us, and as many more as the system runs other ranks before it.
 * Method    Each rank posts a receive and tests it (MPI_Test, MPI_Testany), or probes
 *           (MPI_Iprobe, MPI_ANY_SOURCE), until the token is there; "recv" waits, to compare.  "busy":
 *           the same while a process of another session computes, so that one core is taken; "threads": of each
 *           rank THREADS threads do so, each for its own token.  No rank is bound, as programs run
 *           that share a machine; with threads each rank has a core.
 *
 * polling [--quick] recv|test|testany|iprobe|busy|threads
 */
#include "bench_busy.h"
#include "bench_mpi.h"
#include <pthread.h>

#define THREADS 4
#define STOP (-1)

struct way {
	const char *name, *row;
	void (*take)(int *token, int from, int tag);
};

static void by_recv(int *token, int from, int tag)
{
	MPI_Recv(token, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void by_test(int *token, int from, int tag)
{
	MPI_Request r;
	int there = 0;
	MPI_Irecv(token, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &r);
	while (!there)
		MPI_Test(&r, &there, MPI_STATUS_IGNORE);
}

static void by_testany(int *token, int from, int tag)
{
	MPI_Request r;
	int there = 0, which;
	MPI_Irecv(token, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &r);
	while (!there)
		MPI_Testany(1, &r, &which, &there, MPI_STATUS_IGNORE);
}

static void by_iprobe(int *token, int from, int tag)
{
	int there = 0;
	while (!there)
		MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
	MPI_Recv(token, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const struct way ways[] = {{"recv", "MPI_Recv", by_recv},
				  {"test", "MPI_Test", by_test},
				  {"testany", "MPI_Testany", by_testany},
				  {"iprobe", "MPI_Iprobe", by_iprobe}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void send_on(int token, int to, int tag)
{
	MPI_Send(&token, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
}

/* Rank 0's side: us per hop of rounds for so long, at least 3; then the ranks are told to stop. */
static double lead(const struct way *w, double us, int tag)
{
	int token = 0, to = 1 % bench_ranks, from = bench_ranks - 1, rounds = 0;
	double begun = bench_now_us(), now = begun;
	for (; rounds < 3 || now - begun < us; rounds++) {
		send_on(0, to, tag);
		w->take(&token, from, tag);
		now = bench_now_us();
	}
	send_on(STOP, to, tag);
	w->take(&token, from, tag);
	return (now - begun) / rounds / bench_ranks;
}

static void follow(const struct way *w, int tag)
{
	int token = 0, to = (bench_rank + 1) % bench_ranks, from = bench_rank - 1;
	while (token != STOP) {
		w->take(&token, from, tag);
		send_on(token, to, tag);
	}
}

static double ring(const struct way *w, double us, int tag)
{
	if (bench_rank == 0)
		return lead(w, us, tag);
	follow(w, tag);
	return 0;
}

static double seconds(void)
{
	return bench_quick ? 3e5 : 1e6;
}

static void measure(const struct way *w, const char *what)
{
	char row[64];
	MPI_Barrier(MPI_COMM_WORLD);
	(void)ring(w, 1e5, 1); /* what is learned from the first waits */
	double us = ring(w, seconds(), 1);
	snprintf(row, sizeof(row), "%s%s", w->row, what);
	if (bench_rank == 0)
		bench_row(row, "time", "us", us);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct one {
	pthread_t thread;
	const struct way *way;
	int tag;
	double us;
};

static void *one_ring(void *arg)
{
	struct one *o = arg;
	o->us = ring(o->way, seconds(), o->tag);
	return NULL;
}

static void measure_threads(const struct way *w)
{
	struct one one[THREADS];
	double sum = 0;
	char row[64];
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < THREADS; i++) {
		one[i] = (struct one){.way = w, .tag = 10 + i};
		if (pthread_create(&one[i].thread, NULL, one_ring, &one[i]))
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(one[i].thread, NULL);
		sum += one[i].us;
	}
	snprintf(row, sizeof(row), "%s by %d threads each", w->row, THREADS);
	if (bench_rank == 0)
		bench_row(row, "time", "us", sum / THREADS);
}

int main(int argc, char **argv)
{
	int at = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 2 : 1;
	const char *what = argc > at ? argv[at] : "nothing";
	int busy = strcmp(what, "busy") == 0, threads = strcmp(what, "threads") == 0, done = 0;
	pid_t child = busy && bench_early_rank() == 0 ? bench_busy_start() : 0;

	bench_start_on(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, threads);
	for (unsigned i = 0; i < WAYS; i++) {
		int named = strcmp(what, ways[i].name) == 0;
		if (named || busy)
			measure(&ways[i], busy ? " beside a busy core" : "");
		else if (threads && ways[i].take != by_testany)
			measure_threads(&ways[i]);
		done |= named | busy | threads;
	}
	MPI_Finalize();
	bench_busy_end(child);
	if (!done)
		bench_usage("polling", what, "[--quick] recv|test|testany|iprobe|busy|threads");
	return 0;
}
