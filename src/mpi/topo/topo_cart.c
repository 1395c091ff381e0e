/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_cart.c - Cartesian topologies; ranks are in row-major order, the last dimension fastest. */
#include <stdlib.h>
#include <string.h>

#include "mpi/topo/topo.h"
#include "mpi/topo/topo_map.h"

static void coords_of(const struct weft_mpi_topo *t, int rank, int *coords)
{
	for (int i = t->ndims - 1; i >= 0; i--) {
		coords[i] = rank % t->dims[i];
		rank /= t->dims[i];
	}
}

/* The rank at `disp` steps along dimension d from coords, or MPI_PROC_NULL. */
static int shifted_rank(const struct weft_mpi_topo *t, const int *coords, int d, int64_t disp)
{
	int rank = 0;
	for (int i = 0; i < t->ndims; i++) {
		int64_t x = coords[i];
		if (i == d) {
			x += disp;
			if (t->periods[i])
				x = (x % t->dims[i] + t->dims[i]) % t->dims[i];
			else if (x < 0 || x >= t->dims[i])
				return MPI_PROC_NULL;
		}
		rank = rank * t->dims[i] + (int)x;
	}
	return rank;
}

/* The topology that rank `rank` sees; NULL: no memory. */
static struct weft_mpi_topo *cart_new(int ndims, const int *dims, const int *periods, int rank)
{
	struct weft_mpi_topo *t = weft_mpi_topo_new(MPI_CART);
	if (!t)
		return NULL;
	t->ndims = ndims;
	t->dims = weft_mpi_ints(dims, ndims);
	t->periods = weft_mpi_ints(periods, ndims);
	t->coords = weft_mpi_ints(dims, ndims);
	t->sources = malloc((2 * (size_t)ndims + 1) * sizeof(int));
	t->destinations = malloc((2 * (size_t)ndims + 1) * sizeof(int));
	if (!t->dims || !t->periods || !t->coords || !t->sources || !t->destinations) {
		weft_mpi_topo_free(t);
		return NULL;
	}
	coords_of(t, rank, t->coords);
	t->sources_n = t->destinations_n = 2 * ndims;
	for (int i = 0; i < ndims; i++) {
		t->periods[i] = t->periods[i] != 0;
		for (int k = 0; k < 2; k++)
			t->sources[2 * i + k] = t->destinations[2 * i + k] =
				shifted_rank(t, t->coords, i, k ? 1 : -1);
	}
	return t;
}

/* How many processes the grid has; checks that they are there. */
static int grid_size(const struct weft_mpi_comm *c, int ndims, const int *dims, const int *periods,
		     int *nodes_p)
{
	int64_t n = 1;
	if (c->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not defined for intercommunicators");
	if (ndims < 0)
		return weft_mpi_err(MPI_ERR_DIMS, "ndims is negative (%d)", ndims);
	if (ndims && (!dims || !periods))
		return weft_mpi_err(MPI_ERR_ARG, "dims or periods is a null pointer");
	for (int i = 0; i < ndims; i++) {
		if (dims[i] < 1)
			return weft_mpi_err(MPI_ERR_DIMS, "dims[%d] is %d, it must be positive", i,
					    dims[i]);
		if (__builtin_mul_overflow(n, dims[i], &n) || n > c->size)
			return weft_mpi_err(MPI_ERR_DIMS,
					    "the grid has more places than the %d processes of "
					    "the communicator",
					    c->size);
	}
	*nodes_p = (int)n;
	return MPI_SUCCESS;
}

/* The grid as a graph. */
static int choose_node(struct weft_mpi_comm *c, int ndims, const int *dims, const int *periods,
		       int nodes, int *node_p)
{
	size_t each = 2 * (size_t)ndims;
	int *first = malloc(((size_t)nodes + 1) * sizeof *first);
	int *edge = malloc(((size_t)nodes * each + 1) * sizeof *edge);
	bool made = first && edge;
	for (int v = 0; v < nodes && made; v++) {
		struct weft_mpi_topo *t = cart_new(ndims, dims, periods, v);
		if ((made = t != NULL))
			memcpy(edge + (size_t)v * each, t->sources, each * sizeof *edge);
		weft_mpi_topo_free(t);
	}
	for (int v = 0; v <= nodes && made; v++)
		first[v] = (int)((size_t)v * each);
	struct weft_topo_graph g = {
		.n = nodes, .first = first, .edge = edge, .ndims = ndims, .dims = dims};
	int err = made ? weft_mpi_topo_map(c, &g, node_p)
		       : weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	free(first);
	free(edge);
	return err;
}

int weft_mpi_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[],
			 int reorder, MPI_Comm *comm_cart)
{
	struct weft_mpi_comm *old = weft_mpi_comm_of(comm_old), *c;
	int nodes, err = grid_size(old, ndims, dims, periods, &nodes);
	*comm_cart = MPI_COMM_NULL; /* what a failure leaves */
	if (err)
		return err;
	int node = old->rank;
	if (reorder)
		err = choose_node(old, ndims, dims, periods, nodes, &node);
	if (!err)
		err = weft_mpi_comm_split(old, old->rank < nodes ? 0 : MPI_UNDEFINED, node, &c);
	if (err)
		return err;
	if (!c) {
		*comm_cart = MPI_COMM_NULL;
		return MPI_SUCCESS;
	}
	struct weft_mpi_topo *t = cart_new(ndims, dims, periods, c->rank);
	if (!t) {
		weft_mpi_comm_unref(c);
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	}
	return weft_mpi_topo_attach(c, t, comm_cart);
}

