/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * abi_fortran.c - what a program's Fortran compiler is like, told by a Fortran binding that is not
 * ours: sizes of the types whose size compilers choose, optional types, values of LOGICAL.
 *
 * Each is told once, at any time, from any thread; before the program uses Fortran's datatypes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/reduce.h"
#include "mpi/info.h"
#include "mpi/type/type.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_mpi_info *told; /* under lock; NULL: nothing is known yet */
static bool logicals_told;         /* under lock */
static int64_t logical[2];         /* under lock: false, true */

/* ---- sizes and optional types ------------------------------------------------------------------ */

/* The elements of a type of 1, 2, 4, 8 and 16 bytes; NONE: we have none. */
#define NONE WEFT_B_NONE
static const unsigned integers[] = {NONE, NONE, WEFT_B_I32, WEFT_B_I64, NONE};
static const unsigned logicals[] = {WEFT_B_L8, WEFT_B_L16, WEFT_B_L32, WEFT_B_L64, NONE};
static const unsigned reals[] = {NONE, NONE, WEFT_B_F32, WEFT_B_F64, NONE};
static const unsigned complexes[] = {NONE, NONE, WEFT_B_C32, WEFT_B_C64, NONE};
static const unsigned integer_pairs[] = {NONE, NONE, WEFT_B_I32_I32, WEFT_B_I64_I64, NONE};
static const unsigned real_pairs[] = {NONE, NONE, WEFT_B_F32_F32, WEFT_B_F64_F64, NONE};

/* A compiler may make REAL and DOUBLE PRECISION so long: the datatypes are unsupported then. */
#define LOG2_QUAD 4

/* A kind whose size the compiler chooses, and the types that follow from it. */
static const struct {
	const char *key;
	unsigned usual;
	struct {
		MPI_Datatype type;
		const unsigned *elem;
	} of[3];
} sized[] = {
	{"mpi_logical_size", 4, {{MPI_LOGICAL, logicals}}},
	{"mpi_integer_size", 4, {{MPI_INTEGER, integers}, {MPI_2INTEGER, integer_pairs}}},
	{"mpi_real_size",
	 4,
	 {{MPI_REAL, reals}, {MPI_COMPLEX, complexes}, {MPI_2REAL, real_pairs}}},
	{"mpi_double_precision_size",
	 8,
	 {{MPI_DOUBLE_PRECISION, reals},
	  {MPI_DOUBLE_COMPLEX, complexes},
	  {MPI_2DOUBLE_PRECISION, real_pairs}}},
};

static const struct {
	const char *key;
	MPI_Datatype type;
} optional[] = {
	{"mpi_logical1_supported", MPI_LOGICAL1},
	{"mpi_logical2_supported", MPI_LOGICAL2},
	{"mpi_logical4_supported", MPI_LOGICAL4},
	{"mpi_logical8_supported", MPI_LOGICAL8},
	{"mpi_logical16_supported", MPI_LOGICAL16},
	{"mpi_integer1_supported", MPI_INTEGER1},
	{"mpi_integer2_supported", MPI_INTEGER2},
	{"mpi_integer4_supported", MPI_INTEGER4},
	{"mpi_integer8_supported", MPI_INTEGER8},
	{"mpi_integer16_supported", MPI_INTEGER16},
	{"mpi_real2_supported", MPI_REAL2},
	{"mpi_real4_supported", MPI_REAL4},
	{"mpi_real8_supported", MPI_REAL8},
	{"mpi_real16_supported", MPI_REAL16},
	{"mpi_complex4_supported", MPI_COMPLEX4},
	{"mpi_complex8_supported", MPI_COMPLEX8},
	{"mpi_complex16_supported", MPI_COMPLEX16},
	{"mpi_complex32_supported", MPI_COMPLEX32},
	{"mpi_double_complex_supported", MPI_DOUBLE_COMPLEX},
};

/* 0 to 4 for 1, 2, 4, 8, 16; -1: another size. */
static int log2_of(const char *text)
{
	static const char *const sizes[] = {"1", "2", "4", "8", "16"};
	for (int i = 0; i < 5; i++)
		if (strcmp(text, sizes[i]) == 0)
			return i;
	return -1;
}

/* What info says of sized[i], as its size's logarithm; without the key, what is usual. */
static int size_said(struct weft_mpi_info *info, size_t i, int *log2_p)
{
	char text[MPI_MAX_INFO_VAL + 1];

	snprintf(text, sizeof(text), "%u", sized[i].usual);
	(void)weft_mpi_info_look(info, sized[i].key, text, sizeof(text));
	*log2_p = log2_of(text);
	bool real = sized[i].of[0].elem == reals;
	if (*log2_p < 0 ||
	    (sized[i].of[0].elem[*log2_p] == WEFT_B_NONE && !(real && *log2_p == LOG2_QUAD)))
		return weft_mpi_err(MPI_ERR_INFO_VALUE,
				    "%s is '%s': this library has %s4 and 8 bytes%s", sized[i].key,
				    text, i == 0 ? "1, 2, " : "",
				    real ? "; 16 leaves the datatype unsupported" : "");
	return MPI_SUCCESS;
}

/* What info says of optional[i]; without the key, true. */
static int support_said(struct weft_mpi_info *info, size_t i, bool *has_p)
{
	char text[MPI_MAX_INFO_VAL + 1] = "true";

	(void)weft_mpi_info_look(info, optional[i].key, text, sizeof(text));
	*has_p = strcmp(text, "true") == 0;
	if (!*has_p && strcmp(text, "false") != 0)
		return weft_mpi_err(MPI_ERR_INFO_VALUE, "%s is '%s': give true or false",
				    optional[i].key, text);
	return MPI_SUCCESS;
}

