/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rest.c - how long is an exchange of ranks that have computed for a while?
 *
 * A loop of a program that computes: what a library put away while nothing came (armed bells, cold lines, sleeping threads)
 * must be fetched again before the exchange.  `weft bench latency` and `coll` do not see it: their ranks never leave.
 *
 * Unit      us from the last rank's arrival at the call to the last rank's return; time: the median of the rounds, tenth: the
 *           value that a tenth of the rounds stay below (what other programs do to a round is no cost of the exchange).
 * Bound     the same exchange where nothing is computed: the rows of "no rest".
 * Method    Each round: MPI_Barrier, computing (bench_compute, the same turns for each rank), the exchange.  All ranks are on one
 *           host and so read one clock.  The first eighth of the rounds is not counted.
 *           "busy": a process of another session computes meanwhile, so that one core is wanted twice; "free": so, and no
 *           rank is bound.
 *
 * rest MICROSECONDS [busy|free] [--quick]
 */
#include "bench_busy.h"
#include "bench_mpi.h"

enum { MOST_BYTES = 64 << 10, MOST_ROUNDS = 2000, MOST_RANKS = 64 };

static char *out, *in;
static int right, left;

static void swap_with_neighbours(int bytes)
{
	MPI_Sendrecv(out, bytes, MPI_CHAR, right, 1, in, bytes, MPI_CHAR, left, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

/* Two borders of a block: a receive and a send each way. */
static void swap_borders(int bytes)
{
	MPI_Request r[4];
	MPI_Irecv(in, bytes, MPI_CHAR, left, 2, MPI_COMM_WORLD, &r[0]);
	MPI_Irecv(in + bytes, bytes, MPI_CHAR, right, 3, MPI_COMM_WORLD, &r[1]);
	MPI_Isend(out, bytes, MPI_CHAR, right, 2, MPI_COMM_WORLD, &r[2]);
	MPI_Isend(out + bytes, bytes, MPI_CHAR, left, 3, MPI_COMM_WORLD, &r[3]);
	MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

/* The first exchange for a program that polls for the end. */
static void swap_by_tests(int bytes)
{
	MPI_Request r[2];
	int over = 0;
	MPI_Irecv(in, bytes, MPI_CHAR, left, 4, MPI_COMM_WORLD, &r[0]);
	MPI_Isend(out, bytes, MPI_CHAR, right, 4, MPI_COMM_WORLD, &r[1]);
	while (!over)
		MPI_Testall(2, r, &over, MPI_STATUSES_IGNORE);
}

static void sum_of_all(int bytes)
{
	MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void blocks_to_all(int bytes)
{
	MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void blocks_of_all(int bytes)
{
	MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static const struct exchange {
	const char *name;
	void (*call)(int bytes);
	int bytes;
} exchanges[] = {
	{"sendrecv", swap_with_neighbours, 8},        {"sendrecv", swap_with_neighbours, 4 << 10},
	{"sendrecv", swap_with_neighbours, 64 << 10}, {"testall", swap_by_tests, 8},
	{"testall", swap_by_tests, 64 << 10},         {"borders", swap_borders, 1 << 10},
	{"borders", swap_borders, 16 << 10},          {"allreduce", sum_of_all, 8},
	{"allreduce", sum_of_all, 64 << 10},          {"alltoall", blocks_to_all, 1 << 10},
	{"allgather", blocks_of_all, 1 << 10},
};

/* The last arrival and the last return of each round, of all ranks; the times to it in us. */
static void times_of(double *arrived, double *returned, int rounds, double *us)
{
	static double first[MOST_ROUNDS], last[MOST_ROUNDS];
	MPI_Reduce(arrived, first, rounds, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(returned, last, rounds, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	for (int i = 0; i < rounds; i++)
		us[i] = last[i] - first[i];
}

static void measure(const struct exchange *e, int rest_us, long turns, int rounds,
		    const char *beside)
{
	static double arrived[MOST_ROUNDS], returned[MOST_ROUNDS], us[MOST_ROUNDS];
	int warm = rounds / 8;

	for (int i = -warm; i < rounds; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		bench_compute(turns);
		double begin = bench_now_us();
		e->call(e->bytes);
		double end = bench_now_us();
		if (i >= 0) {
			arrived[i] = begin;
			returned[i] = end;
		}
	}
	times_of(arrived, returned, rounds, us);
	if (bench_rank)
		return;
	char size[32], rest[32], name[128];
	bench_size((size_t)e->bytes, size, sizeof(size));
	if (rest_us)
		snprintf(rest, sizeof(rest), "%d us", rest_us);
	snprintf(name, sizeof(name), "%s %s after %s%s", e->name, size, rest_us ? rest : "no rest",
		 beside);
	bench_row(name, "time", "us", bench_median(us, rounds));
	bench_row(name, "tenth", "us", us[rounds / 10]); /* the median has sorted them */
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	int free_ranks = strcmp(how, "free") == 0, busy = free_ranks || strcmp(how, "busy") == 0;
	pid_t child = busy && bench_early_rank() == 0 ? bench_busy_start() : 0;

	bench_start_on(&argc, &argv, MPI_THREAD_SINGLE, !free_ranks);
	int rest_us = argc > 1 ? atoi(argv[1]) : -1;
	if (rest_us < 0 || rest_us > 1000000 || (argc > 2 && !busy))
		bench_usage(argv[0], argc > 1 ? argv[argc - 1] : "nothing",
			    "MICROSECONDS [busy|free] [--quick]");
	if (bench_ranks > MOST_RANKS)
		MPI_Abort(MPI_COMM_WORLD, 1);
	right = (bench_rank + 1) % bench_ranks;
	left = (bench_rank + bench_ranks - 1) % bench_ranks;
	out = bench_alloc((size_t)2 * MOST_BYTES);
	in = bench_alloc((size_t)MOST_RANKS * 2 * MOST_BYTES);
	memset(out, 0, (size_t)2 * MOST_BYTES); /* numbers that are no trap for sums */

	long turns = rest_us ? bench_turns(rest_us) : 0;
	MPI_Bcast(&turns, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	int rounds = bench_quick || rest_us > 1000 ? 160 : 1000;
	const char *beside = !busy        ? ""
			     : free_ranks ? " beside a busy process (not bound)"
					  : " beside a busy process";
	for (unsigned i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++)
		measure(&exchanges[i], rest_us, turns, rounds, beside);
	MPI_Finalize();
	bench_busy_end(child);
	free(out);
	free(in);
	return 0;
}
