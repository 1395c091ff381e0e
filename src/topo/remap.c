/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remap.c - processes in the order of their places; each takes the free node that is tied most to the nodes of its
 * neighbourhood, and of grids there are boxes.  Then pairs change places as long as that helps.  The best counts.
 */
#include "topo/remap.h"

#include <stdlib.h>
#include <string.h>

#define SWAP_ROUNDS 4 /* each costs n * n / 2 looks at a node's edges */
#define SWAP_MOST 256 /* processes, up to which pairs are tried */

/* Compared in this order: what crosses between hosts, then how far the rest goes. */
struct cost {
	int64_t between, within;
};

struct mapping {
	const struct weft_topo_graph *g;
	const struct weft_topo_place *place; /* of each process */
	int *order;                          /* processes, near ones next to each other */
	int *node;                           /* of each process; -1: none yet */
	int *process;                        /* of each node; -1: none yet */
	int *steps, *queue;                  /* of measure_steps */
};

/* ---- what edges cost ---------------------------------------------------------------------------- */

static bool cost_is_less(struct cost a, struct cost b)
{
	return a.between != b.between ? a.between < b.between : a.within < b.within;
}

static void add_edge(const struct mapping *m, int e, int from, int to, struct cost *c)
{
	int64_t weight = m->g->weight ? m->g->weight[e] : 1;
	const struct weft_topo_place *a = &m->place[from], *b = &m->place[to];

	if (a->host != b->host)
		c->between += weight;
	else
		c->within += weight * weft_topo_place_distance(a, b);
}

/* What the edges of a node to nodes that have a process cost, were it on that process. */
static void add_node(const struct mapping *m, int node, int process, struct cost *c)
{
	for (int e = m->g->first[node]; e < m->g->first[node + 1]; e++) {
		int other = m->g->edge[e];
		if (other >= 0 && other != node && m->process[other] >= 0)
			add_edge(m, e, process, m->process[other], c);
	}
}

static struct cost cost_all(const struct mapping *m)
{
	struct cost c = {0, 0};

	for (int v = 0; v < m->g->n; v++)
		add_node(m, v, m->process[v], &c);
	return c;
}

static void map_process(struct mapping *m, int node, int process)
{
	m->node[process] = node;
	m->process[node] = process;
}

/* ---- the order of processes --------------------------------------------------------------------- */

struct sorted {
	struct weft_topo_place place;
	int process;
};

static int compare_sorted(const void *a, const void *b)
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
	qsort(s, (size_t)n, sizeof *s, compare_sorted);
	for (int i = 0; i < n; i++)
		m->order[i] = s[i].process;
	free(s);
	return true;
}

/* ---- nodes for them ----------------------------------------------------------------------------- */

/* Steps over edges from node `seed` to each; n where there is no way. */
static void measure_steps(struct mapping *m, int seed)
{
	const struct weft_topo_graph *g = m->g;
	int *queue = m->queue, head = 0, tail = 1;

	for (int v = 0; v < g->n; v++)
		m->steps[v] = g->n;
	m->steps[seed] = 0;
	queue[0] = seed;
	while (head < tail) { /* ends: a node comes once */
		int v = queue[head++];
		for (int e = g->first[v]; e < g->first[v + 1]; e++) {
			int other = g->edge[e];
			if (other < 0 || m->steps[other] < g->n)
				continue;
			m->steps[other] = m->steps[v] + 1;
			queue[tail++] = other;
		}
	}
}

/* Ties of a node to those that are placed: near ones count more. */
static int64_t ties_of_node(const struct mapping *m, int node, int process)
{
	int64_t sum = 0;

	for (int e = m->g->first[node]; e < m->g->first[node + 1]; e++) {
		int other = m->g->edge[e];
		if (other < 0 || other == node || m->process[other] < 0)
			continue;
		int64_t weight = m->g->weight ? m->g->weight[e] : 1;
		struct cost c = {0, 0};
		add_edge(m, e, process, m->process[other], &c);
		sum += 8 * WEFT_TOPO_RESOURCES_MAX * weight -
		       4 * WEFT_TOPO_RESOURCES_MAX * c.between - c.within;
	}
	return sum;
}

