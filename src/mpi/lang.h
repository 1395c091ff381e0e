/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lang.h - callbacks and attributes of a binding for another language, which is a library of its own.
 *
 * C's callbacks for operations, error handlers and attributes get nothing that could say which function of the program to call.
 * So a binding announces, in the calling thread, that its next call of MPI hands over things of its language, and calls the
 * MPI_ function as a C program would: tools see the call.
 *
 * Callers   any thread.
 * Owner     a struct weft_lang is static.
 * Order     an announcement holds for the next call with the same `mark`; another announcement replaces it.
 */
#ifndef WEFT_MPI_LANG_H
#define WEFT_MPI_LANG_H

#include <mpi.h>

typedef void weft_lang_fn(void);

/* How an attribute's value was given. */
enum weft_lang_form {
	WEFT_LANG_POINTER, /* C's */
	WEFT_LANG_INTEGER, /* an INTEGER: C gets the address of an int */
	WEFT_LANG_ADDRESS, /* an address-sized integer: C gets the address of an MPI_Aint */
};

/* Each is called with `fn`, what the program gave, and with handles as MPI_X_toint makes them. */
struct weft_lang {
	void (*op)(weft_lang_fn *fn, void *in, void *inout, int n, int datatype);
	void (*errhandler)(weft_lang_fn *fn, int object, int *code);
	int (*copy)(weft_lang_fn *fn, int object, int key, MPI_Aint *extra, MPI_Aint in,
		    MPI_Aint *out, int *flag);
	int (*delete)(weft_lang_fn *fn, int object, int key, MPI_Aint value, MPI_Aint *extra);
	enum weft_lang_form form;
};

#define WEFT_LANG_API __attribute__((visibility("default")))

/*
 * The next call of this thread with `mark` is one of that language.  mark: the function of an operation or an error handler;
 * extra_state of a key, which then points to an MPI_Aint; attribute_val of a value, the same.
 */
WEFT_LANG_API void weft_lang_next(const struct weft_lang *lang, const void *mark);

/* After MPI_X_get_attr has returned `value` in this thread: the attribute as a number. */
WEFT_LANG_API MPI_Aint weft_lang_attr(const void *value);

/* fn is called once, before MPI starts for the first time, in whichever language; set before main(). */
WEFT_LANG_API void weft_lang_at_start(void (*fn)(void));

/* Raises an error that no function of MPI saw, as function `routine` would: on the object if the handle is one, else on
 * MPI_COMM_SELF.  Returns the code. */
enum weft_lang_object { WEFT_LANG_NOTHING, WEFT_LANG_COMM, WEFT_LANG_WIN, WEFT_LANG_FILE };
WEFT_LANG_API int weft_lang_raise(int code, const char *reason, enum weft_lang_object kind,
				  int handle, const char *routine);

/* Calls what weft_lang_at_start was given. */
void weft_mpi_lang_start(void);
/* The announcement for mark, taken back; NULL: there is none, it is C. */
const struct weft_lang *weft_mpi_lang_take(const void *mark);
/* Says what weft_lang_attr shall return for value. */
void weft_mpi_lang_got(const void *value, MPI_Aint number);

#endif
