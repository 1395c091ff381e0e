/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attr.c - attributes: values are numbers, of INTEGER's size in the functions of MPI-1 and of an address's since.
 *
 * mpi/lang.h says how the library under MPI hears of them and calls the program's functions.
 */
#include "mpi/fortran/fort.h"
#include "mpi/lang.h"

/* The functions that programs hand over, in both of MPI's generations. */
typedef void copy_fn(const I *object, const I *key, MPI_Aint *extra, const MPI_Aint *in,
		     MPI_Aint *out, I *flag, I *ierror);
typedef void delete_fn(const I *object, const I *key, const MPI_Aint *value, MPI_Aint *extra,
		       I *ierror);
typedef void old_copy_fn(const I *object, const I *key, I *extra, const I *in, I *out, I *flag,
			 I *ierror);
typedef void old_delete_fn(const I *object, const I *key, const I *value, I *extra, I *ierror);

static int call_copy(weft_lang_fn *fn, int object, int key, MPI_Aint *extra, MPI_Aint in,
		     MPI_Aint *out, int *flag)
{
	I o = object, k = key, f = 0, ierror = MPI_SUCCESS;

	((copy_fn *)fn)(&o, &k, extra, &in, out, &f, &ierror);
	*flag = weft_f_true(f);
	return weft_f_int(ierror);
}

static int call_delete(weft_lang_fn *fn, int object, int key, MPI_Aint value, MPI_Aint *extra)
{
	I o = object, k = key, ierror = MPI_SUCCESS;

	((delete_fn *)fn)(&o, &k, &value, extra, &ierror);
	return weft_f_int(ierror);
}

static int call_old_copy(weft_lang_fn *fn, int object, int key, MPI_Aint *extra, MPI_Aint in,
			 MPI_Aint *out, int *flag)
{
	I o = object, k = key, e = (I)*extra, from = (I)in, to = 0, f = 0, ierror = MPI_SUCCESS;

	((old_copy_fn *)fn)(&o, &k, &e, &from, &to, &f, &ierror);
	*out = to;
	*flag = weft_f_true(f);
	return weft_f_int(ierror);
}

static int call_old_delete(weft_lang_fn *fn, int object, int key, MPI_Aint value, MPI_Aint *extra)
{
	I o = object, k = key, e = (I)*extra, v = (I)value, ierror = MPI_SUCCESS;

	((old_delete_fn *)fn)(&o, &k, &v, &e, &ierror);
	return weft_f_int(ierror);
}

static const struct weft_lang addresses = {
	.copy = call_copy, .delete = call_delete, .form = WEFT_LANG_ADDRESS};
static const struct weft_lang integers = {
	.copy = call_old_copy, .delete = call_old_delete, .form = WEFT_LANG_INTEGER};

/* MPI_COMM_NULL_COPY_FN and its like are numbers in C. */
static void *copy_of(weft_f_function *fn)
{
	switch (weft_f_predefined(fn)) {
	case WEFT_F_NULL_FN:
		return NULL;
	case WEFT_F_DUP_FN:
		return (void *)MPI_COMM_DUP_FN;
	default:
		return (void *)fn;
	}
}

static void *delete_of(weft_f_function *fn)
{
	return weft_f_predefined(fn) == WEFT_F_NULL_FN ? NULL : (void *)fn;
}

/* ---- keys ---------------------------------------------------------------------------------- */

#define CREATE(Object, object)                                                                     \
	void ENTRY(object##_create_keyval)(weft_f_function * copy, weft_f_function * delete,       \
					   I * keyval, const MPI_Aint *extra_state, I *ierror)     \
	{                                                                                          \
		WIDE(object##_create_keyval,                                                       \
		     (copy, delete, (void *)keyval, (void *)extra_state, (void *)ierror));         \
		MPI_Aint extra = *extra_state;                                                     \
		INT_OUT(keyval);                                                                   \
		weft_lang_next(&addresses, &extra);                                                \
		int code = CALL(Object##_create_keyval)(copy_of(copy), delete_of(delete),          \
							INT_P(keyval), &extra);                    \
		weft_lang_next(NULL, NULL);                                                        \
		if (!code)                                                                         \
			INT_STORE(keyval);                                                         \
		ERROR_OUT(ierror, code);                                                           \
	}
