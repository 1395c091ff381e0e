/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo.c - how long is a step of threads that exchange their borders and compute?  (CAC 2008, table
 * 1)
 *
 * Unit      microseconds per step.
 * Bound     the computation alone, row "compute".
 * Method    two ranks with N threads each in a row of 2 N parts that closes to a ring.  Each thread
 *           computes its borders, starts sending them to both neighbours, which may be threads of
 *           its own rank, computes the inner part, and receives theirs.  Borders have 4 KiB, the
 *           inner part takes 100 us.  "unbound": the ranks share all cores.  "idle": the last
 *           thread of rank 1 sleeps for most of its inner part instead of computing, as one that
 *           waits for a disk.
 *
 * halo [--quick] [unbound|idle] N
 */
#include "bench_mpi.h"
#include <pthread.h>

#define BORDER 4096
#define THREADS_MAX 64

static int threads, steps, idle;
static long border_turns, inner_turns;
static pthread_barrier_t go;
static double begun, ended;

struct part {
	int n; /* of the ring */
	char out[2][BORDER], in[2][BORDER];
};

static int rank_of(int part)
{
	return part / threads;
}

static void step(struct part *p)
{
	int parts = 2 * threads, next = (p->n + 1) % parts, before = (p->n + parts - 1) % parts;
	MPI_Request r[2];

	bench_compute(border_turns);
	/* The tag names the part that receives, and from which side. */
	MPI_Isend(p->out[1], BORDER, MPI_CHAR, rank_of(next), 2 * next, MPI_COMM_WORLD, &r[1]);
	MPI_Isend(p->out[0], BORDER, MPI_CHAR, rank_of(before), 2 * before + 1, MPI_COMM_WORLD,
		  &r[0]);
	if (idle && p->n == parts - 1)
		usleep(100);
	else
		bench_compute(inner_turns);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	MPI_Recv(p->in[0], BORDER, MPI_CHAR, rank_of(before), 2 * p->n, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Recv(p->in[1], BORDER, MPI_CHAR, rank_of(next), 2 * p->n + 1, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

static void *run(void *arg)
{
	struct part *p = arg;
	for (int i = 0; i < 5; i++)
		step(p);
	pthread_barrier_wait(&go);
	if (p->n == 0)
		begun = bench_now_us();
	for (int i = 0; i < steps; i++)
		step(p);
	pthread_barrier_wait(&go);
	if (p->n == 0)
		ended = bench_now_us();
	return NULL;
}

/* Undoes the binding of bench_start: all cores that the machine has for us. */
static void unbind(void)
{
	cpu_set_t all;
	CPU_ZERO(&all);
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF) && cpu < CPU_SETSIZE; cpu++)
		CPU_SET(cpu, &all);
	(void)sched_setaffinity(0, sizeof(all), &all);
}

int main(int argc, char **argv)
{
	static struct part part[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	char name[48];

	bench_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	int unbound = argc > 2 && strcmp(argv[1], "unbound") == 0;
	idle = argc > 2 && strcmp(argv[1], "idle") == 0;
	threads = argc > 1 ? atoi(argv[argc - 1]) : 0;
	if (threads < 1 || threads > THREADS_MAX || argc > 3 || (argc == 3 && !unbound && !idle))
		bench_usage(argv[0], argc > 1 ? argv[1] : "", "[--quick] [unbound|idle] N");
	if (bench_ranks != 2) {
		fprintf(stderr, "halo: needs 2 ranks, has %d\n", bench_ranks);
		MPI_Finalize();
		return 2;
	}
	border_turns = bench_turns(5);
	inner_turns = bench_turns(100);
	steps = (bench_quick ? 400 : 4000) / threads;
	if (unbound)
		unbind();
	pthread_barrier_init(&go, NULL, (unsigned)threads);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < threads; i++) {
		part[i].n = bench_rank * threads + i;
		if (pthread_create(&thread[i], NULL, run, &part[i])) {
			fprintf(stderr, "halo: cannot start thread %d of %d\n", i, threads);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (bench_rank == 0) {
		double t = bench_now_us();
		for (int i = 0; i < 100; i++)
			bench_compute(border_turns + inner_turns);
		t = (bench_now_us() - t) / 100 * threads;
		snprintf(name, sizeof(name), "%d threads%s", 2 * threads,
			 unbound ? " unbound"
			 : idle  ? " one idle"
				 : "");
		bench_row(name, "step", "us", (ended - begun) / steps);
		bench_row(name, "compute", "us", t);
	}
	MPI_Finalize();
	return 0;
}
