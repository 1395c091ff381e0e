/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * predefined.c - predefined callbacks.
 *
 * Mostly they are passed on and known by their address; but a program may call them too.
 */
#include "mpi/fortran/predefined.h"

#include <mpi.h>
#include <stddef.h>

#include "mpi/fortran/facts.h"

#define NAMES(prefix, X)                                                                           \
	X(prefix##_comm_null_copy_fn_, NULL_COPY)                                                  \
	X(prefix##_comm_null_delete_fn_, NULL_DELETE)                                              \
	X(prefix##_comm_dup_fn_, DUP)                                                              \
	X(prefix##_type_null_copy_fn_, NULL_COPY)                                                  \
	X(prefix##_type_null_delete_fn_, NULL_DELETE)                                              \
	X(prefix##_type_dup_fn_, DUP)                                                              \
	X(prefix##_win_null_copy_fn_, NULL_COPY)                                                   \
	X(prefix##_win_null_delete_fn_, NULL_DELETE)                                               \
	X(prefix##_win_dup_fn_, DUP)                                                               \
	X(prefix##_conversion_fn_null_, CONVERSION)                                                \
	X(prefix##_conversion_fn_null_c_, CONVERSION)                                              \
	X(prefix##_null_copy_fn_, OLD_COPY)                                                        \
	X(prefix##_null_delete_fn_, OLD_DELETE)                                                    \
	X(prefix##_dup_fn_, OLD_DUP)

/* An INTEGER, as wide as the program's. */
static void put_integer(void *to, int v)
{
	if (weft_f_wide)
		*(int64_t *)to = v;
	else
		*(int *)to = v;
}

#define VISIBLE __attribute__((visibility("default")))
#define PROTO_NULL_COPY(f)                                                                         \
	VISIBLE void f(void *object, void *key, void *extra, void *in, void *out, void *flag,      \
		       void *ierror)
#define PROTO_DUP(f) PROTO_NULL_COPY(f)
#define PROTO_OLD_COPY(f) PROTO_NULL_COPY(f)
#define PROTO_OLD_DUP(f) PROTO_NULL_COPY(f)
#define PROTO_NULL_DELETE(f)                                                                       \
	VISIBLE void f(void *object, void *key, void *value, void *extra, void *ierror)
#define PROTO_OLD_DELETE(f) PROTO_NULL_DELETE(f)
#define PROTO_CONVERSION(f)                                                                        \
	VISIBLE void f(void *user, void *type, void *count, void *file, void *position,            \
		       void *extra, void *ierror)

#define DECLARE(f, kind) PROTO_##kind(f);
NAMES(mpi, DECLARE)

#define BODY_NULL_COPY                                                                             \
	{                                                                                          \
		put_integer(flag, 0);                                                              \
		put_integer(ierror, MPI_SUCCESS);                                                  \
	}
#define BODY_OLD_COPY BODY_NULL_COPY
#define BODY_DUP                                                                                   \
	{                                                                                          \
		*(MPI_Aint *)out = *(MPI_Aint *)in;                                                \
		put_integer(flag, weft_f_true_value);                                              \
		put_integer(ierror, MPI_SUCCESS);                                                  \
	}
#define BODY_OLD_DUP                                                                               \
	{                                                                                          \
		put_integer(out, weft_f_wide ? (int)*(int64_t *)in : *(int *)in);                  \
		put_integer(flag, weft_f_true_value);                                              \
		put_integer(ierror, MPI_SUCCESS);                                                  \
	}
#define BODY_NULL_DELETE                                                                           \
	{                                                                                          \
		put_integer(ierror, MPI_SUCCESS);                                                  \
	}
#define BODY_OLD_DELETE BODY_NULL_DELETE
/* Means that there is nothing to convert: no program has a reason to call it. */
#define BODY_CONVERSION BODY_NULL_DELETE

#define DEFINE(f, kind) PROTO_##kind(f) BODY_##kind
NAMES(mpi, DEFINE)

enum weft_f_predefined weft_f_predefined(void (*fn)(void))
{
	static const struct {
		void *fn;
		enum weft_f_predefined is;
	} table[] = {
#define IS_NULL_COPY WEFT_F_NULL_FN
#define IS_NULL_DELETE WEFT_F_NULL_FN
#define IS_OLD_COPY WEFT_F_NULL_FN
#define IS_OLD_DELETE WEFT_F_NULL_FN
#define IS_CONVERSION WEFT_F_NULL_FN
#define IS_DUP WEFT_F_DUP_FN
#define IS_OLD_DUP WEFT_F_DUP_FN
#define ROW(f, kind) {(void *)f, IS_##kind},
		NAMES(mpi, ROW)};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].fn == (void *)fn)
			return table[i].is;
	return fn ? WEFT_F_USERS_FN : WEFT_F_NULL_FN;
}
