/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complete_one.c - wait, test and request_get_status for one request.
 *
 * Null and inactive requests count as complete with an empty status.
 */
#include "mpi/aid/aid.h"
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

/* One poll for a request that is not over, and a pause when it is due. */
static void poll_for(struct weft_mpi_request *r)
{
	bool pause;
	(void)weft_task_poll(&pause);
	if (r->ops->collective)
		weft_mpi_aid_polled(r);
	if (weft_unlikely(pause) && !weft_mpi_request_done(r)) {
		struct weft_completion *c = r->ops->wait_on(r);
		(void)weft_task_poll_pause(&c, c ? 1 : 0);
	}
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
		poll_for(r);
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
		poll_for(r);
		*flag = weft_mpi_request_done(r);
	}
	return *flag ? weft_mpi_request_peek(r, status) : MPI_SUCCESS;
}
