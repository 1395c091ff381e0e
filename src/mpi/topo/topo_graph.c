/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_graph.c - graph topologies, given whole on every process. */
#include <stdlib.h>

#include "mpi/topo/topo.h"
#include "mpi/topo/topo_map.h"

static int check_graph(const struct weft_mpi_comm *c, int nnodes, const int *indx, const int *edges)
{
	if (c->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not defined for intercommunicators");
	if (nnodes < 0 || nnodes > c->size)
		return weft_mpi_err(MPI_ERR_ARG, "nnodes is %d, the communicator has %d processes",
				    nnodes, c->size);
	if (nnodes && (!indx || (indx[nnodes - 1] > 0 && !edges)))
		return weft_mpi_err(MPI_ERR_ARG, "index or edges is a null pointer");
	for (int i = 0; i < nnodes; i++)
		if (indx[i] < (i ? indx[i - 1] : 0))
			return weft_mpi_err(MPI_ERR_ARG, "index[%d] is smaller than the one before",
					    i);
	for (int i = 0; nnodes && i < indx[nnodes - 1]; i++)
		if (edges[i] < 0 || edges[i] >= nnodes)
			return weft_mpi_err(MPI_ERR_ARG, "edges[%d] is %d: there are %d nodes", i,
					    edges[i], nnodes);
	return MPI_SUCCESS;
}

/* Neighbours of a node: *n_p of them from the returned place on. */
static const int *neighbors_of(const struct weft_mpi_topo *t, int node, int *n_p)
{
	int first = node ? t->index[node - 1] : 0;
	*n_p = t->index[node] - first;
	return t->edges + first;
}

static int choose_node(struct weft_mpi_comm *c, int nnodes, const int *indx, const int *edges,
		       int *node_p)
{
	int *first = malloc(((size_t)nnodes + 1) * sizeof *first);
	if (!first)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	first[0] = 0;
	for (int i = 0; i < nnodes; i++)
		first[i + 1] = indx[i];
	struct weft_topo_graph g = {.n = nnodes, .first = first, .edge = edges};
	int err = weft_mpi_topo_map(c, &g, node_p);
	free(first);
	return err;
}

int weft_mpi_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[],
			  int reorder, MPI_Comm *comm_graph)
{
	struct weft_mpi_comm *old = weft_mpi_comm_of(comm_old), *c;
	int err = check_graph(old, nnodes, indx, edges);
	if (err)
		return err;
	int node = old->rank;
	if (reorder)
		err = choose_node(old, nnodes, indx, edges, &node);
	if (!err)
		err = weft_mpi_comm_split(old, old->rank < nnodes ? 0 : MPI_UNDEFINED, node, &c);
	if (err)
		return err;
	if (!c) {
		*comm_graph = MPI_COMM_NULL;
		return MPI_SUCCESS;
	}
	struct weft_mpi_topo *t = weft_mpi_topo_new(MPI_GRAPH);
	if (t) {
		t->nnodes = nnodes;
		t->nedges = indx[nnodes - 1];
		t->index = weft_mpi_ints(indx, nnodes);
		t->edges = weft_mpi_ints(edges, t->nedges);
	}
	if (t && t->index && t->edges) {
		const int *mine = neighbors_of(t, c->rank, &t->sources_n);
		t->destinations_n = t->sources_n;
		t->sources = weft_mpi_ints(mine, t->sources_n);
		t->destinations = weft_mpi_ints(mine, t->sources_n);
	}
	if (!t || !t->sources || !t->destinations) {
		weft_mpi_topo_free(t);
		weft_mpi_comm_unref(c);
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	}
	return weft_mpi_topo_attach(c, t, comm_graph);
}

int weft_mpi_Graphdims_get(MPI_Comm comm, int *nnodes, int *nedges)
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_GRAPH);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	*nnodes = t->nnodes;
	*nedges = t->nedges;
	return MPI_SUCCESS;
}

int weft_mpi_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[])
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_GRAPH);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	if (maxindex < t->nnodes || maxedges < t->nedges)
		return weft_mpi_err(MPI_ERR_ARG,
				    "the graph has %d nodes and %d edges: the arrays "
				    "are too short",
				    t->nnodes, t->nedges);
	for (int i = 0; i < t->nnodes; i++)
		indx[i] = t->index[i];
	for (int i = 0; i < t->nedges; i++)
		edges[i] = t->edges[i];
	return MPI_SUCCESS;
}

static int check_rank(const struct weft_mpi_topo *t, int rank)
{
	if (rank >= 0 && rank < t->nnodes)
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_RANK, "invalid rank %d: the graph has %d nodes", rank,
			    t->nnodes);
}

int weft_mpi_Graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors)
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_GRAPH);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	int err = check_rank(t, rank);
	if (!err)
		neighbors_of(t, rank, nneighbors);
	return err;
}

int weft_mpi_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[])
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_GRAPH);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	int n, err = check_rank(t, rank);
	if (err)
		return err;
	const int *list = neighbors_of(t, rank, &n);
	for (int i = 0; i < n && i < maxneighbors; i++)
		neighbors[i] = list[i];
	return MPI_SUCCESS;
}

int weft_mpi_Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int *newrank)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	int err = check_graph(c, nnodes, indx, edges);
	if (!err)
		*newrank = c->rank < nnodes ? c->rank : MPI_UNDEFINED;
	return err;
}
