/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remap_grid.c - the nodes of a grid for processes in the order of their places: boxes that are cut in two, again and
 * again, where the processes of two hosts (packages, cores) part, and across as few edges as can be.  Where all hosts of a
 * box have as many processes, and the box can be laid with tiles of that size, cuts go between tiles.
 */
#include "topo/remap.h"

#include <string.h>
#include "base/assert.h"

struct box {
	int at[WEFT_TOPO_DIMS_MAX], size[WEFT_TOPO_DIMS_MAX];
	int tile[WEFT_TOPO_DIMS_MAX]; /* each divides size */
	int first, n;                 /* the processes that lie in it */
	int tile_n;                   /* processes in a tile; 0: not looked for */
};

/* A tile that is being put together, and the best so far. */
struct tiling {
	const struct box *b;
	int ndims, n; /* processes in it */
	int side[WEFT_TOPO_DIMS_MAX], best[WEFT_TOPO_DIMS_MAX];
	double edges; /* between the best's, for each process */
};

/* A cut before so many layers of a dimension. */
struct cut {
	int dim, layers;
	int parting; /* how far the processes are from each other that it parts */
	int edges;
	int uneven; /* by how much the halves differ */
};

/* Between the last process before that one and itself. */
static int parting_at(const struct weft_topo_place *place, const int *order, int i)
{
	const struct weft_topo_place *a = &place[order[i - 1]], *b = &place[order[i]];

	return a->host != b->host ? WEFT_TOPO_RESOURCES_MAX + 1 : weft_topo_place_distance(a, b);
}

/* Sides that divide the box's, from dimension d on, to a tile of `rest` more. */
static void try_sides(struct tiling *t, int d, int rest)
{
	if (d == t->ndims) {
		double edges = 0;
		for (int i = 0; i < d; i++)
			edges += 1.0 / t->side[i] - 1.0 / t->b->size[i];
		if (rest == 1 && edges < t->edges) {
			t->edges = edges;
			memcpy(t->best, t->side, sizeof t->best);
		}
		return;
	}
	for (int side = 1; side <= t->b->size[d] && side <= rest; side++) {
		t->side[d] = side;
		if (t->b->size[d] % side == 0 && rest % side == 0)
			try_sides(t, d + 1, rest / side);
	}
}

/* Processes between the box's farthest partings, if they are as many everywhere; else 1. */
static int tile_size(const struct weft_topo_place *place, const int *order, const struct box *b)
{
	int most = 0, size = 0, run = 1;

	for (int i = b->first + 1; i < b->first + b->n; i++) {
		int p = parting_at(place, order, i);
		most = p > most ? p : most;
	}
	for (int i = b->first + 1; i <= b->first + b->n; i++, run++) {
		if (i < b->first + b->n && parting_at(place, order, i) < most)
			continue;
		if (size && run != size)
			return 1;
		size = run;
		run = 0;
	}
	return size;
}

static void find_tile(const struct weft_topo_graph *g, const struct weft_topo_place *place,
		      const int *order, struct box *b)
{
	struct tiling t = {
		.b = b, .ndims = g->ndims, .n = tile_size(place, order, b), .edges = g->ndims + 1};

	if (t.n > 1)
		try_sides(&t, 0, t.n);
	b->tile_n = 1;
	for (int d = 0; d < g->ndims; d++) {
		b->tile[d] = t.edges <= g->ndims ? t.best[d] : 1;
		b->tile_n *= b->tile[d];
	}
}

static bool cut_is_better(const struct cut *a, const struct cut *b)
{
	if (a->parting != b->parting)
		return a->parting > b->parting;
	if (a->edges != b->edges)
		return a->edges < b->edges;
	return a->uneven < b->uneven;
}

static struct cut find_cut(const struct weft_topo_graph *g, const struct weft_topo_place *place,
			   const int *order, const struct box *b)
{
	struct cut best = {.dim = -1};

	for (int d = 0; d < g->ndims; d++) {
		int each = b->n / b->size[d];
		for (int k = b->tile[d]; k < b->size[d]; k += b->tile[d]) {
			int rest = b->n - 2 * k * each;
			struct cut c = {.dim = d,
					.layers = k,
					.parting = parting_at(place, order, b->first + k * each),
					.edges = each,
					.uneven = rest < 0 ? -rest : rest};
			if (best.dim < 0 || cut_is_better(&c, &best))
				best = c;
		}
	}
	return best;
}

static int node_at(const struct weft_topo_graph *g, const int *at)
{
	int node = 0;

	for (int d = 0; d < g->ndims; d++)
		node = node * g->dims[d] + at[d];
	return node;
}

/* Depth: at most one for each layer of each dimension; halves mostly. */
static void place_box(const struct weft_topo_graph *g, const struct weft_topo_place *place,
		      const int *order, struct box b, int *node_p)
{
	while (b.n > 1) { /* ends: each turn leaves less */
		if (b.tile_n <= 1 || b.tile_n == b.n)
			find_tile(g, place, order, &b);
		struct cut c = find_cut(g, place, order, &b);
		struct box part = b;
		int each = b.n / b.size[c.dim];
		part.size[c.dim] = c.layers;
		part.n = c.layers * each;
		place_box(g, place, order, part, node_p);
		b.at[c.dim] += c.layers;
		b.size[c.dim] -= c.layers;
		b.first += part.n;
		b.n -= part.n;
	}
	node_p[order[b.first]] = node_at(g, b.at);
}

void weft_topo_remap_grid(const struct weft_topo_graph *g, const struct weft_topo_place place[],
			  const int order[], int node_p[])
{
	struct box b = {.n = g->n};

	weft_assert(g->ndims > 0 && g->ndims <= WEFT_TOPO_DIMS_MAX);
	memcpy(b.size, g->dims, (size_t)g->ndims * sizeof *b.size);
	place_box(g, place, order, b, node_p);
}
