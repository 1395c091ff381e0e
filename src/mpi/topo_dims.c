/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo_dims.c - MPI_Dims_create: the most balanced grid.
 *
 * Tries the factorisations of what is left, largest factor first and never rising, and keeps the
 * one whose largest dimension is smallest, then whose smallest is largest.  Bound: the number of
 * divisors (at most 1,536 for an int) to the power of few dimensions, cut off as soon as the
 * largest dimension exceeds the best one.
 */
#include <stdlib.h>

#include "mpi/mpi_int.h"

struct search {
	int n;           /* free dimensions */
	int *now, *best; /* falling */
	bool found;
};

/* Is now better than best?  Compared from the largest down: smaller is better. */
static bool better(const struct search *s)
{
	if (!s->found)
		return true;
	for (int i = 0; i < s->n; i++)
		if (s->now[i] != s->best[i])
			return s->now[i] < s->best[i];
	return false;
}

/* The smallest k with k^n >= v. */
static int root_up(int v, int n)
{
	int lo = 1, hi = v;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;
		int64_t p = 1;
		for (int i = 0; i < n && p < v; i++)
			p *= mid;
		if (p >= v)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Chooses dimension i and the following for what is left, none above `most`. */
static void try_from(struct search *s, int i, int left, int most)
{
	if (i == s->n - 1) {
		if (left > most)
			return;
		s->now[i] = left;
		if (better(s)) {
			for (int k = 0; k < s->n; k++)
				s->best[k] = s->now[k];
			s->found = true;
		}
		return;
	}
	for (int d = root_up(left, s->n - i); d <= most && d <= left; d++) {
		if (left % d)
			continue;
		if (s->found && i == 0 && d > s->best[0])
			return;
		s->now[i] = d;
		try_from(s, i + 1, left / d, d);
		/* The first dimension that works at all is the smallest: others are worse. */
		if (s->found && i == 0)
			return;
	}
}

int weft_mpi_Dims_create(int nnodes, int ndims, int dims[])
{
	int left = nnodes, open = 0;
	if (nnodes < 1)
		return weft_mpi_err(MPI_ERR_DIMS, "nnodes is %d, it must be positive", nnodes);
	if (ndims < 0)
		return weft_mpi_err(MPI_ERR_DIMS, "ndims is negative (%d)", ndims);
	if (ndims && !dims)
		return weft_mpi_err(MPI_ERR_ARG, "dims is a null pointer");
	for (int i = 0; i < ndims; i++) {
		if (dims[i] < 0)
			return weft_mpi_err(MPI_ERR_DIMS, "dims[%d] is negative (%d)", i, dims[i]);
		if (!dims[i]) {
			open++;
			continue;
		}
		if (left % dims[i])
			return weft_mpi_err(MPI_ERR_DIMS,
					    "%d processes cannot be divided by dims[%d] = %d",
					    nnodes, i, dims[i]);
		left /= dims[i];
	}
	if (!open) {
		if (left != 1 && ndims)
			return weft_mpi_err(MPI_ERR_DIMS,
					    "the given dimensions do not multiply to %d", nnodes);
		return MPI_SUCCESS;
	}
	struct search s = {.n = open};
	s.now = malloc(2 * (size_t)open * sizeof(int));
	if (!s.now)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	s.best = s.now + open;
	try_from(&s, 0, left, left);
	for (int i = 0, k = 0; i < ndims; i++)
		if (!dims[i])
			dims[i] = s.best[k++];
	free(s.now);
	return MPI_SUCCESS;
}
