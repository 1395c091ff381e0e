/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo_dims.c - MPI_Dims_create: the most balanced grid.
 *
 * Tries the factorisations of what is left, largest factor first and never rising, and keeps the
 * one whose largest and smallest dimensions are closest to each other; of several, the one
 * with the largest smallest dimension, then with the largest second smallest one, and so on.
 * Bound: the number of divisors (at most 1,600 for an int) to the power of few dimensions.  A
 * branch is cut off as soon as even the most balanced rest could not be better.
 */
#include <stdlib.h>

#include "mpi/mpi_int.h"

#define DIVISORS_MAX 1600 /* of 2,095,133,040 */

struct search {
	int n;           /* free dimensions */
	int *now, *best; /* falling */
	bool found;
	int divisors; /* of the number to divide, rising */
	int divisor[DIVISORS_MAX];
	int room[]; /* of now and best */
};

/* v^n, but not beyond what an int holds. */
static int64_t power_of(int v, int n)
{
	int64_t p = 1;
	for (int i = 0; i < n && p <= INT32_MAX; i++)
		p *= v;
	return p;
}

/* The largest k with k^n <= v. */
static int root_down(int v, int n)
{
	int lo = 1, hi = v;
	while (lo < hi) {
		int mid = (int)(((int64_t)lo + hi + 1) / 2);
		if (power_of(mid, n) <= v)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

static int compare_int(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return x < y ? -1 : x > y;
}

static void divisors_of(struct search *s, int v)
{
	for (int d = 1; d <= v / d; d++) {
		if (v % d)
			continue;
		s->divisor[s->divisors++] = d;
		if (d != v / d)
			s->divisor[s->divisors++] = v / d;
	}
	qsort(s->divisor, (size_t)s->divisors, sizeof(int), compare_int);
}

static int prime_max(int v)
{
	int most = 1;
	for (int p = 2; p <= v / p; p++)
		while (v % p == 0) {
			most = p;
			v /= p;
		}
	return v > most ? v : most;
}

/* Could a grid from `high` down to at most `low` be better than the best one? */
static bool is_promising(const struct search *s, int high, int low)
{
	if (!s->found)
		return true;
	int now = high - low, best = s->best[0] - s->best[s->n - 1];
	return now < best || (now == best && low >= s->best[s->n - 1]);
}

/* Is the grid in `now` better than the best one, which has the same largest and smallest? */
static bool better_within(const struct search *s)
{
	int k = s->n - 1;
	while (k > 0 && s->now[k] == s->best[k])
		k--;
	return s->now[k] > s->best[k];
}

/* Chooses dimension i and the following for what is left, none above `most`. */
static void try_from(struct search *s, int i, int left, int least, int most)
{
	int rest = s->n - i - 1;
	if (!rest) {
		if (left > most || left < least || !is_promising(s, i ? s->now[0] : left, left))
			return;
		s->now[i] = left;
		if (s->found && s->now[0] == s->best[0] && left == s->best[i] && !better_within(s))
			return;
		for (int k = 0; k < s->n; k++)
			s->best[k] = s->now[k];
		s->found = true;
		return;
	}
	for (int k = 0; k < s->divisors; k++) {
		int d = s->divisor[k];
		if (d > most || d > left)
			return;
		if (d < least || left % d || power_of(d, rest + 1) < left)
			continue;
		/* The larger this one, the smaller the last: no later one is better either. */
		if (!is_promising(s, i ? s->now[0] : d, root_down(left / d, rest)))
			return;
		s->now[i] = d;
		try_from(s, i + 1, left / d, 1, d);
	}
}

/* The most balanced grid of s->n dimensions; its first is not below the largest prime factor. */
static void search_grid(struct search *s, int nodes)
{
	divisors_of(s, nodes);
	try_from(s, 0, nodes, prime_max(nodes), nodes);
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
	struct search *s = malloc(sizeof(*s) + 2 * (size_t)open * sizeof(int));
	if (!s)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	s->n = open;
	s->found = false;
	s->divisors = 0;
	s->now = s->room;
	s->best = s->room + open;
	search_grid(s, left);
	for (int i = 0, k = 0; i < ndims; i++)
		if (!dims[i])
			dims[i] = s->best[k++];
	free(s);
	return MPI_SUCCESS;
}
