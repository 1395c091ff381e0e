/* SPDX-License-Identifier: BSD-3-Clause */
/* grequest.c - generalized requests: operations of the program that MPI waits for. */
#include <stdlib.h>

#include "mpi/cont/cont.h"
#include "mpi/p2p/request.h"
#include "task/task.h"

/* In x_state; the second of the two calls that set them ends a request that was freed while active. */
#define COMPLETE 1u
#define FREED 2u

struct grequest {
	struct weft_completion done;
	_Atomic unsigned x_state;
	MPI_Grequest_query_function *query;
	MPI_Grequest_free_function *free;
	MPI_Grequest_cancel_function *cancel;
	void *extra;
};

static struct weft_completion *wait_on(struct weft_mpi_request *r)
{
	return &((struct grequest *)r->impl)->done;
}

static int grequest_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct grequest *g = r->impl;
	MPI_Status own;

	/* query always gets a status of its own: it may set it, the caller may ignore it. */
	weft_mpi_status_empty(&own);
	int err = g->query ? g->query(g->extra, &own) : MPI_SUCCESS;
	if (st != MPI_STATUS_IGNORE) {
		own.MPI_ERROR = st->MPI_ERROR;
		*st = own;
	}
	return err;
}

/* The program's free function; at most once, before the request goes away. */
static int grequest_end(struct weft_mpi_request *r)
{
	struct grequest *g = r->impl;

	return g->free ? g->free(g->extra) : MPI_SUCCESS;
}

static int end_and_delete(struct weft_mpi_request *r)
{
	int err = grequest_end(r);

	weft_mpi_request_delete(r);
	return err;
}

/* The handle stays good: MPI_Grequest_complete is still to come. */
static int free_active(struct weft_mpi_request *r)
{
	struct grequest *g = r->impl;
	/* SECOND -> SECOND (MPI_Grequest_complete).  Carries: what the first of the two did with r. */
	unsigned before = atomic_fetch_or_explicit(&g->x_state, FREED, memory_order_acq_rel);

	if (!(before & COMPLETE))
		return MPI_SUCCESS;
	weft_task_engine_wait(&g->done); /* the completing thread may be about to signal it */
	return end_and_delete(r);
}

static int grequest_cancel(struct weft_mpi_request *r)
{
	struct grequest *g = r->impl;

	return g->cancel ? g->cancel(g->extra, weft_wait_completion_done(&g->done)) : MPI_SUCCESS;
}

static void grequest_release(struct weft_mpi_request *r)
{
	free(r->impl);
}

static const struct weft_mpi_request_ops grequest_ops = {
	.name = "generalized",
	.wait_on = wait_on,
	.finish = grequest_finish,
	.cancel = grequest_cancel,
	.end = grequest_end,
	.free_active = free_active,
	.free = grequest_release,
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
	/* SECOND: see free_active. */
	unsigned before = atomic_fetch_or_explicit(&g->x_state, COMPLETE, memory_order_acq_rel);
	if (before & COMPLETE)
		return weft_mpi_err(MPI_ERR_REQUEST, "the request is complete already");
	if (before & FREED)
		return end_and_delete(r);
	weft_wait_completion_signal(&g->done);
	weft_mpi_cont_run_ready(); /* it may have a continuation */
	return MPI_SUCCESS;
}
