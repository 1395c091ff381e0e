/* SPDX-License-Identifier: BSD-3-Clause */
/* packets.c - posts the packets of large messages: CTS and DATA; the caller holds the gate's mask. */
#include <stdlib.h>
#include "comm/core.h"
#include "comm/large/large_int.h"
#include "comm/large/packets.h"
#include "comm/large/pieces.h"
#include "comm/large/rdma_write.h"
#include "comm/recv/deliver.h"
#include "comm/send/credit.h"
#include "comm/send/send_ref.h"

/* A layout with pieces smaller than this on average goes through a packed buffer. */
#define SMALL_PIECE ((size_t)512)

/* ---- CTS ------------------------------------------------------------------------------------ */

static enum weft_post post_cts_locked(struct weft_gate *g, struct weft_req *r)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	weft_assert(v->state == WEFT_LARGE_ASKED);
	uint32_t id = weft_comm_ids_give(&g->core->ids, r, weft_comm_id_recv(g->peer));
	if (!id) {
		r->status.err = WEFT_ERR_NOMEM;
		return WEFT_POST_DOWN;
	}
	struct weft_wire head = v->out.head;
	head.sequence = id;
	/* From the post on, the data may come and the request be over: it is not touched. */
	struct weft_wire_place where = {.addr = (uint64_t)(uintptr_t)r->buf.base};
	if (v->route == WEFT_ROUTE_RDMA) {
		if (weft_comm_rdma_write_open(r, &where))
			head.flags = WEFT_WIRE_REGION;
		else
			weft_comm_large_recv_route(v, WEFT_ROUTE_PACKETS);
	}
	struct iovec iov = {&where, weft_comm_packets_cts_bytes(&head)};
	enum weft_post p =
		weft_comm_gate_post_locked(g, &head, &iov, iov.iov_len > 0, iov.iov_len, NULL);
	if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED)
		return p;
	(void)weft_comm_ids_take(&g->core->ids, id, weft_comm_id_recv(g->peer));
	weft_comm_rdma_write_close(r);
	return p;
}

/* ---- DATA ----------------------------------------------------------------------------------- */

/* A packed piece that the driver may keep for a while. */
struct packed {
	struct weft_req *req;
	alignas(16) char data[];
};

/* The sent() of a packed piece has this bit in its cookie. */
#define COOKIE_PACKED ((uintptr_t)1)

bool weft_comm_packets_cookie_is_data(void *cookie)
{
	if ((uintptr_t)cookie & COOKIE_PACKED)
		return true;
	return weft_comm_req_send((struct weft_req *)cookie)->out.type == WEFT_OUT_DATA;
}

void *weft_comm_packets_cookie_open(void *cookie)
{
	if (!((uintptr_t)cookie & COOKIE_PACKED))
		return cookie;
	struct packed *p = (struct packed *)((uintptr_t)cookie & ~COOKIE_PACKED);
	struct weft_req *r = p->req;
	free(p);
	return r;
}

/* The bytes of the next DATA packet, before its layout is looked at. */
static size_t next_length(const struct weft_gate *g, const struct weft_core_req_send *s)
{
	size_t len = s->want - s->off;
	if (len > g->max_payload)
		len = g->max_payload;
	if (s->to.most && len > s->to.most)
		len = s->to.most;
	if (g->strategy->apart && g->strategy->piece && len > g->strategy->piece)
		len = g->strategy->piece;
	return len;
}

