/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 3 */
/*
 * Two threads of each rank accumulate to the same elements, one in bulk and one element by element: none is lost.
 */
#include "mpitest.h"
#include <pthread.h>

#define ELEMENTS 1024
#define ROUNDS 2000

static MPI_Win win;

static void *in_bulk(void *arg)
{
	long ones[ELEMENTS];
	(void)arg;
	for (int i = 0; i < ELEMENTS; i++)
		ones[i] = 1;
	for (int i = 0; i < ROUNDS; i++) {
		OK(MPI_Accumulate(ones, ELEMENTS, MPI_LONG, 0, 0, ELEMENTS, MPI_LONG, MPI_SUM,
				  win));
		OK(MPI_Win_flush(0, win));
	}
	return NULL;
}

static void one_by_one(void)
{
	long one = 1, was;
	for (int i = 0; i < ROUNDS * 64; i++) {
		OK(MPI_Fetch_and_op(&one, &was, MPI_LONG, 0, i % ELEMENTS, MPI_SUM, win));
		OK(MPI_Win_flush(0, win));
	}
}

int main(int argc, char **argv)
{
	long *mine;
	pthread_t thread;

	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	OK(MPI_Win_allocate((MPI_Aint)(ELEMENTS * sizeof(long)), sizeof(long), MPI_INFO_NULL,
			    MPI_COMM_WORLD, &mine, &win));
	for (int i = 0; i < ELEMENTS; i++)
		mine[i] = 0;
	test_barrier();
	OK(MPI_Win_lock_all(0, win));
	CHECK(pthread_create(&thread, NULL, in_bulk, NULL) == 0);
	one_by_one();
	CHECK(pthread_join(thread, NULL) == 0);
	OK(MPI_Win_unlock_all(win));
	test_barrier();
	long sum = 0;
	for (int i = 0; i < ELEMENTS; i++)
		sum += mine[i];
	CHECK_EQ(sum, rank ? 0 : (long)size * ROUNDS * (ELEMENTS + 64));
	OK(MPI_Win_free(&win));
	return test_end();
}
