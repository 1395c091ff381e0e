/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_mpi.h - starting an MPI bench: each rank on its own core, options, pairs of ranks.
 */
#ifndef WEFT_BENCH_MPI_H
#define WEFT_BENCH_MPI_H

#include "bench.h"
#include <mpi.h>

static int bench_rank, bench_ranks;
static int bench_quick; /* --quick: fewer sizes, fewer blocks */

/*
 * The rank as the launcher says it: PMI-1 (weft, MPICH), Open MPI.  -1: not known before MPI_Init.
 * We want to be bound before MPI starts threads of its own.
 */
static inline int bench_early_rank(void)
{
	static const char *const names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return atoi(value);
	}
	return -1;
}

/* Binds if bind says so, starts MPI, reads --quick; other arguments stay in argv. */
static inline void bench_start_on(int *argc, char ***argv, int threads, int bind)
{
	int got, early = bench_early_rank(), kept = 1;
	if (bind && early >= 0)
		bench_pin(early);
	MPI_Init_thread(argc, argv, threads, &got);
	MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &bench_ranks);
	if (bind && early < 0)
		bench_pin(bench_rank);
	if (got < threads) {
		fprintf(stderr, "bench: this MPI gives thread level %d, not %d\n", got, threads);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (int i = 1; i < *argc; i++) {
		if (strcmp((*argv)[i], "--quick") == 0)
			bench_quick = 1;
		else
			(*argv)[kept++] = (*argv)[i];
	}
	*argc = kept;
	(*argv)[kept] = NULL;
}

static inline void bench_start(int *argc, char ***argv, int threads)
{
	bench_start_on(argc, argv, threads, 1);
}

/* Ranks 0..n/2-1 send to ranks n/2..n-1.  Ends with a message when there is no even number. */
static inline int bench_partner(void)
{
	if (bench_ranks < 2 || bench_ranks % 2) {
		if (bench_rank == 0)
			fprintf(stderr, "bench: needs an even number of ranks, has %d\n",
				bench_ranks);
		MPI_Finalize();
		exit(2);
	}
	int half = bench_ranks / 2;
	return bench_rank < half ? bench_rank + half : bench_rank - half;
}

static inline int bench_is_sender(void)
{
	return bench_rank < bench_ranks / 2;
}

/* Every rank gets rank 0's value. */
static inline int bench_agree(int value)
{
	MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return value;
}

/* How often something that took `us` once fits into `budget_us`, at least once, at most `most`. */
static inline int bench_repeat(double us, double budget_us, int most)
{
	double n = us > 0 ? budget_us / us : most;
	return bench_agree(n < 1 ? 1 : n > most ? most : (int)n);
}

#endif
