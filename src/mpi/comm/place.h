/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h - where the members of a communicator run: host, and the one of each kind of hardware.
 *
 * Callers   gather: collective over an intracommunicator.
 * Order     all members get the same answer, so what they derive from it agrees.
 */
#ifndef WEFT_MPI_COMM_PLACE_H
#define WEFT_MPI_COMM_PLACE_H

#include "mpi/mpi_int.h"
#include "topo/remap.h"

/* A host's number is its first member's in the domain. */
void weft_mpi_place_here(const struct weft_mpi_comm *c, struct weft_topo_place *p);
/* One for each member, to be freed; NULL: no memory, or the talk failed: *err_p. */
struct weft_topo_place *weft_mpi_place_gather(struct weft_mpi_comm *c, int *err_p);

#endif
