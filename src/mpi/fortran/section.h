/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * section.h - buffers of mpi_f08: what a descriptor names, handed to the entry points that take addresses.
 *
 * A contiguous argument is its address; nothing is made.  Otherwise
 *   typed   data with a count and a datatype of its own: one element of a datatype for exactly that data in the section
 *   copied  all other data (collectives, packed data): memory with the elements side by side, for the time of the operation
 *
 * Callers   gen/fort_f08.c.  INTEGERs have 4 or 8 bytes as weft_f_wide says; what is handed on has 8, little end first.
 * Owner     typed: the datatype is freed by close; MPI keeps what an operation under way needs of it.
 *           copied: freed by end, or with the request.
 */
#ifndef WEFT_MPI_FORTRAN_SECTION_H
#define WEFT_MPI_FORTRAN_SECTION_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi/fortran/facts.h"
#include "mpi/lang_section.h"

typedef struct weft_lang_section weft_f_section;

/* Of any rank. */
bool weft_f_contiguous_all(const weft_f_section *s);

/* Scalars and simple arrays are answered in line: hundreds of entry points ask. */
static inline bool weft_f_contiguous(const weft_f_section *s)
{
	return !s->rank || (s->rank == 1 && s->dim[0].stride == (ptrdiff_t)s->elem) ||
	       weft_f_contiguous_all(s);
}

static inline int64_t weft_f_value(const void *integer, bool eight)
{
	return eight ? *(const int64_t *)integer : *(const int32_t *)integer;
}

/* ierror is optional. */
void weft_f_error_out(void *ierror, int64_t code);

/* Raises an error of class `code` that no C function sees, on the object whose INTEGER `handle` is; returns it. */
int weft_f_raise(int code, enum weft_lang_object kind, const void *handle, const char *routine);

/* ---- typed ---------------------------------------------------------------------------------- */

struct weft_f_typed {
	const void *count, *datatype; /* for the entry point */
	void *buf;
	int64_t one, handle;
	MPI_Datatype made; /* or MPI_DATATYPE_NULL */
};

/* wide_count: the count has 8 bytes whatever an INTEGER has.  Returns the class of the error that is to be raised. */
int weft_f_typed_open(struct weft_f_typed *t, const weft_f_section *s, const void *count,
		      const void *datatype, bool wide_count, bool spaced);
void weft_f_typed_close(struct weft_f_typed *t);

/* ---- copied --------------------------------------------------------------------------------- */

struct weft_f_copies {
	struct weft_f_copy *first;
	void *hook; /* for a request, made in time */
	int error;
};

/* The elements side by side; where they come back, `out`, they do so as the call or its request ends. */
void *weft_f_copy(struct weft_f_copies *c, const weft_f_section *s, bool out);

/* The call is over; request: NULL, or the INTEGER that keeps the copies. */
void weft_f_copies_end(struct weft_f_copies *c, const void *request, int64_t code);
/* Raises the lack of memory. */
int weft_f_copies_fail(struct weft_f_copies *c, enum weft_lang_object kind, const void *handle,
		       const char *routine);

#endif
