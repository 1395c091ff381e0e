/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rate.c - how many small messages pass in a second?
 *
 * Unit      millions per second, one direction; ranks / 2 pairs at once, their sum.
 * Bound     the row `limit`: over shm the bare lines of the ring, over tcp a window in one send.
 * Method    windows of 64 MPI_Isend and MPI_Irecv, see window.h; median of blocks of milliseconds.
 */
#include "window.h"

int main(int argc, char **argv)
{
	static const int full[] = {8, 64, 1024, 0};
	static const int quick[] = {8, 0};
	char text[32];

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc > 1)
		bench_usage(argv[0], argv[1], "[--quick]");
	int partner = bench_partner();
	char *buf = bench_alloc(4096);
	for (const int *size = bench_quick ? quick : full; *size; size++) {
		double per_us = window_rate(buf, *size, partner, WINDOW_MAX);
		if (bench_rank == 0)
			bench_row(bench_size((size_t)*size, text, sizeof(text)), "rate", "M/s",
				  per_us);
	}
	MPI_Finalize();
	free(buf);
	return 0;
}
