/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bfs.c - breadth-first search on a Kronecker graph, as Graph500 asks for it.
 *
 * 2^scale vertices, 16 edges each, drawn with the probabilities 0.57, 0.19, 0.19, 0.05 per quarter
 * of the matrix and then renumbered.  Each rank has a range of vertices; in each level its threads
 * look through their parts of it and send what they find elsewhere to that rank, in pieces; there,
 * a thread for each sender is blocked in MPI_Recv.  After each search, the tree is proved: parents
 * are neighbours, levels differ by one from the parent's, and by at most one along any edge.
 *
 *   mpicc -O2 bfs.c -o bfs && mpiexec -n 2 ./bfs --scale 16 --threads 64 [--pthreads]
 */
#include <stdatomic.h>
#include <stdint.h>
#include "either.h"

enum { EDGES = 16, PIECE = 128, NO_PARENT = -1 };

static long scale = 12, threads = 32, searches = 4;
static int64_t vertices, mine, first; /* in all; of this rank; the first of these */
static int64_t *edges_at;             /* of a vertex: where its neighbours begin */
static uint32_t *neighbours;
static _Atomic int32_t *x_parent; /* NO_PARENT: not reached */
static int32_t
	*level; /* written by the thread that claimed the vertex; read after the level's barrier */

/* ---- the graph ------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Another number for the same vertex: or the busy ones would all be the first rank's. */
static int64_t renumbered(int64_t v)
{
	uint64_t mask = (uint64_t)vertices - 1, x = (uint64_t)v;
	for (int i = 0; i < 3; i++) {
		x = (x * 0x9e3779b97f4a7c15u + 12345) & mask;
		x ^= x >> (scale / 2 + 1);
	}
	return (int64_t)x;
}

static void edge(int64_t number, int64_t *a_p, int64_t *b_p)
{
	int64_t a = 0, b = 0;
	uint64_t state = mixed(20161121 + (uint64_t)number * 0x9e3779b97f4a7c15u);
	for (long bit = 0; bit < scale; bit++) {
		uint32_t draw = (uint32_t)(mixed(state += 0x9e3779b97f4a7c15u) % 100);
		a = a << 1 | (draw >= 76);
		b = b << 1 | ((draw >= 57 && draw < 76) || draw >= 95);
	}
	*a_p = renumbered(a);
	*b_p = renumbered(b);
}

static bool here(int64_t v)
{
	return v >= first && v < first + mine;
}

static int owner(int64_t v)
{
	return (int)(v / ((vertices + ranks - 1) / ranks));
}

/* Every rank draws all edges and keeps those that touch its vertices. */
static void make_graph(void)
{
	int64_t a, b, per = (vertices + ranks - 1) / ranks;
	first = per * rank < vertices ? per * rank : vertices;
	mine = vertices - first < per ? vertices - first : per;
	edges_at = memory((size_t)(mine + 2) * sizeof(*edges_at));
	for (int64_t e = 0; e < EDGES * vertices; e++) {
		edge(e, &a, &b);
		if (a != b && here(a))
			edges_at[a - first + 2]++;
		if (a != b && here(b))
			edges_at[b - first + 2]++;
	}
	for (int64_t v = 0; v < mine; v++)
		edges_at[v + 2] += edges_at[v + 1];
	neighbours = memory((size_t)edges_at[mine + 1] * sizeof(*neighbours));
	for (int64_t e = 0; e < EDGES * vertices; e++) {
		edge(e, &a, &b);
		if (a != b && here(a))
			neighbours[edges_at[a - first + 1]++] = (uint32_t)b;
		if (a != b && here(b))
			neighbours[edges_at[b - first + 1]++] = (uint32_t)a;
	}
}

/* ---- a search -------------------------------------------------------------------------------- */

struct found {
	uint32_t vertex, parent;
};

static struct meeting meeting;
static int32_t depth; /* of the level that is looked through; changed between two meetings */
static bool more;
static _Atomic long x_reached; /* in this level, on this rank */

static void claim(uint32_t vertex, uint32_t parent)
{
	int64_t v = vertex - first;
	int32_t none = NO_PARENT;
	/* Relaxed: a reader has passed the barrier after it. */
	if (atomic_load_explicit(&x_parent[v], memory_order_relaxed) == NO_PARENT &&
	    atomic_compare_exchange_strong_explicit(&x_parent[v], &none, (int32_t)parent,
						    memory_order_relaxed, memory_order_relaxed)) {
		level[v] = depth + 1;
		atomic_fetch_add_explicit(&x_reached, 1, memory_order_relaxed);
	}
}

