/* SPDX-License-Identifier: BSD-3-Clause */
/* type_make.c - the constructors of datatypes: record the arguments, make the layout. */
#include <stdlib.h>

#include "mpi/type/type_contents.h"

#define INT WEFT_MPI_ITEM_INT
#define COUNT WEFT_MPI_ITEM_COUNT
#define ADDR WEFT_MPI_ITEM_ADDR

/* The layout behind a handle; NULL: recorded why not. */
static struct weft_mpi_type *old_type(MPI_Datatype h)
{
	struct weft_mpi_type *t = weft_mpi_type_of(h);
	if (!t) {
		weft_mpi_err(MPI_ERR_TYPE, "invalid datatype in the array of datatypes");
		return NULL;
	}
	if (!t->layout) {
		weft_mpi_err(MPI_ERR_TYPE, "%s is not supported on this machine", t->std_name);
		return NULL;
	}
	return t;
}

/* Common end of all constructors: err is what making the layout gave. */
static int finish_type(weft_err err, const struct weft_type *layout, int combiner,
		       struct weft_mpi_type_contents *c, MPI_Datatype *newtype)
{
	if (!err)
		return weft_mpi_type_new(layout, combiner, c, newtype);
	weft_mpi_contents_unref(c);
	switch (err) {
	case WEFT_ERR_LIMIT:
		return weft_mpi_err(MPI_ERR_COUNT, "the datatype does not fit in 63 bits");
	case WEFT_ERR_ARG:
		return weft_mpi_err(MPI_ERR_ARG, "negative or impossible count, block length, "
						 "size or start");
	default:
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a datatype");
	}
}

static int null_array(void)
{
	return weft_mpi_err(MPI_ERR_ARG, "an array of arguments is a null pointer");
}

static int refuse_negative(const char *what)
{
	return weft_mpi_err(MPI_ERR_ARG, "%s is negative", what);
}

/* Contents that begin with oldtype. */
static struct weft_mpi_type_contents *contents_of(struct weft_mpi_type *old)
{
	struct weft_mpi_type_contents *c = weft_mpi_contents_new();
	weft_mpi_contents_add_type(c, old);
	return c;
}

int weft_mpi_Type_contiguous(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct weft_mpi_type *old = old_type(oldtype);
	if (!old)
		return MPI_ERR_TYPE;
	struct weft_mpi_type_contents *c = contents_of(old);
	weft_mpi_contents_add(c, COUNT, count);
	const struct weft_type *t = NULL;
	weft_err err = weft_data_type_contiguous(count, old->layout, &t);
	return finish_type(err, t, MPI_COMBINER_CONTIGUOUS, c, newtype);
}

static int make_vector(int combiner, MPI_Count count, MPI_Count blocklength, MPI_Count stride,
		       MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct weft_mpi_type *old = old_type(oldtype);
	if (!old)
		return MPI_ERR_TYPE;
	bool bytes = combiner == MPI_COMBINER_HVECTOR;
	if (blocklength < 0)
		return refuse_negative("blocklength");
	struct weft_mpi_type_contents *c = contents_of(old);
	weft_mpi_contents_add(c, COUNT, count);
	weft_mpi_contents_add(c, COUNT, blocklength);
	weft_mpi_contents_add(c, bytes ? ADDR : COUNT, stride);
	const struct weft_type *t = NULL;
	int64_t step;
	weft_err err = WEFT_ERR_LIMIT;
	if (!__builtin_mul_overflow(stride, bytes ? 1 : weft_data_type_extent(old->layout), &step))
		err = weft_data_type_hvector(count, blocklength, step, old->layout, &t);
	return finish_type(err, t, combiner, c, newtype);
}

int weft_mpi_Type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
			 MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return make_vector(MPI_COMBINER_VECTOR, count, blocklength, stride, oldtype, newtype);
}

int weft_mpi_Type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
				 MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return make_vector(MPI_COMBINER_HVECTOR, count, blocklength, stride, oldtype, newtype);
}

/* The four indexed constructors; those with _BLOCK have blocks of `bl`, not `bls`. */
static int make_indexed(int combiner, MPI_Count count, const MPI_Count *bls, MPI_Count bl,
			const MPI_Count *disps, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct weft_mpi_type *old = old_type(oldtype);
	if (!old)
		return MPI_ERR_TYPE;
	bool bytes = combiner == MPI_COMBINER_HINDEXED || combiner == MPI_COMBINER_HINDEXED_BLOCK;
	bool block =
		combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
	if (count && (!disps || (!block && !bls)))
		return null_array();
	if (block && bl < 0)
		return refuse_negative("blocklength");
	for (MPI_Count i = 0; !block && i < count; i++)
		if (bls[i] < 0)
			return refuse_negative("a block length");
	struct weft_mpi_type_contents *c = contents_of(old);
	weft_mpi_contents_add(c, COUNT, count);
	if (block)
		weft_mpi_contents_add(c, COUNT, bl);
	else
		weft_mpi_contents_add_all(c, COUNT, bls, count);
	weft_mpi_contents_add_all(c, bytes ? ADDR : COUNT, disps, count);
	const struct weft_type *t = NULL;
	weft_err err = weft_data_type_indexed(count, block ? NULL : bls, bl, disps,
					      bytes ? 1 : weft_data_type_extent(old->layout),
					      old->layout, &t);
	return finish_type(err, t, combiner, c, newtype);
}

