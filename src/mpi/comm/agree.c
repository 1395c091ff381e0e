/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agree.c - the few collective steps that making a communicator needs, on plain messages: bcast,
 * allgather, exchange.  Trees and linear gathers: these calls are rare and small.
 *
 * Deaths   a member whose source has died, or has failed, tells the members behind it by a note in the message's
 *          place; so each member's call ends, with the error, though it waits for a living one.  A bcast that
 *          cannot reach a member goes on with the others: the dead one's death is no error of theirs.
 */
#include "mpi/comm/comm_int.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/error.h"
#include "task/task.h"

/* Starts a message; *live_p: it has to be waited for. */
static weft_err start_message(struct weft_req *req, bool send, struct weft_ctx *ctx, int world,
			      int tag, void *data, size_t len)
{
	struct weft_buf buf = weft_data_buf_flat(data, len);

	weft_comm_req_init(req, NULL, NULL);
	return send ? weft_comm_core_isend(req, ctx, world, tag, &buf, WEFT_SEND_STANDARD)
		    : weft_comm_core_irecv(req, ctx, world, tag, &buf);
}

/* Waits and translates; a message of another length means that callers disagree. */
static int finish_message(struct weft_req *req, int world, size_t len)
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
	weft_err err = start_message(&req, true, ctx, world, tag, (void *)(uintptr_t)buf, len);

	return err ? weft_mpi_err_peer(err, world) : finish_message(&req, world, len);
}

int weft_mpi_talk_recv(struct weft_ctx *ctx, int world, int tag, void *buf, size_t len)
{
	struct weft_req req;
	weft_err err = start_message(&req, false, ctx, world, tag, buf, len);

	return err ? weft_mpi_err_peer(err, world) : finish_message(&req, world, len);
}