CREATE(Comm, comm)
CREATE(Type, type)
CREATE(Win, win)

void ENTRY(keyval_create)(weft_f_function *copy, weft_f_function *delete, I *keyval,
			  const I *extra_state, I *ierror)
{
	WIDE(keyval_create, (copy, delete, (void *)keyval, (void *)extra_state, (void *)ierror));
	MPI_Aint extra = *extra_state;
	INT_OUT(keyval);
	weft_lang_next(&integers, &extra);
	int code = CALL(Keyval_create)(copy_of(copy), delete_of(delete), INT_P(keyval), &extra);
	weft_lang_next(NULL, NULL);
	if (!code)
		INT_STORE(keyval);
	ERROR_OUT(ierror, code);
}

/* ---- values -------------------------------------------------------------------------------- */

#define VALUES(Object, object, Handle)                                                             \
	void ENTRY(object##_set_attr)(const I *handle, const I *keyval, const MPI_Aint *value,     \
				      I *ierror)                                                   \
	{                                                                                          \
		WIDE(object##_set_attr,                                                            \
		     ((void *)handle, (void *)keyval, (void *)value, (void *)ierror));             \
		MPI_Aint number = *value;                                                          \
		weft_lang_next(&addresses, &number);                                               \
		ERROR_OUT(ierror, CALL(Object##_set_attr)(IN_HANDLE(Handle, *handle),              \
							  weft_f_int(*keyval), &number));          \
		weft_lang_next(NULL, NULL);                                                        \
	}                                                                                          \
	void ENTRY(object##_get_attr)(const I *handle, const I *keyval, MPI_Aint *value, I *flag,  \
				      I *ierror)                                                   \
	{                                                                                          \
		WIDE(object##_get_attr, ((void *)handle, (void *)keyval, (void *)value,            \
					 (void *)flag, (void *)ierror));                           \
		void *got = NULL;                                                                  \
		int have = 0;                                                                      \
		int code = CALL(Object##_get_attr)(IN_HANDLE(Handle, *handle),                     \
						   weft_f_int(*keyval), &got, &have);              \
		if (!code && have)                                                                 \
			*value = weft_lang_attr(got);                                              \
		if (!code)                                                                         \
			*flag = weft_f_logical(have);                                              \
		ERROR_OUT(ierror, code);                                                           \
	}
VALUES(Comm, comm, Comm)
VALUES(Type, type, Type)
VALUES(Win, win, Win)

void ENTRY(attr_put)(const I *comm, const I *keyval, const I *value, I *ierror)
{
	WIDE(attr_put, ((void *)comm, (void *)keyval, (void *)value, (void *)ierror));
	MPI_Aint number = *value;
	weft_lang_next(&integers, &number);
	ERROR_OUT(ierror, CALL(Attr_put)(IN_HANDLE(Comm, *comm), weft_f_int(*keyval), &number));
	weft_lang_next(NULL, NULL);
}

void ENTRY(attr_get)(const I *comm, const I *keyval, I *value, I *flag, I *ierror)
{
	WIDE(attr_get, ((void *)comm, (void *)keyval, (void *)value, (void *)flag, (void *)ierror));
	void *got = NULL;
	int have = 0;
	int code = CALL(Attr_get)(IN_HANDLE(Comm, *comm), weft_f_int(*keyval), &got, &have);
	if (!code && have)
		*value = (I)weft_lang_attr(got);
	if (!code)
		*flag = weft_f_logical(have);
	ERROR_OUT(ierror, code);
}
