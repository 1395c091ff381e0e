/* SPDX-License-Identifier: BSD-3-Clause */
/* info.h - lists of (key, value) in the order they were set. */
#ifndef WEFT_MPI_INFO_H
#define WEFT_MPI_INFO_H

#include "mpi/mpi_int.h"

/* A list without a handle, for attaching to an object; NULL: no memory. */
struct weft_mpi_info *weft_mpi_info_make(void);
void weft_mpi_info_free(struct weft_mpi_info *i);
/* from may be NULL: an empty list. */
struct weft_mpi_info *weft_mpi_info_copy(struct weft_mpi_info *from);
int weft_mpi_info_put(struct weft_mpi_info *i, const char *key, const char *value);
/* Copies the value to buf and returns true, or false if the key is not there. */
bool weft_mpi_info_look(struct weft_mpi_info *i, const char *key, char *buf, size_t size);
/* Gives it a handle, taking it over (also when it fails). */
int weft_mpi_info_name(struct weft_mpi_info *i, MPI_Info *handle_p);

/* The kinds of memory that every object takes, for the get_info calls. */
int weft_mpi_info_put_memory_kinds(struct weft_mpi_info *i);
/* MPI_INFO_ENV: predefined empty at load, filled at MPI_Init. */
void weft_mpi_info_env_init(void);
void weft_mpi_info_env_fill(int argc, char **argv, int size, int thread_level);

#endif
