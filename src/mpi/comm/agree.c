/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agree.c - the few collective steps that making a communicator needs, on plain messages: bcast,
 * allgather, exchange.  Trees and linear gathers: these calls are rare and small.
 */
#include "mpi/comm/comm_int.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/error.h"
#include "task/task.h"

/* Starts a message; *live_p: it has to be waited for. */
static weft_err start(struct weft_req *req, bool send, struct weft_ctx *ctx, int world, int tag,
		      void *data, size_t len)
{
	struct weft_buf buf = weft_data_buf_flat(data, len);

	weft_comm_req_init(req, NULL, NULL);
	return send ? weft_comm_core_isend(req, ctx, world, tag, &buf, WEFT_SEND_STANDARD)
		    : weft_comm_core_irecv(req, ctx, world, tag, &buf);
}

/* Waits and translates; a message of another length means that callers disagree. */
static int finish(struct weft_req *req, int world, size_t len)
{
	weft_task_engine_wait(&req->done);
	if (req->status.err)
		return weft_mpi_err_peer(req->status.err, world);
	if (req->status.bytes != len)
		return weft_mpi_err(MPI_ERR_NOT_SAME,
				    "rank %d of the job takes part with other arguments", world);
	return MPI_SUCCESS;
}

int weft_mpi_talk_send(struct weft_ctx *ctx, int world, int tag, const void *buf, size_t len)
{
	struct weft_req req;
	weft_err err = start(&req, true, ctx, world, tag, (void *)(uintptr_t)buf, len);

	return err ? weft_mpi_err_peer(err, world) : finish(&req, world, len);
}

int weft_mpi_talk_recv(struct weft_ctx *ctx, int world, int tag, void *buf, size_t len)
{
	struct weft_req req;
	weft_err err = start(&req, false, ctx, world, tag, buf, len);

	return err ? weft_mpi_err_peer(err, world) : finish(&req, world, len);
}

int weft_mpi_talk_swap(struct weft_ctx *ctx, int world, int tag, const void *out, size_t out_len,
		       void *in, size_t in_len)
{
	struct weft_req recv;
	weft_err err = start(&recv, false, ctx, world, tag, in, in_len);

	if (err)
		return weft_mpi_err_peer(err, world);
	int sent = weft_mpi_talk_send(ctx, world, tag, out, out_len);
	if (sent && weft_comm_recv_cancel(&recv)) {
		weft_task_engine_wait(&recv.done);
		return sent;
	}
	int got = finish(&recv, world, in_len);
	return sent ? sent : got;
}

struct weft_mpi_talk weft_mpi_talk_all(struct weft_mpi_comm *c)
{
	return (struct weft_mpi_talk){.ctx = c->coll,
				      .rank = c->rank,
				      .size = c->size,
				      .world = c->group->world,
				      .tag = weft_mpi_comm_talk_tag(c)};
}

/* Binomial tree. */
int weft_mpi_talk_bcast(const struct weft_mpi_talk *t, int root, void *buf, size_t len)
{
	int v = (t->rank - root + t->size) % t->size, mask = 1;
	int err = MPI_SUCCESS;

	while (mask < t->size && !(v & mask))
		mask <<= 1;
	if (v) {
		int from = t->world[((v & ~mask) + root) % t->size];
		err = weft_mpi_talk_recv(t->ctx, from, t->tag, buf, len);
	}
	for (mask >>= 1; mask && !err; mask >>= 1) {
		if ((v | mask) >= t->size || (v & mask))
			continue;
		int to = t->world[((v | mask) + root) % t->size];
		err = weft_mpi_talk_send(t->ctx, to, t->tag, buf, len);
	}
	return err;
}

/* The tree the other way: from the leaves to root. */
int weft_mpi_talk_ack(const struct weft_mpi_talk *t, int root)
{
	int v = (t->rank - root + t->size) % t->size, mask;
	int err = MPI_SUCCESS;

	for (mask = 1; mask < t->size && !(v & mask) && !err; mask <<= 1)
		if ((v | mask) < t->size)
			err = weft_mpi_talk_recv(t->ctx, t->world[((v | mask) + root) % t->size],
						 t->tag, NULL, 0);
	if (v && !err)
		err = weft_mpi_talk_send(t->ctx, t->world[((v & ~mask) + root) % t->size], t->tag,
					 NULL, 0);
	return err;
}

/* To rank 0 and back. */
int weft_mpi_talk_allgather(const struct weft_mpi_talk *t, const void *mine, void *all, size_t len)
{
	int err = MPI_SUCCESS;

	if (t->rank == 0) {
		memcpy(all, mine, len);
		for (int r = 1; r < t->size && !err; r++)
			err = weft_mpi_talk_recv(t->ctx, t->world[r], t->tag,
						 (char *)all + (size_t)r * len, len);
	} else {
		err = weft_mpi_talk_send(t->ctx, t->world[0], t->tag, mine, len);
	}
	return err ? err : weft_mpi_talk_bcast(t, 0, all, len * (size_t)t->size);
}
