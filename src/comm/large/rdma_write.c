/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_write.c - large messages that the network writes by itself: the receiver opens its buffer to the
 * sender, whose CTS brings the ticket; the sender writes, and says so behind it.
 */
#include "base/counters.h"
#include "comm/large/rdma_write.h"
#include "comm/recv/deliver.h"
#include "comm/send/credit.h"

/* ---- receiving ------------------------------------------------------------------------------ */

bool weft_comm_rdma_write_wanted(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	/* What fits into one packet goes as one. */
	return !r->buf.type && v->want > v->gate->inline_max && weft_comm_gate_has_windows(v->gate);
}

void weft_comm_rdma_write_open(struct weft_req *r, struct weft_wire *cts,
			       struct weft_net_ticket *where_p)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	if (!(cts->flags & WEFT_WIRE_WINDOW))
		return;
	v->open = !g->driver->expose(g->net, g->peer, r->buf.base, v->want, where_p, &v->window);
	cts->flags = v->open ? WEFT_WIRE_WINDOW : 0;
}

void weft_comm_rdma_write_close(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	if (v->open)
		v->gate->driver->conceal(v->gate->net, v->window);
	v->open = false;
}

void weft_comm_rndv_recv_over(struct weft_req *r, weft_err err)
{
	weft_comm_rdma_write_close(r);
	weft_comm_recv_finish(r, err);
}

size_t weft_comm_rdma_write_bytes(const struct weft_wire *cts)
{
	if (cts->flags & WEFT_WIRE_WINDOW)
		return sizeof(struct weft_net_ticket);
	return cts->flags & WEFT_WIRE_OFFER ? sizeof(uint64_t) : 0;
}

/* ---- sending -------------------------------------------------------------------------------- */

enum weft_post weft_comm_rdma_write_write_locked(struct weft_gate *g, struct weft_req *r,
						 size_t *len_p)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct weft_net_ticket where = {s->out.rts.addr, s->out.head.length};
	size_t len = s->want - s->off;

	if (len > g->max_payload)
		len = g->max_payload;
	if (g->strategy->apart && g->strategy->piece && len > g->strategy->piece)
		len = g->strategy->piece;
	*len_p = len;
	return g->driver->write(g->net, g->peer, &where, s->off, (char *)r->buf.base + s->off, len,
				r);
}

enum weft_post weft_comm_rdma_write_placed_locked(struct weft_gate *g, struct weft_req *r)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct weft_wire head = {.kind = WEFT_WIRE_DATA,
				 .flags = WEFT_WIRE_PLACED,
				 .context = s->out.rts.id,
				 .length = s->want};
	enum weft_post p = weft_comm_gate_post_locked(g, &head, NULL, 0, 0, NULL);
	if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED)
		weft_count(WEFT_CNT_RNDV_PUSHED, 1);
	return p;
}
