/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * type_f90.c - datatypes chosen by properties: MPI_Type_match_size, MPI_Type_create_f90_*.
 *
 * The datatype for a (p, r) is made once, is predefined in MPI's sense and is never freed.
 */
#include <float.h>
#include <pthread.h>
#include <stdlib.h>

#include "mpi/type/type_contents.h"

int weft_mpi_Type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
	static const struct {
		int cls, size;
		MPI_Datatype type;
	} rows[] = {
		{MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},
		{MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
		{MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},
		{MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
		{MPI_TYPECLASS_REAL, 4, MPI_REAL4},
		{MPI_TYPECLASS_REAL, 8, MPI_REAL8},
		{MPI_TYPECLASS_REAL, sizeof(long double), MPI_LONG_DOUBLE},
		{MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},
		{MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
		{MPI_TYPECLASS_COMPLEX, 2 * sizeof(long double), MPI_C_LONG_DOUBLE_COMPLEX},
		{MPIX_TYPECLASS_LOGICAL, 1, MPI_LOGICAL1},
		{MPIX_TYPECLASS_LOGICAL, 2, MPI_LOGICAL2},
		{MPIX_TYPECLASS_LOGICAL, 4, MPI_LOGICAL4},
		{MPIX_TYPECLASS_LOGICAL, 8, MPI_LOGICAL8},
	};
	for (size_t i = 0; i < weft_countof(rows); i++)
		if (rows[i].cls == typeclass && rows[i].size == size) {
			*datatype = rows[i].type;
			return MPI_SUCCESS;
		}
	return weft_mpi_err(MPI_ERR_ARG, "no datatype of that class has %d bytes", size);
}

/* p and r: precision and range, or the handles of value and index. */
struct made {
	struct made *next;
	int combiner;
	int64_t p, r;
	MPI_Datatype type;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct made *made; /* under lock */

static struct weft_mpi_type_contents *contents_of(int combiner, int64_t p, int64_t r)
{
	struct weft_mpi_type_contents *c = weft_mpi_contents_new();

	if (combiner == MPI_COMBINER_VALUE_INDEX) {
		weft_mpi_contents_add_type(c, weft_mpi_type_of((MPI_Datatype)(uintptr_t)p));
		weft_mpi_contents_add_type(c, weft_mpi_type_of((MPI_Datatype)(uintptr_t)r));
		return c;
	}
	if (combiner != MPI_COMBINER_F90_INTEGER)
		weft_mpi_contents_add(c, WEFT_MPI_ITEM_INT, p);
	weft_mpi_contents_add(c, WEFT_MPI_ITEM_INT, r);
	return c;
}

/* The datatype of that combiner and those arguments, laid out like elem. */
static int predefined_type(int combiner, int64_t p, int64_t r, unsigned elem, MPI_Datatype *newtype)
{
	int err = MPI_SUCCESS;
	pthread_mutex_lock(&lock);
	struct made *m = made;
	while (m && (m->combiner != combiner || m->p != p || m->r != r))
		m = m->next;
	if (!m) {
		m = malloc(sizeof *m);
		struct weft_mpi_type_contents *c = contents_of(combiner, p, r);
		if (!m) {
			weft_mpi_contents_unref(c);
			err = weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a datatype");
		} else {
			*m = (struct made){.next = made, .combiner = combiner, .p = p, .r = r};
			err = weft_mpi_type_new(&weft_data_type_elem[elem], combiner, c, &m->type);
			if (err) {
				free(m);
			} else {
				struct weft_mpi_type *t = weft_mpi_type_of(m->type);
				t->committed = t->predefined = true;
				t->std_name = combiner == MPI_COMBINER_VALUE_INDEX
						      ? "a datatype of MPI_Type_get_value_index"
						      : "a datatype made by MPI_Type_create_f90";
				made = m;
			}
		}
	}
	if (!err)
		*newtype = m->type;
	pthread_mutex_unlock(&lock);
	return err;
}

/* 0, 1, 2: fits float, double, long double; -1: none. */
static int float_for(int p, int r)
{
	static const int digits[] = {FLT_DIG, DBL_DIG, LDBL_DIG};
	static const int range[] = {FLT_MAX_10_EXP - 1, DBL_MAX_10_EXP - 1, LDBL_MAX_10_EXP - 1};
	for (int i = 0; i < 3; i++)
		if ((p == MPI_UNDEFINED || p <= digits[i]) && (r == MPI_UNDEFINED || r <= range[i]))
			return i;
	return -1;
}

static int f90_float(int combiner, int p, int r, const unsigned elem[3], MPI_Datatype *newtype)
{
	if (p == MPI_UNDEFINED && r == MPI_UNDEFINED)
		return weft_mpi_err(MPI_ERR_ARG, "precision and range are both MPI_UNDEFINED");
	int i = float_for(p, r);
	if (i < 0)
		return weft_mpi_err(MPI_ERR_ARG, "no type has %d digits and a range of 10^%d", p,
				    r);
	return predefined_type(combiner, p, r, elem[i], newtype);
}

int weft_mpi_Type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
	static const unsigned elem[] = {WEFT_B_F32, WEFT_B_F64, WEFT_B_F80};
	return f90_float(MPI_COMBINER_F90_REAL, p, r, elem, newtype);
}

int weft_mpi_Type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
	static const unsigned elem[] = {WEFT_B_C32, WEFT_B_C64, WEFT_B_C80};
	return f90_float(MPI_COMBINER_F90_COMPLEX, p, r, elem, newtype);
}

int weft_mpi_Type_create_f90_integer(int r, MPI_Datatype *newtype)
{
	static const struct {
		int range;
		unsigned elem;
	} rows[] = {{2, WEFT_B_I8}, {4, WEFT_B_I16}, {9, WEFT_B_I32}, {18, WEFT_B_I64}};
	for (size_t i = 0; i < weft_countof(rows); i++)
		if (r <= rows[i].range)
			return predefined_type(MPI_COMBINER_F90_INTEGER, 0, r, rows[i].elem,
					       newtype);
	return weft_mpi_err(MPI_ERR_ARG, "no integer type has a range of 10^%d", r);
}

/* The element of a predefined datatype; NONE: it is none, or has no elements of a kind. */
static unsigned number_of(MPI_Datatype type)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	unsigned elem = t->predefined && t->layout ? t->layout->elem : WEFT_B_NONE;

	return elem == WEFT_B_LONG ? WEFT_B_I64 : elem;
}

