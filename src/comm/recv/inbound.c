/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inbound.c - packets that drivers report, one by one or in runs.
 *
 * Runs in the poll of one rail, one thread at a time per connection, until the message is matched:
 * this keeps envelopes in order.  Nothing here trusts what the peer wrote.
 */
#include <stdlib.h>
#include <string.h>
#include "base/trace.h"
#include "comm/large/large.h"
#include "comm/large/rtr.h"
#include "comm/match/match_fast.h"
#include "comm/msg_trace.h"
#include "comm/recv/arrival.h"
#include "comm/recv/deliver.h"
#include "comm/recv/inbound.h"
#include "comm/send/pack.h"
#include "comm/sign.h"
#include "comm/send/send_cancel.h"

/* Longest message that makes sense: sums of lengths and offsets cannot overflow. */
#define LENGTH_MAX ((uint64_t)1 << 62)

/* ---- whole packets ------------------------------------------------------------------------ */

/* No receive is posted for it yet. */
static __attribute__((noinline)) void keep_eager(struct weft_gate *g, struct weft_ctx *ctx, int tag,
						 uint32_t sync_id, uint32_t sign, const void *data,
						 size_t len)
{
	struct weft_comm_ear *ear = weft_comm_ctx_ear(ctx);
	if (weft_unlikely(ear && ear->tag == tag) && !sync_id) {
		ear->hear(ear, ctx, g->peer, data, len);
		weft_comm_credit_used(g, len);
		return;
	}
	struct weft_msg *m = weft_comm_inbound_msg_make(g, WEFT_MSG_EAGER, tag, len, len);
	if (!m)
		return;
	m->id = sync_id;
	m->sign = sign;
	if (len)
		memcpy(m->data, data, len);
	weft_comm_inbound_unexpected(ctx, m);
}

static void on_eager(struct weft_gate *g, const struct weft_wire *h, const void *data, size_t len)
{
	uint32_t sync_id;
	if (weft_unlikely(weft_comm_wire_eager_length(h, &sync_id) != len)) {
		weft_comm_gate_protocol_error(g, "a length that does not fit its payload");
		return;
	}
	struct weft_ctx *ctx = weft_comm_inbound_eager_open(g, h, len);
	if (weft_unlikely(!ctx))
		return;
	struct weft_entry *e = weft_comm_match_arrive(ctx, g->peer, h->tag);
	if (weft_likely(e)) {
		if (weft_unlikely(sync_id))
			weft_comm_gate_fin(g, sync_id);
		weft_comm_sign_check(weft_comm_req_of_entry(e), g->peer, h->tag, len,
				     weft_comm_wire_eager_sign(h));
		weft_comm_recv_deliver(weft_comm_req_of_entry(e), g->peer, h->tag, data, len);
		weft_comm_credit_used(g, len);
		return;
	}
	keep_eager(g, ctx, h->tag, sync_id, weft_comm_wire_eager_sign(h), data, len);
}

static void on_rts(struct weft_gate *g, const struct weft_wire *h, const void *data, size_t len)
{
	struct weft_wire_rts rts;
	if (len != sizeof rts || h->length > LENGTH_MAX) {
		weft_comm_gate_protocol_error(g, "an RTS of the wrong shape");
		return;
	}
	memcpy(&rts, data, sizeof rts);
	struct weft_ctx *ctx = weft_comm_inbound_envelope_open(g, h);
	if (!ctx)
		return;
	struct weft_entry *e = weft_comm_match_arrive(ctx, g->peer, h->tag);
	if (e) {
		if (weft_comm_req_recv(weft_comm_req_of_entry(e))->rtr_sent)
			weft_comm_rtr_outcome(g, true);
		weft_comm_sign_check(weft_comm_req_of_entry(e), g->peer, h->tag, h->length,
				     rts.sign);
		weft_comm_large_start(
			weft_comm_req_of_entry(e), g, h->tag, h->length,
			&(struct weft_comm_large_from){.addr = rts.addr,
						       .id = rts.id,
						       .quiet = h->flags & WEFT_WIRE_QUIET});
		return;
	}
	struct weft_msg *m = weft_comm_inbound_msg_make(g, WEFT_MSG_RTS, h->tag, h->length, 0);
	if (!m)
		return;
	m->id = rts.id;
	m->sign = rts.sign;
	m->addr = rts.addr;
	m->quiet = h->flags & WEFT_WIRE_QUIET;
	weft_comm_inbound_unexpected(ctx, m);
}

