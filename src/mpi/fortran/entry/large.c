/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * large.c - large forms of mpi_f08 that differ from the others by more than types: operations and data representations whose
 * functions count in INTEGER(KIND=MPI_COUNT_KIND), and how a datatype was made.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi/fortran/fort.h"
#include "mpi/fortran/section.h"
#include "mpi/lang.h"

#if WEFT_F_INT == 4
#pragma GCC visibility push(default)
void WEFT_F_NAMED(op_create_c)(weft_f_function *user_fn, const void *commute, void *op,
			       void *ierror);
void WEFT_F_NAMED(register_datarep_c)(const char *datarep, weft_f_function *read,
				      weft_f_function *write, weft_f_function *extent,
				      const MPI_Aint *extra_state, void *ierror,
				      size_t datarep_len);
void WEFT_F_NAMED(type_get_envelope_c)(const void *datatype, MPI_Count *num_integers,
				       MPI_Count *num_addresses, MPI_Count *num_large_counts,
				       MPI_Count *num_datatypes, void *combiner, void *ierror);
void WEFT_F_NAMED(type_get_contents_c)(const void *datatype, const MPI_Count *max_integers,
				       const MPI_Count *max_addresses,
				       const MPI_Count *max_large_counts,
				       const MPI_Count *max_datatypes, void *array_of_integers,
				       MPI_Aint *array_of_addresses,
				       MPI_Count *array_of_large_counts, void *array_of_datatypes,
				       void *ierror);
#pragma GCC visibility pop

static int integer_in(const void *integer)
{
	return (int)weft_f_value(integer, weft_f_wide);
}

/* The k-th of an array of INTEGERs. */
static void integer_out(void *array, int64_t k, int v)
{
	if (weft_f_wide)
		((int64_t *)array)[k] = v;
	else
		((int32_t *)array)[k] = v;
}

/* ---- operations ----------------------------------------------------------------------------- */

static void call_op_large(weft_lang_fn *fn, void *in, void *inout, int n, int datatype)
{
	MPI_Count count = n;
	int64_t type = datatype; /* its low bytes come first */
	((void (*)(void *, void *, MPI_Count *, void *))fn)(in, inout, &count, &type);
}

static const struct weft_lang counts_large = {.op = call_op_large};

void WEFT_F_NAMED(op_create_c)(weft_f_function *user_fn, const void *commute, void *op,
			       void *ierror)
{
	MPI_Op made = MPI_OP_NULL;
	weft_lang_next(&counts_large, (void *)user_fn);
	int code = CALL(Op_create)((MPI_User_function *)user_fn,
				   weft_f_true((I)weft_f_value(commute, weft_f_wide)), &made);
	weft_lang_next(NULL, NULL);
	if (!code)
		integer_out(op, 0, OUT_HANDLE(Op, made));
	weft_f_error_out(ierror, code);
}

/* ---- data representations ------------------------------------------------------------------- */

typedef void conversion_fn(void *userbuf, void *datatype, MPI_Count *count, void *filebuf,
			   MPI_Offset *position, MPI_Aint *extra, void *ierror);
typedef void extent_fn(void *datatype, MPI_Aint *extent, MPI_Aint *extra, void *ierror);

/* Lives as long as the process: MPI has no way to forget a representation. */
struct datarep {
	conversion_fn *read, *write;
	extent_fn *extent;
	MPI_Aint extra;
};

static int convert_by_user(conversion_fn *fn, struct datarep *d, void *userbuf,
			   MPI_Datatype datatype, MPI_Count count, void *filebuf,
			   MPI_Offset position)
{
	/* The low bytes of both come first. */
	int64_t type = OUT_HANDLE(Type, datatype), ierror = MPI_SUCCESS;

	fn(userbuf, &type, &count, filebuf, &position, &d->extra, &ierror);
	return integer_in(&ierror);
}

static int datarep_read(void *userbuf, MPI_Datatype datatype, MPI_Count count, void *filebuf,
			MPI_Offset position, void *state)
{
	struct datarep *d = state;

	return convert_by_user(d->read, d, userbuf, datatype, count, filebuf, position);
}

