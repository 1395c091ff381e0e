/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aid.h - what helps the user find mistakes: notes of waiting calls for `weft doctor`, and the checks of
 * WEFT_CHECK.
 *
 * Callers   notes_init: MPI_Init, before other threads call MPI; the rest as it says.
 */
#ifndef WEFT_MPI_AID_H
#define WEFT_MPI_AID_H

#include "mpi/mpi_int.h"

struct weft_boot_info;

/* Shows this rank to `weft doctor`. */
/* A call has waited since then for other members of c, by polls; *asks_p: 0 at first. */
void weft_mpi_aid_waits(struct weft_mpi_comm *c, uint64_t since_ns, unsigned *asks_p);
void weft_mpi_aid_notes_init(const struct weft_boot_info *boot);

/* A test of r, a collective that is not over, by the thread that tests: such that go on for long ask the other members which
 * collectives they are in. */
void weft_mpi_aid_polled(struct weft_mpi_request *r) __attribute__((cold));

#endif
