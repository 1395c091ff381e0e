/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.c - looking for messages, and taking them out of matching. */
#include <stdlib.h>

#include "mpi/p2p/p2p.h"
#include "task/task.h"

/* A message that a probe took: received once, then gone. */
struct weft_mpi_message {
	struct weft_mpi_head head;
	struct weft_mpi_comm *comm; /* referenced */
	struct weft_msg *msg;
	int source;
	size_t bytes;
};

static struct weft_mpi_message *message_of(MPI_Message h)
{
	return weft_mpi_object_find(h, WEFT_MPI_MESSAGE);
}

/* A probe's status always names the source, also when that was a wildcard. */
static int found_message(struct weft_mpi_comm *c, const struct weft_status *from, MPI_Status *st)
{
	return weft_mpi_p2p_status(c, MPI_ANY_SOURCE, from, st);
}

int weft_mpi_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_status st = {0};

	if (source == MPI_PROC_NULL)
		return weft_mpi_p2p_status_null(status);
	weft_comm_core_probe(c->p2p, weft_mpi_core_peer(c, source), weft_mpi_core_tag(tag), &st);
	return found_message(c, &st, status);
}

int weft_mpi_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_status st = {0};

	*flag = 1;
	if (source == MPI_PROC_NULL)
		return weft_mpi_p2p_status_null(status);
	*flag = weft_comm_core_iprobe(c->p2p, weft_mpi_core_peer(c, source), weft_mpi_core_tag(tag),
				      &st);
	return *flag ? found_message(c, &st, status) : MPI_SUCCESS;
}

/* ---- matched probes ----------------------------------------------------------------------- */

static int message_make(struct weft_mpi_comm *c, struct weft_msg *msg, const struct weft_status *st,
			MPI_Message *message)
{
	struct weft_mpi_message *m = calloc(1, sizeof(*m));

	if (!m || weft_mpi_object_new(&m->head, WEFT_MPI_MESSAGE)) {
		free(m);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	m->comm = c;
	weft_mpi_comm_ref(c);
	m->msg = msg;
	m->source = weft_mpi_comm_rank_of(c, st->peer);
	*message = (MPI_Message)(uintptr_t)m->head.handle;
	return MPI_SUCCESS;
}

int weft_mpi_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_msg *msg = NULL;
	struct weft_status st = {0};

	if (source == MPI_PROC_NULL) {
		*message = MPI_MESSAGE_NO_PROC;
		return weft_mpi_p2p_status_null(status);
	}
	weft_comm_core_mprobe(c->p2p, weft_mpi_core_peer(c, source), weft_mpi_core_tag(tag), &msg,
			      &st);
	if (!msg)
		return found_message(c, &st, status);
	int err = message_make(c, msg, &st, message);
	return err ? err : found_message(c, &st, status);
}

int weft_mpi_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		     MPI_Status *status)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_msg *msg = NULL;
	struct weft_status st = {0};

	*flag = 1;
	if (source == MPI_PROC_NULL) {
		*message = MPI_MESSAGE_NO_PROC;
		return weft_mpi_p2p_status_null(status);
	}
	*flag = weft_comm_core_improbe(c->p2p, weft_mpi_core_peer(c, source),
				       weft_mpi_core_tag(tag), &msg, &st);
	if (!*flag || !msg)
		return *flag ? found_message(c, &st, status) : MPI_SUCCESS;
	int err = message_make(c, msg, &st, message);
	return err ? err : found_message(c, &st, status);
}

/* Takes the message apart: its handle is no longer good. */
static int message_take(MPI_Message *message, struct weft_mpi_comm **c_p, struct weft_msg **msg_p,
			int *source_p)
{
	struct weft_mpi_message *m = message_of(*message);

	if (!m)
		return weft_mpi_err(MPI_ERR_REQUEST, "invalid message (null, or received before)");
	*c_p = m->comm; /* with its reference */
	*msg_p = m->msg;
	*source_p = m->source;
	*message = MPI_MESSAGE_NULL;
	weft_mpi_object_retire(&m->head);
	free(m);
	return MPI_SUCCESS;
}

int weft_mpi_Mrecv(void *base, MPI_Count count, MPI_Datatype datatype, MPI_Message *message,
		   MPI_Status *status)
{
	struct weft_mpi_comm *c = NULL;
	struct weft_msg *msg = NULL;
	struct weft_buf buf;
	struct weft_req req;
	int source = MPI_PROC_NULL, err = weft_mpi_p2p_buf(base, count, datatype, &buf);

	if (!err && *message == MPI_MESSAGE_NO_PROC) {
		*message = MPI_MESSAGE_NULL;
		return weft_mpi_p2p_status_null(status);
	}
	if (!err)
		err = message_take(message, &c, &msg, &source);
	if (err)
		return err;
	weft_comm_req_init(&req, NULL, NULL);
	weft_err core = weft_comm_core_imrecv(&req, msg, &buf);
	if (core) {
		err = weft_mpi_err_peer(core, weft_mpi_comm_peer(c, source));
	} else {
		weft_task_engine_wait(&req.done);
		err = weft_mpi_p2p_status(c, source, &req.status, status);
	}
	if (err)
		weft_mpi_blame(c);
	weft_mpi_comm_unref(c);
	return err;
}

int weft_mpi_Imrecv(void *base, MPI_Count count, MPI_Datatype datatype, MPI_Message *message,
		    MPI_Request *request)
{
	struct weft_mpi_comm *c = NULL;
	struct weft_msg *msg = NULL;
	struct weft_buf buf;
	int source = MPI_PROC_NULL, err = weft_mpi_p2p_buf(base, count, datatype, &buf);

	if (!err && *message == MPI_MESSAGE_NO_PROC) {
		*message = MPI_MESSAGE_NULL;
		return weft_mpi_p2p_done(NULL, WEFT_MPI_MODE_RECV, request);
	}
	if (!err)
		err = message_take(message, &c, &msg, &source);
	if (err)
		return err;
	struct weft_mpi_request *r = weft_mpi_request_new(&weft_mpi_p2p_ops, c, NULL, false);
	if (!r) {
		err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
		goto unref;
	}
	r->peer = source;
	r->mode = WEFT_MPI_MODE_RECV;
	weft_mpi_p2p_hold(r, &buf, datatype);
	weft_comm_req_init(&r->core, NULL, NULL);
	weft_err core = weft_comm_core_imrecv(&r->core, msg, &buf);
	if (core) {
		err = weft_mpi_err_peer(core, weft_mpi_comm_peer(c, source));
		weft_mpi_request_delete(r);
	} else {
		*request = weft_mpi_request_handle(r);
	}
unref:
	weft_mpi_comm_unref(c);
	return err;
}
