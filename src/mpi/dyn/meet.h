/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet.h - two groups of processes become one domain, and get an intercommunicator.
 *
 * Each side has an intracommunicator, and one of its members, the root, has a wire to the root of
 * the other side: a line of a port, or a communicator that both roots are in.  All that the sides
 * must know of each other goes over it; the new domain's secret does not: both sides derive it from
 * what the wire's ends share, and from fresh numbers.
 *
 * Callers   all members of `local`, collectively.  May block.
 * Failure   the same on all members of a side; what was made is given back.
 */
#ifndef WEFT_MPI_MEET_H
#define WEFT_MPI_MEET_H

#include "mpi/comm/comm_int.h"

struct weft_mpi_wire {
	void *arg;
	/* Sends a message and receives one; *in_p is the caller's (free). */
	int (*swap)(void *arg, const void *out, size_t out_len, void **in_p, size_t *in_len_p);
	const uint8_t *secret; /* WEFT_SECRET_BYTES, known to both ends alone */
};

/*
 * wire: on the root; NULL there: it could not be had, and `failed` is the MPI error code that all
 * members of this side return.  note: what the root says of its own to its side, also when the meeting fails;
 * or NULL.  parent: whose error handler is inherited.
 */
int weft_mpi_meet(struct weft_mpi_comm *local, int root, const struct weft_mpi_wire *wire,
		  int failed, int note[2], struct weft_mpi_comm *parent,
		  struct weft_mpi_comm **inter_p);

#endif