int weft_mpi_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type,
				  MPI_Datatype *pair_type)
{
	static const struct {
		MPI_Datatype value, index, pair;
	} rows[] = {
		{MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
		{MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
		{MPI_LONG, MPI_INT, MPI_LONG_INT},
		{MPI_INT, MPI_INT, MPI_2INT},
		{MPI_SHORT, MPI_INT, MPI_SHORT_INT},
		{MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
		{MPI_REAL, MPI_REAL, MPI_2REAL},
		{MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
		{MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
	};
	static const uint8_t pairs[][3] = {
#define WEFT_PAIR(id, v, vt, i, it) {WEFT_B_##v, WEFT_B_##i, WEFT_B_##id},
#include "data/pair_table.h"
#undef WEFT_PAIR
	};
	for (size_t i = 0; i < weft_countof(rows); i++)
		if (rows[i].value == value_type && rows[i].index == index_type) {
			*pair_type = rows[i].pair;
			return MPI_SUCCESS;
		}
	*pair_type = MPI_DATATYPE_NULL;
	unsigned value = number_of(value_type), index = number_of(index_type);
	if (index != WEFT_B_I32 && index != WEFT_B_I64)
		return MPI_SUCCESS; /* two reals have a pair by name alone */
	for (size_t i = 0; i < weft_countof(pairs); i++) {
		unsigned v = pairs[i][0] == WEFT_B_LONG ? WEFT_B_I64 : pairs[i][0];
		if (v == value && pairs[i][1] == index)
			return predefined_type(
				MPI_COMBINER_VALUE_INDEX, (int64_t)(uintptr_t)value_type,
				(int64_t)(uintptr_t)index_type, pairs[i][2], pair_type);
	}
	return MPI_SUCCESS;
}