int weft_mpi_Cartdim_get(MPI_Comm comm, int *ndims)
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_CART);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	*ndims = t->ndims;
	return MPI_SUCCESS;
}

static int check_room(const char *what, int max, int need)
{
	if (max >= need)
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_ARG, "%s is %d, but %d are needed", what, max, need);
}

int weft_mpi_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_CART);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	int err = check_room("maxdims", maxdims, t->ndims);
	for (int i = 0; i < t->ndims && !err; i++) {
		dims[i] = t->dims[i];
		periods[i] = t->periods[i];
		coords[i] = t->coords[i];
	}
	return err;
}

int weft_mpi_Cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_CART);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	int r = 0;
	for (int i = 0; i < t->ndims; i++) {
		int x = coords[i], n = t->dims[i];
		if (t->periods[i])
			x = (x % n + n) % n;
		else if (x < 0 || x >= n)
			return weft_mpi_err(MPI_ERR_ARG,
					    "coords[%d] is %d, outside 0..%d of a dimension that "
					    "is not periodic",
					    i, x, n - 1);
		r = r * n + x;
	}
	*rank = r;
	return MPI_SUCCESS;
}

int weft_mpi_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_CART);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	int size = weft_mpi_comm_of(comm)->size;
	if (rank < 0 || rank >= size)
		return weft_mpi_err(MPI_ERR_RANK, "invalid rank %d (communicator has %d ranks)",
				    rank, size);
	int err = check_room("maxdims", maxdims, t->ndims);
	if (!err)
		coords_of(t, rank, coords);
	return err;
}

int weft_mpi_Cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest)
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_CART);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	if (direction < 0 || direction >= t->ndims)
		return weft_mpi_err(MPI_ERR_ARG, "direction %d: the grid has %d dimensions",
				    direction, t->ndims);
	*rank_source = shifted_rank(t, t->coords, direction, -(int64_t)disp);
	*rank_dest = shifted_rank(t, t->coords, direction, disp);
	return MPI_SUCCESS;
}

int weft_mpi_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm)
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_CART);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	size_t room = (size_t)t->ndims + 1;
	int *dims = malloc(2 * room * sizeof *dims), *periods = dims + room;
	if (!dims)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	/* One communicator per combination of the dimensions left out. */
	int color = 0, key = 0, n = 0;
	for (int i = 0; i < t->ndims; i++) {
		if (remain_dims[i]) {
			dims[n] = t->dims[i];
			periods[n++] = t->periods[i];
			key = key * t->dims[i] + t->coords[i];
		} else {
			color = color * t->dims[i] + t->coords[i];
		}
	}
	struct weft_mpi_comm *c;
	int err = weft_mpi_comm_split(weft_mpi_comm_of(comm), color, key, &c);
	struct weft_mpi_topo *sub = err ? NULL : cart_new(n, dims, periods, c->rank);
	free(dims);
	if (err)
		return err;
	if (!sub) {
		weft_mpi_comm_unref(c);
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	}
	return weft_mpi_topo_attach(c, sub, newcomm);
}

int weft_mpi_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	int nodes, err = grid_size(c, ndims, dims, periods, &nodes);
	if (!err)
		*newrank = c->rank < nodes ? c->rank : MPI_UNDEFINED;
	return err;
}
