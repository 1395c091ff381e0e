/* SPDX-License-Identifier: BSD-3-Clause */
/* sendrecv.c - send and receive in one: blocking and not, with two buffers or one. */
#include <stdlib.h>
#include <string.h>

#include "mpi/p2p/p2p.h"
#include "task/task.h"
#include "wait/stack.h"

#define SMALL 256 /* bytes that Sendrecv_replace sets aside on its stack */

/* Both halves as one operation. */
struct pair {
	struct weft_mpi_comm *comm;
	int source;
	struct weft_req send, recv;
	struct weft_mpi_type *held; /* type of the sent data; the request holds the other */
	void *copy;                 /* replace: what is sent; NULL: sent from where it is */
};

struct half {
	struct weft_buf buf;
	int rank, tag;
};

static void done_at_once(struct weft_req *req)
{
	req->status = (struct weft_status){.peer = -1};
	weft_wait_completion_init_done(&req->done);
}

/* The receive is posted first, so that the other side's data finds its place. */
static int pair_start(struct pair *p, const struct half *out, const struct half *in)
{
	struct weft_mpi_comm *c = p->comm;
	weft_err err = WEFT_OK;

	p->source = in->rank;
	weft_comm_req_init(&p->recv, NULL, NULL);
	weft_comm_req_init(&p->send, NULL, NULL);
	if (in->rank == MPI_PROC_NULL)
		done_at_once(&p->recv);
	else
		err = weft_comm_core_irecv(&p->recv, c->p2p, weft_mpi_core_peer(c, in->rank),
					   weft_mpi_core_tag(in->tag), &in->buf);
	if (err)
		return weft_mpi_err_peer(err, in->rank >= 0 ? weft_mpi_comm_peer(c, in->rank) : -1);
	if (out->rank == MPI_PROC_NULL) {
		done_at_once(&p->send);
		return MPI_SUCCESS;
	}
	int peer = weft_mpi_comm_peer(c, out->rank);
	err = weft_comm_core_isend(&p->send, c->p2p, peer, out->tag, &out->buf, WEFT_SEND_STANDARD);
	if (!err)
		return MPI_SUCCESS;
	if (in->rank != MPI_PROC_NULL) {
		weft_comm_recv_cancel(&p->recv);
		weft_task_engine_wait(&p->recv.done);
	}
	return weft_mpi_err_peer(err, peer);
}

static int pair_finish(struct pair *p, MPI_Status *st)
{
	int err = p->source == MPI_PROC_NULL
			  ? weft_mpi_p2p_status_null(st)
			  : weft_mpi_p2p_status(p->comm, p->source, &p->recv.status, st);
	if (!err && p->send.status.err)
		err = weft_mpi_err_peer(p->send.status.err, p->send.status.peer);
	return err;
}

static int pair_run(struct pair *p, const struct half *out, const struct half *in, MPI_Status *st)
{
	int err = pair_start(p, out, in);

	if (err)
		return err;
	weft_task_engine_wait(&p->recv.done);
	weft_task_engine_wait(&p->send.done);
	return pair_finish(p, st);
}

/* Packs the data of buf aside, into the SMALL bytes of `small` if there are such and they do, and
 * makes buf describe the copy. */
static int set_aside(struct pair *p, struct weft_buf *buf, char *small)
{
	void *to = small;

	if (buf->bytes > (small ? SMALL : 0)) {
		p->copy = malloc(buf->bytes);
		if (!p->copy)
			return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
		to = p->copy;
	}
	weft_data_pack(buf, 0, to, buf->bytes);
	*buf = weft_data_buf_flat(to, buf->bytes);
	return MPI_SUCCESS;
}

/* The pair on the stack: two requests, too much for a small one. */
static __attribute__((noinline)) int run_here(struct weft_mpi_comm *c, const struct half *out,
					      const struct half *in, MPI_Status *st)
{
	struct pair p = {.comm = c};
	return pair_run(&p, out, in, st);
}

static __attribute__((noinline)) int run_light(struct weft_mpi_comm *c, const struct half *out,
					       const struct half *in, MPI_Status *st)
{
	struct pair *p = calloc(1, sizeof(*p));
	if (!p)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	p->comm = c;
	int err = pair_run(p, out, in, st);
	free(p);
	return err;
}

