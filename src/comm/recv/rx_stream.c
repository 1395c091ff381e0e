/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx_stream.c - payloads that come as a stream: the driver asks where to write them before it has them.
 *
 * Runs in the poll of one rail, one thread at a time per connection.  Nothing here trusts what the
 * peer wrote.
 */
#include <stdlib.h>
#include <string.h>
#include "base/trace.h"
#include "comm/large/large.h"
#include "comm/match/match.h"
#include "comm/msg_trace.h"
#include "comm/recv/arrival.h"
#include "comm/recv/deliver.h"
#include "comm/recv/inbound.h"
#include "comm/recv/msg_pool.h"
#include "comm/recv/rx_stream.h"
#include "comm/send/pack.h"
#include "comm/sign.h"

/* Lets the driver write bytes [off, off+len) of buf; a layout of many pieces goes aside first. */
static void sink_buffer(struct weft_rx *rx, const struct weft_buf *buf, uint64_t off, size_t len,
			struct weft_net_sink *sink)
{
	unsigned n = 1;

	rx->bounce = NULL;
	rx->off = off;
	rx->room = len;
	sink->iov = rx->iov;
	sink->room = len;
	if (!len) {
		n = 0;
	} else if (!buf->type) {
		rx->iov[0] = (struct iovec){(char *)buf->base + off, len};
	} else {
		n = WEFT_IOV_MAX;
		size_t held = weft_data_iov(buf, off, rx->iov, &n);
		/* Cut what reaches beyond. */
		while (n && held > len) {
			struct iovec *last = &rx->iov[n - 1];
			size_t cut = held - len < last->iov_len ? held - len : last->iov_len;
			last->iov_len -= cut;
			held -= cut;
			if (!last->iov_len)
				n--;
		}
		if (held < len) {
			rx->bounce = malloc(len);
			rx->iov[0] = (struct iovec){rx->bounce, len};
			n = rx->bounce ? 1 : 0;
			sink->room = rx->bounce ? len : 0;
		}
	}
	sink->n = n;
}

static void place_eager(struct weft_gate *g, const struct weft_wire *h, size_t len,
			struct weft_net_sink *sink)
{
	struct weft_rx *rx = g->rx;
	uint32_t sync_id;

	if (weft_comm_wire_eager_length(h, &sync_id) != len) {
		weft_comm_gate_protocol_error(g, "a length that does not fit its payload");
		return;
	}
	if (weft_trace_on())
		weft_comm_trace_arrived(g, h, false);
	struct weft_ctx *ctx = weft_comm_inbound_eager_open(g, h, len);
	if (!ctx)
		return;
	struct weft_entry *e = weft_comm_match_arrive(ctx, g->peer, h->tag);
	if (!e) {
		struct weft_msg *m =
			weft_comm_inbound_msg_make(g, WEFT_MSG_EAGER, h->tag, len, len);
		if (!m)
			return;
		m->id = sync_id;
		m->sign = weft_comm_wire_eager_sign(h);
		/* Relaxed: published by the table's lock. */
		atomic_store_explicit(&m->x_state, WEFT_MSG_ARRIVING, memory_order_relaxed);
		rx->what = WEFT_RX_MSG;
		rx->msg = m;
		rx->iov[0] = (struct iovec){m->data, len};
		*sink = (struct weft_net_sink){.iov = rx->iov, .n = 1, .room = len};
		weft_comm_inbound_unexpected(ctx, m);
		if (weft_trace_on())
			weft_comm_trace_judged(g, h, false);
		return;
	}
	if (weft_trace_on())
		weft_comm_trace_judged(g, h, false);
	if (sync_id)
		weft_comm_gate_fin(g, sync_id);
	weft_comm_credit_used(g, len);
	struct weft_req *r = weft_comm_req_of_entry(e);
	weft_comm_sign_check(r, g->peer, h->tag, len, weft_comm_wire_eager_sign(h));
	size_t room = len < r->buf.bytes ? len : r->buf.bytes;
	r->status = (struct weft_status){.peer = g->peer,
					 .tag = h->tag,
					 .bytes = room,
					 .err = room < len ? WEFT_ERR_TRUNC : WEFT_OK};
	rx->what = WEFT_RX_RECV;
	rx->req = r;
	sink_buffer(rx, &r->buf, 0, room, sink);
}

static void place_data(struct weft_gate *g, const struct weft_wire *h, size_t len,
		       struct weft_net_sink *sink)
{
	struct weft_rx *rx = g->rx;
	struct weft_req *r = weft_comm_large_data_expected(g, h, len);

	if (!r) {
		weft_comm_gate_protocol_error(g, "DATA that was not asked for");
		return;
	}
	rx->what = WEFT_RX_DATA;
	rx->req = r;
	rx->head = *h;
	sink_buffer(rx, &r->buf, h->sequence | (uint64_t)(uint32_t)h->tag << 32, len, sink);
}

/* Control packets whose payload comes as a stream: small, collected aside. */
static void place_control(struct weft_gate *g, const struct weft_wire *h, size_t len,
			  struct weft_net_sink *sink)
{
	struct weft_rx *rx = g->rx;

