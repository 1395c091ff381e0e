/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails.c - how much passes over time, and is each byte there once?
 *
 * Unit      MB/s (10^6 bytes), one direction, in each 50 ms of the receiver's time.
 * Bound     the sum of the links.
 * Method    a stream of messages of 1 MiB, eight under way; every word of them says which message
 * it belongs to and where it stands, and the receiver looks at each.
 */
#include "bench_mpi.h"
#include <stdint.h>

enum { BYTES = 1 << 20, WORDS = BYTES / 8, WINDOW = 8, BIN_MS = 50, BINS = 1200 };

static uint64_t word(uint64_t message, uint64_t i)
{
	return message << 20 | i;
}

static void fill(uint64_t *w, uint64_t message)
{
	for (uint64_t i = 0; i < WORDS; i++)
		w[i] = word(message, i);
}

static void send_all(double seconds)
{
	static MPI_Request request[WINDOW];
	uint64_t *buf[WINDOW], n = 0;
	for (int k = 0; k < WINDOW; k++) {
		buf[k] = (uint64_t *)bench_alloc(BYTES);
		request[k] = MPI_REQUEST_NULL;
	}
	double until = bench_now_us() + seconds * 1e6;
	while (bench_now_us() < until) {
		int k = (int)(n % WINDOW);
		MPI_Wait(&request[k], MPI_STATUS_IGNORE);
		fill(buf[k], n++);
		MPI_Isend(buf[k], BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request[k]);
	}
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	MPI_Send(&n, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
}

static void receive_all(void)
{
	static double bin[BINS];
	static MPI_Request request[WINDOW];
	uint64_t *buf[WINDOW], n = 0, lost = 0, doubled = 0;
	int last = 0;
	for (int k = 0; k < WINDOW; k++) {
		buf[k] = (uint64_t *)bench_alloc(BYTES);
		MPI_Irecv(buf[k], BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request[k]);
	}
	double begin = bench_now_us(), end = begin;
	bench_row("all", "begins", "s", 0); /* for the script that changes a link meanwhile */
	for (;; n++) {
		int k = (int)(n % WINDOW), count;
		MPI_Status status;
		MPI_Wait(&request[k], &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		if (count == 8)
			break;
		end = bench_now_us();
		int at = (int)((end - begin) / 1e3 / BIN_MS);
		if (at < BINS) {
			bin[at] += BYTES;
			last = at;
		}
		for (uint64_t i = 0; i < WORDS; i++) {
			if (buf[k][i] == word(n, i))
				continue;
			if (buf[k][i] >> 20 < n)
				doubled += 8;
			lost += 8;
		}
		MPI_Irecv(buf[k], BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request[k]);
	}
	uint64_t sent = buf[n % WINDOW][0];
	for (uint64_t k = n + 1; k < n + WINDOW; k++) {
		MPI_Cancel(&request[k % WINDOW]);
		MPI_Wait(&request[k % WINDOW], MPI_STATUS_IGNORE);
	}
	lost += sent > n ? (sent - n) * BYTES : 0;
	doubled += n > sent ? (n - sent) * BYTES : 0;
	for (int i = 0; i < last; i++) { /* the last one is not full */
		char name[32];
		snprintf(name, sizeof(name), "%.2f s", i * BIN_MS / 1e3);
		bench_row(name, "over time", "MB/s", bin[i] / BIN_MS / 1e3);
	}
	bench_row("all", "throughput", "MB/s", (double)n * BYTES / (end - begin));
	bench_row("all", "lost", "bytes", (double)lost);
	bench_row("all", "doubled", "bytes", (double)doubled);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	double seconds = argc > 1 ? atof(argv[1]) : 3;
	if (seconds <= 0 || seconds > 50 || bench_ranks != 2)
		bench_usage(argv[0], argc > 1 ? argv[1] : "", "[SECONDS], two ranks");
	char c = 0;
	MPI_Sendrecv_replace(&c, 1, MPI_BYTE, 1 - bench_rank, 1, 1 - bench_rank, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	if (bench_rank == 0)
		send_all(seconds);
	else
		receive_all();
	MPI_Finalize();
	return 0;
}
