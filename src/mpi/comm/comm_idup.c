/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_idup.c - dup without blocking: the id travels while the caller does other things.
 *
 * One process, the giver, sends the new ids to each member and hears back from each (see
 * comm_int.h).  It is rank 0; of an intercommunicator's two, that with the smaller process number,
 * which also hands out the ids of both sides' inner communicators: so one round does for all.  The
 * handle comes to life in the wait or test that completes the request, since only then may the
 * program use it.  Attributes and info are copied in the call itself: what changes later belongs to
 * the old communicator only.
 */
#include <stdlib.h>

#include "mpi/comm/comm_int.h"
#include "mpi/error.h"
#include "mpi/info.h"

struct idup {
	struct weft_mpi_comm *from; /* referenced */
	MPI_Comm *out;
	struct weft_mpi_head attrs; /* holds the copied attributes until there is a communicator */
	struct weft_mpi_info *info; /* copied; may be NULL */
	bool giver;
	uint32_t ids[3]; /* inter: then that of the giver's side inside, and of the other side */
	int failed;      /* code of the last step */
	bool ended;      /* the communicator was made, or failed to be */
	int messages;
	struct weft_req req[]; /* giver: a send and a receive per member; else: the reverse */
};

/* The process that hands out the ids. */
static int giver_of(const struct weft_mpi_comm *c)
{
	int ours = c->group->world[0];

	if (!c->inter)
		return ours;
	int theirs = weft_mpi_comm_peer(c, 0);
	return theirs < ours ? theirs : ours;
}

static struct weft_completion *wait_on(struct weft_mpi_request *r)
{
	struct idup *d = r->impl;

	for (int i = 0; i < d->messages; i++)
		if (!weft_wait_completion_done(&d->req[i].done))
			return &d->req[i].done;
	return NULL;
}

/* The inner communicator of our side of an intercommunicator. */
static int build_local(const struct idup *d, struct weft_mpi_comm **local_p)
{
	const struct weft_mpi_comm *c = d->from;
	int giver = giver_of(c);
	struct weft_mpi_comm_plan plan = {.id = d->ids[giver == c->group->world[0] ? 1 : 2],
					  .keeper = giver, /* of the other side's, too */
					  .group = c->group,
					  .parent = c->local};
	return weft_mpi_comm_build(&plan, local_p);
}

static int build_dup(const struct idup *d, struct weft_mpi_comm **comm_p)
{
	struct weft_mpi_comm *c = d->from;
	struct weft_mpi_comm_plan plan = {
		.id = d->ids[0], .keeper = giver_of(c), .group = c->group, .parent = c};
	int err = MPI_SUCCESS;

	if (c->inter) {
		plan.remote = c->remote;
		err = build_local(d, &plan.local);
	}
	if (!err)
		err = weft_mpi_comm_build(&plan, comm_p);
	if (err && plan.local)
		weft_mpi_comm_unref(plan.local);
	return err;
}

static bool idup_advance(struct weft_mpi_request *r)
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
	d->failed = build_dup(d, &made);
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

static int idup_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct idup *d = r->impl;

	weft_mpi_status_empty(st);
	return d->failed;
}

static void idup_release(struct weft_mpi_request *r)
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
	.advance = idup_advance,
	.finish = idup_finish,
	.free = idup_release,
};

static weft_err post_ids(struct idup *d, bool send, int world, int tag, void *data, size_t len)
{
	struct weft_req *req = &d->req[d->messages];
	struct weft_buf buf = weft_data_buf_flat(data, len);

	weft_comm_req_init(req, NULL, NULL);
	weft_err err = send ? weft_comm_core_isend(req, d->from->coll, world, tag, &buf,
						   WEFT_SEND_STANDARD)
			    : weft_comm_core_irecv(req, d->from->coll, world, tag, &buf);
	d->messages += err ? 0 : 1;
	return err;
}

/* The giver's part for one member. */
static weft_err give_ids(struct idup *d, int world, int tag)
{
	weft_err err = post_ids(d, true, world, tag, d->ids, sizeof(d->ids));

	return err ? err : post_ids(d, false, world, tag, NULL, 0);
}

/* Posts the messages; an error shows up when the request completes. */
static void start_messages(struct idup *d)
{
	struct weft_mpi_comm *c = d->from;
	int tag = weft_mpi_comm_talk_tag(c), giver = giver_of(c);
	weft_err err = WEFT_OK;

	d->giver = c->rank == 0 && c->group->world[0] == giver;
	if (!d->giver) {
		err = post_ids(d, false, giver, tag, d->ids, sizeof(d->ids));
		if (!err)
			err = post_ids(d, true, giver, tag, NULL, 0);
	} else {
		for (int i = 0; i < (c->inter ? 3 : 1) && !d->failed; i++)
			d->failed = weft_mpi_id_take(c->group->domain->ids, &d->ids[i]);
		if (c->inter && !d->failed) /* the last is no communicator of ours */
			weft_mpi_id_closed(c->group->domain->ids, d->ids[2], giver, giver,
					   c->peers);
		for (int r = 1; r < c->size && !err; r++)
			err = give_ids(d, c->group->world[r], tag);
		for (int r = 0; c->inter && r < c->peers && !err; r++)
			err = give_ids(d, weft_mpi_comm_peer(c, r), tag);
	}
	if (err)
		d->failed = weft_mpi_err_of(err);
}

int weft_mpi_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm,
				 MPI_Request *request)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	size_t members = (size_t)c->size + (size_t)(c->inter ? c->peers : 0);
	size_t most = c->rank == 0 ? 2 * members : 2;

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
	start_messages(d);
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
