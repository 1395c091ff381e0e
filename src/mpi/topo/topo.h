/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo.h - the topology of a communicator: Cartesian, graph, or distributed graph.
 *
 * One object serves all three kinds; it never changes once the communicator has a handle.  The
 * neighbour lists are this rank's, in the order of the neighbourhood collectives.
 */
#ifndef WEFT_MPI_TOPO_H
#define WEFT_MPI_TOPO_H

#include "mpi/mpi_int.h"

struct weft_mpi_topo {
	int kind; /* MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH */
	/* neighbourhood; ranks, or MPI_PROC_NULL beyond an edge of a grid */
	int sources_n, destinations_n;
	int *sources, *destinations;
	/* distributed graph */
	bool weighted;
	int *source_weights, *destination_weights;
	/* Cartesian */
	int ndims;
	int *dims, *periods, *coords;
	/* graph */
	int nnodes, nedges;
	int *index, *edges;
};

extern const struct weft_mpi_topo_ops weft_mpi_topo_ops;

/* Zeroed; NULL: no memory. */
struct weft_mpi_topo *weft_mpi_topo_new(int kind);
void weft_mpi_topo_free(void *topo);
/* A copy of n ints (n may be 0: still not NULL).  NULL: no memory. */
int *weft_mpi_ints(const int *from, int n);

/* The communicator's topology if it is of that kind; NULL after recording MPI_ERR_TOPOLOGY. */
const struct weft_mpi_topo *weft_mpi_topo_of(MPI_Comm comm, int kind);

/* Attaches t to c, which has no handle yet, and names it.  Takes both over. */
int weft_mpi_topo_attach(struct weft_mpi_comm *c, struct weft_mpi_topo *t, MPI_Comm *comm_p);

#endif