int weft_mpi_Type_indexed(MPI_Count count, const MPI_Count array_of_blocklengths[],
			  const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
			  MPI_Datatype *newtype)
{
	return make_indexed(MPI_COMBINER_INDEXED, count, array_of_blocklengths, 0,
			    array_of_displacements, oldtype, newtype);
}

int weft_mpi_Type_create_hindexed(MPI_Count count, const MPI_Count array_of_blocklengths[],
				  const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
				  MPI_Datatype *newtype)
{
	return make_indexed(MPI_COMBINER_HINDEXED, count, array_of_blocklengths, 0,
			    array_of_displacements, oldtype, newtype);
}

int weft_mpi_Type_create_indexed_block(MPI_Count count, MPI_Count blocklength,
				       const MPI_Count array_of_displacements[],
				       MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return make_indexed(MPI_COMBINER_INDEXED_BLOCK, count, NULL, blocklength,
			    array_of_displacements, oldtype, newtype);
}

int weft_mpi_Type_create_hindexed_block(MPI_Count count, MPI_Count blocklength,
					const MPI_Count array_of_displacements[],
					MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return make_indexed(MPI_COMBINER_HINDEXED_BLOCK, count, NULL, blocklength,
			    array_of_displacements, oldtype, newtype);
}

int weft_mpi_Type_create_struct(MPI_Count count, const MPI_Count array_of_blocklengths[],
				const MPI_Count array_of_displacements[],
				const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
	if (count && (!array_of_blocklengths || !array_of_displacements || !array_of_types))
		return null_array();
	for (MPI_Count i = 0; i < count; i++)
		if (array_of_blocklengths[i] < 0)
			return refuse_negative("a block length");
	struct weft_mpi_type_contents *c = weft_mpi_contents_new();
	const struct weft_type **layouts = malloc(((size_t)count + 1) * sizeof *layouts);
	const struct weft_type *t = NULL;
	weft_err err = layouts && c ? WEFT_OK : WEFT_ERR_NOMEM;
	weft_mpi_contents_add(c, COUNT, count);
	weft_mpi_contents_add_all(c, COUNT, array_of_blocklengths, count);
	weft_mpi_contents_add_all(c, ADDR, array_of_displacements, count);
	for (MPI_Count i = 0; !err && i < count; i++) {
		struct weft_mpi_type *old = old_type(array_of_types[i]);
		if (!old) {
			weft_mpi_contents_unref(c);
			free(layouts);
			return MPI_ERR_TYPE;
		}
		weft_mpi_contents_add_type(c, old);
		layouts[i] = old->layout;
	}
	if (!err)
		err = weft_data_type_struct(count, array_of_blocklengths, array_of_displacements,
					    layouts, &t);
	free(layouts);
	return finish_type(err, t, MPI_COMBINER_STRUCT, c, newtype);
}

int weft_mpi_Type_create_resized(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent,
				 MPI_Datatype *newtype)
{
	struct weft_mpi_type *old = old_type(oldtype);
	if (!old)
		return MPI_ERR_TYPE;
	struct weft_mpi_type_contents *c = contents_of(old);
	weft_mpi_contents_add(c, ADDR, lb);
	weft_mpi_contents_add(c, ADDR, extent);
	const struct weft_type *t = NULL;
	weft_err err = weft_data_type_resized(old->layout, lb, extent, &t);
	return finish_type(err, t, MPI_COMBINER_RESIZED, c, newtype);
}

static int check_order(int ndims, int order)
{
	if (ndims < 1)
		return weft_mpi_err(MPI_ERR_ARG, "ndims is %d, it must be at least 1", ndims);
	if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
		return weft_mpi_err(MPI_ERR_ARG, "order must be MPI_ORDER_C or MPI_ORDER_FORTRAN");
	return MPI_SUCCESS;
}

int weft_mpi_Type_create_subarray(int ndims, const MPI_Count array_of_sizes[],
				  const MPI_Count array_of_subsizes[],
				  const MPI_Count array_of_starts[], int order,
				  MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct weft_mpi_type *old = old_type(oldtype);
	if (!old)
		return MPI_ERR_TYPE;
	int bad = check_order(ndims, order);
	if (bad)
		return bad;
	if (!array_of_sizes || !array_of_subsizes || !array_of_starts)
		return null_array();
	for (int i = 0; i < ndims; i++)
		if (array_of_sizes[i] < 1 || array_of_subsizes[i] < 1 || array_of_starts[i] < 0 ||
		    array_of_subsizes[i] > array_of_sizes[i] ||
		    array_of_starts[i] > array_of_sizes[i] - array_of_subsizes[i])
			return weft_mpi_err(
				MPI_ERR_ARG, "dimension %d: %lld from %lld on do not lie in %lld",
				i, (long long)array_of_subsizes[i], (long long)array_of_starts[i],
				(long long)array_of_sizes[i]);
	struct weft_mpi_type_contents *c = contents_of(old);
	weft_mpi_contents_add(c, INT, ndims);
	weft_mpi_contents_add_all(c, COUNT, array_of_sizes, ndims);
	weft_mpi_contents_add_all(c, COUNT, array_of_subsizes, ndims);
	weft_mpi_contents_add_all(c, COUNT, array_of_starts, ndims);
	weft_mpi_contents_add(c, INT, order);
	const struct weft_type *t = NULL;
	weft_err err =
		weft_data_type_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts,
					order == MPI_ORDER_C, old->layout, &t);
	return finish_type(err, t, MPI_COMBINER_SUBARRAY, c, newtype);
}

