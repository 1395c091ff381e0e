/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.c - what does a session cost after the first, and does one leave anything behind?
 *
 * Unit      us per MPI_Session_init and MPI_Session_finalize; with a communicator: us for group, communicator, a barrier and
 *           all frees as well; KiB that the process is larger by after all of them.
 * Bound     two passes through what counts the library's users; a communicator agrees by a message to each side.
 * Method    One session is open all the time.  Median of blocks of 100.  Growth from a tenth of all to the end; communicators
 *           touch the memory of a table of contexts at first, so 6,000 come before that is counted (not with --quick).
 */
#include "bench_mpi.h"

static void session(int with_comm)
{
	MPI_Session s;
	MPI_Group g;
	MPI_Comm c;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
	if (with_comm) {
		MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
		MPI_Comm_create_from_group(g, "bench", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c);
		MPI_Barrier(c);
		MPI_Comm_free(&c);
		MPI_Group_free(&g);
	}
	MPI_Session_finalize(&s);
}

static void measure(const char *name, int with_comm, int blocks, int each)
{
	double us[BENCH_BLOCKS_MAX];
	long before = 0;

	for (int i = 0; with_comm && !bench_quick && i < 6000; i++)
		session(1);

	for (int b = -1; b < blocks; b++) {
		if (b == blocks / 10)
			before = bench_memory_kib();
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = bench_now_us();
		for (int i = 0; i < each; i++)
			session(with_comm);
		if (b >= 0)
			us[b] = (bench_now_us() - begin) / each;
	}
	long grown = bench_memory_kib() - before;
	if (bench_rank)
		return;
	bench_row(name, "time", "us", bench_median(us, blocks));
	bench_row(name, "growth", "KiB", (double)grown);
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	int blocks = bench_quick ? 11 : 51;
	measure("init and finalize", 0, blocks, 100);
	measure("with a communicator", 1, blocks / 3, 30);
	MPI_Finalize();
	return 0;
}
