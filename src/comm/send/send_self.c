/* SPDX-License-Identifier: BSD-3-Clause */
/* send_self.c - messages of a process to itself, without any driver. */
#include "base/counters.h"
#include "base/trace.h"
#include "comm/match/match.h"
#include "comm/msg_trace.h"
#include "comm/recv/deliver.h"
#include "comm/recv/msg_pool.h"
#include "comm/recv/recv_message.h"
#include "comm/send/send_self.h"
#include "comm/sign.h"

/* Up to this size a message is copied aside when no receive waits, so that the send is over; a
 * longer message waits for the receive and is copied once. */
#define SELF_EAGER_MAX 65536

static weft_err self_send_later(struct weft_req *r, struct weft_ctx *ctx, int tag,
				const struct weft_buf *buf, uint32_t sign)
{
	struct weft_msg *m = weft_comm_msg_alloc(ctx->core, 0);
	if (!m)
		return WEFT_ERR_NOMEM;
	r->buf = *buf;
	m->msg_kind = WEFT_MSG_LOCAL;
	m->sign = sign;
	m->send = r;
	m->length = buf->bytes;
	m->node.peer = ctx->core->rank;
	m->node.tag = tag;
	atomic_store_explicit(&m->x_state, WEFT_MSG_READY, memory_order_relaxed);
	struct weft_entry *e = weft_comm_match_arrive_unexpected(ctx, m);
	if (e)
		weft_comm_recv_message(weft_comm_req_of_entry(e), m);
	return WEFT_OK;
}

/* The call that comes instead has it still to carry. */
static weft_err leave_to_call(uint32_t sign)
{
	if (weft_unlikely(sign))
		weft_comm_sign_next.send = sign;
	return WEFT_AGAIN;
}

weft_err weft_comm_send_self(struct weft_req *r, struct weft_ctx *ctx, int tag,
			     const struct weft_buf *buf, enum weft_send_mode mode)
{
	struct weft_core *core = ctx->core;
	uint32_t sign = weft_comm_sign_take(&weft_comm_sign_next.send);
	bool small = buf->bytes <= SELF_EAGER_MAX && mode != WEFT_SEND_SYNC;

	if (r)
		r->status =
			(struct weft_status){.peer = core->rank, .tag = tag, .bytes = buf->bytes};
	else if (!small)
		return leave_to_call(sign);
	if (weft_trace_on())
		weft_comm_trace_self(core, tag, buf->bytes);
	struct weft_entry *e = weft_comm_match_arrive(ctx, core->rank, tag);
	if (e) {
		struct weft_req *to = weft_comm_req_of_entry(e);
		weft_comm_sign_check(to, core->rank, tag, buf->bytes, sign);
		size_t n = buf->bytes < to->buf.bytes ? buf->bytes : to->buf.bytes;
		weft_comm_buf_copy(&to->buf, buf, n);
		to->status = (struct weft_status){.peer = core->rank,
						  .tag = tag,
						  .bytes = n,
						  .err = n < buf->bytes ? WEFT_ERR_TRUNC : WEFT_OK};
		if (weft_trace_on())
			weft_comm_trace_received(core->rank, tag, n);
		weft_comm_req_complete(to);
	} else if (!small) {
		return self_send_later(r, ctx, tag, buf, sign);
	} else {
		struct weft_msg *m = weft_comm_msg_alloc(core, buf->bytes);
		if (!m)
			return WEFT_ERR_NOMEM;
		struct weft_buf aside = weft_data_buf_flat(m->data, buf->bytes);
		weft_comm_buf_copy(&aside, buf, buf->bytes);
		m->msg_kind = WEFT_MSG_EAGER;
		m->sign = sign;
		m->length = buf->bytes;
		m->node.peer = core->rank;
		m->node.tag = tag;
		/* Relaxed: published by the table's lock. */
		atomic_store_explicit(&m->x_state, WEFT_MSG_READY, memory_order_relaxed);
		weft_count(WEFT_CNT_UNEXPECTED, 1);
		e = weft_comm_match_arrive_unexpected(ctx, m);
		if (e)
			weft_comm_recv_message(weft_comm_req_of_entry(e), m);
	}
	if (r)
		weft_comm_req_complete_early(r);
	return WEFT_OK;
}
