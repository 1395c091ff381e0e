/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2
 *
 * Many spawns in a program's life: children that stay connected while more are started, and part in another
 * order, also from a communicator that is free already; children from several threads at once, each with a
 * communicator of its own; children that start children.
 *
 *   spawn_loop [ROUNDS THREADS] */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mpitest.h"

#define ROUNDS 3
#define THREADS 2
#define MOST 256

static char self[4096];

/* Each member of the children's world says its part of what it was started with. */
static int answer_of(int number, int child)
{
	return 1000 * child + number;
}

static void child(int argc, char **argv, MPI_Comm parent)
{
	int number = argc > 1 ? atoi(argv[1]) : -1, in = -1, below = argc > 2 ? atoi(argv[2]) : 0;
	int out = answer_of(number, rank);
	/* From the parents' rank 0, to it. */
	OK(MPI_Bcast(&in, 1, MPI_INT, 0, parent));
	CHECK_EQ(in, number);
	if (below) {
		char text[16], more[16];
		char *args[] = {text, more, NULL};
		MPI_Comm inter;
		int got[1] = {-1};
		snprintf(text, sizeof text, "%d", number + 1);
		snprintf(more, sizeof more, "%d", below - 1);
		OK(MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
				  MPI_ERRCODES_IGNORE));
		number++;
		OK(MPI_Bcast(&number, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
		OK(MPI_Gather(NULL, 0, MPI_INT, got, 1, MPI_INT,
			      rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
		if (rank == 0)
			CHECK_EQ(got[0], answer_of(number, 0));
		OK(MPI_Comm_disconnect(&inter));
	}
	OK(MPI_Gather(&out, 1, MPI_INT, NULL, 0, MPI_INT, 0, parent));
	OK(MPI_Comm_disconnect(&parent));
	OK(MPI_Comm_get_parent(&parent));
	CHECK(parent == MPI_COMM_NULL);
}

static MPI_Comm start(MPI_Comm comm, int number, int n, int below)
{
	char text[16], more[16];
	char *args[] = {text, more, NULL};
	int codes[2] = {-1, -1};
	MPI_Comm inter;
	snprintf(text, sizeof text, "%d", number);
	snprintf(more, sizeof more, "%d", below);
	OK(MPI_Comm_spawn(self, args, n, MPI_INFO_NULL, 0, comm, &inter, codes));
	for (int i = 0; i < n; i++)
		CHECK_EQ(codes[i], MPI_SUCCESS);
	return inter;
}

static void talk(MPI_Comm inter, int number, int n)
{
	int me, got[2] = {-1, -1};
	OK(MPI_Comm_rank(inter, &me));
	int root = me == 0 ? MPI_ROOT : MPI_PROC_NULL;
	OK(MPI_Bcast(&number, 1, MPI_INT, root, inter));
	OK(MPI_Gather(NULL, 0, MPI_INT, got, 1, MPI_INT, root, inter));
	for (int i = 0; i < n && me == 0; i++)
		CHECK_EQ(got[i], answer_of(number, i));
}

/* All are there at once; the last of the first half parts first. */
static void kept(int rounds)
{
	MPI_Comm inter[MOST], comm;
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	for (int i = 0; i < rounds; i++)
		inter[i] = start(comm, i, 1 + i % 2, 0);
	OK(MPI_Comm_free(&comm));
	for (int k = 0; k < rounds; k++) {
		int i = k < rounds / 2 ? rounds / 2 - 1 - k : k;
		talk(inter[i], i, 1 + i % 2);
		OK(MPI_Comm_disconnect(&inter[i]));
	}
}

static void nested(void)
{
	MPI_Comm inter = start(MPI_COMM_WORLD, 40, 2, 2);
	talk(inter, 40, 2);
	OK(MPI_Comm_disconnect(&inter));
}

struct worker {
	pthread_t thread;
	MPI_Comm comm;
	int number, rounds;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	for (int i = 0; i < w->rounds; i++) {
		MPI_Comm together = start(w->comm, w->number + i, 1, 0);
		MPI_Comm alone = start(MPI_COMM_SELF, w->number + i, 1, 0);
		talk(alone, w->number + i, 1);
		talk(together, w->number + i, 1);
		OK(MPI_Comm_disconnect(&together));
		OK(MPI_Comm_disconnect(&alone));
	}
	return NULL;
}

static void at_once(int threads, int rounds)
{
	struct worker w[MOST];
	for (int t = 0; t < threads; t++) {
		w[t] = (struct worker){.number = 100 * t, .rounds = rounds};
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &w[t].comm));
	}
	for (int t = 0; t < threads; t++)
		CHECK_EQ(pthread_create(&w[t].thread, NULL, work, &w[t]), 0);
	for (int t = 0; t < threads; t++) {
		CHECK_EQ(pthread_join(w[t].thread, NULL), 0);
		OK(MPI_Comm_free(&w[t].comm));
	}
}

int main(int argc, char **argv)
{
	MPI_Comm parent;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(n > 0);
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_get_parent(&parent));
	if (parent != MPI_COMM_NULL) {
		child(argc, argv, parent);
		return test_end();
	}
	int rounds = argc > 2 ? atoi(argv[1]) : ROUNDS,
	    threads = argc > 2 ? atoi(argv[2]) : THREADS;
	CHECK(rounds <= MOST && threads <= MOST);
	kept(2 * rounds < MOST ? 2 * rounds : MOST);
	nested();
	at_once(threads, rounds);
	return test_end();
}
