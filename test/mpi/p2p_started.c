/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * What a sender has started, looked at now and then, and left behind to compute is received
 * meanwhile, though nothing but calls makes progress: the receiver fetches it, and a sender that
 * goes away has not promised to send it.
 *
 * The receiver says by a signal that it has it, so that the sender need not call to hear that.
 */
#include "mpitest.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 250, LONGEST_S = 10 };

static volatile sig_atomic_t told;

static void on_told(int sig)
{
	(void)sig;
	told = 1;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static unsigned next(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Starts, looks for so long, then makes no call until the other has it. */
static void start_and_leave(char *data, int bytes, double looks_s)
{
	MPI_Request req;
	int done = 0;
	told = 0;
	OK(MPI_Isend(data, bytes, MPI_BYTE, 1, 4, test_comm, &req));
	for (double end = now() + looks_s; !done && now() < end;)
		OK(MPI_Test(&req, &done, MPI_STATUS_IGNORE));
	for (double end = now() + LONGEST_S; !told;) /* ends: told, or fails */
		CHECK(now() < end);
	if (!done)
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

static void receive(char *data, int bytes, int what)
{
	OK(MPI_Recv(data, bytes, MPI_BYTE, 0, 4, test_comm, MPI_STATUS_IGNORE));
	CHECK(data[0] == what && data[bytes - 1] == what);
}

int main(int argc, char **argv)
{
	unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	long pid = (long)getpid();
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	signal(SIGURG, on_told);
	OK(MPI_Bcast(&pid, 1, MPI_LONG, 0, test_comm));
	for (int i = 0; i < ROUNDS; i++) {
		int bytes = 4096 << next(&seed) % 11;
		double looks_s = (next(&seed) % 400) * 1e-6;
		char *data = malloc((size_t)bytes);
		memset(data, rank ? 0 : i % 100, (size_t)bytes);
		OK(MPI_Barrier(test_comm));
		/* Some by a sender that stays: which way is sooner is learned from these. */
		if (i % 3 && !rank)
			OK(MPI_Send(data, bytes, MPI_BYTE, 1, 4, test_comm));
		else if (!rank)
			start_and_leave(data, bytes, looks_s);
		else
			receive(data, bytes, i % 100);
		if (i % 3 == 0 && rank)
			CHECK_EQ(kill((pid_t)pid, SIGURG), 0);
		free(data);
	}
	return test_end();
}
