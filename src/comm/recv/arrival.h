/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arrival.h - an envelope has come: is it in its turn and within its credit, where does it belong?
 *
 * Callers   the poller of the connection.
 */
#ifndef WEFT_COMM_ARRIVAL_H
#define WEFT_COMM_ARRIVAL_H

#include "comm/core.h"
#include "comm/recv/msg.h"
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

/* The context of that id; NULL: no memory. */
extern const char weft_comm_inbound_too_much[]; /* what is said of credit that was not there */

struct weft_ctx *weft_comm_inbound_context(struct weft_gate *g, uint32_t id);
/* Checks an envelope and finds its context; NULL: the peer was closed. */
struct weft_ctx *weft_comm_inbound_envelope_open(struct weft_gate *g, const struct weft_wire *h);
/* Checks an eager message's credit and envelope, and finds its context; NULL: the peer was closed.
 */
struct weft_ctx *weft_comm_inbound_eager_open(struct weft_gate *g, const struct weft_wire *h,
					      size_t len);

/* An unexpected message with `payload` bytes of room; NULL: no memory, the peer was closed. */
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

/* An answer is lost: the peer would wait for it for ever. */
static inline void weft_comm_inbound_give_up(struct weft_gate *g)
{
	g->core->peer_down(g->core, g->peer, WEFT_ERR_NOMEM, "no memory for an answer");
}

#endif
