/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heat.c - heat spreads in a thick plate with a picture painted hot on its top.
 *
 * An ordinary MPI + OpenMP program.  The picture's rows are divided among the ranks; each thread
 * has some of the plate's layers.  In each step every thread sends the edge of its share to the
 * neighbouring ranks, computes what needs nothing from them, waits for their edges (the halo), and
 * computes the rest.  So the transfer can hide behind the computation, if it moves meanwhile.
 *
 *   mpiexec -n 2 heat [--in FILE] [--out FILE] [--steps N] [--layers N]
 *
 * Reads PNG or PGM, writes PNG (or PGM, if FILE ends so).  Prints what the transfers cost:
 *
 *   total     the steps alone
 *   in waits  the part of it in MPI_Waitall, mean over threads
 *   hidden    (T_comm + T_comp - T) / min(T_comm, T_comp) per step: the share of the transfer that
 *             cost nothing; T_comm and T_comp are measured alone, several times in between
 *   cpu burnt while waiting   CPU time of all ranks that was not computation, communication
 *             threads included
 *
 * The result is the same to the bit whatever the MPI: each cell is computed once, from the same
 * numbers, in the same order.
 */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "picture.h"

#define ALPHA 0.15 /* below 1/6 the scheme is stable */
#define CHUNKS 8   /* the steps run in so many pieces; between them */
#define PROBES 4   /* a step's parts are measured alone, so often */

static int rank, ranks;
static int width, layers; /* of every row of the picture: layers * width cells */
static int rows;          /* mine */
static size_t plane;      /* cells of a row: layers * width */

/* Rows -1 .. rows; row -1 and row `rows` are the neighbours'. */
static double *now, *next;

static double *row_of(double *cells, int y)
{
	return cells + (size_t)(y + 1) * plane;
}