/* Several messages.  Only the poller ends a gate, so its state is checked between them. */
static void on_pack(struct weft_gate *g, const char *at, size_t len)
{
	struct weft_wire h;
	/* Bound: each round takes a head at least. */
	for (size_t used; len; at += used, len -= used) {
		if (len < sizeof h)
			break;
		memcpy(&h, at, sizeof h);
		bool eager = h.kind == WEFT_WIRE_EAGER && !(h.flags & WEFT_WIRE_SYNC);
		uint32_t none;
		size_t data = eager ? weft_comm_wire_eager_length(&h, &none) : 0;
		bool placed = h.kind == WEFT_WIRE_DATA && h.flags & WEFT_WIRE_PLACED;
		if (data > WEFT_PACK_EACH || h.credit ||
		    (!eager && !placed && h.kind != WEFT_WIRE_FIN && h.kind != WEFT_WIRE_CREDIT &&
		     h.kind != WEFT_WIRE_RTR))
			break;
		used = weft_align_up(sizeof h + data, 8);
		if (used > len)
			break;
		bool traced = eager && weft_trace_on();
		if (traced)
			weft_comm_trace_arrived(g, &h, true);
		if (eager)
			on_eager(g, &h, at + sizeof h, data);
		if (traced)
			weft_comm_trace_judged_whole(g, &h, true);
		else if (h.kind == WEFT_WIRE_FIN)
			weft_comm_large_fin(g, &h);
		else if (placed)
			weft_comm_large_data(g, &h, NULL, 0);
		else if (h.kind == WEFT_WIRE_RTR)
			weft_comm_rtr_heard(g, &h);
		if (weft_comm_gate_down(g))
			return;
	}
	if (len)
		weft_comm_gate_protocol_error(g, "a packet of several messages that is none");
}

static __attribute__((noinline)) void on_packet_rare(void *arg, int peer, const void *head,
						     const void *payload, size_t len)
{
	struct weft_gate *g = weft_comm_inbound_gate(arg, peer);
	struct weft_wire h;

	if (weft_unlikely(!g))
		return;
	memcpy(&h, head, sizeof h);
	if (!weft_comm_inbound_credit_got(g, &h))
		return;
	if (weft_likely(h.kind == WEFT_WIRE_EAGER)) {
		on_eager(g, &h, payload, len);
		return;
	}
	switch (h.kind) {
	case WEFT_WIRE_RTS:
		on_rts(g, &h, payload, len);
		break;
	case WEFT_WIRE_CTS:
		weft_comm_large_cts(g, &h, payload, len);
		break;
	case WEFT_WIRE_DATA:
		weft_comm_large_data(g, &h, payload, len);
		break;
	case WEFT_WIRE_FIN:
		weft_comm_large_fin(g, &h);
		break;
	case WEFT_WIRE_CREDIT:
		break;
	case WEFT_WIRE_CANCEL:
		weft_comm_cancel_asked(g, &h);
		break;
	case WEFT_WIRE_RTR:
		weft_comm_rtr_heard(g, &h);
		break;
	case WEFT_WIRE_PACK:
		on_pack(g, payload, len);
		break;
	default:
		weft_comm_gate_protocol_error(g, "a packet of unknown kind");
	}
}

/* A head as three numbers: kind, flags, credit, sequence; context, tag; length. */
static inline uint64_t head_word(const void *head, unsigned i)
{
	uint64_t w;
	memcpy(&w, (const char *)head + i * sizeof w, sizeof w);
	return w;
}

/* Remembers where messages of that context and tag are matched; false: no memory. */
static __attribute__((noinline)) bool cache_bucket(struct weft_gate *g, uint64_t where)
{
	int tag = (int32_t)(where >> 32);
	struct weft_ctx *ctx = weft_comm_inbound_context(g, (uint32_t)where);
	if (!ctx)
		return false;
	g->rx_bucket = weft_comm_bucket_of(ctx, g->peer, tag);
	g->rx_key = weft_comm_bucket_key(ctx, g->peer, tag);
	g->rx_where = where;
	return true;
}

/*
 * The most frequent case first: an eager message in its turn that returns no credit and wants no
 * answer.
 */