int weft_mpi_Sendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
		      int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
		      int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
	struct half out = {.rank = dest, .tag = sendtag}, in = {.rank = source, .tag = recvtag};
	int err = weft_mpi_p2p_buf(sendbuf, sendcount, sendtype, &out.buf);

	if (!err)
		err = weft_mpi_p2p_buf(recvbuf, recvcount, recvtype, &in.buf);
	if (err)
		return err;
	return weft_wait_stack_may_be_small() ? run_light(weft_mpi_comm_of(comm), &out, &in, status)
					      : run_here(weft_mpi_comm_of(comm), &out, &in, status);
}

int weft_mpi_Sendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype, int dest,
			      int sendtag, int source, int recvtag, MPI_Comm comm,
			      MPI_Status *status)
{
	struct pair p = {.comm = weft_mpi_comm_of(comm)};
	struct half out = {.rank = dest, .tag = sendtag}, in = {.rank = source, .tag = recvtag};
	char small[SMALL];
	int err = weft_mpi_p2p_buf(buf, count, datatype, &in.buf);

	if (err)
		return err;
	out.buf = in.buf;
	err = set_aside(&p, &out.buf, small);
	if (!err)
		err = pair_run(&p, &out, &in, status);
	free(p.copy);
	return err;
}

/* ---- without blocking --------------------------------------------------------------------- */

static struct weft_completion *pair_wait_on(struct weft_mpi_request *r)
{
	struct pair *p = r->impl;

	return weft_wait_completion_done(&p->recv.done) ? &p->send.done : &p->recv.done;
}

static bool pair_advance(struct weft_mpi_request *r)
{
	struct pair *p = r->impl;

	return weft_wait_completion_done(&p->recv.done) && weft_wait_completion_done(&p->send.done);
}

static int pair_end(struct weft_mpi_request *r, MPI_Status *st)
{
	return pair_finish(r->impl, st);
}

static int pair_cancel(struct weft_mpi_request *r)
{
	(void)r; /* half of it may have happened: it completes */
	return MPI_SUCCESS;
}

static void pair_free(struct weft_mpi_request *r)
{
	struct pair *p = r->impl;

	if (p->held)
		weft_mpi_type_unref(p->held);
	free(p->copy);
	free(p);
}

static const struct weft_mpi_request_ops pair_ops = {
	.name = "send and receive",
	.wait_on = pair_wait_on,
	.advance = pair_advance,
	.finish = pair_end,
	.cancel = pair_cancel,
	.free = pair_free,
};

/* Takes p over. */
static int pair_request_start(struct pair *p, const struct half *out, const struct half *in,
			      MPI_Datatype recvtype, MPI_Request *request)
{
	struct weft_mpi_request *r = weft_mpi_request_new(&pair_ops, p->comm, p, false);

	if (!r) {
		free(p->copy);
		free(p);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	weft_mpi_p2p_hold(r, &in->buf, recvtype);
	int err = pair_start(p, out, in);
	if (err)
		weft_mpi_request_delete(r);
	else
		*request = weft_mpi_request_handle(r);
	return err;
}

int weft_mpi_Isendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
		       int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
		       int source, int recvtag, MPI_Comm comm, MPI_Request *request)
{
	struct half out = {.rank = dest, .tag = sendtag}, in = {.rank = source, .tag = recvtag};
	int err = weft_mpi_p2p_buf(sendbuf, sendcount, sendtype, &out.buf);

	if (!err)
		err = weft_mpi_p2p_buf(recvbuf, recvcount, recvtype, &in.buf);
	if (err)
		return err;
	struct pair *p = calloc(1, sizeof(*p));
	if (!p)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	p->comm = weft_mpi_comm_of(comm);
	if (out.buf.type) {
		p->held = weft_mpi_type_of(sendtype);
		weft_mpi_type_ref(p->held);
	}
	return pair_request_start(p, &out, &in, recvtype, request);
}

int weft_mpi_Isendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype, int dest,
			       int sendtag, int source, int recvtag, MPI_Comm comm,
			       MPI_Request *request)
{
	struct half out = {.rank = dest, .tag = sendtag}, in = {.rank = source, .tag = recvtag};
	int err = weft_mpi_p2p_buf(buf, count, datatype, &in.buf);

	if (err)
		return err;
	struct pair *p = calloc(1, sizeof(*p));
	if (!p)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	p->comm = weft_mpi_comm_of(comm);
	out.buf = in.buf;
	err = set_aside(p, &out.buf, NULL);
	if (err) {
		free(p);
		return err;
	}
	return pair_request_start(p, &out, &in, datatype, request);
}
