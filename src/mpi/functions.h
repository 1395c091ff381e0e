/* SPDX-License-Identifier: BSD-3-Clause */
/* functions.h - the list of MPI functions, for `weft info --mpi`; generated with the entries. */
#ifndef WEFT_MPI_FUNCTIONS_H
#define WEFT_MPI_FUNCTIONS_H

#include "base/base.h"

struct weft_mpi_function {
	const char *name;
	bool implemented; /* else it answers MPI_ERR_UNSUPPORTED_OPERATION */
	const char *tier; /* T1: used most by public programs, T2, T3 */
};

extern WEFT_API const struct weft_mpi_function weft_mpi_functions[];
extern WEFT_API const int weft_mpi_functions_count;

/* The names of mpi-ext.h; NULL ends them. */
extern WEFT_API const char *const weft_mpi_extensions[];

#endif
