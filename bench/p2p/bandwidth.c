/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth.c - how many bytes pass in a second?
 *
 * Unit      MB/s (10^6 bytes), one direction; ranks / 2 pairs at once, their sum.
 * Bound     shm: what one core copies (13 GB/s from memory, more from its cache).  tcp: a raw
 *           socket, about 7 GB/s.  1g: 125 MB/s.
 * Method    windows of MPI_Isend and MPI_Irecv, see window.h; median of blocks of milliseconds.
 */
#include "window.h"

int main(int argc, char **argv)
{
	static const int full[] = {64, 1024, 4096, 65536, 1 << 20, 4 << 20, 0};
	static const int quick[] = {65536, 1 << 20, 0};
	char text[32];

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc > 1)
		bench_usage(argv[0], argv[1], "[--quick]");
	int partner = bench_partner();
	char *buf = bench_alloc(4 << 20);
	for (const int *size = bench_quick ? quick : full; *size; size++) {
		int window = *size <= 65536 ? WINDOW_MAX : *size <= 1 << 20 ? 16 : 8;
		double per_us = window_rate(buf, *size, partner, window);
		if (bench_rank == 0)
			bench_row(bench_size((size_t)*size, text, sizeof(text)), "bandwidth",
				  "MB/s", per_us * *size);
	}
	MPI_Finalize();
	free(buf);
	return 0;
}
