/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complete_one.c - wait, test and request_get_status for one request.
 *
 * Null and inactive requests count as complete with an empty status.
 */
#include "mpi/p2p/request.h"
#include "task/task.h"

int weft_mpi_Wait(MPI_Request *request, MPI_Status *status)
{
	struct weft_mpi_request *r;
	int err = weft_mpi_request_active(*request, -1, &r);

	if (weft_unlikely(!r)) {
		if (!err)
			weft_mpi_status_empty(status);
		return err;
	}
	weft_mpi_request_wait(r);
	return weft_mpi_request_end(r, request, status);
}

int weft_mpi_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct weft_mpi_request *r;
	int err = weft_mpi_request_active(*request, -1, &r);

	*flag = 1;
	if (weft_unlikely(!r)) {
		if (!err)
			weft_mpi_status_empty(status);
		return err;
	}
	if (!weft_mpi_request_done(r)) {
		weft_engine_poll();
		if (!weft_mpi_request_done(r)) {
			*flag = 0;
			return MPI_SUCCESS;
		}
	}
	return weft_mpi_request_end(r, request, status);
}

int weft_mpi_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	struct weft_mpi_request *r;
	int err = weft_mpi_request_active(request, -1, &r);

	if (err)
		return err;
	*flag = 1;
	if (!r) {
		weft_mpi_status_empty(status);
		return MPI_SUCCESS;
	}
	if (!weft_mpi_request_done(r)) {
		weft_engine_poll();
		*flag = weft_mpi_request_done(r);
	}
	return *flag ? weft_mpi_request_peek(r, status) : MPI_SUCCESS;
}
