/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.c - blocking and non-blocking sends and receives. */
#include "mpi/p2p/p2p.h"

#include <stdlib.h>

#include "mpi/p2p/bsend.h"
#include "mpi/p2p/request.h"
#include "task/task.h"

int weft_mpi_p2p_buf_wrong(weft_err err, const struct weft_buf *buf)
{
	/* weft_mpi_buf has recorded why. */
	if (err)
		return weft_mpi_buf_class(err);
	return weft_mpi_err(MPI_ERR_BUFFER, "null buffer for %zu bytes", buf->bytes);
}

/* ---- request operations ------------------------------------------------------------------- */

static struct weft_completion *p2p_wait_on(struct weft_mpi_request *r)
{
	return &r->core.done;
}

static int p2p_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	if (r->mode == WEFT_MPI_MODE_RECV) {
		if (weft_unlikely(r->peer == MPI_PROC_NULL))
			return weft_mpi_p2p_status_null(st);
		return weft_mpi_p2p_status(r->comm, r->peer, &r->core.status, st);
	}
	int err = MPI_SUCCESS;
	if (weft_unlikely(r->core.status.err && !r->core.status.cancelled))
		err = weft_mpi_err_peer(r->core.status.err, r->core.status.peer);
	weft_mpi_status_set(st, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, r->core.status.cancelled);
	return err;
}

static int p2p_cancel(struct weft_mpi_request *r)
{
	if (r->peer == MPI_PROC_NULL || weft_wait_completion_done(&r->core.done))
		return MPI_SUCCESS;
	if (r->mode == WEFT_MPI_MODE_RECV)
		weft_comm_recv_cancel(&r->core);
	else
		weft_comm_send_cancel(&r->core, r->comm->p2p, weft_mpi_comm_peer(r->comm, r->peer),
				      r->tag);
	return MPI_SUCCESS;
}

static int p2p_again(struct weft_mpi_request *r)
{
	return weft_mpi_p2p_start(r, &r->buf);
}

const struct weft_mpi_request_ops weft_mpi_p2p_ops = {
	.name = "point-to-point",
	.by_core = true,
	.wait_on = p2p_wait_on,
	.finish = p2p_finish,
	.start = p2p_again,
	.cancel = p2p_cancel,
};

const struct weft_mpi_request_ops weft_mpi_plain_ops = {
	.name = "point-to-point",
	.by_core = true,
	.wait_on = p2p_wait_on,
	.finish = p2p_finish,
	.cancel = p2p_cancel,
};

static void core_done(struct weft_mpi_request *r)
{
	r->core.status = (struct weft_status){.peer = -1};
	weft_wait_completion_init_done(&r->core.done);
}

int weft_mpi_p2p_done(struct weft_mpi_comm *c, enum weft_mpi_mode mode, MPI_Request *request)
{
	struct weft_mpi_request *r = weft_mpi_request_new(&weft_mpi_p2p_ops, c, NULL, false);

	if (!r)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	r->mode = (uint8_t)mode;
	r->peer = MPI_PROC_NULL;
	core_done(r);
	*request = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

static inline __attribute__((always_inline)) int start_core(struct weft_mpi_request *r,
							    struct weft_mpi_comm *c, int rank,
							    int tag, enum weft_mpi_mode mode,
							    const struct weft_buf *buf)
{
	weft_err err;

	if (weft_unlikely(rank == MPI_PROC_NULL)) {
		core_done(r);
		return MPI_SUCCESS;
	}
	if (mode == WEFT_MPI_MODE_BUFFERED) {
		core_done(r);
		return weft_mpi_bsend(c, buf, rank, tag);
	}
	weft_comm_req_init(&r->core, NULL, NULL);
	if (mode == WEFT_MPI_MODE_RECV)
		err = weft_comm_core_irecv(&r->core, c->p2p, weft_mpi_core_peer(c, rank),
					   weft_mpi_core_tag(tag), buf);
	else
		err = weft_comm_core_isend(
			&r->core, c->p2p, weft_mpi_comm_peer(c, rank), tag, buf,
			mode == WEFT_MPI_MODE_STANDARD ? WEFT_SEND_AWAY : weft_mpi_core_mode(mode));
	if (weft_unlikely(err))
		return weft_mpi_err_peer(err, rank >= 0 ? weft_mpi_comm_peer(c, rank) : -1);
	if (!weft_wait_completion_done(&r->core.done))
		weft_task_engine_pending();
	return MPI_SUCCESS;
}

int weft_mpi_p2p_start(struct weft_mpi_request *r, const struct weft_buf *buf)
{
	return start_core(r, r->comm, r->peer, r->tag, r->mode, buf);
}

/* ---- sends -------------------------------------------------------------------------------- */

static int send_wait(struct weft_mpi_comm *c, const struct weft_buf *buf, int peer, int tag,
		     enum weft_send_mode mode)
{
	struct weft_req req;

	weft_comm_req_init(&req, NULL, NULL);
	weft_err err = weft_comm_core_isend(&req, c->p2p, peer, tag, buf, mode);
	if (!err) {
		weft_task_engine_wait_own(&req.done);
		err = req.status.err;
	}
	return weft_likely(!err) ? MPI_SUCCESS : weft_mpi_err_peer(err, peer);
}

static inline int send_blocking(const void *base, MPI_Count count, MPI_Datatype datatype, int dest,
				int tag, MPI_Comm comm, enum weft_mpi_mode mode)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_buf buf;
	int bad = weft_mpi_p2p_buf(base, count, datatype, &buf);

	if (weft_unlikely(bad || dest == MPI_PROC_NULL))
		return bad;
	if (mode == WEFT_MPI_MODE_BUFFERED)
		return weft_mpi_bsend(c, &buf, dest, tag);
	int peer = weft_mpi_comm_peer(c, dest);
	if (mode == WEFT_MPI_MODE_STANDARD) {
		weft_err err = weft_comm_send_now(c->p2p, peer, tag, &buf);
		if (weft_likely(!err))
			return MPI_SUCCESS;
		if (err != WEFT_AGAIN)
			return weft_mpi_err_peer(err, peer);
	}
	return send_wait(c, &buf, peer, tag, weft_mpi_core_mode(mode));
}

