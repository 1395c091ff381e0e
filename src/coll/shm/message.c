/* SPDX-License-Identifier: BSD-3-Clause */
/* message.c - small messages between the members, and the one that ends a member's sleep. */
#include "coll/shm/group.h"
#include "task/task.h"

weft_err weft_coll_shm_send(const struct weft_coll_group *g, int rank, int tag, const void *data,
			    size_t bytes)
{
	struct weft_buf buf = weft_data_buf_flat(data, bytes);
	int peer = weft_coll_process(g, rank);
	weft_err err = weft_comm_send_now(g->ctx, peer, tag, &buf);
	if (err != WEFT_AGAIN)
		return err;
	struct weft_req *req = &weft_coll_shm_of(g)->req;
	weft_comm_req_init(req, NULL, NULL);
	err = weft_comm_core_isend(req, g->ctx, peer, tag, &buf, WEFT_SEND_STANDARD);
	if (err)
		return err;
	weft_task_engine_wait(&req->done);
	return req->status.err;
}

weft_err weft_coll_shm_recv(const struct weft_coll_group *g, int peer, int tag, void *data,
			    size_t bytes)
{
	struct weft_buf buf = weft_data_buf_flat(data, bytes);
	struct weft_req *req = &weft_coll_shm_of(g)->req;
	weft_comm_req_init(req, NULL, NULL);
	weft_err err = weft_comm_core_irecv(req, g->ctx, peer, tag, &buf);
	if (err)
		return err;
	weft_task_engine_wait(&req->done);
	err = req->status.cancelled ? WEFT_ERR_TRUNC : req->status.err;
	return !err && req->status.bytes != bytes ? WEFT_ERR_PEER : err;
}

void weft_coll_shm_wake(const struct weft_coll_group *g, uint32_t sleepers)
{
	for (int r = 0; r < g->size && sleepers; r++, sleepers >>= 1)
		if (sleepers & 1)
			(void)weft_coll_shm_send(g, r, WEFT_TAG_WAKE, NULL, 0);
}
