/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo_map.c - processes in the order of their places; each takes the free node that is tied most
 * to the nodes of its neighbourhood.  Then pairs change places as long as that helps.
 */
#include "mpi/topo/topo_map.h"

#include <stdlib.h>
#include <string.h>
#include "mpi/comm/place.h"

#define SWAP_ROUNDS 4 /* each costs n * n / 2 looks at a node's edges */
#define SWAP_MOST 256 /* processes, up to which pairs are tried */

struct mapping {
	const struct weft_topo_graph *g;
	const struct weft_mpi_place *place; /* of each process */
	int *order;                         /* processes, near ones next to each other */
	int *node;                          /* of each process; -1: none yet */
	int *process;                       /* of each node; -1: none yet */
};

static int weight_of(const struct weft_topo_graph *g, int e)
{
	return g->weight ? g->weight[e] : 1;
}

/* What the edges of a node cost, were it on that process. */
static int64_t cost_at(const struct mapping *m, int node, int process)
{
	int64_t cost = 0;

	for (int e = m->g->first[node]; e < m->g->first[node + 1]; e++) {
		int other = m->g->edge[e];
		if (other == MPI_PROC_NULL || other == node || m->process[other] < 0)
			continue;
		cost += (int64_t)weight_of(m->g, e) *
			weft_mpi_place_distance(&m->place[process], &m->place[m->process[other]]);
	}
	return cost;
}

static int64_t cost_all(const struct mapping *m)
{
	int64_t cost = 0;

	for (int v = 0; v < m->g->n; v++)
		cost += cost_at(m, v, m->process[v]);
	return cost;
}

static void put(struct mapping *m, int node, int process)
{
	m->node[process] = node;
	m->process[node] = process;
}

/* ---- the order of processes --------------------------------------------------------------------- */

struct sorted {
	struct weft_mpi_place place;
	int process;
};

static int compare(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->place.host != y->place.host)
		return x->place.host < y->place.host ? -1 : 1;
	for (int i = 0; i < WEFT_TOPO_RESOURCES_MAX; i++)
		if (x->place.at[i] != y->place.at[i])
			return x->place.at[i] < y->place.at[i] ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static bool sort_processes(struct mapping *m)
{
	int n = m->g->n;
	struct sorted *s = malloc(((size_t)n + 1) * sizeof *s);

	if (!s)
		return false;
	for (int p = 0; p < n; p++)
		s[p] = (struct sorted){.place = m->place[p], .process = p};
	qsort(s, (size_t)n, sizeof *s, compare);
	for (int i = 0; i < n; i++)
		m->order[i] = s[i].process;
	free(s);
	return true;
}

/* ---- nodes for them ----------------------------------------------------------------------------- */

/* Ties that node v has to nodes that are placed near the process, minus those to nodes far off. */
static int64_t pull(const struct mapping *m, int node, int process)
{
	int64_t sum = 0;

	for (int e = m->g->first[node]; e < m->g->first[node + 1]; e++) {
		int other = m->g->edge[e];
		if (other == MPI_PROC_NULL || other == node || m->process[other] < 0)
			continue;
		int far = weft_mpi_place_distance(&m->place[process], &m->place[m->process[other]]);
		sum += (int64_t)weight_of(m->g, e) * (8 * WEFT_TOPO_RESOURCES_MAX - far);
	}
	return sum;
}

static void place_nodes(struct mapping *m)
{
	int n = m->g->n;

	for (int i = 0; i < n; i++) {
		int best = -1;
		int64_t most = -1;
		for (int v = 0; v < n; v++) {
			int64_t p = m->process[v] < 0 ? pull(m, v, m->order[i]) : -1;
			if (p > most) {
				most = p;
				best = v;
			}
		}
		put(m, best, m->order[i]);
	}
}

static bool swap_helps(struct mapping *m, int a, int b)
{
	int p = m->process[a], q = m->process[b];
	int64_t before = cost_at(m, a, p) + cost_at(m, b, q);

	put(m, a, q);
	put(m, b, p);
	if (cost_at(m, a, q) + cost_at(m, b, p) < before)
		return true;
	put(m, a, p);
	put(m, b, q);
	return false;
}

static void swap_pairs(struct mapping *m)
{
	int n = m->g->n;
	bool helped = n <= SWAP_MOST;

	for (int round = 0; round < SWAP_ROUNDS && helped; round++) {
		helped = false;
		for (int a = 0; a < n; a++)
			for (int b = a + 1; b < n; b++)
				helped |= swap_helps(m, a, b);
	}
}

/* ---- all of it ---------------------------------------------------------------------------------- */

static bool places_differ(const struct weft_mpi_place *place, int n)
{
	for (int p = 1; p < n; p++)
		if (weft_mpi_place_distance(&place[0], &place[p]))
			return true;
	return false;
}

/* False: no memory, or no better than the ranks as they are. */
static bool find_better(struct mapping *m)
{
	int n = m->g->n;

	if (!m->order || !m->node || !m->process || !sort_processes(m))
		return false;
	for (int v = 0; v < n; v++)
		put(m, v, v);
	int64_t before = cost_all(m);
	memset(m->node, 0xff, (size_t)n * sizeof *m->node);
	memset(m->process, 0xff, (size_t)n * sizeof *m->process);
	place_nodes(m);
	swap_pairs(m);
	return cost_all(m) < before;
}

int weft_mpi_topo_map(struct weft_mpi_comm *c, const struct weft_topo_graph *g, int *node_p)
{
	int err;

	*node_p = c->rank;
	if (g->n < 2 || g->n > WEFT_TOPO_MAP_MOST)
		return MPI_SUCCESS;
	struct weft_mpi_place *place = weft_mpi_place_gather(c, &err);
	if (!place)
		return err;
	if (c->rank < g->n && places_differ(place, g->n)) {
		size_t bytes = (size_t)g->n * sizeof(int);
		struct mapping m = {.g = g,
				    .place = place,
				    .order = malloc(bytes),
				    .node = malloc(bytes),
				    .process = malloc(bytes)};
		if (find_better(&m))
			*node_p = m.node[c->rank];
		free(m.order);
		free(m.node);
		free(m.process);
	}
	free(place);
	return MPI_SUCCESS;
}