int weft_mpi_talk_swap(struct weft_ctx *ctx, int world, int tag, const void *out, size_t out_len,
		       void *in, size_t in_len)
{
	struct weft_req recv;
	weft_err err = start_message(&recv, false, ctx, world, tag, in, in_len);

	if (err)
		return weft_mpi_err_peer(err, world);
	int sent = weft_mpi_talk_send(ctx, world, tag, out, out_len);
	if (sent && weft_comm_recv_cancel(&recv)) {
		weft_task_engine_wait(&recv.done);
		return sent;
	}
	int got = finish_message(&recv, world, in_len);
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

/* ---- notes: in a message's place, "the step has failed" ------------------------------------- */

struct note {
	int32_t code;  /* MPI error class */
	int32_t world; /* the process that is gone; -1: none is */
	int32_t unused[2];
};

/* Of another length than the message that it replaces. */
static size_t note_len(size_t len)
{
	return len == sizeof(struct note) ? sizeof(struct note) - sizeof(int32_t)
					  : sizeof(struct note);
}

static int note_read(const struct note *n)
{
	if (n->code == MPI_ERR_PROC_ABORTED && n->world >= 0)
		return weft_mpi_err_peer(WEFT_ERR_PEER, n->world);
	return weft_mpi_err(n->code, "another rank that takes part has failed");
}

/* Receives buf, or a note instead; *n_p: what to tell the members behind. */
static int recv_noted(const struct weft_mpi_talk *t, int world, void *buf, size_t len,
		      struct note *n_p)
{
	struct note small;
	bool is_small = len < sizeof small;
	void *at = is_small ? &small : buf;
	struct weft_req req;
	weft_err err = start_message(&req, false, t->ctx, world, t->tag, at,
				     is_small ? sizeof small : len);

	if (!err) {
		weft_task_engine_wait(&req.done);
		err = req.status.err;
	}
	*n_p = (struct note){.code = MPI_SUCCESS, .world = -1};
	if (!err && req.status.bytes == note_len(len)) {
		memcpy(n_p, at, note_len(len));
		return note_read(n_p);
	}
	int code = err ? weft_mpi_err_peer(err, world) : MPI_SUCCESS;
	if (!err && req.status.bytes != len)
		code = weft_mpi_err(MPI_ERR_NOT_SAME,
				    "rank %d of the job takes part with other arguments", world);
	else if (!err && is_small)
		memcpy(buf, &small, len);
	if (code)
		*n_p = (struct note){.code = code, .world = err == WEFT_ERR_PEER ? world : -1};
	return code;
}

/* buf, or the note if that says so, to the members behind this one in root's tree. */
static void send_behind(const struct weft_mpi_talk *t, int root, const void *buf, size_t len,
			const struct note *n)
{
	int v = (t->rank - root + t->size) % t->size, mask = 1;

	while (mask < t->size && !(v & mask))
		mask <<= 1;
	for (mask >>= 1; mask; mask >>= 1) {
		if ((v | mask) >= t->size)
			continue;
		int to = t->world[((v | mask) + root) % t->size];
		/* That member may be gone: others are told all the same. */
		if (n->code)
			(void)weft_mpi_talk_send(t->ctx, to, t->tag, n, note_len(len));
		else
			(void)weft_mpi_talk_send(t->ctx, to, t->tag, buf, len);
	}
}

static int bcast_noted(const struct weft_mpi_talk *t, int root, void *buf, size_t len,
		       struct note *n)
{
	int v = (t->rank - root + t->size) % t->size, err = n->code;

	if (v) /* from the member whose number lacks v's lowest bit */
		err = recv_noted(t, t->world[((v & (v - 1)) + root) % t->size], buf, len, n);
	send_behind(t, root, buf, len, n);
	return err;
}

/* ---- steps of all members ----------------------------------------------------------------- */

int weft_mpi_talk_bcast(const struct weft_mpi_talk *t, int root, void *buf, size_t len)
{
	return weft_mpi_talk_bcast_unless(t, root, MPI_SUCCESS, buf, len);
}

int weft_mpi_talk_bcast_unless(const struct weft_mpi_talk *t, int root, int failed, void *buf,
			       size_t len)
{
	struct note n = {.code = t->rank == root ? failed : MPI_SUCCESS, .world = -1};
	int err = bcast_noted(t, root, buf, len, &n);

	return failed ? failed : err;
}

/* The tree the other way: from the leaves to root.  *first_p: the first failure. */
static int ack_noted(const struct weft_mpi_talk *t, int root, struct note *first_p)
{
	int v = (t->rank - root + t->size) % t->size, mask;
	struct note n, first = {.code = MPI_SUCCESS, .world = -1};
	int err = MPI_SUCCESS;

	for (mask = 1; mask < t->size && !(v & mask); mask <<= 1) {
		if ((v | mask) >= t->size)
			continue;
		int got = recv_noted(t, t->world[((v | mask) + root) % t->size], NULL, 0, &n);
		if (got && !err) {
			err = got;
			first = n;
		}
	}
	if (v) {
		int to = t->world[((v & ~mask) + root) % t->size];
		int sent = weft_mpi_talk_send(t->ctx, to, t->tag, err ? &first : NULL,
					      err ? note_len(0) : 0);
		err = err ? err : sent;
	}
	*first_p = first;
	return err;
}

int weft_mpi_talk_ack(const struct weft_mpi_talk *t, int root)
{
	struct note first;

	return ack_noted(t, root, &first);
}

/* Up the tree and down again: a member talks to log2(size) others at most, and to two on average. */
int weft_mpi_talk_barrier(const struct weft_mpi_talk *t)
{
	struct note first;
	/* What failed below is told by the way back, too: above, where there is an above. */
	int up = ack_noted(t, 0, &first), down = bcast_noted(t, 0, NULL, 0, &first);

	return down ? down : up;
}

/* To rank 0 and back. */
int weft_mpi_talk_allgather(const struct weft_mpi_talk *t, const void *mine, void *all, size_t len)
{
	struct note n, first = {.code = MPI_SUCCESS, .world = -1};

	if (t->rank == 0) {
		memcpy(all, mine, len);
		for (int r = 1; r < t->size; r++)
			if (recv_noted(t, t->world[r], (char *)all + (size_t)r * len, len, &n) &&
			    !first.code)
				first = n;
	} else {
		/* If rank 0 is gone, the way back says so. */
		(void)weft_mpi_talk_send(t->ctx, t->world[0], t->tag, mine, len);
	}
	return bcast_noted(t, 0, all, len * (size_t)t->size, &first);
}
