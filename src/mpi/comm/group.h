/* SPDX-License-Identifier: BSD-3-Clause */
/* group.h - what comm.c needs of group.c beyond mpi_int.h. */
#ifndef WEFT_MPI_GROUP_H
#define WEFT_MPI_GROUP_H

#include "mpi/mpi_int.h"

void weft_mpi_groups_init(void); /* predefines MPI_GROUP_EMPTY */

/* MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL. */
int weft_mpi_group_compare(struct weft_mpi_group *a, struct weft_mpi_group *b);

static inline struct weft_mpi_group *weft_mpi_group_ref(struct weft_mpi_group *g)
{
	weft_mpi_object_ref(&g->head);
	return g;
}

#endif
