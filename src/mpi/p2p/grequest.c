/* SPDX-License-Identifier: BSD-3-Clause */
/* grequest.c - generalized requests: operations of the program that MPI waits for. */
#include <stdlib.h>

#include "mpi/p2p/request.h"

struct grequest {
	struct weft_completion done;
	MPI_Grequest_query_function *query;
	MPI_Grequest_free_function *free;
	MPI_Grequest_cancel_function *cancel;
	void *extra;
};

static struct weft_completion *wait_on(struct weft_mpi_request *r)
{
	return &((struct grequest *)r->impl)->done;
}

static int finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct grequest *g = r->impl;
	MPI_Status own;

	/* query always gets a status of its own: it may set it, the caller may ignore it. */
	weft_mpi_status_empty(&own);
	int err = g->query ? g->query(g->extra, &own) : MPI_SUCCESS;
	if (st != MPI_STATUS_IGNORE) {
		*st = own;
		st->MPI_ERROR = err;
	}
	return err;
}

static int cancel(struct weft_mpi_request *r)
{
	struct grequest *g = r->impl;

	return g->cancel ? g->cancel(g->extra, weft_wait_completion_done(&g->done)) : MPI_SUCCESS;
}

static void release(struct weft_mpi_request *r)
{
	struct grequest *g = r->impl;

	if (g->free)
		g->free(g->extra);
	free(g);
}

static const struct weft_mpi_request_ops grequest_ops = {
	.name = "generalized",
	.wait_on = wait_on,
	.finish = finish,
	.cancel = cancel,
	.free = release,
};

int weft_mpi_Grequest_start(MPI_Grequest_query_function *query_fn,
			    MPI_Grequest_free_function *free_fn,
			    MPI_Grequest_cancel_function *cancel_fn, void *extra_state,
			    MPI_Request *request)
{
	struct grequest *g = calloc(1, sizeof(*g));
	struct weft_mpi_request *r = g ? weft_mpi_request_new(&grequest_ops, NULL, g, false) : NULL;

	if (!r) {
		free(g);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	weft_wait_completion_init(&g->done);
	g->query = query_fn;
	g->free = free_fn;
	g->cancel = cancel_fn;
	g->extra = extra_state;
	*request = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

int weft_mpi_Grequest_complete(MPI_Request request)
{
	struct weft_mpi_request *r = weft_mpi_request_of(request);

	if (!r || r->ops != &grequest_ops)
		return weft_mpi_err(MPI_ERR_REQUEST, "not a generalized request");
	struct grequest *g = r->impl;
	if (weft_wait_completion_done(&g->done))
		return weft_mpi_err(MPI_ERR_REQUEST, "the request is complete already");
	weft_wait_completion_signal(&g->done);
	return MPI_SUCCESS;
}
