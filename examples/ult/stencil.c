/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stencil.c - heat spreads in a square, one thread per block of it, thousands of blocks.
 *
 * Each thread sends the borders of its block to its four neighbours, wherever they are, waits for
 * theirs, and goes on: no step of the whole, each block is as far as its neighbours let it be.
 * Heat is counted in whole numbers, so that the result is the same however the square is cut; rank
 * 0 computes it once more alone and compares.
 *
 *   mpicc -O2 stencil.c -o stencil && mpiexec -n 2 ./stencil --side 2048 --block 32 [--pthreads]
 */
#include <stdint.h>
#include "either.h"

enum { NORTH, SOUTH, WEST, EAST };

static long side = 512, edge = 16, steps = 20; /* cells of a side, of a block's side */
static long across;                            /* blocks in a row */

struct block {
	long x, y;            /* where in the square of blocks */
	uint32_t *now, *next; /* (edge + 2)^2 cells, a border of the neighbours' around */
	uint32_t *out[4], *in[4];
	struct thread thread;
};

/* The temperature at the beginning: a few hot spots on a rough ground. */
static uint32_t first(long x, long y)
{
	uint32_t h = (uint32_t)(x * 73856093u) ^ (uint32_t)(y * 19349663u);
	h = (h ^ h >> 13) * 0x5bd1e995u;
	return h % 97 == 0 ? 1u << 24 : h >> 12;
}

static uint32_t cell(const uint32_t *c, long width)
{
	return (4 * c[0] + c[-1] + c[1] + c[-width] + c[width]) / 8;
}

static int owner(long block)
{
	return (int)(block * ranks / (across * across));
}

/* The neighbour in a direction; -1: the edge of the square, where it is cold. */
static long neighbour(const struct block *b, int to)
{
	long x = b->x + (to == EAST) - (to == WEST), y = b->y + (to == SOUTH) - (to == NORTH);
	return x < 0 || y < 0 || x >= across || y >= across ? -1 : y * across + x;
}

static uint32_t *line(const struct block *b, int where, long i, bool outside)
{
	long width = edge + 2, near = outside ? 0 : 1, far = outside ? edge + 1 : edge;
	switch (where) {
	case NORTH:
		return b->now + near * width + 1 + i;
	case SOUTH:
		return b->now + far * width + 1 + i;
	case WEST:
		return b->now + (1 + i) * width + near;
	default:
		return b->now + (1 + i) * width + far;
	}
}

static void borders(struct block *b)
{
	MPI_Request req[8];
	int n = 0;
	long me = b->y * across + b->x;

	for (int to = 0; to < 4; to++) {
		long other = neighbour(b, to);
		if (other < 0)
			continue;
		for (long i = 0; i < edge; i++)
			b->out[to][i] = *line(b, to, i, false);
		/* A tag is whose border it is, and which. */
		MPI_Irecv(b->in[to], (int)edge, MPI_UINT32_T, owner(other),
			  (int)(other * 4 + (to ^ 1)), MPI_COMM_WORLD, &req[n++]);
		MPI_Isend(b->out[to], (int)edge, MPI_UINT32_T, owner(other), (int)(me * 4 + to),
			  MPI_COMM_WORLD, &req[n++]);
	}
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	for (int from = 0; from < 4; from++)
		for (long i = 0; i < edge && neighbour(b, from) >= 0; i++)
			*line(b, from, i, true) = b->in[from][i];
}

static void *spreads(void *arg)
{
	struct block *b = arg;
	long width = edge + 2;

	for (long s = 0; s < steps; s++) {
		borders(b);
		for (long y = 1; y <= edge; y++)
			for (long x = 1; x <= edge; x++)
				b->next[y * width + x] = cell(b->now + y * width + x, width);
		uint32_t *t = b->now;
		b->now = b->next;
		b->next = t;
	}
	return NULL;
}

static void block_init(struct block *b, long number)
{
	size_t cells = (size_t)((edge + 2) * (edge + 2));
	b->x = number % across;
	b->y = number / across;
	b->now = memory(cells * sizeof(uint32_t));
	b->next = memory(cells * sizeof(uint32_t));
	for (int i = 0; i < 4; i++) {
		b->out[i] = memory((size_t)edge * sizeof(uint32_t));
		b->in[i] = memory((size_t)edge * sizeof(uint32_t));
	}
	for (long y = 0; y < edge; y++)
		for (long x = 0; x < edge; x++)
			b->now[(y + 1) * (edge + 2) + x + 1] =
				first(b->x * edge + x, b->y * edge + y);
}

/* One number for all cells, whatever the order in which they are added. */
static uint64_t mark(uint32_t heat, long x, long y)
{
	uint64_t h = ((uint64_t)y << 32 | (uint64_t)x) * 0x9e3779b97f4a7c15u + heat;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
	return h ^ h >> 32;
}

static uint64_t block_mark(const struct block *b)
{
	uint64_t sum = 0;
	for (long y = 0; y < edge; y++)
		for (long x = 0; x < edge; x++)
			sum += mark(b->now[(y + 1) * (edge + 2) + x + 1], b->x * edge + x,
				    b->y * edge + y);
	return sum;
}

/* The whole square at once. */
static uint64_t alone(void)
{
	long width = side + 2;
	size_t cells = (size_t)(width * width);
	uint32_t *now = memory(cells * sizeof(*now)), *next = memory(cells * sizeof(*next));
	uint64_t sum = 0;

	for (long i = 0; i < side * side; i++)
		now[(i / side + 1) * width + i % side + 1] = first(i % side, i / side);
	for (long s = 0; s < steps; s++) {
		for (long i = 0; i < side * side; i++) {
			long at = (i / side + 1) * width + i % side + 1;
			next[at] = cell(now + at, width);
		}
		uint32_t *t = now;
		now = next;
		next = t;
	}
	for (long i = 0; i < side * side; i++)
		sum += mark(now[(i / side + 1) * width + i % side + 1], i % side, i / side);
	free(now);
	free(next);
	return sum;
}

int main(int argc, char **argv)
{
	const struct option options[] = {
		{"--side", &side}, {"--block", &edge}, {"--steps", &steps}, {NULL, NULL}};
	char what[80];
	uint64_t sum = 0, total = 0;

	start(&argc, argv, options);
	if (side % edge)
		fail("--side must be a multiple of --block");
	across = side / edge;
	long from = 0, to, blocks = across * across;
	while (from < blocks && owner(from) < rank)
		from++;
	for (to = from; to < blocks && owner(to) == rank;)
		to++;
	struct block *b = memory((size_t)(to - from) * sizeof(*b));
	for (long i = from; i < to; i++)
		block_init(&b[i - from], i);
	MPI_Barrier(MPI_COMM_WORLD);
	double t = MPI_Wtime();
	for (long i = 0; i < to - from; i++)
		thread_start(&b[i].thread, spreads, &b[i]);
	for (long i = 0; i < to - from; i++)
		thread_end(&b[i].thread);
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime() - t;
	for (long i = 0; i < to - from; i++)
		sum += block_mark(&b[i]);
	MPI_Reduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0 && total != alone())
		fail("the blocks' result is not the whole square's");
	snprintf(what, sizeof(what), "stencil of %ld blocks of %ld x %ld", blocks, edge, edge);
	result(what, "time", "ms per step", t * 1e3 / (double)steps);
	for (long i = 0; i < to - from; i++) {
		free(b[i].now);
		free(b[i].next);
		for (int j = 0; j < 4; j++) {
			free(b[i].out[j]);
			free(b[i].in[j]);
		}
	}
	free(b);
	return finish();
}
