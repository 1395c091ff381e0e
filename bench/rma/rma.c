/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - what does an access to another rank's memory cost, while that rank waits or computes?
 *
 * Unit      us per access with its flush; lock: us per MPI_Win_lock and MPI_Win_unlock of a free lock.
 * Bound     allocated: a store or a copy of this core; created: a system call (0.2 us) and a copy.
 * Method    Rank 0 accesses rank 1's memory.  waits: rank 1 is in MPI_Recv.  computes: rank 1 computes
 *           10 ms and then receives, rank 0 makes 8 accesses meanwhile, lock and unlock around them
 *           counted: an MPI that needs rank 1's calls takes 10 ms for the first.  allocated: MPI_Win_allocate; created: MPI_Win_create on malloc.
 *           Median of rounds.
 */
#include "bench_mpi.h"

enum op { PUT, GET, ACCUMULATE, FETCH, SWAP, LOCK, OPS };
static const char *const names[OPS] = {
	"put", "get", "accumulate", "fetch_and_op", "compare_and_swap", "lock"};

static char *here;
static MPI_Win win;

static void access_once(enum op op, int bytes)
{
	static long one = 1, zero, was;

	switch (op) {
	case PUT:
		MPI_Put(here, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
		break;
	case GET:
		MPI_Get(here, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
		break;
	case ACCUMULATE:
		MPI_Accumulate(here, bytes / 8, MPI_LONG, 1, 0, bytes / 8, MPI_LONG, MPI_SUM, win);
		break;
	case FETCH:
		MPI_Fetch_and_op(&one, &was, MPI_LONG, 1, 0, MPI_SUM, win);
		break;
	case SWAP:
		MPI_Compare_and_swap(&one, &zero, &was, MPI_LONG, 1, 0, win);
		break;
	default:
		MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
		MPI_Win_unlock(1, win);
		return;
	}
	MPI_Win_flush(1, win);
}

static double accesses(enum op op, int bytes, int n)
{
	double begin = bench_now_us();

	for (int i = 0; i < n; i++)
		access_once(op, bytes);
	return (bench_now_us() - begin) / n;
}

static void compute(double us)
{
	for (double end = bench_now_us() + us; bench_now_us() < end;)
		;
}

/* us per access. */
static double measure(enum op op, int bytes, int computes)
{
	double each[BENCH_BLOCKS_MAX];
	int rounds = bench_quick ? 5 : 15, n = 8;

	for (int i = -1; i < rounds; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (bench_rank == 1 && computes)
			compute(10000);
		if (bench_rank == 1) {
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			continue;
		}
		if (computes)
			compute(500); /* rank 1 has begun */
		double begin = bench_now_us();
		if (op != LOCK)
			MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
		double us = accesses(op, bytes, n);
		if (op != LOCK)
			MPI_Win_unlock(1, win);
		if (computes)
			us = (bench_now_us() - begin) / n;
		MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		if (i >= 0)
			each[i] = us;
		else if (!computes) /* so many take about 2 ms */
			n = us > 2000 ? 1 : us < 0.02 ? 100000 : (int)(2000 / us);
	}
	return bench_rank ? 0 : bench_median(each, rounds);
}

static void rows(const char *memory)
{
	static const int sizes[] = {8, 1024, 65536, 1048576};
	char name[96], size[32];

	for (int computes = 0; computes < 2; computes++)
		for (enum op op = PUT; op < OPS; op++)
			for (int s = 0; s < (op > ACCUMULATE ? 1 : bench_quick ? 1 : 4); s++) {
				double us = measure(op, sizes[s], computes);
				if (bench_rank)
					continue;
				snprintf(name, sizeof name, "%s %s %s; target %s", memory,
					 names[op], bench_size((size_t)sizes[s], size, sizeof size),
					 computes ? "computes" : "waits");
				bench_row(name, "time", "us", us);
			}
}

int main(int argc, char **argv)
{
	MPI_Aint most = 1 << 20;
	void *memory;

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks != 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	here = bench_alloc((size_t)most);
	memset(here, 0, (size_t)most);
	MPI_Win_allocate(most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	memset(memory, 0, (size_t)most);
	rows("allocated");
	MPI_Win_free(&win);
	memory = bench_alloc((size_t)most);
	memset(memory, 0, (size_t)most);
	MPI_Win_create(memory, most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	rows("created");
	MPI_Win_free(&win);
	MPI_Finalize();
	free(memory);
	free(here);
	return 0;
}
