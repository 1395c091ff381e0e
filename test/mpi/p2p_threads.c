/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/* Several threads send, receive and wait at once, each on its tag, and none meets another's. */
#include <pthread.h>

#include "mpitest.h"

enum { THREADS = 4, TURNS = 200 };

static void *talk(void *arg)
{
	int id = (int)(long)arg, right = (rank + 1) % size, left = (rank + size - 1) % size;
	int out[64], in[64];
	MPI_Status st;

	for (int turn = 0; turn < TURNS; turn++) {
		MPI_Request req[2];
		for (int i = 0; i < 64; i++)
			out[i] = rank * 1000 + id * 100 + turn + i;
		OK(MPI_Irecv(in, 64, MPI_INT, turn % 2 ? left : MPI_ANY_SOURCE, id, MPI_COMM_WORLD,
			     &req[0]));
		if (turn % 3) {
			OK(MPI_Isend(out, 64, MPI_INT, right, id, MPI_COMM_WORLD, &req[1]));
			OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
		} else {
			OK(MPI_Send(out, 64, MPI_INT, right, id, MPI_COMM_WORLD));
			OK(MPI_Wait(&req[0], &st));
			CHECK_EQ(st.MPI_SOURCE, left);
		}
		CHECK_EQ(in[63], left * 1000 + id * 100 + turn + 63);
	}
	return NULL;
}

static void same_tag_any_thread(void)
{
	int flag = 0;

	OK(MPI_Is_thread_main(&flag));
	CHECK(flag);
}

static void *not_main(void *arg)
{
	int flag = 1;

	OK(MPI_Is_thread_main(&flag));
	CHECK(!flag);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	int level = 0;

	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	OK(MPI_Query_thread(&level));
	CHECK_EQ(level, MPI_THREAD_MULTIPLE);
	same_tag_any_thread();
	CHECK_EQ(pthread_create(&t[0], NULL, not_main, NULL), 0);
	CHECK_EQ(pthread_join(t[0], NULL), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, talk, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return test_end();
}
