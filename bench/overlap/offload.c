/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offload.c - how long does the sender take for: start a send, compute, wait?  (CAC 2008, figs. 5
 * and 6)
 *
 * Unit      microseconds of the sender; small messages beside 20 us of computation, large ones
 *           beside 100 us.
 * Bound     the longer of computation and transfer; without offload or progress their sum.
 * Method    the receiver has posted its receive, says so, and waits.  Median of single exchanges.
 *           Rows "alone" are the same without computation, rows "start" the call that starts the
 *           send beside it.  "idle": the sender computes on one core and may use all, the receiver
 *           sleeps for most of the time instead of waiting, so that a core is idle; weft is told
 *           (WEFT_IDLE_WORKERS) that one rank may keep it awake.
 *
 * offload [--quick] [idle]
 */
#include "bench_mpi.h"
#include <sched.h>

static int idle;
static double start_us; /* of the last send */
static long per_50;

static double once(char *buf, int bytes, int partner, long turns)
{
	MPI_Request r;
	char byte = 0;
	double t = 0;

	if (bench_is_sender()) {
		MPI_Recv(&byte, 1, MPI_CHAR, partner, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (idle)
			bench_compute(per_50); /* the receiver's core is idle by then */
		t = bench_now_us();
		MPI_Isend(buf, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD, &r);
		start_us = bench_now_us() - t;
		if (turns)
			bench_compute(turns);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		t = bench_now_us() - t;
		MPI_Recv(&byte, 1, MPI_CHAR, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Irecv(buf, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD, &r);
		MPI_Send(&byte, 1, MPI_CHAR, partner, 2, MPI_COMM_WORLD);
		if (idle)
			usleep(300);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Send(&byte, 1, MPI_CHAR, partner, 3, MPI_COMM_WORLD);
	}
	return t;
}

static void run(char *buf, int bytes, int partner, const char *metric, long turns)
{
	double us[201], start[201];
	char text[32];
	int n = bench_quick ? 31 : 201;

	for (int i = -3; i < n; i++) {
		double t = once(buf, bytes, partner, turns);
		if (i >= 0) {
			us[i] = t;
			start[i] = start_us;
		}
	}
	if (bench_rank != 0)
		return;
	bench_size((size_t)bytes, text, sizeof(text));
	if (idle)
		strcat(text, " idle");
	bench_row(text, metric, "us", bench_median(us, n));
	if (turns)
		bench_row(text, "start", "us", bench_median(start, n));
}

/* The engine's threads may use every core, our own computes on its one. */
static void start_idle(int *argc, char ***argv)
{
	int rank = bench_early_rank() > 0;
	setenv("WEFT_IDLE_WORKERS", rank == 0 ? "1" : "0", 0);
	bench_start_on(argc, argv, MPI_THREAD_SINGLE, 0);
	bench_pin(bench_rank);
}

int main(int argc, char **argv)
{
	static const int small[] = {8, 256, 1024, 4096, 8192, 16384, 32768, 0};
	static const int large[] = {65536, 131072, 262144, 524288, 1 << 20, 0};

	for (int i = 1; i < argc; i++) /* before --quick goes: it decides which threads are bound */
		idle = idle || strcmp(argv[i], "idle") == 0;
	if (idle)
		start_idle(&argc, &argv);
	else
		bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc > 1 + idle)
		bench_usage(argv[0], argv[1], "[--quick] [idle]");
	int partner = bench_partner();
	char *buf = bench_alloc(1 << 20);
	long per_20 = bench_turns(20), per_100 = bench_turns(100);
	per_50 = bench_turns(50);
	MPI_Barrier(MPI_COMM_WORLD);
	/* Apart: a library learns nothing of a caller that sometimes computes, sometimes waits. */
	for (const int *s = small; *s; s += bench_quick && s[1] && s[2] ? 2 : 1)
		run(buf, *s, partner, "computing", per_20);
	for (const int *s = large; *s; s += bench_quick && s[1] && s[2] ? 2 : 1)
		run(buf, *s, partner, "computing", per_100);
	for (const int *s = small; *s; s += bench_quick && s[1] && s[2] ? 2 : 1)
		run(buf, *s, partner, "alone", 0);
	for (const int *s = large; *s; s += bench_quick && s[1] && s[2] ? 2 : 1)
		run(buf, *s, partner, "alone", 0);
	MPI_Finalize();
	free(buf);
	return 0;
}
