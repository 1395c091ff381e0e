/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.h - what the point-to-point files share: from MPI's arguments to the core's and back.
 *
 * Cost      a blocking call of a predefined type allocates nothing and takes no lock.
 */
#ifndef WEFT_MPI_P2P_H
#define WEFT_MPI_P2P_H

#include "mpi/error.h"
#include "mpi/mpi_int.h"
#include "mpi/type/type.h"

enum weft_mpi_mode {
	WEFT_MPI_MODE_STANDARD,
	WEFT_MPI_MODE_SYNC,
	WEFT_MPI_MODE_READY,
	WEFT_MPI_MODE_BUFFERED,
	WEFT_MPI_MODE_RECV,
};

static inline enum weft_send_mode weft_mpi_core_mode(enum weft_mpi_mode mode)
{
	return mode == WEFT_MPI_MODE_SYNC    ? WEFT_SEND_SYNC
	       : mode == WEFT_MPI_MODE_READY ? WEFT_SEND_READY
					     : WEFT_SEND_STANDARD;
}

int weft_mpi_p2p_buf_wrong(weft_err err, const struct weft_buf *buf) __attribute__((cold));

/* The buffer of (base, count, type); MPI error class. */
static inline int weft_mpi_p2p_buf(const void *base, MPI_Count count, MPI_Datatype type,
				   struct weft_buf *buf)
{
	weft_err err = weft_mpi_buf(base, count, type, buf);

	if (weft_unlikely(err || (!buf->base && buf->bytes && !buf->type)))
		return weft_mpi_p2p_buf_wrong(err, buf);
	return MPI_SUCCESS;
}

static inline int weft_mpi_core_peer(const struct weft_mpi_comm *c, int rank)
{
	return rank == MPI_ANY_SOURCE ? WEFT_ANY_PEER : weft_mpi_comm_peer(c, rank);
}

static inline int weft_mpi_core_tag(int tag)
{
	return tag == MPI_ANY_TAG ? WEFT_ANY_TAG : tag;
}

/* The status of a receive or probe from `rank` in c, and its error code. */
static inline int weft_mpi_p2p_status(struct weft_mpi_comm *c, int rank,
				      const struct weft_status *from, MPI_Status *st)
{
	int err = MPI_SUCCESS;

	if (weft_unlikely(from->err && !from->cancelled))
		err = weft_mpi_err_peer(from->err, from->peer);
	if (st != MPI_STATUS_IGNORE) {
		if (rank == MPI_ANY_SOURCE && !from->cancelled && from->peer >= 0)
			rank = weft_mpi_comm_rank_of(c, from->peer);
		weft_mpi_status_set(st, rank, from->cancelled ? MPI_ANY_TAG : from->tag,
				    from->bytes, from->cancelled);
	}
	return err;
}

static inline int weft_mpi_p2p_status_null(MPI_Status *st)
{
	weft_mpi_status_set(st, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
	return MPI_SUCCESS;
}

/* An operation that is over once r->core is. */
extern const struct weft_mpi_request_ops weft_mpi_p2p_ops;
/* The same for one that is never persistent, holds no datatype, and whose communicator counts no
 * references: there is little to look at when it ends. */
extern const struct weft_mpi_request_ops weft_mpi_plain_ops;

/* A request that is already complete (MPI_PROC_NULL, buffered sends). */
int weft_mpi_p2p_done(struct weft_mpi_comm *c, enum weft_mpi_mode mode, MPI_Request *request);

/* Starts r's operation on buf (r->peer, tag, mode are set). */
int weft_mpi_p2p_start(struct weft_mpi_request *r, const struct weft_buf *buf);

/* Keeps the datatype behind buf alive as long as r. */
static inline void weft_mpi_p2p_hold(struct weft_mpi_request *r, const struct weft_buf *buf,
				     MPI_Datatype type)
{
	if (weft_unlikely(buf->type != NULL)) {
		r->type = weft_mpi_type_of(type);
		r->typed = true;
		weft_mpi_type_ref(r->type);
	}
}

#endif