/* What holds of info's types here: all keys, optional types that we lack as not supported. */
static int complete_sizes(struct weft_mpi_info *info, struct weft_mpi_info *whole)
{
	int err = MPI_SUCCESS;

	for (size_t i = 0; !err && i < weft_countof(sized); i++) {
		char text[4];
		int log2;
		err = size_said(info, i, &log2);
		if (err)
			break;
		snprintf(text, sizeof(text), "%d", 1 << log2);
		err = weft_mpi_info_put(whole, sized[i].key, text);
	}
	for (size_t i = 0; !err && i < weft_countof(optional); i++) {
		bool has;
		err = support_said(info, i, &has);
		has = has && weft_mpi_type_usual(optional[i].type) != WEFT_B_NONE;
		if (!err)
			err = weft_mpi_info_put(whole, optional[i].key, has ? "true" : "false");
	}
	return err;
}

/* Makes the datatypes what `whole`, which is complete, says. */
static void obey_sizes(struct weft_mpi_info *whole)
{
	for (size_t i = 0; i < weft_countof(sized); i++) {
		int log2;
		(void)size_said(whole, i, &log2);
		for (size_t k = 0; k < 3 && sized[i].of[k].elem; k++)
			weft_mpi_type_redefine(sized[i].of[k].type, sized[i].of[k].elem[log2]);
	}
	for (size_t i = 0; i < weft_countof(optional); i++) {
		bool has;
		(void)support_said(whole, i, &has);
		if (!has)
			weft_mpi_type_redefine(optional[i].type, WEFT_B_NONE);
	}
}

int weft_mpi_Abi_set_fortran_info(MPI_Info info)
{
	if (info == MPI_INFO_NULL)
		return weft_mpi_err(MPI_ERR_INFO, "the info object is MPI_INFO_NULL");
	struct weft_mpi_info *whole = weft_mpi_info_make();
	int err = whole ? complete_sizes(weft_mpi_info_of(info), whole)
			: weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");

	pthread_mutex_lock(&lock);
	if (!err && told)
		err = weft_mpi_err(MPI_ERR_ABI, "the Fortran compiler's types are known already: "
						"see MPI_Abi_get_fortran_info");
	if (!err) {
		obey_sizes(whole);
		told = whole;
		whole = NULL;
	}
	pthread_mutex_unlock(&lock);
	weft_mpi_info_free(whole);
	return err;
}

int weft_mpi_Abi_get_fortran_info(MPI_Info *info)
{
	*info = MPI_INFO_NULL;
	pthread_mutex_lock(&lock);
	int err = told ? weft_mpi_info_name(weft_mpi_info_copy(told), info) : MPI_SUCCESS;
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- values of LOGICAL -------------------------------------------------------------------------- */

/* Of a LOGICAL of that size; false: there is no such size. */
static bool logical_read(int size, const void *from, int64_t *value_p)
{
	int8_t v1;
	int16_t v2;
	int32_t v4;

	switch (size) {
	case 1:
		memcpy(&v1, from, sizeof(v1));
		*value_p = v1;
		return true;
	case 2:
		memcpy(&v2, from, sizeof(v2));
		*value_p = v2;
		return true;
	case 4:
		memcpy(&v4, from, sizeof(v4));
		*value_p = v4;
		return true;
	case 8:
		memcpy(value_p, from, sizeof(*value_p));
		return true;
	default:
		return false;
	}
}

static void logical_write(int size, void *to, int64_t value)
{
	int8_t v1 = (int8_t)value;
	int16_t v2 = (int16_t)value;
	int32_t v4 = (int32_t)value;

	memcpy(to,
	       size == 1   ? (void *)&v1
	       : size == 2 ? (void *)&v2
	       : size == 4 ? (void *)&v4
			   : (void *)&value,
	       (size_t)size);
}

static int size_wrong(int size)
{
	return weft_mpi_err(MPI_ERR_ARG, "a LOGICAL of %d bytes: this library has 1, 2, 4 and 8",
			    size);
}

int weft_mpi_Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
	int64_t yes, no;

	if (!logical_true || !logical_false)
		return weft_mpi_err(MPI_ERR_ARG, "a value of LOGICAL is a null pointer");
	if (!logical_read(logical_size, logical_true, &yes) ||
	    !logical_read(logical_size, logical_false, &no))
		return size_wrong(logical_size);
	if (yes == no)
		return weft_mpi_err(MPI_ERR_ARG, ".TRUE. and .FALSE. are the same, %lld",
				    (long long)yes);
	int err = MPI_SUCCESS;
	pthread_mutex_lock(&lock);
	if (logicals_told) {
		err = weft_mpi_err(MPI_ERR_ABI, "the values of LOGICAL are known already: see "
						"MPI_Abi_get_fortran_booleans");
	} else {
		logicals_told = true;
		logical[0] = no;
		logical[1] = yes;
		weft_data_logical_set(yes, no);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* Compilers use the same numbers in each size, extended by their sign. */
int weft_mpi_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false,
				      int *is_set)
{
	int64_t again;

	if (!logical_true || !logical_false)
		return weft_mpi_err(MPI_ERR_ARG,
				    "a place for a value of LOGICAL is a null pointer");
	if (!logical_read(logical_size, logical_true, &again))
		return size_wrong(logical_size);
	pthread_mutex_lock(&lock);
	*is_set = logicals_told;
	if (logicals_told) {
		logical_write(logical_size, logical_true, logical[1]);
		logical_write(logical_size, logical_false, logical[0]);
	}
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}
