/* SPDX-License-Identifier: BSD-3-Clause */
/* send_cancel.c - takes back a send that no receive has matched. */
#include "comm/send/send_cancel.h"

#include "comm/core.h"
#include "comm/match/withdraw.h"
#include "comm/recv/msg_pool.h"
#include "comm/request.h"
#include "comm/send/send_ref.h"

static void cancel_self(struct weft_req *r, struct weft_ctx *ctx, int tag)
{
	struct weft_msg *m = weft_comm_match_withdraw_msg(ctx, ctx->core->rank, tag, 0, r);

	if (!m)
		return;
	weft_comm_msg_free(m);
	r->status.err = WEFT_ERR_CANCELLED;
	r->status.cancelled = true;
	weft_comm_req_complete(r);
}

void weft_comm_send_cancel(struct weft_req *r, struct weft_ctx *ctx, int peer, int tag)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	unsigned turns = 0;

	if (peer == ctx->core->rank) {
		cancel_self(r, ctx, tag);
		return;
	}
	struct weft_gate *g = &ctx->core->gate[peer];
	/* Ends when the holder leaves and no thread takes the mask in that very moment. */
	while (!weft_comm_gate_try(g))
		weft_backoff(&turns);
	uint32_t id = s->id;
	/* Not posted: the thread that would post it sees this.  A send that is over does not care. */
	if (!id)
		s->cancel = true;
	weft_comm_gate_leave(g);
	if (id)
		weft_comm_gate_control(g, &(struct weft_wire){.kind = WEFT_WIRE_CANCEL,
							      .context = ctx->id,
							      .tag = tag,
							      .length = id});
	else
		weft_comm_gate_kick(g);
}

void weft_comm_cancel_asked(struct weft_gate *g, const struct weft_wire *h)
{
	struct weft_ctx *ctx = weft_comm_ctx_find(g->core, h->context);
	struct weft_msg *m = NULL;

	if (!h->length || h->length > UINT32_MAX) {
		weft_comm_gate_protocol_error(g, "a CANCEL of no message");
		return;
	}
	if (ctx)
		m = weft_comm_match_withdraw_msg(ctx, g->peer, h->tag, (uint32_t)h->length, NULL);
	if (!m)
		return;
	uint32_t id = m->id;
	m->id = 0; /* dropped without the answer that a receive would give */
	weft_comm_msg_drop(m);
	weft_comm_gate_control(g, &(struct weft_wire){.kind = WEFT_WIRE_FIN,
						      .flags = WEFT_WIRE_CANCELLED,
						      .context = id});
}
