/* SPDX-License-Identifier: BSD-3-Clause */
/* recv_message.c - a receive meets a message that was there before it. */
#include <string.h>
#include "base/counters.h"
#include "base/trace.h"
#include "comm/large/large.h"
#include "comm/msg_trace.h"
#include "comm/recv/deliver.h"
#include "comm/recv/msg_pool.h"
#include "comm/recv/recv_message.h"
#include "comm/sign.h"

/* A message of this process to itself whose data is still in the sender's buffer. */
static void take_local(struct weft_req *r, struct weft_msg *m)
{
	struct weft_req *send = m->send;
	size_t n = m->length < r->buf.bytes ? m->length : r->buf.bytes;

	weft_comm_buf_copy(&r->buf, &send->buf, n);
	r->status = (struct weft_status){.peer = m->node.peer,
					 .tag = m->node.tag,
					 .bytes = n,
					 .err = n < m->length ? WEFT_ERR_TRUNC : WEFT_OK};
	if (weft_trace_on())
		weft_comm_trace_received(m->node.peer, m->node.tag, n);
	weft_comm_msg_free(m);
	weft_comm_req_complete(send);
	weft_comm_req_complete(r);
}

static void take_eager(struct weft_req *r, struct weft_msg *m, bool traced)
{
	struct weft_core *core = m->core;
	int peer = m->node.peer, tag = m->node.tag;

	if (m->id) {
		weft_comm_gate_fin(&core->gate[peer], m->id);
		m->id = 0;
	}
	uintptr_t state = WEFT_MSG_ARRIVING;
	r->status.peer = peer;
	r->status.tag = tag;
	/* CLAIM -> LAST (msg_complete).  Carries: r's fields, for the poller that completes it.
	 * SEE <- READY (msg_complete).  Carries: the payload. */
	if (atomic_compare_exchange_strong_explicit(&m->x_state, &state, (uintptr_t)r,
						    memory_order_acq_rel, memory_order_acquire))
		return;
	if (state == WEFT_MSG_READY) {
		weft_count(WEFT_CNT_COPIES, 1);
		if (weft_unlikely(traced))
			weft_comm_trace_received(peer, tag, m->length);
		weft_comm_recv_deliver(r, peer, tag, m->data, m->length);
	} else {
		r->status.bytes = 0;
		weft_comm_recv_finish(r, WEFT_ERR_PEER);
	}
	weft_comm_msg_free(m);
}

void weft_comm_recv_message(struct weft_req *r, struct weft_msg *m)
{
	bool traced = weft_trace_on();
	if (weft_unlikely(traced))
		weft_comm_trace_end(WEFT_TRACE_TAKE, m->node.peer, m->node.tag, m->length);
	weft_comm_sign_check(r, m->node.peer, m->node.tag, m->length, m->sign);
	switch ((enum weft_msg_kind)m->msg_kind) {
	case WEFT_MSG_EAGER:
		take_eager(r, m, traced);
		break;
	case WEFT_MSG_RTS: {
		struct weft_gate *g = &m->core->gate[m->node.peer];
		int tag = m->node.tag;
		uint64_t length = m->length;
		struct weft_comm_large_from from = {
			.addr = m->addr, .id = m->id, .quiet = m->quiet, .late = true};
		weft_comm_msg_free(m);
		weft_comm_large_start(r, g, tag, length, &from);
		break;
	}
	case WEFT_MSG_LOCAL:
		take_local(r, m);
		break;
	}
}