static double clock_s(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double process_cpu_s(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

/* ---- the computation ------------------------------------------------------------------------ */

/* One line of cells; its six neighbours are the lines around it, or itself where the plate ends. */
static void line(double *out, const double *c, const double *above, const double *below,
		 const double *up, const double *down)
{
	int last = width - 1;
	for (int x = 0; x < width; x++) {
		double left = c[x > 0 ? x - 1 : 0], right = c[x < last ? x + 1 : last];
		double around = ((left + right) + (above[x] + below[x])) + (up[x] + down[x]);
		out[x] = c[x] + ALPHA * (around - 6.0 * c[x]);
	}
}

/* Layers [z0, z1) of row y. */
static void row(int y, int z0, int z1)
{
	double *c = row_of(now, y);
	const double *up = y == 0 && rank == 0 ? c : row_of(now, y - 1);
	const double *down = y == rows - 1 && rank == ranks - 1 ? c : row_of(now, y + 1);
	for (int z = z0; z < z1; z++) {
		size_t at = (size_t)z * width;
		line(row_of(next, y) + at, c + at, c + at - (z > 0 ? width : 0),
		     c + at + (z < layers - 1 ? width : 0), up + at, down + at);
	}
}

/* Where part i of n equal parts of `all` begins. */
static int first_of(int all, int i, int n)
{
	return (int)((long)all * i / n);
}

/* ---- one step, by all threads --------------------------------------------------------------- */

struct share {
	int z0, z1;     /* my layers */
	double waits;   /* seconds in MPI_Waitall */
	double compute; /* CPU seconds of computing */
	MPI_Request req[4];
};

/* My layers of the edges go to the same thread of the neighbours: the tag is the thread. */
static void exchange_start(struct share *s, int thread)
{
	int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
	int below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
	size_t at = (size_t)s->z0 * width;
	int n = (s->z1 - s->z0) * width;
	MPI_Irecv(row_of(now, -1) + at, n, MPI_DOUBLE, above, thread, MPI_COMM_WORLD, &s->req[0]);
	MPI_Irecv(row_of(now, rows) + at, n, MPI_DOUBLE, below, thread, MPI_COMM_WORLD, &s->req[1]);
	MPI_Isend(row_of(now, 0) + at, n, MPI_DOUBLE, above, thread, MPI_COMM_WORLD, &s->req[2]);
	MPI_Isend(row_of(now, rows - 1) + at, n, MPI_DOUBLE, below, thread, MPI_COMM_WORLD,
		  &s->req[3]);
}

static void exchange_wait(struct share *s)
{
	MPI_Status status[4];
	double t = clock_s(CLOCK_MONOTONIC);
	MPI_Waitall(4, s->req, status);
	s->waits += clock_s(CLOCK_MONOTONIC) - t;
	/* A line at its end needs the layer beside it, which another thread received. */
#pragma omp barrier
}

static void compute_inner(struct share *s)
{
	double t = clock_s(CLOCK_THREAD_CPUTIME_ID);
	for (int y = 1; y < rows - 1; y++)
		row(y, s->z0, s->z1);
	s->compute += clock_s(CLOCK_THREAD_CPUTIME_ID) - t;
}

static void compute_edges(struct share *s)
{
	double t = clock_s(CLOCK_THREAD_CPUTIME_ID);
	row(0, s->z0, s->z1);
	if (rows > 1)
		row(rows - 1, s->z0, s->z1);
	s->compute += clock_s(CLOCK_THREAD_CPUTIME_ID) - t;
}

static void swap(void)
{
#pragma omp barrier
#pragma omp single
	{
		double *t = now;
		now = next;
		next = t;
	}
}

/* ---- what a step's parts take alone --------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	return v[n / 2];
}

/* Exchanges without computation and computation without exchange; writes only what is unused. */
static void probe(double *comm, double *comp, int n)
{
#pragma omp parallel
	{
		int thread = omp_get_thread_num(), threads = omp_get_num_threads();
		struct share s = {.z0 = first_of(layers, thread, threads),
				  .z1 = first_of(layers, thread + 1, threads)};
		for (int i = 0; i < n; i++) {
#pragma omp master
			{
				MPI_Barrier(MPI_COMM_WORLD);
				comm[i] = clock_s(CLOCK_MONOTONIC);
			}
#pragma omp barrier
			exchange_start(&s, thread);
			exchange_wait(&s);
#pragma omp master
			{
				comm[i] = clock_s(CLOCK_MONOTONIC) - comm[i];
				comp[i] = clock_s(CLOCK_MONOTONIC);
			}
#pragma omp barrier
			compute_inner(&s);
			compute_edges(&s);
#pragma omp barrier
#pragma omp master
			comp[i] = clock_s(CLOCK_MONOTONIC) - comp[i];
		}
	}
}

/* ---- the whole ------------------------------------------------------------------------------ */

struct cost {
	double total, waits, burnt; /* seconds of this rank; burnt is CPU time */
};

static void simulate(int steps, struct cost *cost)
{
	double waits = 0, compute = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	double cpu = process_cpu_s(), t = clock_s(CLOCK_MONOTONIC);
#pragma omp parallel reduction(+ : waits, compute)
	{
		int thread = omp_get_thread_num(), threads = omp_get_num_threads();
		struct share s = {.z0 = first_of(layers, thread, threads),
				  .z1 = first_of(layers, thread + 1, threads)};
		for (int step = 0; step < steps; step++) {
			exchange_start(&s, thread);
			compute_inner(&s);
			exchange_wait(&s);
			compute_edges(&s);
			swap();
		}
		waits = s.waits / threads;
		compute = s.compute;
	}
	cost->total += clock_s(CLOCK_MONOTONIC) - t;
	cost->waits += waits;
	cost->burnt += process_cpu_s() - cpu - compute;
}

struct arguments {
	const char *in, *out;
	int steps, layers;
};

static int usage(const char *text, const char *word)
{
	if (rank == 0)
		fprintf(stderr,
			"heat: %s%s; usage: heat [--in FILE] [--out FILE] [--steps N] "
			"[--layers N]\n",
			text, word);
	return -1;
}

static int parse(struct arguments *a, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		if (strncmp(word, "--", 2) != 0)
			return usage("what is ", word);
		if (i + 1 == argc)
			return usage("a value is missing after ", word);
		char *value = argv[++i], *end = value;
		long n = strtol(value, &end, 10);
		if (strcmp(word, "--in") == 0)
			a->in = value;
		else if (strcmp(word, "--out") == 0)
			a->out = value;
		else if (strcmp(word, "--steps") == 0 && !*end && n >= 0 && n < 1000000000)
			a->steps = (int)n;
		else if (strcmp(word, "--layers") == 0 && !*end && n >= 1 && n <= 100000)
			a->layers = (int)n;
		else
			return usage("not possible: ", value);
	}
	return 0;
}

/* Which rows of `height` belong to rank r: [first(r), first(r + 1)). */
static int first(int height, int r)
{
	return first_of(height, r, ranks);
}

/* Cells of a plate; written once, so that every page is there before time counts.  NULL: no memory.
 */
static double *cells(void)
{
	size_t n = ((size_t)rows + 2) * plane;
	double *c = malloc(n * sizeof(*c));
	for (size_t i = 0; c && i < n; i++)
		c[i] = 0;
	return c;
}

/* The top layer's rows go out to the ranks, or come back from them. */
static void spread(double *grey, int height, int out)
{
	double *mine = malloc((size_t)rows * width * sizeof(*mine));
	int *counts = malloc((size_t)ranks * sizeof(*counts)),
	    *at = malloc((size_t)ranks * sizeof(*at));
	for (int r = 0; r < ranks; r++) {
		at[r] = first(height, r) * width;
		counts[r] = first(height, r + 1) * width - at[r];
	}
	if (out)
		MPI_Scatterv(grey, counts, at, MPI_DOUBLE, mine, rows * width, MPI_DOUBLE, 0,
			     MPI_COMM_WORLD);
	for (int y = 0; y < rows; y++) {
		if (out)
			memcpy(row_of(now, y), mine + (size_t)y * width, (size_t)width * 8);
		else
			memcpy(mine + (size_t)y * width, row_of(now, y), (size_t)width * 8);
	}
	if (!out)
		MPI_Gatherv(mine, rows * width, MPI_DOUBLE, grey, counts, at, MPI_DOUBLE, 0,
			    MPI_COMM_WORLD);
	free(mine);
	free(counts);
	free(at);
}

static void report(int steps, const struct cost *cost, double comm, double comp)
{
	double mine[] = {cost->waits / ranks, cost->burnt > 0 ? cost->burnt : 0}, sum[2];
	double times[] = {cost->total, comm, comp}, most[3];
	MPI_Reduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(times, most, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank != 0)
		return;
	double step = most[0] / (steps ? steps : 1);
	double shorter = most[1] < most[2] ? most[1] : most[2];
	printf("total %.3f s\n", most[0]);
	printf("in waits %.3f s\n", sum[0]);
	printf("a step: transfer alone %.3f ms, computation alone %.3f ms, both %.3f ms\n",
	       most[1] * 1e3, most[2] * 1e3, step * 1e3);
	/* Less than a tenth disappears in the fluctuation of the computation and its memory. */
	if (ranks > 1 && steps > 0 && most[1] > most[2] / 10)
		printf("hidden %.2f\n", (most[1] + most[2] - step) / shorter);
	else
		printf("hidden - (the transfer is too short to tell)\n");
	printf("cpu burnt while waiting %.3f s\n", sum[1]);
}

static int heat(const struct arguments *a)
{
	struct picture picture = {0};
	double comm[CHUNKS * PROBES], comp[CHUNKS * PROBES];
	int head[3] = {0}; /* width, height, good */

	if (rank == 0 && picture_read(&picture, a->in) == 0) {
		head[0] = picture.width;
		head[1] = picture.height;
		head[2] = 1;
	}
	MPI_Bcast(head, 3, MPI_INT, 0, MPI_COMM_WORLD);
	if (!head[2])
		return 1;
	width = head[0];
	layers = a->layers;
	plane = (size_t)width * layers;
	rows = first(head[1], rank + 1) - first(head[1], rank);
	if (head[1] < ranks) {
		if (rank == 0)
			fprintf(stderr, "heat: %d rows are too few for %d ranks\n", head[1], ranks);
		return 1;
	}
	/* A rank without memory must not leave the others waiting: they agree. */
	now = cells();
	next = cells();
	int good = now && next, all;
	MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!all) {
		if (!good)
			fprintf(stderr, "heat: rank %d has no memory for its plate\n", rank);
		return 1;
	}
	spread(picture.grey, head[1], 1);
	if (rank == 0)
		printf("plate of %d x %d x %d cells, %d ranks of %d threads, %d steps\n", width,
		       head[1], layers, ranks, omp_get_max_threads(), a->steps);

	struct cost cost = {0};
	for (int chunk = 0; chunk < CHUNKS; chunk++) {
		probe(&comm[chunk * PROBES], &comp[chunk * PROBES], PROBES);
		simulate(first_of(a->steps, chunk + 1, CHUNKS) - first_of(a->steps, chunk, CHUNKS),
			 &cost);
	}
	report(a->steps, &cost, median(comm, CHUNKS * PROBES), median(comp, CHUNKS * PROBES));
	spread(picture.grey, head[1], 0);
	int bad = rank == 0 && a->out && picture_write(&picture, a->out) != 0;
	MPI_Bcast(&bad, 1, MPI_INT, 0, MPI_COMM_WORLD);
	free(picture.grey);
	free(now);
	free(next);
	return bad;
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.in = "examples/heat.png", .out = "heat-out.png", .steps = 200, .layers = 256};
	int level, result;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (level < MPI_THREAD_MULTIPLE) {
		fprintf(stderr, "heat: this MPI does not give MPI_THREAD_MULTIPLE\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	result = parse(&a, argc, argv) != 0 ? 2 : heat(&a);
	MPI_Finalize();
	return result;
}
