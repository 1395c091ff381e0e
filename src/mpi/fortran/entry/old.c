/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * old.c - what MPI-3.0 deleted and old programs in Fortran still call: their successors, with displacements as INTEGERs.
 */
#include "mpi/fortran/fort.h"

#if WEFT_F_INT == 4
#define VISIBLE __attribute__((visibility("default")))
#else
#define VISIBLE
#endif
/* The prototype of the entry point, and of the one for INTEGERs of 8 bytes: PARAMS(type of an INTEGER). */
#define OLD(name, PARAMS)                                                                          \
	void WEFT_F_WIDE(name)(PARAMS(int64_t));                                                   \
	VISIBLE void ENTRY(name)(PARAMS(I));                                                       \
	void ENTRY(name)(PARAMS(I))

#define ADDRESS(T) void *location, T *address, T *ierror
OLD(address, ADDRESS)
{
	WIDE(address, (location, (void *)address, (void *)ierror));
	MPI_Aint at = 0;
	int code = CALL(Get_address)(weft_f_buf(location), &at);
	*address = (I)at;
	if (!code && *address != at) {
		/* An INTEGER of 4 bytes holds few of today's addresses. */
		code = MPI_ERR_ARG;
		PMPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
	}
	ERROR_OUT(ierror, code);
}

#define EXTENT(T) const T *datatype, T *value, T *ierror
static int extent_of(I datatype, MPI_Aint *lb, MPI_Aint *extent)
{
	return CALL(Type_get_extent)(IN_HANDLE(Type, datatype), lb, extent);
}

OLD(type_extent, EXTENT)
{
	WIDE(type_extent, ((void *)datatype, (void *)value, (void *)ierror));
	MPI_Aint lb = 0, extent = 0;
	ERROR_OUT(ierror, extent_of(*datatype, &lb, &extent));
	*value = (I)extent;
}

OLD(type_lb, EXTENT)
{
	WIDE(type_lb, ((void *)datatype, (void *)value, (void *)ierror));
	MPI_Aint lb = 0, extent = 0;
	ERROR_OUT(ierror, extent_of(*datatype, &lb, &extent));
	*value = (I)lb;
}

OLD(type_ub, EXTENT)
{
	WIDE(type_ub, ((void *)datatype, (void *)value, (void *)ierror));
	MPI_Aint lb = 0, extent = 0;
	ERROR_OUT(ierror, extent_of(*datatype, &lb, &extent));
	*value = (I)(lb + extent);
}

#define HVECTOR(T)                                                                                 \
	const T *count, const T *length, const T *stride, const T *oldtype, T *newtype, T *ierror
OLD(type_hvector, HVECTOR)
{
	WIDE(type_hvector, ((void *)count, (void *)length, (void *)stride, (void *)oldtype,
			    (void *)newtype, (void *)ierror));
	MPI_Aint step = *stride;
	ENTRY(type_create_hvector)(count, length, &step, oldtype, newtype, ierror);
}

/* Displacements as addresses; NULL: no memory. */
static MPI_Aint *addresses_of(struct weft_f_temp *temp, const I *from, I n)
{
	MPI_Aint *to = weft_f_temp_get(temp, n, sizeof(*to));

	for (I k = 0; to && k < n; k++)
		to[k] = from[k];
	return to;
}

#define HINDEXED(T)                                                                                \
	const T *count, const T *lengths, const T *displacements, const T *oldtype, T *newtype,    \
		T *ierror
OLD(type_hindexed, HINDEXED)
{
	WIDE(type_hindexed, ((void *)count, (void *)lengths, (void *)displacements, (void *)oldtype,
			     (void *)newtype, (void *)ierror));
	struct weft_f_temp temp;
	weft_f_temp_open(&temp);
	MPI_Aint *at = addresses_of(&temp, displacements, *count);
	if (at)
		ENTRY(type_create_hindexed)(count, lengths, at, oldtype, newtype, ierror);
	else
		ERROR_OUT(ierror, weft_f_no_memory());
	weft_f_temp_close(&temp);
}

#define STRUCT(T)                                                                                  \
	const T *count, const T *lengths, const T *displacements, const T *types, T *newtype,      \
		T *ierror
OLD(type_struct, STRUCT)
{
	WIDE(type_struct, ((void *)count, (void *)lengths, (void *)displacements, (void *)types,
			   (void *)newtype, (void *)ierror));
	struct weft_f_temp temp;
	weft_f_temp_open(&temp);
	MPI_Aint *at = addresses_of(&temp, displacements, *count);
	if (at)
		ENTRY(type_create_struct)(count, lengths, at, types, newtype, ierror);
	else
		ERROR_OUT(ierror, weft_f_no_memory());
	weft_f_temp_close(&temp);
}

#define CREATE(T) weft_f_function *fn, T *errhandler, T *ierror
OLD(errhandler_create, CREATE)
{
	WIDE(errhandler_create, (fn, (void *)errhandler, (void *)ierror));
	ENTRY(comm_create_errhandler)(fn, errhandler, ierror);
}

#define SET(T) const T *comm, const T *errhandler, T *ierror
OLD(errhandler_set, SET)
{
	WIDE(errhandler_set, ((void *)comm, (void *)errhandler, (void *)ierror));
	ENTRY(comm_set_errhandler)(comm, errhandler, ierror);
}

#define GET(T) const T *comm, T *errhandler, T *ierror
OLD(errhandler_get, GET)
{
	WIDE(errhandler_get, ((void *)comm, (void *)errhandler, (void *)ierror));
	ENTRY(comm_get_errhandler)(comm, errhandler, ierror);
}
