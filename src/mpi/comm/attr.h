/* SPDX-License-Identifier: BSD-3-Clause */
/* attr.h - what init.c needs of attr.c beyond mpi_int.h. */
#ifndef WEFT_MPI_ATTR_H
#define WEFT_MPI_ATTR_H

#include "mpi/mpi_int.h"

struct weft_boot_info;

/* Learns the values of the predefined attributes. */
void weft_mpi_attrs_init(const struct weft_boot_info *boot);

extern int weft_mpi_last_used_code; /* error.c */

#endif
