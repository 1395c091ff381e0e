/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiet.c - what does doing nothing cost?
 *
 * Unit      wake-ups per second of all threads but the main one; CPU in percent of a core.
 * Bound     0.
 * Method    rank 1 sleeps a second: with nothing pending, with a receive posted, with a thread that
 *           waits for it.  The kernel's counts of each thread.
 */
#include "bench_mpi.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>

struct use {
	double wakeups, cpu_ms;
};

static double number(const char *path, const char *key)
{
	char line[256];
	double v = 0;
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!*key || strncmp(line, key, strlen(key)) == 0)
			v = atof(line + strlen(key));
	if (f)
		fclose(f);
	return v;
}

static struct use others(void)
{
	struct use u = {0, 0};
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; d && (e = readdir(d));) {
		char path[300];
		if (atoi(e->d_name) <= 0 || atoi(e->d_name) == (int)syscall(SYS_gettid))
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		u.wakeups += number(path, "voluntary_ctxt_switches:");
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		u.cpu_ms += number(path, "") * 1e-6;
	}
	if (d)
		closedir(d);
	return u;
}

static void *receive(void *arg)
{
	MPI_Recv(arg, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return NULL;
}

static void measure(const char *name, int posted, int waited)
{
	char byte = 0;
	double got[2] = {0, 0};
	double us = bench_quick ? 200e3 : 1000e3;
	MPI_Barrier(MPI_COMM_WORLD);
	if (bench_rank == 1) {
		MPI_Request r;
		pthread_t t;
		struct timespec settle = {0, 50000000},
				nap = {(time_t)(us / 1e6), (long)((long)us % 1000000) * 1000};
		if (posted)
			MPI_Irecv(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r);
		if (waited && pthread_create(&t, NULL, receive, &byte))
			MPI_Abort(MPI_COMM_WORLD, 1);
		nanosleep(&settle, NULL);
		struct use a = others();
		double t0 = bench_now_us();
		nanosleep(&nap, NULL);
		struct use b = others();
		double s = (bench_now_us() - t0) * 1e-6;
		got[0] = (b.wakeups - a.wakeups) / s;
		got[1] = (b.cpu_ms - a.cpu_ms) / s / 10;
		MPI_Send(&byte, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
		if (posted)
			MPI_Wait(&r, MPI_STATUS_IGNORE);
		if (waited)
			pthread_join(t, NULL);
		MPI_Send(got, 2, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
	} else if (bench_rank == 0) {
		MPI_Recv(&byte, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (posted || waited)
			MPI_Send(&byte, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(got, 2, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		bench_row(name, "wakeups", "1/s", got[0]);
		bench_row(name, "cpu", "%", got[1]);
	}
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	if (argc > 1)
		bench_usage(argv[0], argv[1], "[--quick]");
	if (bench_ranks < 2) {
		fprintf(stderr, "quiet: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	measure("nothing pending", 0, 0);
	measure("one receive pending", 1, 0);
	measure("one receive waited for", 0, 1);
	MPI_Finalize();
	return 0;
}
