/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_common.c - topology objects and what all kinds share. */
#include <stdlib.h>
#include <string.h>

#include "mpi/topo/topo.h"

struct weft_mpi_topo *weft_mpi_topo_new(int kind)
{
	struct weft_mpi_topo *t = calloc(1, sizeof *t);
	if (t)
		t->kind = kind;
	return t;
}

void weft_mpi_topo_free(void *topo)
{
	struct weft_mpi_topo *t = topo;
	if (!t)
		return;
	int *arrays[] = {t->sources, t->destinations, t->source_weights, t->destination_weights,
			 t->dims,    t->periods,      t->coords,         t->index,
			 t->edges};
	for (size_t i = 0; i < weft_countof(arrays); i++)
		free(arrays[i]);
	free(t);
}

int *weft_mpi_ints(const int *from, int n)
{
	int *p = malloc(((size_t)n + 1) * sizeof *p);
	if (p && n > 0)
		memcpy(p, from, (size_t)n * sizeof *p);
	return p;
}

/* Copies an array that may be absent.  False: no memory. */
static bool copy_ints(int **to, const int *from, int n)
{
	if (from)
		*to = weft_mpi_ints(from, n);
	return !from || *to;
}

static void *topo_dup(const void *topo)
{
	const struct weft_mpi_topo *f = topo;
	struct weft_mpi_topo *t = weft_mpi_topo_new(f->kind);
	if (!t)
		return NULL;
	t->sources_n = f->sources_n;
	t->destinations_n = f->destinations_n;
	t->weighted = f->weighted;
	t->ndims = f->ndims;
	t->nnodes = f->nnodes;
	t->nedges = f->nedges;
	if (copy_ints(&t->sources, f->sources, f->sources_n) &&
	    copy_ints(&t->destinations, f->destinations, f->destinations_n) &&
	    copy_ints(&t->source_weights, f->source_weights, f->sources_n) &&
	    copy_ints(&t->destination_weights, f->destination_weights, f->destinations_n) &&
	    copy_ints(&t->dims, f->dims, f->ndims) &&
	    copy_ints(&t->periods, f->periods, f->ndims) &&
	    copy_ints(&t->coords, f->coords, f->ndims) &&
	    copy_ints(&t->index, f->index, f->nnodes) && copy_ints(&t->edges, f->edges, f->nedges))
		return t;
	weft_mpi_topo_free(t);
	return NULL;
}

const struct weft_mpi_topo_ops weft_mpi_topo_ops = {
	.free = weft_mpi_topo_free,
	.dup = topo_dup,
};

const struct weft_mpi_topo *weft_mpi_topo_of(MPI_Comm comm, int kind)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	if (c->topo && c->topo_kind == kind)
		return c->topo;
	weft_mpi_err(MPI_ERR_TOPOLOGY, "the communicator has no %s topology",
		     kind == MPI_CART    ? "Cartesian"
		     : kind == MPI_GRAPH ? "graph"
					 : "distributed graph");
	return NULL;
}

int weft_mpi_topo_attach(struct weft_mpi_comm *c, struct weft_mpi_topo *t, MPI_Comm *comm_p)
{
	c->topo = t;
	c->topo_ops = &weft_mpi_topo_ops;
	c->topo_kind = t->kind;
	return weft_mpi_comm_name(c, comm_p);
}

int weft_mpi_Topo_test(MPI_Comm comm, int *status)
{
	*status = weft_mpi_comm_of(comm)->topo_kind;
	return MPI_SUCCESS;
}
