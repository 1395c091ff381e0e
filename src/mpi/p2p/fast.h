/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast.h - what the entry points of the most frequent calls try first: a predefined communicator, a
 * predefined datatype without holes, nothing special about the arguments, and a small message.
 *
 * False means "go the usual way", with all its checks and messages; nothing has happened then.
 *
 * Cost      one function from the entry point to the core; see doc/cost.md.
 */
#ifndef WEFT_MPI_FAST_H
#define WEFT_MPI_FAST_H

#include "mpi/entry.h"
#include "mpi/p2p/p2p.h"
#include "mpi/p2p/request.h"
#include "task/task.h"

struct weft_mpi_fast {
	struct weft_mpi_comm *comm;
	size_t bytes;
	int peer;
};

/* Are these arguments good and plain? */
static inline bool weft_mpi_fast_args(const void *buf, int count, MPI_Datatype type, int rank,
				      int tag, MPI_Comm comm, struct weft_mpi_fast *f)
{
	uint64_t t = (uint64_t)(uintptr_t)type, h = (uint64_t)(uintptr_t)comm;

	if (weft_unlikely(!weft_mpi_running() || t >= WEFT_MPI_PREDEFINED_END ||
			  h >= WEFT_MPI_PREDEFINED_END))
		return false;
	size_t each = weft_mpi_type_bytes[t];
	struct weft_mpi_head *head = weft_mpi_predefined[h];
	if (weft_unlikely(!each || !head || head->kind != WEFT_MPI_COMM || (count | tag) < 0 ||
			  !buf))
		return false;
	struct weft_mpi_comm *c = (struct weft_mpi_comm *)head;
	if (weft_unlikely((unsigned)rank >= (unsigned)c->peers))
		return false; /* among them the null process and wildcards */
	f->comm = c;
	f->bytes = (size_t)count * each;
	f->peer = weft_mpi_comm_peer(c, rank);
	return true;
}

static inline bool weft_mpi_fast_Send(const void *buf, int count, MPI_Datatype type, int rank,
				      int tag, MPI_Comm comm)
{
	struct weft_mpi_fast f;

	if (!weft_mpi_fast_args(buf, count, type, rank, tag, comm, &f))
		return false;
	return weft_comm_send_plain(f.comm->p2p, f.peer, tag, buf, f.bytes) == WEFT_OK;
}

static inline bool weft_mpi_fast_Isend(const void *buf, int count, MPI_Datatype type, int rank,
				       int tag, MPI_Comm comm, MPI_Request *request)
{
	struct weft_mpi_fast f;

	if (!weft_mpi_fast_args(buf, count, type, rank, tag, comm, &f) || !request ||
	    weft_unlikely(!weft_mpi_request_pool.first) ||
	    weft_unlikely(weft_comm_start_plain(f.comm->p2p, f.peer, tag, buf, f.bytes)))
		return false;
	/* Over before there is anything to remember. */
	struct weft_mpi_request *r = weft_mpi_request_take();
	weft_mpi_request_name_over(r);
	*request = weft_mpi_request_handle(r);
	return true;
}

static inline bool weft_mpi_fast_Irecv(void *buf, int count, MPI_Datatype type, int rank, int tag,
				       MPI_Comm comm, MPI_Request *request)
{
	struct weft_mpi_fast f;

	if (!weft_mpi_fast_args(buf, count, type, rank, tag, comm, &f) || !request ||
	    weft_unlikely(!weft_mpi_request_pool.first))
		return false;
	struct weft_mpi_request *r = weft_mpi_request_take();
	/* References to a predefined communicator are not counted. */
	weft_mpi_request_name_plain(r, f.comm, WEFT_MPI_MODE_RECV, rank, tag);
	*request = weft_mpi_request_handle(r);
	if (weft_unlikely(
		    weft_comm_core_irecv_plain(&r->core, f.comm->p2p, f.peer, tag, buf, f.bytes))) {
		weft_mpi_request_delete(r);
		return false;
	}
	if (!weft_wait_completion_done(&r->core.done))
		weft_task_engine_pending();
	return true;
}

#endif
