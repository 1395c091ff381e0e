/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_idup.c - dup without blocking: the id travels while the caller does other things.
 *
 * Rank 0 of the local group sends the new id to each member and hears back from each (see
 * comm_int.h); the handle comes to life in the wait
 * or test that completes the request, since only then may the program use it.  Attributes and info
 * are copied in the call itself: what changes later belongs to the old communicator only.
 */
#include <stdlib.h>

#include "mpi/comm_int.h"
#include "mpi/error.h"
#include "mpi/info.h"

struct idup {
	struct weft_mpi_comm *from; /* referenced */
	MPI_Comm *out;
	struct weft_mpi_head attrs; /* holds the copied attributes until there is a communicator */
	struct weft_mpi_info *info; /* copied; may be NULL */
	uint32_t id;
	int failed; /* code of the last step */
	bool ended; /* the communicator was made, or failed to be */
	int messages;
	struct weft_req req[]; /* rank 0: a send and a receive per member; else: the reverse */
};

static struct weft_completion *wait_on(struct weft_mpi_request *r)
{
	struct idup *d = r->impl;

	for (int i = 0; i < d->messages; i++)
		if (!weft_completion_done(&d->req[i].done))
			return &d->req[i].done;
	return NULL;
}

static bool advance(struct weft_mpi_request *r)
{
	struct idup *d = r->impl;
	struct weft_mpi_comm *made = NULL;

	if (d->ended)
		return true;
	if (wait_on(r))
		return false;
	d->ended = true;
	for (int i = 0; i < d->messages && !d->failed; i++)
		if (d->req[i].status.err)
			d->failed = weft_mpi_err_peer(d->req[i].status.err, d->req[i].status.peer);
	if (d->failed)
		return true;
	struct weft_mpi_comm_plan plan = {.id = d->id,
					  .id_ours = d->from->rank == 0,
					  .group = d->from->group,
					  .parent = d->from};
	d->failed = weft_mpi_comm_build(&plan, &made);
	if (!d->failed)
		d->failed = weft_mpi_comm_dup_topo(d->from, made);
	if (!d->failed) {
		made->head.attrs = d->attrs.attrs;
		d->attrs.attrs = NULL;
		d->failed = weft_mpi_comm_name(made, d->out);
	}
	if (!d->failed && d->info) {
		weft_mpi_comm_info_use(made, d->info);
		d->info = NULL;
	}
	return true;
}

static int finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct idup *d = r->impl;

	weft_mpi_status_empty(st);
	return d->failed;
}

static void release(struct weft_mpi_request *r)
{
	struct idup *d = r->impl;

	weft_mpi_attrs_free(&d->attrs);
	weft_mpi_info_free(d->info);
	weft_mpi_comm_unref(d->from);
	free(d);
}

static const struct weft_mpi_request_ops idup_ops = {
	.name = "communicator dup",
	.wait_on = wait_on,
	.advance = advance,
	.finish = finish,
	.free = release,
};

static weft_err post(struct idup *d, bool send, int to, int tag, void *data, size_t len)
{
	struct weft_req *req = &d->req[d->messages];
	struct weft_buf buf = weft_buf_flat(data, len);
	int world = d->from->group->world[to];

	weft_req_init(req, NULL, NULL);
	weft_err err = send ? weft_isend(req, d->from->coll, world, tag, &buf, WEFT_SEND_STANDARD)
			    : weft_irecv(req, d->from->coll, world, tag, &buf);
	d->messages += err ? 0 : 1;
	return err;
}

/* Posts the messages; an error shows up when the request completes. */
static void start(struct idup *d)
{
	struct weft_mpi_comm *c = d->from;
	int tag = weft_mpi_comm_coll_tag(c);
	weft_err err = WEFT_OK;

	if (c->rank != 0) {
		err = post(d, false, 0, tag, &d->id, sizeof(d->id));
		if (!err)
			err = post(d, true, 0, tag, NULL, 0);
	} else {
		d->failed = weft_mpi_id_take(&d->id);
		for (int r = 1; r < c->size && !err; r++) {
			err = post(d, true, r, tag, &d->id, sizeof(d->id));
			if (!err)
				err = post(d, false, r, tag, NULL, 0);
		}
	}
	if (err)
		d->failed = weft_mpi_err_of(err);
}

int weft_mpi_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm,
				 MPI_Request *request)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	size_t most = c->rank == 0 ? 2 * (size_t)c->size : 2;

	if (c->inter)
		return weft_mpi_err(MPI_ERR_UNSUPPORTED_OPERATION,
				    "not for intercommunicators: use MPI_Comm_dup");
	struct idup *d = calloc(1, sizeof(*d) + most * sizeof(d->req[0]));
	struct weft_mpi_request *r = d ? weft_mpi_request_new(&idup_ops, c, d, false) : NULL;
	if (!r) {
		free(d);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	d->from = c;
	weft_mpi_comm_ref(c);
	d->out = newcomm;
	*newcomm = MPI_COMM_NULL;
	d->attrs.kind = WEFT_MPI_COMM;
	int err = weft_mpi_attrs_copy(&c->head, &d->attrs);
	if (!err && info != MPI_INFO_NULL &&
	    !(d->info = weft_mpi_info_copy(weft_mpi_info_of(info))))
		err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	start(d);
	*request = weft_mpi_request_handle(r);
	/* The others take part anyway, so this member does; what failed comes out of the wait. */
	if (err)
		d->failed = err;
	return MPI_SUCCESS;
}

int weft_mpi_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
	return weft_mpi_Comm_idup_with_info(comm, MPI_INFO_NULL, newcomm, request);
}
