/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hidden.c - do non-blocking collectives move while all ranks compute?
 *
 * Unit      share of the collective that was hidden behind the computation, see ../overlap/exchange.h.
 * Bound     1, as for a message: the row `limit` is a raw socket with a helper thread.
 * Method    start; compute as long as it takes alone; MPI_Wait, and no MPI call in between.  Two ranks; the bytes are those of a
 *           block that one rank gives another.
 */
#include "../overlap/exchange.h"
#include "bench_mpi.h"

static MPI_Request request;
static char *more;

static void sync_both(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void start_iallreduce(char *buf, int bytes)
{
	MPI_Iallreduce(buf, more, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
}

static void start_ialltoall(char *buf, int bytes)
{
	MPI_Ialltoall(buf, bytes, MPI_CHAR, more, bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
}

static void start_ibcast(char *buf, int bytes)
{
	MPI_Ibcast(buf, bytes, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
}

static void wait_all(void)
{
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void answer(void)
{
	char byte = 0;
	if (bench_rank == 0)
		MPI_Recv(&byte, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&byte, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

static long tell(long value)
{
	MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	return value;
}

static double slower(double us)
{
	double most;
	MPI_Allreduce(&us, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
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
	struct exchange_ops op = {sync_both, NULL, wait_all, answer, tell, slower};

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
