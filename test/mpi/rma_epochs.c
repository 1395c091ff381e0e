/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 16 */
/*
 * Fences and post-start-complete-wait of many ranks, on allocated and created windows: what was put
 * before is there after, with all assertions; a rank that waits in one uses no CPU.
 */
#include "mpitest.h"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 40

static MPI_Win win;
static long *mine; /* one element per rank */

static void clear(void)
{
	for (int r = 0; r < size; r++)
		mine[r] = -1;
}

/* Each puts to all. */
static void fences(void)
{
	OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
	for (long i = 0; i < ROUNDS; i++) {
		long value = i * size + rank;
		for (int r = 0; r < size; r++)
			OK(MPI_Put(&value, 1, MPI_LONG, r, rank, 1, MPI_LONG, win));
		OK(MPI_Win_fence(0, win));
		for (int r = 0; r < size; r++)
			CHECK_EQ(mine[r], i * size + r);
		OK(MPI_Win_fence(MPI_MODE_NOPUT | MPI_MODE_NOSTORE, win));
	}
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, win));
}

static MPI_Group group_of(const int *ranks, int n)
{
	MPI_Group all, g;
	OK(MPI_Win_get_group(win, &all));
	OK(MPI_Group_incl(all, n, ranks, &g));
	OK(MPI_Group_free(&all));
	return g;
}

/* Each puts to its right neighbour, which looks at the value. */
static void neighbours(int assert)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Group to = group_of(&right, 1), from = group_of(&left, 1);
	for (long i = 0; i < ROUNDS; i++) {
		long value = i * size + rank;
		int over = 0;
		OK(MPI_Win_post(from, assert, win));
		if (assert & MPI_MODE_NOCHECK)
			test_barrier();
		OK(MPI_Win_start(to, assert &MPI_MODE_NOCHECK, win));
		OK(MPI_Put(&value, 1, MPI_LONG, right, rank, 1, MPI_LONG, win));
		OK(MPI_Win_complete(win));
		if (i % 2)
			OK(MPI_Win_wait(win));
		else
			while (!over)
				OK(MPI_Win_test(win, &over));
		CHECK_EQ(mine[left], i * size + left);
	}
	OK(MPI_Group_free(&to));
	OK(MPI_Group_free(&from));
}

static double cpu_ms(void)
{
	struct timespec t;
	CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* All wait 300 ms for rank 0, in each call that waits. */
static void waits_asleep(void)
{
	int zero = 0;
	MPI_Group from = group_of(&zero, 1);
	test_barrier();
	double begin = cpu_ms();
	if (rank == 0)
		usleep(300000);
	OK(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, win));
	if (rank == 0) {
		int others[64];
		for (int r = 1; r < size; r++)
			others[r - 1] = r;
		MPI_Group to = group_of(others, size - 1);
		usleep(300000);
		OK(MPI_Win_post(to, 0, win));
		OK(MPI_Win_wait(win));
		OK(MPI_Group_free(&to));
	} else {
		OK(MPI_Win_start(from, 0, win));
		OK(MPI_Win_complete(win));
	}
	double used = cpu_ms() - begin;
	if (used > 100)
		printf("rank %d: %.0f ms of CPU in 600 ms of waiting\n", rank, used);
	CHECK(used <= 100);
	OK(MPI_Group_free(&from));
}

static void all_of_it(void)
{
	clear();
	test_barrier();
	neighbours(0);
	neighbours(MPI_MODE_NOSTORE);
	neighbours(MPI_MODE_NOCHECK);
	test_barrier();
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Aint bytes = size * (MPI_Aint)sizeof(long);

	OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
	clear();
	fences();
	all_of_it();
	if (size > 1)
		waits_asleep();
	OK(MPI_Win_free(&win));

	mine = malloc((size_t)bytes);
	CHECK(mine);
	clear();
	OK(MPI_Win_create(mine, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	fences();
	all_of_it();
	OK(MPI_Win_free(&win));

	free(mine);
	return test_end();
}