void weft_comm_inbound_packet(void *arg, int peer, const void *head, const void *payload,
			      size_t len)
{
	struct weft_rail *rail = arg;
	if (weft_unlikely((unsigned)peer >= (unsigned)rail->core->size))
		return;
	struct weft_gate *g = &rail->core->gate[peer];
	uint64_t where = head_word(head, 1);
	/* Relaxed: as in envelope_open. */
	uint32_t seq = atomic_load_explicit(&g->x_recv_seq, memory_order_relaxed);
	if (weft_unlikely(head_word(head, 0) != ((uint64_t)seq << 32 | WEFT_WIRE_EAGER) ||
			  head_word(head, 2) != len || len > g->eager_max || g->net != rail->net ||
			  weft_comm_gate_down(g) ||
			  ((where != g->rx_where || !g->rx_bucket) && !cache_bucket(g, where)))) {
		on_packet_rare(arg, peer, head, payload, len);
		return;
	}
	if (weft_unlikely(!weft_comm_credit_take(g, len))) {
		weft_comm_gate_protocol_error(g, weft_comm_inbound_too_much);
		return;
	}
	int tag = (int32_t)(where >> 32);
	atomic_store_explicit(&g->x_recv_seq, seq + 1, memory_order_relaxed);
	struct weft_ctx *ctx = g->rx_ctx;
	struct weft_entry *e = weft_comm_match_arrive_at(g->rx_bucket, g->rx_key, ctx, peer, tag);
	if (weft_unlikely(!e)) {
		keep_eager(g, ctx, tag, 0, 0, payload, len);
		return;
	}
	weft_comm_recv_deliver(weft_comm_req_of_entry(e), peer, tag, payload, len);
	weft_comm_credit_used(g, len);
}

/* The packets of a run from the i-th on, one by one. */
static __attribute__((noinline)) void packets_of_run(void *arg, int peer, const void *head,
						     const void *payload, size_t len, unsigned i,
						     unsigned n)
{
	for (; i < n; i++) {
		uint64_t h[WEFT_NET_HEAD / sizeof(uint64_t)];
		memcpy(h, head, sizeof h);
		h[0] += i * WEFT_NET_RUN_STEP;
		weft_comm_inbound_packet(arg, peer, h,
					 (const char *)payload + i * weft_net_run_apart(len), len);
	}
}

/* As weft_comm_inbound_packet: n messages that differ in nothing but their sequence number. */
void weft_comm_inbound_run(void *arg, int peer, const void *head, const void *payload, size_t len,
			   unsigned n)
{
	struct weft_rail *rail = arg;
	_Static_assert(WEFT_NET_RUN_STEP == (uint64_t)1 << 32, "a step is one in the sequence");
	if (weft_unlikely((unsigned)peer >= (unsigned)rail->core->size))
		return;
	struct weft_gate *g = &rail->core->gate[peer];
	uint64_t where = head_word(head, 1);
	int tag = (int32_t)(where >> 32);
	/* Relaxed: as in envelope_open. */
	uint32_t seq = atomic_load_explicit(&g->x_recv_seq, memory_order_relaxed);
	struct weft_keyed *found = NULL;
	unsigned m = 0;
	if (weft_likely(head_word(head, 0) == ((uint64_t)seq << 32 | WEFT_WIRE_EAGER) &&
			head_word(head, 2) == len && len <= g->eager_max && g->net == rail->net &&
			!weft_comm_gate_down(g) && where == g->rx_where && g->rx_bucket &&
			weft_comm_credit_room(g, n * len)))
		m = weft_comm_match_arrive_run(g->rx_bucket, g->rx_key, g->rx_ctx, peer, tag, n,
					       &found);
	if (weft_likely(m)) {
		(void)weft_comm_credit_take(g, m * len);
		atomic_store_explicit(&g->x_recv_seq, seq + m, memory_order_relaxed);
		const char *at = payload;
		size_t apart = weft_net_run_apart(len);
		for (unsigned i = 0; i < m; i++, at += apart) {
			struct weft_keyed *here = found;
			found = here->next; /* the request is its owner's again with the delivery */
			weft_comm_recv_deliver(weft_comm_req_of_entry(weft_comm_entry_of(here)),
					       peer, tag, at, len);
		}
		weft_comm_credit_used(g, m * len);
	}
	if (weft_unlikely(m < n))
		packets_of_run(arg, peer, head, payload, len, m, n);
}