static int check_darray(int size, int rank, int ndims, const MPI_Count *gsizes, const int *distribs,
			const int *dargs, const int *psizes)
{
	int64_t procs = 1;
	if (size < 1 || rank < 0 || rank >= size)
		return weft_mpi_err(MPI_ERR_ARG, "rank %d is not in a process grid of %d", rank,
				    size);
	for (int i = 0; i < ndims; i++) {
		if (gsizes[i] < 1 || psizes[i] < 1)
			return weft_mpi_err(MPI_ERR_ARG, "dimension %d: sizes must be positive", i);
		if (distribs[i] != MPI_DISTRIBUTE_NONE && distribs[i] != MPI_DISTRIBUTE_BLOCK &&
		    distribs[i] != MPI_DISTRIBUTE_CYCLIC)
			return weft_mpi_err(MPI_ERR_ARG, "dimension %d: unknown distribution", i);
		if (distribs[i] == MPI_DISTRIBUTE_NONE && psizes[i] != 1)
			return weft_mpi_err(MPI_ERR_ARG,
					    "dimension %d is not distributed, so its process "
					    "grid size must be 1",
					    i);
		if (distribs[i] != MPI_DISTRIBUTE_NONE && dargs[i] != MPI_DISTRIBUTE_DFLT_DARG &&
		    (dargs[i] < 1 || (distribs[i] == MPI_DISTRIBUTE_BLOCK &&
				      (int64_t)dargs[i] * psizes[i] < gsizes[i])))
			return weft_mpi_err(MPI_ERR_ARG,
					    "dimension %d: blocks of %d do not cover the array", i,
					    dargs[i]);
		if (__builtin_mul_overflow(procs, psizes[i], &procs))
			procs = -1;
	}
	if (procs != size)
		return weft_mpi_err(MPI_ERR_ARG, "the process grid does not have %d processes",
				    size);
	return MPI_SUCCESS;
}

int weft_mpi_Type_create_darray(int size, int rank, int ndims, const MPI_Count array_of_gsizes[],
				const int array_of_distribs[], const int array_of_dargs[],
				const int array_of_psizes[], int order, MPI_Datatype oldtype,
				MPI_Datatype *newtype)
{
	struct weft_mpi_type *old = old_type(oldtype);
	if (!old)
		return MPI_ERR_TYPE;
	int bad = check_order(ndims, order);
	if (!bad && (!array_of_gsizes || !array_of_distribs || !array_of_dargs || !array_of_psizes))
		bad = null_array();
	if (!bad)
		bad = check_darray(size, rank, ndims, array_of_gsizes, array_of_distribs,
				   array_of_dargs, array_of_psizes);
	if (bad)
		return bad;
	struct weft_mpi_type_contents *c = contents_of(old);
	size_t n = (size_t)ndims;
	enum weft_dist *dists = malloc(n * sizeof *dists);
	int64_t *wide = malloc(2 * n * sizeof *wide);
	weft_mpi_contents_add(c, INT, size);
	weft_mpi_contents_add(c, INT, rank);
	weft_mpi_contents_add(c, INT, ndims);
	weft_mpi_contents_add_all(c, COUNT, array_of_gsizes, ndims);
	const int *ints[] = {array_of_distribs, array_of_dargs, array_of_psizes};
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < ndims; i++)
			weft_mpi_contents_add(c, INT, ints[k][i]);
	weft_mpi_contents_add(c, INT, order);
	const struct weft_type *t = NULL;
	weft_err err = WEFT_ERR_NOMEM;
	if (dists && wide) {
		for (size_t i = 0; i < n; i++) {
			dists[i] = array_of_distribs[i] == MPI_DISTRIBUTE_NONE ? WEFT_DIST_NONE
				   : array_of_distribs[i] == MPI_DISTRIBUTE_BLOCK
					   ? WEFT_DIST_BLOCK
					   : WEFT_DIST_CYCLIC;
			wide[i] = array_of_dargs[i] == MPI_DISTRIBUTE_DFLT_DARG ||
						  dists[i] == WEFT_DIST_NONE
					  ? -1
					  : array_of_dargs[i];
			wide[n + i] = array_of_psizes[i];
		}
		err = weft_data_type_darray(size, rank, ndims, array_of_gsizes, dists, wide,
					    wide + n, order == MPI_ORDER_C, old->layout, &t);
	}
	free(dists);
	free(wide);
	return finish_type(err, t, MPI_COMBINER_DARRAY, c, newtype);
}
