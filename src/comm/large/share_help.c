/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share_help.c - the sender's side of share.c: while its application threads do nothing but wait, it
 * writes pieces from the back, or posts all that is left.
 */
#include <stdlib.h>
#include <string.h>
#include "comm/core.h"
#include "comm/large/large_int.h"
#include "comm/large/share.h"
#include "comm/large/share_copy.h"
#include "comm/send/send_ref.h"
#include "task/queue/weft_task.h"

struct help {
	struct weft_task task;
	struct weft_req *req;
	struct weft_gate *gate;
	_Atomic uint64_t *word;
	struct weft_share_offer offer;
	uint64_t length, at, to; /* of the message; of the piece: what is left */
	uint64_t placed;
	uint32_t id;
	bool claimed;
};

/* True: no more to be done. */
static bool write_piece(struct help *p)
{
	struct weft_gate *g = p->gate;
	if (p->at == p->to) {
		unsigned i;
		if (weft_comm_gate_down(g) || !weft_comm_share_back(p->word, p->offer.number, &i))
			return true;
		p->claimed = true;
		p->at = i * p->offer.piece;
		p->to = p->at + p->offer.piece < p->length ? p->at + p->offer.piece : p->length;
		if (p->at >= p->to) /* not what the receiver's word should say */
			return true;
	}
	size_t len = p->to - p->at < WEFT_LARGE_PIECE ? p->to - p->at : WEFT_LARGE_PIECE;
	struct iovec iov = {(char *)p->req->buf.base + p->at, len};
	if (weft_comm_gate_copy(g, true, p->offer.addr + p->at, &iov, 1, len))
		return true;
	p->at += len;
	p->placed += len;
	return false;
}

static void end_help(struct help *p)
{
	struct weft_gate *g = p->gate;
	if (p->claimed)
		weft_comm_gate_control(
			g, &(struct weft_wire){.kind = WEFT_WIRE_DATA,
					       .flags = WEFT_WIRE_PLACED | WEFT_WIRE_SHARE,
					       .context = p->id,
					       .length = p->placed});
	struct weft_core *core = g->core;
	weft_comm_send_drop(p->req, WEFT_OK);
	/* LAST -> SEE (weft_comm_core_idle).  Carries: the answers that its steps have posted. */
	atomic_fetch_sub_explicit(&core->x_owed, 1, memory_order_acq_rel);
}

static enum weft_task_verdict run_help(struct weft_task *t, void *arg)
{
	struct help *p = arg;
	(void)t;
	/* The application computes: leave the rest to the receiver. */
	bool stop = weft_task_engine_behind() && p->at == p->to;
	if (!stop && !write_piece(p))
		return WEFT_TASK_AGAIN;
	end_help(p);
	free(p);
	return WEFT_TASK_GONE;
}

/* All that is left goes as packets.  The message keeps its id until the receiver's FIN. */
static void post_rest(struct help *p)
{
	struct weft_core_req_send *s = weft_comm_req_send(p->req);
	unsigned first;

	if (!weft_comm_share_rest(p->word, p->offer.number, &first) ||
	    first * p->offer.piece >= p->length)
		return;
	/* Relaxed: as in weft_comm_share_help; the last packet gives it back. */
	atomic_fetch_add_explicit(&s->x_refs, 1, memory_order_relaxed);
	weft_comm_large_send_to(s, WEFT_LARGE_POSTING, WEFT_ROUTE_REST);
	s->want = p->length;
	s->off = first * p->offer.piece;
	/* A stream's layout is unpacked aside there: so the bound. */
	s->to = (struct weft_comm_large_to){.id = p->id, .most = WEFT_SHARE_REST_PIECE};
	s->out.type = WEFT_OUT_DATA;
	weft_comm_gate_submit(p->gate, &s->out);
}

void weft_comm_share_help(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			  size_t len)
{
	struct weft_req *r =
		weft_comm_ids_peek(&g->core->ids, h->context, weft_comm_id_send(g->peer));
	struct weft_core_req_send *s = r ? weft_comm_req_send(r) : NULL;
	struct weft_core *core = g->core;
	struct help here = {.req = r, .gate = g, .length = h->length, .id = h->sequence},
		    *p = &here;

	if (len == sizeof here.offer)
		memcpy(&here.offer, payload, len);
	if (!r || s->state != WEFT_LARGE_ASKED || h->length > r->buf.bytes || !here.offer.piece ||
	    !h->length || (h->length - 1) / here.offer.piece >= WEFT_SHARE_PIECES) {
		weft_comm_gate_protocol_error(g, "an offer to share that makes no sense");
		return;
	}
	bool rest = h->flags & WEFT_WIRE_REST;
	if ((r->buf.type && !rest) || s->explicit_only || weft_task_engine_behind() ||
	    !weft_comm_gate_can_put(g) || !g->driver->word)
		return;
	/* Nothing is claimed in a call that may end before it is copied. */
	bool now = !core->background || (!rest && h->length <= WEFT_LARGE_ON_SPOT);
	if (!now && !weft_task_engine_stays(&r->done))
		return;
	here.word = g->driver->word(g->net, g->peer, (unsigned)h->tag);
	if (!here.word)
		return;
	if (rest) {
		post_rest(&here);
		return;
	}
	/* Relaxed: the receiver's answer, which comes after this packet, holds another. */
	atomic_fetch_add_explicit(&s->x_refs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&core->x_owed, 1, memory_order_acq_rel);
	if (!now && (p = malloc(sizeof *p))) {
		*p = here;
		weft_task_init(&p->task, "share", run_help, p, 0);
		(void)weft_task_submit(&p->task);
		return;
	}
	while (!write_piece(&here)) /* bound: the message's pieces */
		;
	end_help(&here);
}
