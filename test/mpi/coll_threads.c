/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 3 */
/*
 * Collectives of several threads at once, each on its own communicator; collectives that advance
 * while no thread calls MPI; and a schedule that stops before a user's operation until one does.
 */
#include <pthread.h>
#include <time.h>

#include "mpitest.h"

#define THREADS 4
#define ROUNDS 150

static MPI_Comm comms[THREADS];

static void *worker(void *arg)
{
	MPI_Comm c = comms[(int)(size_t)arg];
	int me = (int)(size_t)arg;
	static const int counts[] = {1, 40, 3000, 20000};
	int *in = malloc(sizeof(int) * 20000), *out = malloc(sizeof(int) * 20000);
	for (int k = 0; k < ROUNDS; k++) {
		int n = counts[k % 4];
		for (int i = 0; i < n; i++)
			in[i] = rank + i + me;
		if (k % 3) {
			OK(MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, c));
		} else {
			MPI_Request req[2];
			OK(MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, c, &req[0]));
			OK(MPI_Ibarrier(c, &req[1]));
			OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
		}
		for (int i = 0; i < n; i++)
			CHECK_EQ(out[i], size * (size - 1) / 2 + size * (i + me));
		if (k % 5 == 0)
			OK(MPI_Barrier(c));
	}
	free(in);
	free(out);
	return NULL;
}

static void test_threads(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, worker, (void *)(size_t)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		OK(MPI_Comm_free(&comms[i]));
}

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Every rank starts a long chain of messages and looks away; it must end all the same. */
static void test_background(void)
{
	enum { N = 60000 };
	int *in = calloc(N, sizeof *in), *out = calloc(N, sizeof *out);
	for (int i = 0; i < N; i++)
		in[i] = rank * i;
	MPI_Request req;
	OK(MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req));
#ifndef __SANITIZE_THREAD__
	/* No MPI call meanwhile.  Looking at the buffer early is a race, which is the point. */
	volatile int *last = &out[N - 1];
	double start = now();
	while (*last != (N - 1) * (size * (size - 1) / 2) && now() - start < 20)
		;
	CHECK(*last == (N - 1) * (size * (size - 1) / 2));
#endif
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	for (int i = 0; i < N; i++)
		CHECK_EQ(out[i], i * (size * (size - 1) / 2));
	free(in);
	free(out);
}

static int in_call;

static void user_sum(void *in, void *inout, int *len, MPI_Datatype *type)
{
	CHECK(in_call && *type == MPI_INT);
	for (int i = 0; i < *len; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void test_user_waits(void)
{
	MPI_Op op;
	int in = rank + 1, out = 0;
	MPI_Request req;
	OK(MPI_Op_create(user_sum, 1, &op));
	for (int k = 0; k < 30; k++) {
		in_call = 1;
		OK(MPI_Iallreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD, &req));
		in_call = 0;
		double start = now();
		while (now() - start < 0.001)
			;
		in_call = 1;
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
		in_call = 0;
		CHECK_EQ(out, size * (size + 1) / 2);
	}
	OK(MPI_Op_free(&op));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	test_threads();
	test_background();
	test_user_waits();
	return test_end();
}
