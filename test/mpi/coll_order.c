/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 3 */
/*
 * Ranks that call collectives of one communicator in different orders, by mistake: no call says that
 * a rank has died, none waits for ever, and the communicator's next calls in order are right.
 */
#include "mpitest.h"

static void not_dead(int err)
{
	int class;
	OK(MPI_Error_class(err, &class));
	CHECK(class != MPI_ERR_PROC_ABORTED);
}

/* Rank 0 starts what the others start last, with that many integers. */
static void crossed(MPI_Comm c, int n)
{
	static int in[1000], out[1000];
	MPI_Request req;
	if (rank) {
		not_dead(MPI_Barrier(c));
		not_dead(MPI_Iallreduce(in, out, n, MPI_INT, MPI_BAND, c, &req));
	} else {
		not_dead(MPI_Iallreduce(in, out, n, MPI_INT, MPI_BAND, c, &req));
		not_dead(MPI_Barrier(c));
	}
	not_dead(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

/* The root's data waits for receives that the others post only behind their barrier. */
static void crossed_large(MPI_Comm c)
{
	static char data[1 << 20];
	if (rank) {
		not_dead(MPI_Barrier(c));
		not_dead(MPI_Bcast(data, sizeof data, MPI_CHAR, 0, c));
	} else {
		not_dead(MPI_Bcast(data, sizeof data, MPI_CHAR, 0, c));
		not_dead(MPI_Barrier(c));
	}
}

int main(int argc, char **argv)
{
	static const int counts[] = {1, 2, 100, 1000};
	OK(MPI_Init(&argc, &argv));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (unsigned i = 0; i <= sizeof counts / sizeof counts[0]; i++) {
		MPI_Comm c;
		int one = 1, sum = 0;
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
		OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
		if (i < sizeof counts / sizeof counts[0])
			crossed(c, counts[i]);
		else
			crossed_large(c);
		OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
		CHECK_EQ(sum, size);
		OK(MPI_Comm_free(&c));
	}
	OK(MPI_Finalize());
	return 0;
}