static int datarep_write(void *userbuf, MPI_Datatype datatype, MPI_Count count, void *filebuf,
			 MPI_Offset position, void *state)
{
	struct datarep *d = state;

	return convert_by_user(d->write, d, userbuf, datatype, count, filebuf, position);
}

static int datarep_extent(MPI_Datatype datatype, MPI_Aint *extent, void *state)
{
	struct datarep *d = state;
	int64_t type = OUT_HANDLE(Type, datatype), ierror = MPI_SUCCESS;

	d->extent(&type, extent, &d->extra, &ierror);
	return integer_in(&ierror);
}

void WEFT_F_NAMED(register_datarep_c)(const char *datarep, weft_f_function *read,
				      weft_f_function *write, weft_f_function *extent,
				      const MPI_Aint *extra_state, void *ierror, size_t datarep_len)
{
	struct weft_f_temp temp;
	weft_f_temp_open(&temp);
	char *name = weft_f_string(&temp, datarep, datarep_len, false);
	struct datarep *d = malloc(sizeof(*d));
	if (!name || !d) {
		weft_f_error_out(ierror, weft_f_no_memory());
		free(d);
		weft_f_temp_close(&temp);
		return;
	}
	*d = (struct datarep){(conversion_fn *)read, (conversion_fn *)write, (extent_fn *)extent,
			      *extra_state};
	bool no_read = weft_f_predefined(read) == WEFT_F_NULL_FN,
	     no_write = weft_f_predefined(write) == WEFT_F_NULL_FN;
	int code = CALL(Register_datarep_c)(name, no_read ? MPI_CONVERSION_FN_NULL_C : datarep_read,
					    no_write ? MPI_CONVERSION_FN_NULL_C : datarep_write,
					    datarep_extent, d);
	if (code)
		free(d);
	weft_f_temp_close(&temp);
	weft_f_error_out(ierror, code);
}

/* ---- how a datatype was made ----------------------------------------------------------------- */

void WEFT_F_NAMED(type_get_envelope_c)(const void *datatype, MPI_Count *num_integers,
				       MPI_Count *num_addresses, MPI_Count *num_large_counts,
				       MPI_Count *num_datatypes, void *combiner, void *ierror)
{
	int c = 0;
	int code = CALL(Type_get_envelope_c)(IN_HANDLE(Type, integer_in(datatype)), num_integers,
					     num_addresses, num_large_counts, num_datatypes, &c);
	if (!code)
		integer_out(combiner, 0, c);
	weft_f_error_out(ierror, code);
}

void WEFT_F_NAMED(type_get_contents_c)(const void *datatype, const MPI_Count *max_integers,
				       const MPI_Count *max_addresses,
				       const MPI_Count *max_large_counts,
				       const MPI_Count *max_datatypes, void *array_of_integers,
				       MPI_Aint *array_of_addresses,
				       MPI_Count *array_of_large_counts, void *array_of_datatypes,
				       void *ierror)
{
	struct weft_f_temp temp;
	MPI_Datatype type = IN_HANDLE(Type, integer_in(datatype));
	MPI_Count n_ints = 0, n_addresses, n_large, n_types = 0;
	int combiner;
	/* Only so many are written. */
	int code = PMPI_Type_get_envelope_c(type, &n_ints, &n_addresses, &n_large, &n_types,
					    &combiner);
	weft_f_temp_open(&temp);
	MPI_Count ints_room = *max_integers > n_ints ? *max_integers : n_ints,
		  types_room = *max_datatypes > n_types ? *max_datatypes : n_types;
	int *ints = weft_f_temp_get(&temp, ints_room, sizeof(*ints));
	MPI_Datatype *types = weft_f_temp_get(&temp, types_room, sizeof(*types));
	if (!code)
		code = temp.failed ? weft_f_no_memory()
				   : CALL(Type_get_contents_c)(type, *max_integers, *max_addresses,
							       *max_large_counts, *max_datatypes,
							       ints, array_of_addresses,
							       array_of_large_counts, types);
	for (MPI_Count k = 0; !code && k < n_ints; k++)
		integer_out(array_of_integers, k, ints[k]);
	for (MPI_Count k = 0; !code && k < n_types; k++)
		integer_out(array_of_datatypes, k, OUT_HANDLE(Type, types[k]));
	weft_f_temp_close(&temp);
	weft_f_error_out(ierror, code);
}
#endif
