/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errhandler.h - error handlers as objects: attached to communicators, called by the raisers.
 *
 * Owner     `users` counts the program's handles, references count those and every object that the
 *           handler is attached to.  Both under errhandler.c's lock.
 */
#ifndef WEFT_MPI_ERRHANDLER_H
#define WEFT_MPI_ERRHANDLER_H

#include "mpi/mpi_int.h"

enum weft_mpi_errhandler_what { WEFT_MPI_FATAL, WEFT_MPI_ABORTS, WEFT_MPI_RETURNS, WEFT_MPI_USER };

struct weft_mpi_errhandler {
	struct weft_mpi_head head;
	enum weft_mpi_errhandler_what what;
	enum weft_mpi_kind object;    /* of USER: what it may be attached to */
	void (*fn)(void);             /* of USER: cast by object */
	const struct weft_lang *lang; /* fn's language; NULL: C */
	int users;
	int refs;
};

/* Predefines the three of the ABI. */
void weft_mpi_errhandlers_init(void);
struct weft_mpi_errhandler *weft_mpi_errhandler_fatal(void);
/* Of communicators that have no parent: as mpiexec was told. */
struct weft_mpi_errhandler *weft_mpi_errhandler_initial(void);
/* Of files that are opened from now on; with a reference. */
struct weft_mpi_errhandler *weft_mpi_errhandler_file_default(void);
struct weft_mpi_errhandler *weft_mpi_errhandler_ref(struct weft_mpi_errhandler *e);
void weft_mpi_errhandler_unref(struct weft_mpi_errhandler *e);

#endif
