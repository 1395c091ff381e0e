/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_write.c - buffers that the network writes into by itself: the receiver opens its buffer, its
 * CTS brings the ticket; the sender's network writes, and the sender says so behind it.
 */
#include <stdlib.h>
#include "base/counters.h"
#include "comm/large/large_int.h"
#include "comm/large/rdma_write.h"
#include "comm/send/credit.h"

/* ---- receiving ------------------------------------------------------------------------------ */

bool weft_comm_rdma_write_open(struct weft_req *r, struct weft_wire_place *where_p)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	weft_assert(v->route == WEFT_ROUTE_RDMA && !v->region);
	struct weft_net_region *region = malloc(sizeof *region);
	if (!region ||
	    g->driver->region_open(g->net, g->peer, r->buf.base, v->want, WEFT_NET_WRITE, region)) {
		free(region);
		return false;
	}
	v->region = region;
	*where_p = (struct weft_wire_place){region->ticket.addr, region->ticket.key};
	return true;
}

void weft_comm_rdma_write_close(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	if (v->route != WEFT_ROUTE_RDMA || !v->region)
		return;
	v->gate->driver->region_close(v->gate->net, v->region);
	free(v->region);
	v->region = NULL;
}

/* ---- sending -------------------------------------------------------------------------------- */

enum weft_post weft_comm_rdma_write_locked(struct weft_gate *g, struct weft_req *r, size_t *len_p)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_core_req_send *s = weft_comm_req_send(r);
	const struct weft_net_ticket where = {s->to.addr, s->want, s->to.key};
	size_t len = s->want - s->off;

	weft_assert(s->route == WEFT_ROUTE_RDMA && s->state == WEFT_LARGE_POSTING);
	if (len > g->max_payload)
		len = g->max_payload;
	if (g->strategy->apart && g->strategy->piece && len > g->strategy->piece)
		len = g->strategy->piece;
	*len_p = len;
	const struct weft_net_span span = {s->off, len};
	const struct iovec piece = {(char *)r->buf.base + s->off, len};
	const struct weft_net_transfer t = {.write = true,
					    .there = &where,
					    .span = &span,
					    .n_spans = 1,
					    .piece = &piece,
					    .n_pieces = 1,
					    .cookie = r};
	enum weft_post p = g->driver->transfer(g->net, g->peer, &t);
	return p == WEFT_POST_REFUSED ? WEFT_POST_DOWN : p; /* not what its CTS had said */
}

enum weft_post weft_comm_rdma_write_placed_locked(struct weft_gate *g, struct weft_req *r)
{
	weft_assert_held(weft_comm_gate, g);
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
