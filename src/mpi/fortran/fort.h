/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fort.h - entry points of mpif.h and `use mpi`: names, INTEGERs of 4 and 8 bytes, conversions.
 *
 * Callers   the generated gen/fort_entries.c and the files here that say ENTRY(x).  Each is compiled four times: WEFT_F_INT
 *           4 or 8, with WEFT_F_PMPI or without.  With 4 the entry point has the name that compilers give (mpi_send_); its
 *           first statement goes to the form for 8 bytes if the program was compiled so (facts.h).
 * Owner     temporaries belong to the call: weft_f_temp_close frees them.
 * Errors    of memory are raised on MPI_COMM_SELF; all others by the C function that the entry point calls.
 */
#ifndef WEFT_MPI_FORTRAN_FORT_H
#define WEFT_MPI_FORTRAN_FORT_H

#ifndef WEFT_F_INT
#define WEFT_F_INT 4
#endif

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/fortran/facts.h"
#include "mpi/fortran/predefined.h"
#include "mpi/fortran/temp.h"

typedef void weft_f_function(void);

/* ---- names -------------------------------------------------------------------------------- */

#ifdef WEFT_F_PMPI
#define CALL(x) PMPI_##x
#define WEFT_F_NAMED(x) pmpi_##x##_
#define WEFT_F_WIDE(x) weft_f_p8_##x
#else
#define CALL(x) MPI_##x
#define WEFT_F_NAMED(x) mpi_##x##_
#define WEFT_F_WIDE(x) weft_f_8_##x
#endif

#define P(x) WEFT_F_WIDE(x)
#define I int64_t
#include "gen/fort_proto.h"
#undef P
#undef I

#if WEFT_F_INT == 8
typedef int64_t I;
#define ENTRY(x) WEFT_F_WIDE(x)
#define WIDE(x, args)
#define BY_WIDTH(four, eight) (eight)
#else
typedef int32_t I;
#pragma GCC visibility push(default)
#define P(x) WEFT_F_NAMED(x)
#include "gen/fort_proto.h"
#undef P
#pragma GCC visibility pop
#define ENTRY(x) WEFT_F_NAMED(x)
#define WIDE(x, args)                                                                              \
	do {                                                                                       \
		if (__builtin_expect(weft_f_wide, 0)) {                                            \
			WEFT_F_WIDE(x) args;                                                       \
			return;                                                                    \
		}                                                                                  \
	} while (0)
#define BY_WIDTH(four, eight) (four)
#endif

/* mpi_f08's is optional; the same entry points serve it. */
#define ERROR_OUT(ierror, code)                                                                    \
	do {                                                                                       \
		int code_is = (code);                                                              \
		if (ierror)                                                                        \
			*(I *)(ierror) = code_is;                                                  \
	} while (0)

/* ---- INTEGER ------------------------------------------------------------------------------- */

/* What no int holds becomes the nearest one, which is as wrong for every argument. */
static inline int weft_f_int(I v)
{
#if WEFT_F_INT == 8
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int)v;
#else
	return v;
#endif
}

static inline bool weft_f_fits(I v)
{
	return v == weft_f_int(v);
}

#if WEFT_F_INT == 8
#define INT_OUT(x) int x##_c = 0
#define INT_INOUT(x) int x##_c = weft_f_int(*x)
#define INT_STORE(x) *x = x##_c
#define INT_P(x) (&x##_c)
#define COUNTS(x) ((MPI_Count *)(uintptr_t)(x))
int *weft_f_ints_8(struct weft_f_temp *temp, const I *from, int64_t n);
void weft_f_out_ints_8(I *to, const int *from, int64_t n);
#define weft_f_ints(temp, x, from, n) weft_f_ints_8(temp, from, n)
#define OUT_INTS(x, c, n) weft_f_out_ints_8(x, c, n)
#else
#define INT_OUT(x)
#define INT_INOUT(x)
#define INT_STORE(x) (void)(x)
#define INT_P(x) (x)
#define COUNTS(x) (x)
#define weft_f_ints(temp, x, from, n) ((int *)(uintptr_t)(x))
#define OUT_INTS(x, c, n) (void)(c)
#endif

/* ---- handles ------------------------------------------------------------------------------- */

#define IN_HANDLE(h, v) weft_f_in_##h(v)
#define OUT_HANDLE(h, v) weft_f_out_##h(v)

#define WEFT_F_HANDLE(h, type)                                                                     \
	static inline type weft_f_in_##h(I v)                                                      \
	{                                                                                          \
		return v >= 0 && v < 4096 ? (type)(uintptr_t)v                                     \
					  : PMPI_##h##_fromint(weft_f_int(v));                     \
	}                                                                                          \
	static inline I weft_f_out_##h(type v)                                                     \
	{                                                                                          \
		return (uintptr_t)v < 4096 ? (I)(uintptr_t)v : PMPI_##h##_toint(v);                \
	}
WEFT_F_HANDLE(Comm, MPI_Comm)
WEFT_F_HANDLE(Group, MPI_Group)
WEFT_F_HANDLE(Type, MPI_Datatype)
WEFT_F_HANDLE(Op, MPI_Op)
WEFT_F_HANDLE(Info, MPI_Info)
WEFT_F_HANDLE(Errhandler, MPI_Errhandler)
WEFT_F_HANDLE(Request, MPI_Request)
WEFT_F_HANDLE(Win, MPI_Win)
WEFT_F_HANDLE(File, MPI_File)
WEFT_F_HANDLE(Session, MPI_Session)
WEFT_F_HANDLE(Message, MPI_Message)

