/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn.c - how long does it take to start processes from a program and to part from them, and how long do two
 * jobs take to meet?
 *
 * Unit      spawn: ms for MPI_Comm_spawn; connect: ms for an accept whose caller is there; parted: ms for the
 *           same and MPI_Comm_disconnect.
 * Bound     two starts of a program (mpiexec and the child), 1 ms each, and what their libraries cost to load.
 * Method    One rank; the child is this program.  Median of rounds, after one that does not count.
 */
#include "bench_mpi.h"

static char self[4096];

static MPI_Comm start(int n, const char *what)
{
	char *argv[] = {(char *)what, NULL};
	MPI_Comm inter;
	MPI_Comm_spawn(self, argv, n, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
	return inter;
}

static void spawn(void)
{
	int rounds = bench_quick ? 3 : 25;
	double call[BENCH_BLOCKS_MAX], all[BENCH_BLOCKS_MAX];
	for (int i = -1; i < rounds; i++) {
		double begin = bench_now_us();
		MPI_Comm inter = start(1, "child");
		double met = bench_now_us();
		MPI_Comm_disconnect(&inter);
		if (i < 0)
			continue;
		call[i] = (met - begin) * 1e-3;
		all[i] = (bench_now_us() - begin) * 1e-3;
	}
	bench_row("one process", "spawn", "ms", bench_median(call, rounds));
	bench_row("one process", "parted", "ms", bench_median(all, rounds));
}

static void many(void)
{
	int rounds = bench_quick ? 1 : 5;
	double all[BENCH_BLOCKS_MAX];
	for (int i = 0; i < rounds; i++) {
		double begin = bench_now_us();
		MPI_Comm inter = start(64, "child");
		MPI_Comm_disconnect(&inter);
		all[i] = (bench_now_us() - begin) * 1e-3;
	}
	bench_row("64 processes", "parted", "ms", bench_median(all, rounds));
}

static int meetings(void)
{
	return bench_quick ? 5 : 41;
}

static void connect_from(MPI_Comm parent)
{
	char port[MPI_MAX_PORT_NAME];
	MPI_Comm inter;
	MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, parent);
	for (int i = -1; i < meetings(); i++) {
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
		MPI_Comm_disconnect(&inter);
		MPI_Barrier(parent);
	}
}

static void accept_from(void)
{
	MPI_Comm child = start(1, bench_quick ? "quick-caller" : "caller"), inter;
	char port[MPI_MAX_PORT_NAME];
	double call[BENCH_BLOCKS_MAX], all[BENCH_BLOCKS_MAX];
	MPI_Open_port(MPI_INFO_NULL, port);
	MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, MPI_ROOT, child);
	for (int i = -1; i < meetings(); i++) {
		double begin = bench_now_us();
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
		double met = bench_now_us();
		MPI_Comm_disconnect(&inter);
		if (i >= 0) {
			call[i] = (met - begin) * 1e-3;
			all[i] = (bench_now_us() - begin) * 1e-3;
		}
		MPI_Barrier(child);
	}
	MPI_Close_port(port);
	MPI_Comm_disconnect(&child);
	bench_row("two jobs", "connect", "ms", bench_median(call, meetings()));
	bench_row("two jobs", "parted", "ms", bench_median(all, meetings()));
}

static void be_child(MPI_Comm parent, const char *what)
{
	bench_quick = strcmp(what, "quick-caller") == 0;
	if (strcmp(what, "child") != 0)
		connect_from(parent);
	MPI_Comm_disconnect(&parent);
	MPI_Finalize();
	exit(0);
}

int main(int argc, char **argv)
{
	MPI_Comm parent;
	bench_start_on(&argc, &argv, MPI_THREAD_SINGLE, 0);
	const char *what = argc > 1 ? argv[1] : "spawn";
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		be_child(parent, what);
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	self[len > 0 ? len : 0] = 0;
	if (bench_rank == 0 && strcmp(what, "spawn") == 0)
		spawn();
	else if (bench_rank == 0 && strcmp(what, "connect") == 0)
		accept_from();
	else if (bench_rank == 0 && strcmp(what, "many") == 0)
		many();
	MPI_Finalize();
	return 0;
}
