/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - what does an access to another rank's memory cost, while that rank waits or computes?
 *
 * Unit      us per access with its flush; lock: us per MPI_Win_lock and MPI_Win_unlock of a free lock.
 * Bound     allocated: a store or a copy of this core; created: a system call (0.2 us) and a copy.
 * Method    Rank 0 accesses rank 1's memory.  waits: rank 1 is in MPI_Recv.  computes: rank 1 computes
 *           10 ms and then receives, rank 0 makes 8 accesses meanwhile, lock and unlock around them
 *           counted: an MPI that needs rank 1's calls takes 10 ms for the first.  sleeps: the same
 *           in usleep.  allocated: MPI_Win_allocate; shared: MPI_Win_allocate_shared; created: MPI_Win_create on
 *           malloc; dynamic: MPI_Win_attach of malloc.  Median of rounds.
 */
#include "bench_mpi.h"
#include <unistd.h>

enum target { WAITS, COMPUTES, SLEEPS, TARGETS };
static const char *const doing[TARGETS] = {"waits", "computes", "sleeps"};

enum op { PUT, GET, ACCUMULATE, FETCH, SWAP, LOCK, OPS };
static const char *const names[OPS] = {
	"put", "get", "accumulate", "fetch_and_op", "compare_and_swap", "lock"};

static char *here;
static MPI_Aint there; /* displacement of rank 1's memory */
static MPI_Win win;

