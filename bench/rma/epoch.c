/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.c - what does it cost to open and close epochs, by how many ranks, also more than cores?
 *
 * Unit      us.  lock: per MPI_Win_lock and MPI_Win_unlock of any rank, exclusive, all of rank 0.  fence: per
 *           MPI_Win_fence.  pscw: per post, start, complete and wait, each rank with both neighbours in a ring.
 * Bound     lock: an exchange each, and a switch of ranks when the holder loses its core.  fence, pscw: a
 *           cache line there and back; with more ranks than cores a switch of each rank.
 * Method    lock: all ranks lock and unlock for 200 ms; this time by the sum of their locks.  Its spread over the
 *           ranks: the fewest locks of a rank, as a share of the mean.  fence, pscw: median of blocks.
 * Arguments lock, fence, pscw.
 */
#include "bench_mpi.h"

static MPI_Win win;
static MPI_Group to, from;

static void once(const char *what)
{
	if (strcmp(what, "fence") == 0) {
		MPI_Win_fence(0, win);
		return;
	}
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
}

static double block(const char *what, int n)
{
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = bench_now_us();
	for (int i = 0; i < n; i++)
		once(what);
	return (bench_now_us() - begin) / n;
}

static void epochs(const char *what)
{
	double each[BENCH_BLOCKS_MAX];
	int blocks = bench_quick ? 5 : 11;

	(void)block(what, 2);
	double us = block(what, 4);
	/* So many take 20 ms. */
	int n = bench_agree(us > 10000 ? 2 : us < 0.2 ? 100000 : (int)(20000 / us) + 1);
	for (int i = 0; i < blocks; i++)
		each[i] = block(what, n);
	if (bench_rank == 0)
		bench_row(what, "time", "us", bench_median(each, blocks));
}

static void locks(void)
{
	double begin, mine = 0, sum, least;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = bench_now_us();
	while (bench_now_us() - begin < 200000) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Win_unlock(0, win);
		mine++;
	}
	double us = bench_now_us() - begin, longest;
	MPI_Allreduce(&us, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	if (bench_rank)
		return;
	bench_row("lock", "time", "us", longest / sum);
	bench_row("lock", "fewest", "share of the mean", least * bench_ranks / sum);
}

int main(int argc, char **argv)
{
	void *memory;
	MPI_Group all;

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	const char *what = argc > 1 ? argv[1] : "fence";
	MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	int next[2] = {(bench_rank + 1) % bench_ranks,
		       (bench_rank + bench_ranks - 1) % bench_ranks};
	MPI_Win_get_group(win, &all);
	MPI_Group_incl(all, bench_ranks > 2 ? 2 : 1, next, &to);
	MPI_Group_incl(all, bench_ranks > 2 ? 2 : 1, next, &from);
	if (strcmp(what, "lock") == 0)
		locks();
	else
		epochs(what);
	MPI_Group_free(&all);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
