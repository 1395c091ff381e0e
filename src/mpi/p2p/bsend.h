/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bsend.h - buffered sends: the message is copied aside and the call returns.
 *
 * A buffer is attached to the process or to a communicator.  The user's memory is only counted
 * (each message needs its packed size and MPI_BSEND_OVERHEAD); copies live in memory of our own, so
 * that room is not lost to fragments.
 */
#ifndef WEFT_MPI_BSEND_H
#define WEFT_MPI_BSEND_H

#include "mpi/mpi_int.h"

int weft_mpi_bsend(struct weft_mpi_comm *c, const struct weft_buf *buf, int dest, int tag);
/* A communicator goes away: waits for what is still under way from its buffer.  NULL is fine. */
void weft_mpi_bsend_release(struct weft_mpi_bsend *b);
/* At MPI_Finalize: the process's buffer. */
void weft_mpi_bsend_fini(void);

#endif
