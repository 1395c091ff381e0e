/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inbound_int.h - what inbound.c (packets) and rx_stream.c (payloads of streams) share.
 *
 * Callers   the poller of the connection.
 */
#ifndef WEFT_INBOUND_INT_H
#define WEFT_INBOUND_INT_H

#include "comm/comm_int.h"
#include "comm/send/credit.h"

/* The gate for an upcall; NULL: not that peer's rail, or the peer is gone. */
static inline struct weft_gate *weft_comm_inbound_gate(struct weft_rail *rail, int peer)
{
	struct weft_core *core = rail->core;
	if (weft_unlikely(peer < 0 || peer >= core->size))
		return NULL;
	struct weft_gate *g = &core->gate[peer];
	if (weft_unlikely(g->net != rail->net || weft_comm_gate_down(g)))
		return NULL;
	return g;
}

/* Data bytes of an eager message, and the id that wants an answer. */
static inline size_t weft_comm_inbound_eager_length(const struct weft_wire *h, uint32_t *sync_id)
{
	*sync_id = 0;
	if (weft_likely(!(h->flags & WEFT_WIRE_SYNC)))
		return h->length;
	*sync_id = (uint32_t)(h->length >> 32);
	return h->length & 0xffffffffu;
}

/* Checks an eager message's credit and envelope, and finds its context; NULL: the peer was closed.
 */
struct weft_ctx *weft_comm_inbound_eager_open(struct weft_gate *g, const struct weft_wire *h,
					      size_t len);

/* Memory for what nobody waits for, with `payload` bytes of room; NULL: none, the peer was closed.
 */
struct weft_msg *weft_comm_inbound_msg_make(struct weft_gate *g, enum weft_msg_kind kind, int tag,
					    uint64_t length, size_t payload);
void weft_comm_inbound_unexpected(struct weft_ctx *ctx, struct weft_msg *m);

/* The head gives credit back; false: too much, the peer was closed. */
static inline bool weft_comm_inbound_credit_got(struct weft_gate *g, const struct weft_wire *h)
{
	bool good = weft_comm_credit_got(g, h);
	if (weft_unlikely(!good))
		weft_comm_gate_protocol_error(g, "more credit back than was spent");
	return good;
}

/* The driver's events. */
void weft_comm_inbound_packet(void *arg, int peer, const void *head, const void *payload,
			      size_t len);
void weft_comm_inbound_run(void *arg, int peer, const void *head, const void *payload, size_t len,
			   unsigned n);
void weft_comm_inbound_place(void *arg, int peer, const void *head, size_t len,
			     struct weft_net_sink *sink);
void weft_comm_inbound_placed(void *arg, int peer, void *cookie, weft_err err);

/* An answer is lost. */
static inline void weft_comm_inbound_give_up(struct weft_gate *g)
{
	weft_comm_core_peer_down(g->core, g->peer, WEFT_ERR_NOMEM, "no memory for an answer");
}

#endif
