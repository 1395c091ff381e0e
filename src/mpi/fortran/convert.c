/* SPDX-License-Identifier: BSD-3-Clause */
/* convert.c - arrays and statuses between INTEGERs of 8 bytes and C; lengths that C knows. */
#define WEFT_F_INT 8
#include "mpi/fortran/fort.h"

int *weft_f_ints_8(struct weft_f_temp *temp, const I *from, int64_t n)
{
	int *to = weft_f_temp_get(temp, n, sizeof(*to));

	for (int64_t k = 0; to && k < n; k++)
		to[k] = from ? weft_f_int(from[k]) : 0;
	return to;
}

void weft_f_out_ints_8(I *to, const int *from, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		to[k] = from[k];
}

void weft_f_status_in_8(MPI_Status *to, const I *from)
{
	int v[8];

	/* Bits, not numbers: five of the words are the library's. */
	for (int k = 0; k < 8; k++)
		v[k] = (int)from[k];
	to->MPI_SOURCE = v[0];
	to->MPI_TAG = v[1];
	to->MPI_ERROR = v[2];
	for (int k = 0; k < 5; k++)
		to->MPI_internal[k] = v[3 + k];
}

void weft_f_status_out_8(I *to, const MPI_Status *from)
{
	to[0] = from->MPI_SOURCE;
	to[1] = from->MPI_TAG;
	to[2] = from->MPI_ERROR;
	for (int k = 0; k < 5; k++)
		to[3 + k] = from->MPI_internal[k];
}

MPI_Status *weft_f_statuses_8(struct weft_f_temp *temp, const I *from, int64_t n, bool input)
{
	if (weft_f_status_ignored(from))
		return MPI_STATUSES_IGNORE;
	MPI_Status *to = weft_f_temp_get(temp, n, sizeof(*to));
	for (int64_t k = 0; to && (k < n); k++)
		weft_f_status_in_8(&to[k], &from[8 * k]);
	(void)input;
	return to;
}

int weft_f_cart_dims(MPI_Comm comm)
{
	int n = 0, kind = MPI_UNDEFINED;

	/* Asked first: a wrong communicator is the called function's error, to be raised once. */
	if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS || kind != MPI_CART)
		return 0;
	return PMPI_Cartdim_get(comm, &n) == MPI_SUCCESS ? n : 0;
}

int weft_f_peers(MPI_Comm comm)
{
	int n = 0, inter = 0;

	if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
		return 0;
	int err = inter ? PMPI_Comm_remote_size(comm, &n) : PMPI_Comm_size(comm, &n);
	return err == MPI_SUCCESS ? n : 0;
}

int weft_f_degree(MPI_Comm comm, bool in)
{
	int kind = MPI_UNDEFINED, n = 0, sources = 0, weighted = 0, rank = 0;

	if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS)
		return 0;
	switch (kind) {
	case MPI_CART:
		return 2 * weft_f_cart_dims(comm);
	case MPI_GRAPH:
		PMPI_Comm_rank(comm, &rank);
		PMPI_Graph_neighbors_count(comm, rank, &n);
		return n;
	case MPI_DIST_GRAPH:
		PMPI_Dist_graph_neighbors_count(comm, &sources, &n, &weighted);
		return in ? sources : n;
	default:
		return 0;
	}
}
