/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deliver.h - the end of a receive: its data is copied to its place, and the request is over.
 *
 * Callers   any thread, no lock or mask held.
 */
#ifndef WEFT_COMM_DELIVER_H
#define WEFT_COMM_DELIVER_H

#include "base/copy.h"
#include "comm/request.h"

void weft_comm_recv_deliver_rare(struct weft_req *r, int peer, int tag, const void *data,
				 size_t len);
/* r is over; its status says what came, but for err. */
void weft_comm_recv_finish(struct weft_req *r, weft_err err);
/* The same where the data came with its envelope, as a stream. */
void weft_comm_recv_finish_eager(struct weft_req *r, weft_err err);
void weft_comm_buf_copy(const struct weft_buf *to, const struct weft_buf *from, size_t len);

/* The data of r has come, all of it; r is over. */
static inline __attribute__((always_inline)) void
weft_comm_recv_deliver(struct weft_req *r, int peer, int tag, const void *data, size_t len)
{
	if (weft_unlikely(r->buf.type != NULL || len > r->buf.bytes)) {
		weft_comm_recv_deliver_rare(r, peer, tag, data, len);
		return;
	}
	/* err and cancelled are what irecv has set. */
	r->status.peer = peer;
	r->status.tag = tag;
	r->status.bytes = len;
	weft_copy_bytes(r->buf.base, data, len);
	weft_comm_req_complete(r);
}

#endif