static void access_once(enum op op, int bytes)
{
	static long one = 1, zero, was;

	switch (op) {
	case PUT:
		MPI_Put(here, bytes, MPI_BYTE, 1, there, bytes, MPI_BYTE, win);
		break;
	case GET:
		MPI_Get(here, bytes, MPI_BYTE, 1, there, bytes, MPI_BYTE, win);
		break;
	case ACCUMULATE:
		MPI_Accumulate(here, bytes / 8, MPI_LONG, 1, there, bytes / 8, MPI_LONG, MPI_SUM,
			       win);
		break;
	case FETCH:
		MPI_Fetch_and_op(&one, &was, MPI_LONG, 1, there, MPI_SUM, win);
		break;
	case SWAP:
		MPI_Compare_and_swap(&one, &zero, &was, MPI_LONG, 1, there, win);
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
static double measure(enum op op, int bytes, enum target target)
{
	double each[BENCH_BLOCKS_MAX];
	int rounds = !bench_quick ? 15 : target == WAITS ? 5 : 2, n = 8;

	for (int i = -1; i < rounds; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (bench_rank == 1 && target == COMPUTES)
			compute(10000);
		if (bench_rank == 1 && target == SLEEPS)
			usleep(10000);
		if (bench_rank == 1) {
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			continue;
		}
		if (target != WAITS)
			compute(500); /* rank 1 has begun */
		double begin = bench_now_us();
		if (op != LOCK)
			MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
		double us = accesses(op, bytes, n);
		if (op != LOCK)
			MPI_Win_unlock(1, win);
		if (target != WAITS)
			us = (bench_now_us() - begin) / n;
		MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		if (i >= 0)
			each[i] = us;
		else if (target == WAITS) /* so many take about 2 ms */
			n = us > 2000 ? 1 : us < 0.02 ? 100000 : (int)(2000 / us);
	}
	return bench_rank ? 0 : bench_median(each, rounds);
}

/* 8 bytes: millions of puts per second; else MB/s. */
static double puts_at_once(int bytes)
{
	double each[BENCH_BLOCKS_MAX];
	int rounds = bench_quick ? 5 : 15, n = bytes == 8 ? 1000 : 16;

	for (int i = -1; i < rounds; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (bench_rank == 1) {
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			continue;
		}
		MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
		double begin = bench_now_us();
		for (int k = 0; k < n; k++)
			MPI_Put(here, bytes, MPI_BYTE, 1, there, bytes, MPI_BYTE, win);
		MPI_Win_flush(1, win);
		double us = bench_now_us() - begin;
		MPI_Win_unlock(1, win);
		MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		if (i >= 0)
			each[i] = bytes == 8 ? n / us : n * (double)bytes / us;
	}
	return bench_rank ? 0 : bench_median(each, rounds);
}

static double chain(long n)
{
	static volatile double end;
	double x = 1, begin = bench_now_us();
	for (long i = 0; i < n; i++)
		x = x * 0.999999 + 1e-9;
	end = x;
	(void)end;
	return bench_now_us() - begin;
}

/* Percent: rank 1 computes 20 ms alone, and as the target of a million operations per second, in turns. */
static double loss(void)
{
	double each[BENCH_BLOCKS_MAX];
	int rounds = bench_quick ? 2 : 15;
	long steps = (long)(20000 / chain(1000000) * 1e6);

	for (int i = 0; i < rounds; i++) {
		double us[2] = {0, 0};
		for (int disturbed = 0; disturbed < 2; disturbed++) {
			MPI_Barrier(MPI_COMM_WORLD);
			if (bench_rank == 1) {
				us[disturbed] = chain(steps);
				continue;
			}
			double begin = bench_now_us();
			MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
			for (double next = begin; disturbed && next < begin + 25000; next++) {
				while (bench_now_us() < next)
					;
				access_once(FETCH, 8);
			}
			MPI_Win_unlock(1, win);
		}
		each[i] = bench_rank ? (us[1] / us[0] - 1) * 100 : 0;
	}
	double percent = bench_median(each, rounds);
	MPI_Bcast(&percent, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
	return percent;
}

/* Latencies of one kind of memory; few: of 8 bytes alone. */
static void latencies(const char *memory, int few)
{
	static const int sizes[] = {8, 1024, 65536, 1048576, 4194304};
	char name[96], size[32];

	for (enum target target = WAITS; target < TARGETS; target++)
		for (enum op op = PUT; op < OPS; op++)
			for (int s = 0; s < (op > ACCUMULATE || few ? 1 : 5); s++) {
				double us = measure(op, sizes[s], target);
				if (bench_rank)
					continue;
				snprintf(name, sizeof name, "%s %s %s; target %s", memory,
					 names[op], bench_size((size_t)sizes[s], size, sizeof size),
					 doing[target]);
				bench_row(name, "time", "us", us);
			}
}

static void rows(const char *memory, int few)
{
	char name[96];

	latencies(memory, few || bench_quick);
	double rate = puts_at_once(8), small = puts_at_once(65536), large = puts_at_once(1 << 20);
	double lost = loss();
	if (bench_rank)
		return;
	snprintf(name, sizeof name, "%s put", memory);
	bench_row(name, "rate", "M/s", rate);
	snprintf(name, sizeof name, "%s put 64 KiB", memory);
	bench_row(name, "bandwidth", "MB/s", small);
	snprintf(name, sizeof name, "%s put 1 MiB", memory);
	bench_row(name, "bandwidth", "MB/s", large);
	snprintf(name, sizeof name, "%s fetch_and_op", memory);
	bench_row(name, "loss", "percent", lost);
}

static void dynamic_rows(void *memory, MPI_Aint bytes)
{
	MPI_Aint at;
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, memory, bytes);
	MPI_Get_address(memory, &at);
	MPI_Bcast(&at, 1, MPI_AINT, 1, MPI_COMM_WORLD);
	there = at;
	rows("dynamic", 1);
	there = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_detach(win, memory);
	MPI_Win_free(&win);
}

/* Are both ranks on one host? */
static int shares(void)
{
	MPI_Comm host;
	int n;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_size(host, &n);
	MPI_Comm_free(&host);
	return n == 2;
}

int main(int argc, char **argv)
{
	MPI_Aint most = 1 << 22;
	void *memory;

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks != 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	here = bench_alloc((size_t)most);
	memset(here, 0, (size_t)most);
	MPI_Win_allocate(most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	memset(memory, 0, (size_t)most);
	rows("allocated", 0);
	MPI_Win_free(&win);
	memory = bench_alloc((size_t)most);
	memset(memory, 0, (size_t)most);
	MPI_Win_create(memory, most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	rows("created", 0);
	MPI_Win_free(&win);
	dynamic_rows(memory, most);
	free(memory);
	if (shares()) {
		MPI_Win_allocate_shared(most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
		memset(memory, 0, (size_t)most);
		rows("shared", 1);
		MPI_Win_free(&win);
	}
	MPI_Finalize();
	free(here);
	return 0;
}