/* Host by host.  compact: of nodes that are tied alike the one nearest to the host's first, which grows blocks; else the
 * one with the lowest number, which grows rows. */
static void place_nodes(struct mapping *m, bool compact)
{
	int n = m->g->n, host = 0;

	memset(m->process, 0xff, (size_t)n * sizeof *m->process);
	for (int i = 0; i < n; i++) {
		int process = m->order[i], best = -1;
		bool fresh = !i || m->place[process].host != host;
		int64_t most = -1;
		for (int v = 0; v < n; v++) {
			if (m->process[v] >= 0)
				continue;
			int64_t p = ties_of_node(m, v, process);
			if (p > most ||
			    (p == most && compact && !fresh && m->steps[v] < m->steps[best])) {
				most = p;
				best = v;
			}
		}
		host = m->place[process].host;
		map_process(m, best, process);
		if (fresh && compact)
			measure_steps(m, best);
	}
}

static bool swap_helps(struct mapping *m, int a, int b)
{
	int p = m->process[a], q = m->process[b];
	struct cost before = {0, 0}, after = {0, 0};

	add_node(m, a, p, &before);
	add_node(m, b, q, &before);
	map_process(m, a, q);
	map_process(m, b, p);
	add_node(m, a, q, &after);
	add_node(m, b, p, &after);
	if (cost_is_less(after, before))
		return true;
	map_process(m, a, p);
	map_process(m, b, q);
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

static bool places_differ(const struct weft_topo_place *place, int n)
{
	for (int p = 1; p < n; p++)
		if (place[0].host != place[p].host ||
		    weft_topo_place_distance(&place[0], &place[p]))
			return true;
	return false;
}

enum way { ROWS, COMPACT, BOXES, WAYS };

/* Boxes of a grid, in the order of the processes. */
static bool place_boxes(struct mapping *m)
{
	const struct weft_topo_graph *g = m->g;

	if (g->ndims < 1 || g->ndims > WEFT_TOPO_DIMS_MAX)
		return false;
	weft_topo_remap_grid(g, m->place, m->order, m->node);
	for (int p = 0; p < g->n; p++)
		m->process[m->node[p]] = p;
	return true;
}

/* Tries each way; node_p gets the best, if it is better than the order of the ranks. */
static void find_better(struct mapping *m, int *node_p)
{
	size_t bytes = (size_t)m->g->n * sizeof(int);

	for (int v = 0; v < m->g->n; v++)
		map_process(m, v, v);
	struct cost best = cost_all(m);
	for (int way = 0; way < WAYS; way++) {
		if (way != BOXES)
			place_nodes(m, way == COMPACT);
		else if (!place_boxes(m))
			continue;
		swap_pairs(m);
		struct cost c = cost_all(m);
		if (!cost_is_less(c, best))
			continue;
		best = c;
		memcpy(node_p, m->node, bytes);
	}
}

weft_err weft_topo_remap(const struct weft_topo_graph *g, const struct weft_topo_place place[],
			 int node_p[])
{
	size_t n = (size_t)g->n;

	for (int p = 0; p < g->n; p++)
		node_p[p] = p;
	if (n < 2 || !places_differ(place, g->n))
		return WEFT_OK;
	int *memory = malloc(5 * n * sizeof *memory);
	struct mapping m = {.g = g, .place = place};
	if (memory) {
		m.order = memory;
		m.node = memory + n;
		m.process = memory + 2 * n;
		m.steps = memory + 3 * n;
		m.queue = memory + 4 * n;
	}
	bool made = memory && sort_processes(&m);
	if (made)
		find_better(&m, node_p);
	free(memory);
	return made ? WEFT_OK : WEFT_ERR_NOMEM;
}
