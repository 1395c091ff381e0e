/* SPDX-License-Identifier: BSD-3-Clause */
/* deliver.c - the end of a receive: data with a layout, the rarer ends. */
#include <string.h>
#include "base/trace.h"
#include "comm/msg_trace.h"
#include "comm/recv/deliver.h"

void weft_comm_buf_copy(const struct weft_buf *to, const struct weft_buf *from, size_t len)
{
	if (!to->type && !from->type) {
		if (len)
			memmove(to->base, from->base, len);
	} else if (!from->type) {
		weft_data_unpack(to, 0, from->base, len);
	} else if (!to->type) {
		weft_data_pack(from, 0, to->base, len);
	} else {
		/* Both have holes: piece by piece of the source.  Ends: each round copies. */
		size_t off = 0;
		while (off < len) {
			struct iovec iov[WEFT_IOV_MAX];
			unsigned n = WEFT_IOV_MAX;
			if (!weft_data_iov(from, off, iov, &n))
				break;
			for (unsigned i = 0; i < n && off < len; i++) {
				size_t k = iov[i].iov_len;
				if (k > len - off)
					k = len - off;
				weft_data_unpack(to, off, iov[i].iov_base, k);
				off += k;
			}
		}
	}
}

/* With a layout, or longer than its place. */
void weft_comm_recv_deliver_rare(struct weft_req *r, int peer, int tag, const void *data,
				 size_t len)
{
	size_t n = len;

	r->status.peer = peer;
	r->status.tag = tag;
	r->status.err = WEFT_OK;
	r->status.cancelled = false;
	if (weft_unlikely(len > r->buf.bytes)) {
		n = r->buf.bytes;
		r->status.err = WEFT_ERR_TRUNC;
	}
	r->status.bytes = n;
	if (weft_unlikely(r->buf.type != NULL))
		weft_data_unpack(&r->buf, 0, data, n);
	else if (n)
		memcpy(r->buf.base, data, n);
	weft_comm_req_complete(r);
}

void weft_comm_recv_finish(struct weft_req *r, weft_err err)
{
	if (err)
		r->status.err = err;
	if (weft_trace_on())
		weft_comm_trace_end(WEFT_TRACE_RECEIVED, r->status.peer, r->status.tag,
				    r->status.bytes);
	weft_comm_req_complete(r);
}

void weft_comm_recv_finish_eager(struct weft_req *r, weft_err err)
{
	if (weft_unlikely(err)) {
		weft_comm_recv_finish(r, err);
		return;
	}
	if (weft_trace_on())
		weft_comm_trace_received(r->status.peer, r->status.tag, r->status.bytes);
	weft_comm_req_complete(r);
}
