/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hidden.c - do non-blocking collectives move while all ranks compute?
 *
 * Unit      share of the collective that was hidden behind the computation, see ../overlap/exchange.h.
 * Bound     1, as for a message: the row `limit` is a raw socket with a helper thread.
 * Method    start; compute as long as it takes alone; MPI_Wait, and no MPI call in between.  Two ranks; the bytes are those of a
 *           block that one rank gives another.
 */
#include "../overlap/exchange_mpi.h"

static char *more;

static void start_iallreduce(char *buf, int bytes)
{
	MPI_Iallreduce(buf, more, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
		       &exchange_request);
}

static void start_ialltoall(char *buf, int bytes)
{
	MPI_Ialltoall(buf, bytes, MPI_CHAR, more, bytes, MPI_CHAR, MPI_COMM_WORLD,
		      &exchange_request);
}

static void start_ibcast(char *buf, int bytes)
{
	MPI_Ibcast(buf, bytes, MPI_CHAR, 0, MPI_COMM_WORLD, &exchange_request);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*start)(char *buf, int bytes);
	} kinds[] = {{"iallreduce", start_iallreduce},
		     {"ialltoall", start_ialltoall},
		     {"ibcast", start_ibcast}};
	enum { BYTES = 1 << 20 };
	struct exchange_ops op = exchange_by_mpi(NULL);

	bench_start(&argc, &argv, MPI_THREAD_FUNNELED);
	for (unsigned i = 0; i < 3 && argc > 1; i++)
		if (strcmp(kinds[i].name, argv[1]) == 0) {
			op.start = kinds[i].start;
			exchange_what = kinds[i].name;
		}
	if (!op.start)
		bench_usage(argv[0], argc > 1 ? argv[1] : "nothing",
			    "iallreduce|ialltoall|ibcast [--quick]");
	if (bench_ranks != 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	char *buf = bench_alloc(2 * BYTES);
	more = bench_alloc(2 * BYTES);
	memset(buf, 0, 2 * BYTES); /* numbers that are no trap for sums */
	exchange_measure(&op, buf, BYTES, EXCHANGE_BOTH, bench_rank == 0, bench_quick ? 11 : 25);
	MPI_Finalize();
	free(buf);
	free(more);
	return 0;
}
