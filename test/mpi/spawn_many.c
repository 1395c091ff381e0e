/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2
 *
 * Many times one child and a disconnect, from several ranks at once: descriptors, memory, mappings and
 * processes do not grow.  Then many children at once.
 *
 *   spawn_many [ROUNDS CHILDREN] */
#include <dirent.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mpitest.h"

#define ROUNDS 24
#define AT_ONCE 32
#define GROWTH_KIB 512 /* of memory, in whatever number of rounds */
#define GROWTH 4 /* of descriptors, of threads: the background may start one late, and keeps it */

static int entries(const char *path)
{
	int n = 0;
	DIR *d = opendir(path);
	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* What the last rounds used is given back in the background: soon. */
static bool falls_to(const char *path, int most)
{
	for (int i = 0; i < 5000 && entries(path) > most; i++) /* ends after some 5 s */
		usleep(1000);
	return entries(path) <= most;
}

static int lines(const char *path)
{
	int n = 0, c;
	FILE *f = fopen(path, "r");
	CHECK(f != NULL);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

/* Pages of this process alone. */
static long memory_kib(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f) && sscanf(line, "RssAnon: %ld", &kib) != 1)
		continue; /* ends with the file */
	fclose(f);
	return kib;
}

static void one(const char *self)
{
	MPI_Comm inter;
	int in, out = 17;
	MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
		       MPI_ERRCODES_IGNORE);
	MPI_Sendrecv(&out, 1, MPI_INT, 0, 3, &in, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE);
	CHECK_EQ(in, 18);
	MPI_Comm_disconnect(&inter);
}

/* A rank that is through goes on to the others, whose connections to it are no growth. */
static void meet_all_ranks(void)
{
	int me, ranks;
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int k = 1; k < ranks; k++) {
		int in = 0, to = (me + k) % ranks, from = (me + ranks - k) % ranks;
		MPI_Sendrecv(&me, 1, MPI_INT, to, 4, &in, 1, MPI_INT, from, 4, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		CHECK_EQ(in, from);
	}
}

int main(int argc, char **argv)
{
	MPI_Comm parent;
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(n > 0);
	self[n] = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		int v, remote;
		MPI_Comm_remote_size(parent, &remote);
		if (remote == 1) {
			MPI_Recv(&v, 1, MPI_INT, 0, 3, parent, MPI_STATUS_IGNORE);
			v++;
			MPI_Send(&v, 1, MPI_INT, 0, 3, parent);
		} else {
			MPI_Barrier(parent);
		}
		MPI_Comm_disconnect(&parent);
		MPI_Finalize();
		return 0;
	}
	int fds = 0, maps = 0, tasks = 0;
	int rounds = argc > 2 ? atoi(argv[1]) : ROUNDS,
	    at_once = argc > 2 ? atoi(argv[2]) : AT_ONCE;
	long memory = 0;
	meet_all_ranks();
	for (int i = 0; i < rounds; i++) {
		one(self);
		if (i == rounds / 4) {
			memory = memory_kib();
			fds = entries("/proc/self/fd");
			maps = lines("/proc/self/maps");
			tasks = entries("/proc/self/task");
		}
	}
	CHECK(falls_to("/proc/self/fd", fds + GROWTH));
	CHECK(falls_to("/proc/self/task", tasks + GROWTH));
	CHECK(lines("/proc/self/maps") <= maps + 2); /* the allocator's own */
	CHECK(memory_kib() <= memory + GROWTH_KIB);

	MPI_Comm inter;
	MPI_Comm_spawn(self, MPI_ARGV_NULL, at_once, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
		       MPI_ERRCODES_IGNORE);
	int remote;
	MPI_Comm_remote_size(inter, &remote);
	CHECK_EQ(remote, at_once);
	MPI_Barrier(inter);
	MPI_Comm_disconnect(&inter);
	MPI_Finalize();
	return 0;
}