	bool pack = h->kind == WEFT_WIRE_PACK && len <= WEFT_PACK_MAX;
	if (len > sizeof rx->control && !pack) {
		weft_comm_gate_protocol_error(g, "a payload where none belongs");
		return;
	}
	if (pack && !rx->pack && !(rx->pack = malloc(WEFT_PACK_MAX))) {
		weft_comm_gate_protocol_error(g, "no memory to receive");
		return;
	}
	rx->what = WEFT_RX_CONTROL;
	rx->head = *h;
	rx->len = len;
	rx->iov[0] = (struct iovec){pack ? rx->pack : rx->control, len};
	*sink = (struct weft_net_sink){.iov = rx->iov, .n = 1, .room = len};
}

void weft_comm_inbound_place(void *arg, int peer, const void *head, size_t len,
			     struct weft_net_sink *sink)
{
	struct weft_gate *g = weft_comm_inbound_gate(arg, peer);
	struct weft_wire h;

	*sink = (struct weft_net_sink){0};
	if (!g)
		return;
	if (!g->rx && !(g->rx = calloc(1, sizeof *g->rx))) {
		weft_comm_gate_protocol_error(g, "no memory to receive");
		return;
	}
	g->rx->what = WEFT_RX_NONE;
	memcpy(&h, head, sizeof h);
	/* A control packet's credit counts when it is complete. */
	if ((h.kind == WEFT_WIRE_EAGER || h.kind == WEFT_WIRE_DATA) &&
	    !weft_comm_inbound_credit_got(g, &h))
		return;
	if (h.kind == WEFT_WIRE_EAGER)
		place_eager(g, &h, len, sink);
	else if (h.kind == WEFT_WIRE_DATA)
		place_data(g, &h, len, sink);
	else
		place_control(g, &h, len, sink);
}

/* The payload of an unexpected message is complete (READY) or will not come (FAILED). */
static void msg_complete(struct weft_msg *m, uintptr_t state)
{
	/* READY -> SEE (take_eager).  Carries: the payload.
	 * LAST <- CLAIM (take_eager).  Carries: the receive that waits for it. */
	uintptr_t old = atomic_exchange_explicit(&m->x_state, state, memory_order_acq_rel);
	if (old == WEFT_MSG_ARRIVING)
		return;
	if (old != WEFT_MSG_DROPPED) {
		struct weft_req *r = (struct weft_req *)old;
		if (state == WEFT_MSG_READY && weft_trace_on())
			weft_comm_trace_received(m->node.peer, m->node.tag, m->length);
		if (state == WEFT_MSG_READY)
			weft_comm_recv_deliver(r, m->node.peer, m->node.tag, m->data, m->length);
		else
			weft_comm_recv_finish(r, WEFT_ERR_PEER);
	}
	weft_comm_msg_free(m);
}

static weft_err unpack_bounce(struct weft_rx *rx)
{
	if (!rx->bounce)
		return rx->room && rx->req->buf.type && !rx->iov[0].iov_base ? WEFT_ERR_NOMEM
									     : WEFT_OK;
	weft_data_unpack(&rx->req->buf, rx->off, rx->bounce, rx->room);
	return WEFT_OK;
}

static void payload_end(struct weft_gate *g, weft_err err)
{
	struct weft_rx *rx = g->rx;
	int what = rx->what;
	struct weft_req *r = rx->req;

	rx->what = WEFT_RX_NONE;
	if (what == WEFT_RX_RECV || what == WEFT_RX_DATA) {
		if (!err)
			err = unpack_bounce(rx);
		free(rx->bounce);
		rx->bounce = NULL;
	}
	switch (what) {
	case WEFT_RX_RECV:
		weft_comm_recv_finish_eager(r, err);
		break;
	case WEFT_RX_DATA:
		/* On failure the request still has its id; peer_down ends it. */
		if (!err)
			weft_comm_large_data(g, &rx->head, NULL, rx->head.length);
		else if (err == WEFT_ERR_NOMEM)
			weft_comm_gate_protocol_error(g, "no memory to unpack a message");
		break;
	case WEFT_RX_MSG:
		msg_complete(rx->msg, err ? WEFT_MSG_FAILED : WEFT_MSG_READY);
		break;
	default:
		break;
	}
}

void weft_comm_inbound_placed(void *arg, int peer, void *cookie, weft_err err)
{
	struct weft_rail *rail = arg;
	struct weft_gate *g = weft_comm_inbound_gate(arg, peer);

	if (!g || !g->rx) /* peer_down has abandoned it */
		return;
	if (g->rx->what == WEFT_RX_CONTROL && !err) {
		g->rx->what = WEFT_RX_NONE;
		bool pack = g->rx->head.kind == WEFT_WIRE_PACK;
		weft_comm_inbound_packet(rail, peer, &g->rx->head,
					 pack ? g->rx->pack : g->rx->control, g->rx->len);
	} else {
		payload_end(g, err ? WEFT_ERR_PEER : WEFT_OK);
	}
	if (weft_unlikely(g->rx->last))
		weft_comm_inbound_give_up(g);
}

void weft_comm_rx_abandon(struct weft_gate *g)
{
	if (g->rx)
		payload_end(g, WEFT_ERR_PEER);
}

void weft_comm_rx_free(struct weft_gate *g)
{
	if (g->rx)
		free(g->rx->pack);
	free(g->rx);
}
