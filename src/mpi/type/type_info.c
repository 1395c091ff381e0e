/* SPDX-License-Identifier: BSD-3-Clause */
/* type_info.c - questions about datatypes: size, bounds, elements, name. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/type/type.h"

/* The layout, or NULL after recording why there is none. */
static const struct weft_type *layout_of(MPI_Datatype datatype)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(datatype);
	if (!t->layout)
		weft_mpi_err(MPI_ERR_TYPE, "%s is not supported on this machine", t->std_name);
	return t->layout;
}

int weft_mpi_Type_size(MPI_Datatype datatype, MPI_Count *size)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(datatype);
	*size = t->layout ? (MPI_Count)t->layout->size : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

int weft_mpi_Type_get_extent(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
	const struct weft_type *t = layout_of(datatype);
	if (!t)
		return MPI_ERR_TYPE;
	*lb = t->lb;
	*extent = weft_data_type_extent(t);
	return MPI_SUCCESS;
}

int weft_mpi_Type_get_true_extent(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
	const struct weft_type *t = layout_of(datatype);
	if (!t)
		return MPI_ERR_TYPE;
	*true_lb = t->true_lb;
	*true_extent = t->true_ub - t->true_lb;
	return MPI_SUCCESS;
}

MPI_Count weft_mpi_type_elements(const struct weft_mpi_type *t, uint64_t bytes)
{
	const struct weft_type *l = t->layout;
	if (!l || !l->size)
		return bytes ? MPI_UNDEFINED : 0;
	size_t rest;
	size_t n = weft_data_sig_elements(l->sig, bytes % l->size, &rest);
	return rest ? MPI_UNDEFINED : (MPI_Count)(bytes / l->size * l->sig->elems + n);
}

uint64_t weft_mpi_type_elements_bytes(const struct weft_mpi_type *t, MPI_Count elements)
{
	const struct weft_type *l = t->layout;
	if (!l || !l->size || elements <= 0)
		return 0;
	uint64_t n = (uint64_t)elements;
	return n / l->sig->elems * l->size + weft_data_sig_bytes(l->sig, n % l->sig->elems);
}

MPI_Count weft_mpi_type_count(const struct weft_mpi_type *t, uint64_t bytes)
{
	if (!t->layout || !t->layout->size)
		return bytes ? MPI_UNDEFINED : 0;
	return bytes % t->layout->size ? MPI_UNDEFINED : (MPI_Count)(bytes / t->layout->size);
}

/* ---- names -------------------------------------------------------------------------------- */

static pthread_mutex_t name_lock = PTHREAD_MUTEX_INITIALIZER;

int weft_mpi_Type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
	struct weft_mpi_type *t = weft_mpi_type_of(datatype);
	if (!t && datatype != MPI_DATATYPE_NULL)
		return weft_mpi_err(MPI_ERR_TYPE, "invalid datatype (wild or freed)");
	pthread_mutex_lock(&name_lock);
	const char *name = !t            ? "MPI_DATATYPE_NULL"
			   : t->name     ? t->name
			   : t->std_name ? t->std_name
					 : "";
	size_t len = strlen(name);
	memcpy(type_name, name, len + 1);
	pthread_mutex_unlock(&name_lock);
	*resultlen = (int)len;
	return MPI_SUCCESS;
}

int weft_mpi_Type_set_name(MPI_Datatype datatype, const char *type_name)
{
	struct weft_mpi_type *t = weft_mpi_type_of(datatype);
	char *copy = strndup(type_name, MPI_MAX_OBJECT_NAME - 1);
	if (!copy)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a name");
	pthread_mutex_lock(&name_lock);
	char *old = t->name;
	t->name = copy;
	pthread_mutex_unlock(&name_lock);
	free(old);
	return MPI_SUCCESS;
}
