/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - what the files about requests share, beyond mpi_int.h. */
#ifndef WEFT_MPI_REQUEST_H
#define WEFT_MPI_REQUEST_H

#include "mpi/mpi_int.h"

/* Is the operation over?  Advances it if it wants to be advanced.  r is active. */
static inline bool weft_mpi_request_done(struct weft_mpi_request *r)
{
	if (r->ops->advance)
		return r->ops->advance(r);
	return weft_completion_done(r->ops->wait_on(r));
}

/* The operation is over: fills the status and gives the request back (persistent ones rest). */
int weft_mpi_request_end(struct weft_mpi_request *r, MPI_Request *handle_p, MPI_Status *st);

/* MPI_Request_free of an active request: its operation goes on by itself. */
void weft_mpi_request_orphan(struct weft_mpi_request *r);
/* Gives back the orphans whose operation is over. */
void weft_mpi_requests_reap(void);
/* At MPI_Finalize: cancels or completes what is left of them. */
void weft_mpi_requests_drain(void);

#endif