/* True: another level follows. */
static bool next_level(void)
{
	if (meeting_join(&meeting)) {
		long reached = atomic_load(&x_reached), all;
		MPI_Allreduce(&reached, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		atomic_store(&x_reached, 0);
		more = all > 0;
		depth++;
	}
	meeting_join(&meeting);
	return more;
}

/* Looks through part `arg` of the rank's vertices. */
static void *looks(void *arg)
{
	long part = (long)arg;
	int64_t from = mine * part / threads, to = mine * (part + 1) / threads;
	struct found *out = memory((size_t)ranks * PIECE * sizeof(*out));
	int *count = memory((size_t)ranks * sizeof(*count));

	do {
		for (int64_t v = from; v < to; v++) {
			if (level[v] != depth)
				continue;
			for (int64_t e = edges_at[v]; e < edges_at[v + 1]; e++) {
				uint32_t n = neighbours[e];
				if (here(n)) {
					claim(n, (uint32_t)(first + v));
					continue;
				}
				int r = owner(n);
				out[r * PIECE + count[r]++] =
					(struct found){n, (uint32_t)(first + v)};
				if (count[r] == PIECE) {
					MPI_Send(&out[r * PIECE], 2 * PIECE, MPI_UINT32_T, r,
						 (int)part, MPI_COMM_WORLD);
					count[r] = 0;
				}
			}
		}
		for (int r = 0; r < ranks; r++) { /* a short one is the level's last */
			if (r != rank)
				MPI_Send(&out[r * PIECE], 2 * count[r], MPI_UINT32_T, r, (int)part,
					 MPI_COMM_WORLD);
			count[r] = 0;
		}
	} while (next_level());
	free(out);
	free(count);
	return NULL;
}

/* Takes what thread `arg % threads` of rank `arg / threads` has found. */
static void *takes(void *arg)
{
	int from = (int)((long)arg / threads), part = (int)((long)arg % threads), count;
	struct found *in = memory(PIECE * sizeof(*in));
	MPI_Status st;

	do {
		do {
			MPI_Recv(in, 2 * PIECE, MPI_UINT32_T, from, part, MPI_COMM_WORLD, &st);
			MPI_Get_count(&st, MPI_UINT32_T, &count);
			for (int i = 0; i < count / 2; i++)
				claim(in[i].vertex, in[i].parent);
		} while (count == 2 * PIECE);
	} while (next_level());
	free(in);
	return NULL;
}

static double search(int64_t root)
{
	struct thread *t = memory((size_t)(threads * ranks) * sizeof(*t));
	long n = 0;

	for (int64_t v = 0; v < mine; v++) {
		atomic_store_explicit(&x_parent[v], NO_PARENT, memory_order_relaxed);
		level[v] = NO_PARENT;
	}
	depth = 0;
	if (here(root)) {
		atomic_store(&x_parent[root - first], (int32_t)root);
		level[root - first] = 0;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	double began = MPI_Wtime();
	for (long i = 0; i < threads; i++)
		thread_start(&t[n++], looks, (void *)i);
	for (long i = 0; i < threads * ranks; i++)
		if (i / threads != rank)
			thread_start(&t[n++], takes, (void *)i);
	while (n > 0)
		thread_end(&t[--n]);
	MPI_Barrier(MPI_COMM_WORLD);
	free(t);
	return MPI_Wtime() - began;
}

/* ---- the proof ------------------------------------------------------------------------------- */

/* Returns the number of edges within the tree's vertices. */
static int64_t prove(int64_t root)
{
	int per = (int)((vertices + ranks - 1) / ranks);
	int32_t *all = memory((size_t)per * (size_t)ranks * sizeof(*all));
	int32_t *part = memory((size_t)per * sizeof(*part));
	int64_t ends = 0, sum;

	memcpy(part, level, (size_t)mine * sizeof(*part));
	MPI_Allgather(part, per, MPI_INT32_T, all, per, MPI_INT32_T, MPI_COMM_WORLD);
	for (int64_t v = 0; v < mine; v++) {
		int64_t parent = atomic_load(&x_parent[v]);
		bool is_neighbour = first + v == root;
		if ((parent == NO_PARENT) != (level[v] == NO_PARENT))
			fail("a vertex has a level without a parent");
		for (int64_t e = edges_at[v]; e < edges_at[v + 1]; e++) {
			int32_t other = all[neighbours[e]];
			is_neighbour |= neighbours[e] == parent;
			if ((other == NO_PARENT) != (level[v] == NO_PARENT))
				fail("an edge leads out of the tree");
			if (other != NO_PARENT && abs(other - level[v]) > 1)
				fail("an edge leaps over a level");
		}
		if (parent == NO_PARENT)
			continue;
		ends += edges_at[v + 1] - edges_at[v];
		if (!is_neighbour)
			fail("a parent is no neighbour");
		if (first + v == root ? parent != root : level[v] != all[parent] + 1)
			fail("a vertex is not one level below its parent");
	}
	MPI_Allreduce(&ends, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	free(all);
	free(part);
	return sum / 2;
}

/* The next vertex with neighbours, from a number on. */
static int64_t some_root(int64_t from)
{
	for (int64_t v = from;; v = (v + 1) % vertices) { /* ends: there are edges */
		int has = here(v) && edges_at[v - first + 1] > edges_at[v - first];
		MPI_Bcast(&has, 1, MPI_INT, owner(v), MPI_COMM_WORLD);
		if (has)
			return v;
	}
}

int main(int argc, char **argv)
{
	const struct option options[] = {{"--scale", &scale},
					 {"--threads", &threads},
					 {"--searches", &searches},
					 {NULL, NULL}};
	char what[80];
	double per_second = 0;

	start(&argc, argv, options);
	if (scale < 4 || scale > 28)
		fail("--scale is between 4 and 28");
	vertices = (int64_t)1 << scale;
	make_graph();
	x_parent = memory((size_t)mine * sizeof(*x_parent));
	level = memory((size_t)mine * sizeof(*level));
	meeting_init(&meeting, (unsigned)(threads * ranks));
	for (long s = 0; s < searches; s++) {
		int64_t root = some_root((int64_t)(mixed((uint64_t)s) % (uint64_t)vertices));
		double t = search(root);
		per_second += (double)prove(root) / t / (double)searches;
	}
	snprintf(what, sizeof(what), "search of 2^%ld vertices with %ld threads", scale,
		 threads * ranks * ranks);
	result(what, "rate", "million edges per second", per_second / 1e6);
	free(edges_at);
	free(neighbours);
	free((void *)x_parent);
	free(level);
	return finish();
}
