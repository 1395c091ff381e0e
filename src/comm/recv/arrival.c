/* SPDX-License-Identifier: BSD-3-Clause */
/* arrival.c - an envelope has come: its turn, its credit, its context, memory for what must wait.
 */
#include "base/counters.h"
#include "base/trace.h"
#include "comm/large/rtr.h"
#include "comm/match/match.h"
#include "comm/msg_trace.h"
#include "comm/recv/arrival.h"
#include "comm/recv/msg_pool.h"
#include "comm/recv/recv_message.h"

struct weft_ctx *weft_comm_inbound_context(struct weft_gate *g, uint32_t id)
{
	if (weft_likely(g->rx_ctx && g->rx_ctx->id == id))
		return g->rx_ctx;
	g->rx_bucket = NULL; /* it belongs to the context before */
	return g->rx_ctx = weft_comm_ctx_find(g->core, id);
}

/* Checks an envelope and finds its context; NULL: the peer was closed. */
struct weft_ctx *weft_comm_inbound_envelope_open(struct weft_gate *g, const struct weft_wire *h)
{
	/* Relaxed: written by the poller alone; a receive that sends RTR reads it. */
	uint32_t seq = atomic_load_explicit(&g->x_recv_seq, memory_order_relaxed);
	if (weft_unlikely(h->sequence != seq)) {
		weft_comm_gate_protocol_error(g, "an envelope out of order");
		return NULL;
	}
	atomic_store_explicit(&g->x_recv_seq, seq + 1, memory_order_relaxed);
	struct weft_ctx *ctx = weft_comm_inbound_context(g, h->context);
	if (weft_unlikely(!ctx))
		weft_comm_gate_protocol_error(g, "no memory for a context");
	return ctx;
}

const char weft_comm_inbound_too_much[] = "more eager payload than there was credit for";

struct weft_ctx *weft_comm_inbound_eager_open(struct weft_gate *g, const struct weft_wire *h,
					      size_t len)
{
	if (weft_unlikely(!weft_comm_credit_take(g, len))) {
		weft_comm_gate_protocol_error(g, weft_comm_inbound_too_much);
		return NULL;
	}
	if (weft_unlikely(g->rtr && len > weft_comm_gate_eager_max(g)))
		weft_comm_rtr_outcome(g, false);
	return weft_comm_inbound_envelope_open(g, h);
}

struct weft_msg *weft_comm_inbound_msg_make(struct weft_gate *g, enum weft_msg_kind kind, int tag,
					    uint64_t length, size_t payload)
{
	struct weft_msg *m = weft_comm_msg_alloc(g->core, payload);
	if (!m) {
		weft_comm_gate_protocol_error(g, "no memory for a message that came unexpectedly");
		return NULL;
	}
	m->msg_kind = (uint8_t)kind;
	m->length = length;
	m->sign = 0;
	m->charge = (uint32_t)payload; /* eager: at most 16 MiB */
	m->node.peer = g->peer;
	m->node.tag = tag;
	/* Relaxed: published by the table's lock. */
	atomic_store_explicit(&m->x_state, WEFT_MSG_READY, memory_order_relaxed);
	weft_count(WEFT_CNT_UNEXPECTED, 1);
	return m;
}

void weft_comm_inbound_unexpected(struct weft_ctx *ctx, struct weft_msg *m)
{
	if (weft_trace_on())
		weft_comm_trace_unexpected();
	struct weft_entry *e = weft_comm_match_arrive_unexpected(ctx, m);
	if (e) /* posted meanwhile */
		weft_comm_recv_message(weft_comm_req_of_entry(e), m);
}
