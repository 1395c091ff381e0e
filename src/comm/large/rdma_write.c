/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_write.c - buffers that the network writes into by itself: the receiver opens its buffer, its
 * CTS brings the ticket; the sender's network writes, and the sender says so behind it.
 */
#include "base/counters.h"
#include "comm/large/large_int.h"
#include "comm/large/rdma_write.h"
#include "comm/send/credit.h"

/* ---- receiving ------------------------------------------------------------------------------ */

bool weft_comm_rdma_write_open(struct weft_req *r, struct weft_net_ticket *where_p)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	weft_assert(v->route == WEFT_ROUTE_RDMA && !v->window);
	if (g->driver->expose(g->net, g->peer, r->buf.base, v->want, where_p, &v->window))
		v->window = NULL;
	return v->window != NULL;
}

void weft_comm_rdma_write_close(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	if (v->route != WEFT_ROUTE_RDMA || !v->window)
		return;
	v->gate->driver->conceal(v->gate->net, v->window);
	v->window = NULL;
}

/* ---- sending -------------------------------------------------------------------------------- */

enum weft_post weft_comm_rdma_write_locked(struct weft_gate *g, struct weft_req *r, size_t *len_p)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct weft_net_ticket where = {s->to.addr, s->to.key};
	size_t len = s->want - s->off;

	weft_assert(s->route == WEFT_ROUTE_RDMA && s->state == WEFT_LARGE_POSTING);
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
				 .context = s->to.id,
				 .length = s->want};
	enum weft_post p = weft_comm_gate_post_locked(g, &head, NULL, 0, 0, NULL);
	if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED)
		weft_count(WEFT_CNT_RNDV_PUSHED, 1);
	return p;
}