/* The pieces of the next packet, of *len_p bytes at most; *packed_p: they are packed there. */
static unsigned next_pieces(struct weft_req *r, struct iovec *iov, size_t *len_p,
			    struct packed **packed_p)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct packed *packed = NULL;
	size_t len = *len_p;

	*packed_p = NULL;
	if (!r->buf.type) {
		iov[0] = (struct iovec){(char *)r->buf.base + s->off, len};
		return 1;
	}
	unsigned n = WEFT_IOV_MAX;
	size_t held = weft_data_iov(&r->buf, s->off, iov, &n);
	size_t chunk = len < WEFT_LARGE_CHUNK ? len : WEFT_LARGE_CHUNK;
	if (held < len && held < n * SMALL_PIECE)
		packed = malloc(sizeof *packed + chunk);
	if (!packed) /* large pieces, or no memory to gather small ones */
		return weft_comm_pieces_cut(iov, n, len, len_p);
	packed->req = r;
	weft_data_pack(&r->buf, s->off, packed->data, chunk);
	iov[0] = (struct iovec){packed->data, chunk};
	*len_p = chunk;
	*packed_p = packed;
	return 1;
}

/* Posts the next piece of the data; *len_p: its length. */
static enum weft_post post_data_piece_locked(struct weft_gate *g, struct weft_req *r, size_t *len_p)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct iovec iov[WEFT_IOV_MAX];
	struct packed *packed;

	*len_p = next_length(g, s);
	unsigned n = next_pieces(r, iov, len_p, &packed);
	struct weft_wire head = {.kind = WEFT_WIRE_DATA,
				 .flags = s->route == WEFT_ROUTE_REST ? WEFT_WIRE_REST : 0,
				 .context = s->to.id,
				 .sequence = (uint32_t)s->off,
				 .tag = (int32_t)(uint32_t)(s->off >> 32),
				 .length = *len_p};
	void *cookie = packed ? (void *)((uintptr_t)packed | COOKIE_PACKED) : r;
	enum weft_post p = weft_comm_gate_post_locked(g, &head, iov, n, *len_p, cookie);
	if (p != WEFT_POST_ACCEPTED)
		free(packed);
	return p;
}

static enum weft_post post_data_locked(struct weft_gate *g, struct weft_req *r)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_core_req_send *s = weft_comm_req_send(r);
	bool rdma = s->route == WEFT_ROUTE_RDMA;

	weft_assert(s->state == WEFT_LARGE_POSTING);
	/* Bound: each round posts a piece, or ends. */
	while (s->off < s->want) {
		size_t len = 0;
		/* Relaxed: our own reference keeps it above 1. */
		atomic_fetch_add_explicit(&s->x_refs, 1, memory_order_relaxed);
		enum weft_post p = rdma ? weft_comm_rdma_write_locked(g, r, &len)
					: post_data_piece_locked(g, r, &len);
		if (p != WEFT_POST_ACCEPTED)
			atomic_fetch_sub_explicit(&s->x_refs, 1, memory_order_relaxed);
		if (p == WEFT_POST_FULL || p == WEFT_POST_DOWN)
			return p;
		s->off += len;
		if (weft_likely(!g->strategy->apart))
			continue;
		if (p == WEFT_POST_ACCEPTED)
			/* Relaxed: a count; sent() may even lower it first. */
			atomic_fetch_add_explicit(&g->x_data_under, 1, memory_order_relaxed);
		if (s->off < s->want) {
			g->yielded = true;
			return WEFT_POST_FULL;
		}
	}
	return rdma ? weft_comm_rdma_write_placed_locked(g, r) : WEFT_POST_DONE;
}

static enum weft_post post_data_out_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	return post_data_locked(g, weft_comm_req_of_send_out(o));
}

static enum weft_post post_cts_out_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	return post_cts_locked(g, weft_comm_req_of_recv_out(o));
}

static void cts_failed(struct weft_gate *g, struct weft_out *o)
{
	(void)g;
	weft_comm_recv_finish(weft_comm_req_of_recv_out(o), WEFT_ERR_PEER);
}

const struct weft_out_ops weft_comm_packets_data_ops = {.post_locked = post_data_out_locked,
							.posted = weft_comm_send_out_posted,
							.failed = weft_comm_send_out_failed};
const struct weft_out_ops weft_comm_packets_cts_ops = {.post_locked = post_cts_out_locked,
						       .failed = cts_failed};
