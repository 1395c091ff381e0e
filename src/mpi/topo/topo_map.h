/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo_map.h - which process takes which node of a topology, when MPI may reorder ranks: neighbours
 * come near each other on the machine.
 *
 * Callers   collective over the communicator's members, which all give the same arguments.
 * Result    the caller's node; all callers' nodes are a permutation.  Where nothing is gained, and
 *           where it would take too long to find out, each keeps its rank.
 * Cost      one allgather of places; then, unless all places are the same, that of topo/remap.h.
 */
#ifndef WEFT_MPI_TOPO_MAP_H
#define WEFT_MPI_TOPO_MAP_H

#include "mpi/mpi_int.h"
#include "topo/remap.h"

/* Above so many processes a graph is left as it is. */
#define WEFT_TOPO_MAP_MOST 2048

/* c has g->n members, or more: those of higher rank take no node.  *node_p: the caller's. */
int weft_mpi_topo_map(struct weft_mpi_comm *c, const struct weft_topo_graph *g, int *node_p);

#endif
