/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/* Threads make communicators at once, each from one of its own, and none blocks another. */
#include <pthread.h>

#include "mpitest.h"

enum { THREADS = 3, TURNS = 60 };
static MPI_Comm base[THREADS];

static void *make(void *arg)
{
	int id = (int)(long)arg;

	for (int turn = 0; turn < TURNS; turn++) {
		MPI_Comm a, b;
		MPI_Request req;
		int v = -1, r, n;
		OK(MPI_Comm_split(base[id], (rank + turn) % 2, rank, &a));
		OK(MPI_Comm_rank(a, &r));
		OK(MPI_Comm_size(a, &n));
		OK(MPI_Comm_idup(a, &b, &req));
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
		OK(MPI_Sendrecv(&turn, 1, MPI_INT, (r + 1) % n, id, &v, 1, MPI_INT, (r + n - 1) % n,
				id, b, MPI_STATUS_IGNORE));
		CHECK_EQ(v, turn);
		OK(MPI_Comm_free(&a));
		OK(MPI_Comm_free(&b));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	for (int i = 0; i < THREADS; i++)
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &base[i]));
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, make, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		OK(MPI_Comm_free(&base[i]));
	return test_end();
}
