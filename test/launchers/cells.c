/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cells.c - what tools/suite-launchers runs under each launcher: hello, ring, spawn, die.
 *
 * A run that went as promised ends in one line of rank 0, "NAME ok ...", and exit code 0; `die` must not.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void must(int cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "rank %d of %d: failed: %s\n", rank, size, what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static void hello(void)
{
	int sum;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	must(sum == size * (size - 1) / 2, "sum");
	if (rank == 0)
		printf("hello ok %d\n", size);
}

/* How many processors' names there are. */
static int hosts(void)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "", *all = malloc((size_t)size * sizeof name);
	int len, n = 0;
	MPI_Get_processor_name(name, &len);
	MPI_Allgather(name, sizeof name, MPI_CHAR, all, sizeof name, MPI_CHAR, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++) {
		int k = 0;
		while (strcmp(all + (size_t)k * sizeof name, all + (size_t)i * sizeof name) != 0)
			k++;
		n += k == i;
	}
	free(all);
	return n;
}

/* A small and a large message go round. */
static void ring(void)
{
	enum { MANY = 300000 };
	static int out[MANY], in[MANY];
	int n = hosts();
	for (int len = 1; len <= MANY; len = len == MANY ? MANY + 1 : MANY) {
		for (int i = 0; i < len; i++)
			out[i] = rank + i;
		MPI_Sendrecv(out, len, MPI_INT, (rank + 1) % size, 5, in, len, MPI_INT,
			     (rank + size - 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < len; i++)
			must(in[i] == (rank + size - 1) % size + i, "ring");
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("ring ok %d on %d\n", size, n);
}

/* Two children; they and the parents meet once more through a port. */
static void spawn(char *self)
{
	char port[MPI_MAX_PORT_NAME] = "", arg[] = "child";
	char *argv[] = {arg, NULL};
	int codes[2], n, one = 1, sum = 0;
	MPI_Comm children, again;
	MPI_Comm_spawn(self, argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
	MPI_Comm_remote_size(children, &n);
	must(n == 2, "two children");
	if (rank == 0)
		MPI_Open_port(MPI_INFO_NULL, port);
	MPI_Bcast(port, sizeof port, MPI_CHAR, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children);
	MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &again);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, again);
	must(sum == 2, "sum of the children");
	MPI_Comm_disconnect(&again);
	MPI_Comm_disconnect(&children);
	if (rank == 0) {
		MPI_Close_port(port);
		printf("spawn ok %d\n", size);
	}
}

static void child(void)
{
	char port[MPI_MAX_PORT_NAME];
	int one = 1, sum;
	MPI_Comm parent, again;
	MPI_Comm_get_parent(&parent);
	must(parent != MPI_COMM_NULL, "a parent");
	MPI_Bcast(port, sizeof port, MPI_CHAR, 0, parent);
	MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &again);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, again);
	MPI_Comm_disconnect(&again);
	MPI_Comm_disconnect(&parent);
}

/* The last rank dies while the others wait for it. */
static void die(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1)
		raise(SIGKILL);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "hello";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(what, "hello") == 0)
		hello();
	else if (strcmp(what, "ring") == 0)
		ring();
	else if (strcmp(what, "spawn") == 0)
		spawn(argv[0]);
	else if (strcmp(what, "child") == 0)
		child();
	else if (strcmp(what, "die") == 0)
		die();
	MPI_Finalize();
	return 0;
}
