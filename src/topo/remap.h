/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remap.h - which process takes which node of a graph, so that neighbours come near each other on the machines.
 *
 * Callers   any thread; a function of its arguments alone, so that all processes that ask it alike agree.
 * Result    a permutation in which edges between hosts weigh no more than in the order of the ranks; with the same weight
 *           there, edges within hosts are no longer.
 * Cost      n * n looks at a node's edges; for up to 256 processes, pairs that change places come on top.
 */
#ifndef WEFT_TOPO_REMAP_H
#define WEFT_TOPO_REMAP_H

#include "topo/resource.h"

#define WEFT_TOPO_DIMS_MAX 16 /* grids of more dimensions are graphs like others */

/* Edges of node i: edge[first[i]] up to edge[first[i + 1]]; a negative one is skipped. */
struct weft_topo_graph {
	int n;
	const int *first, *edge, *weight; /* weight NULL: all 1 */
	int ndims; /* of a grid, the last dimension runs quickest; 0: it is none */
	const int *dims;
};

/* node_p[i]: the node of process i; i itself where the order of the ranks is as good.  WEFT_ERR_NOMEM: not set. */
weft_err weft_topo_remap(const struct weft_topo_graph *g, const struct weft_topo_place place[],
			 int node_p[]) weft_must_use;

/* remap.c's: nodes of a grid for the processes in that order. */
void weft_topo_remap_grid(const struct weft_topo_graph *g, const struct weft_topo_place place[],
			  const int order[], int node_p[]);

#endif