int weft_mpi_Send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		  MPI_Comm comm)
{
	return send_blocking(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_STANDARD);
}

int weft_mpi_Ssend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		   MPI_Comm comm)
{
	return send_blocking(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_SYNC);
}

int weft_mpi_Rsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		   MPI_Comm comm)
{
	return send_blocking(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_READY);
}

int weft_mpi_Bsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		   MPI_Comm comm)
{
	return send_blocking(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_BUFFERED);
}

static inline __attribute__((always_inline)) int
start_request(const void *base, MPI_Count count, MPI_Datatype datatype, int rank, int tag,
	      MPI_Comm comm, enum weft_mpi_mode mode, MPI_Request *request)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_buf buf;
	int err = weft_mpi_p2p_buf(base, count, datatype, &buf);

	if (weft_unlikely(err))
		return err;
	struct weft_mpi_request *r = weft_mpi_request_take();
	if (weft_unlikely(!r))
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	/* Small and the network free: it is over before there is anything to remember. */
	if (mode == WEFT_MPI_MODE_STANDARD && weft_likely(rank != MPI_PROC_NULL) &&
	    weft_likely(!weft_comm_start_now(c->p2p, weft_mpi_comm_peer(c, rank), tag, &buf))) {
		weft_mpi_request_name_over(r);
		*request = weft_mpi_request_handle(r);
		return MPI_SUCCESS;
	}
	weft_mpi_request_name(r, &weft_mpi_p2p_ops, c, NULL, false);
	r->peer = rank;
	r->tag = tag;
	r->mode = (uint8_t)mode;
	weft_mpi_p2p_hold(r, &buf, datatype);
	err = start_core(r, c, rank, tag, mode, &buf);
	if (weft_unlikely(err))
		weft_mpi_request_delete(r);
	else
		*request = weft_mpi_request_handle(r);
	return err;
}

int weft_mpi_Isend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		   MPI_Comm comm, MPI_Request *request)
{
	return start_request(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_STANDARD,
			     request);
}

int weft_mpi_Issend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		    MPI_Comm comm, MPI_Request *request)
{
	return start_request(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_SYNC, request);
}

int weft_mpi_Irsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		    MPI_Comm comm, MPI_Request *request)
{
	return start_request(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_READY, request);
}

int weft_mpi_Ibsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		    MPI_Comm comm, MPI_Request *request)
{
	return start_request(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_BUFFERED,
			     request);
}

/* ---- receives ----------------------------------------------------------------------------- */

int weft_mpi_Recv(void *base, MPI_Count count, MPI_Datatype datatype, int source, int tag,
		  MPI_Comm comm, MPI_Status *status)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_buf buf;
	int bad = weft_mpi_p2p_buf(base, count, datatype, &buf);

	if (weft_unlikely(bad))
		return bad;
	if (weft_unlikely(source == MPI_PROC_NULL))
		return weft_mpi_p2p_status_null(status);
	struct weft_req req;
	weft_comm_req_init(&req, NULL, NULL);
	weft_err err = weft_comm_core_irecv(&req, c->p2p, weft_mpi_core_peer(c, source),
					    weft_mpi_core_tag(tag), &buf);
	if (weft_unlikely(err))
		return weft_mpi_err_peer(err, source >= 0 ? weft_mpi_comm_peer(c, source) : -1);
	if (!weft_wait_completion_done(&req.done))
		weft_task_engine_wait_own(&req.done);
	return weft_mpi_p2p_status(c, source, &req.status, status);
}

int weft_mpi_Irecv(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
		   MPI_Comm comm, MPI_Request *request)
{
	return start_request(buf, count, datatype, source, tag, comm, WEFT_MPI_MODE_RECV, request);
}