#define IN_HANDLES(h, to, from, n)                                                                 \
	for (int64_t k = 0, end = (n); (to) && k < end; k++)                                       \
	(to)[k] = weft_f_in_##h((from)[k])
#define OUT_HANDLES(h, to, from, n)                                                                \
	for (int64_t k = 0, end = (n); k < end; k++)                                               \
	(to)[k] = weft_f_out_##h((from)[k])

/* ---- LOGICAL ------------------------------------------------------------------------------- */

/* .FALSE. is 0 in every compiler; what else is true they do not agree upon. */
static inline int weft_f_true(I v)
{
	return v != 0;
}

static inline I weft_f_logical(int v)
{
	return v ? weft_f_true_value : 0;
}

static inline int *weft_f_logicals(struct weft_f_temp *temp, const I *from, int64_t n)
{
	int *to = weft_f_temp_get(temp, n, sizeof(*to));

	for (int64_t k = 0; to && k < n; k++)
		to[k] = from ? weft_f_true(from[k]) : 0;
	return to;
}

#define OUT_LOGICALS(to, from, n)                                                                  \
	for (int64_t k = 0, end = (n); k < end; k++)                                               \
	(to)[k] = weft_f_logical((from)[k])

/* ---- sentinels and buffers ----------------------------------------------------------------- */

static inline void *weft_f_buf(void *x)
{
	return __builtin_expect(x == (void *)weft_f_bottom_, 0) ? MPI_BOTTOM : x;
}

static inline void *weft_f_buf_in_place(void *x)
{
	return __builtin_expect(x == (void *)weft_f_in_place_, 0) ? MPI_IN_PLACE : weft_f_buf(x);
}

static inline void *weft_f_buf_automatic(void *x)
{
	return x == (void *)weft_f_buffer_automatic_ ? MPI_BUFFER_AUTOMATIC : weft_f_buf(x);
}

static inline bool weft_f_status_ignored(const void *x)
{
	return x == (const void *)weft_f_status_ignore_ ||
	       x == (const void *)weft_f_statuses_ignore_;
}

static inline int *weft_f_weights_named(const void *x)
{
	return x == (const void *)weft_f_unweighted_      ? MPI_UNWEIGHTED
	       : x == (const void *)weft_f_weights_empty_ ? MPI_WEIGHTS_EMPTY
							  : NULL;
}

#define weft_f_weights(temp, x, from, n)                                                           \
	(weft_f_weights_named(x) ? weft_f_weights_named(x) : weft_f_ints(temp, x, from, n))
#define OUT_WEIGHTS(x, c, n)                                                                       \
	if (!weft_f_weights_named(x))                                                              \
	OUT_INTS(x, c, n)

/* ---- statuses: eight INTEGERs, in the order of MPI_Status ---------------------------------- */

#if WEFT_F_INT == 8
void weft_f_status_in_8(MPI_Status *to, const I *from);
void weft_f_status_out_8(I *to, const MPI_Status *from);
#define STATUS_OUT(x)                                                                              \
	MPI_Status x##_s, *x##_c = weft_f_status_ignored(x) ? MPI_STATUS_IGNORE : &x##_s;          \
	if (x##_c)                                                                                 \
	weft_f_status_in_8(&x##_s, x)
#define STATUS_INOUT(x) STATUS_OUT(x)
#define STATUS_IN(x) STATUS_OUT(x)
#define STATUS_STORE(x)                                                                            \
	if (x##_c)                                                                                 \
	weft_f_status_out_8(x, x##_c)
#define weft_f_statuses weft_f_statuses_8
MPI_Status *weft_f_statuses_8(struct weft_f_temp *temp, const I *from, int64_t n, bool input);
#define OUT_STATUSES(x, c, n)                                                                      \
	for (int64_t k = 0, end = (c) ? (n) : 0; k < end; k++)                                     \
	weft_f_status_out_8(&(x)[8 * k], &(c)[k])
#else
#define STATUS_OUT(x)                                                                              \
	MPI_Status *x##_c =                                                                        \
		weft_f_status_ignored(x) ? MPI_STATUS_IGNORE : (MPI_Status *)(uintptr_t)(x)
#define STATUS_INOUT(x) STATUS_OUT(x)
#define STATUS_IN(x) STATUS_OUT(x)
#define STATUS_STORE(x) (void)(x)
#define weft_f_statuses(temp, x, n, input)                                                         \
	(weft_f_status_ignored(x) ? MPI_STATUSES_IGNORE : (MPI_Status *)(uintptr_t)(x))
#define OUT_STATUSES(x, c, n) (void)(c)
#endif

/* ---- lengths of arrays --------------------------------------------------------------------- */

static inline int64_t weft_f_sum(const I *v, int64_t n)
{
	int64_t sum = 0;

	for (int64_t k = 0; k < n; k++)
		sum += v[k];
	return sum;
}

int weft_f_cart_dims(MPI_Comm comm);
int weft_f_peers(MPI_Comm comm);
int weft_f_degree(MPI_Comm comm, bool in);

#endif
