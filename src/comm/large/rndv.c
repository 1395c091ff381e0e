/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rndv.c - large messages: the receiver fetches the data itself (get), or asks the sender for it
 * (CTS) and gets it as DATA packets straight into the user's buffer, or offers its buffer with the
 * CTS and the sender writes into it (put; or, where the network itself does that, into a window).
 *
 * A fetch runs in pieces, outside the masks of the connections (copy.c); if the driver
 * turns out not to be able to fetch from this peer, the message is asked for instead.
 */
#include <stdlib.h>
#include <string.h>
#include "base/counters.h"
#include "base/log.h"
#include "comm/core.h"
#include "comm/large/copy.h"
#include "comm/large/rdma_write.h"
#include "comm/large/rndv.h"
#include "comm/recv/deliver.h"
#include "comm/send/credit.h"
#include "comm/send/send_ref.h"

/* Bytes per get() or put(): 25 us at hot-copy speed; fewer calls cost less, larger pieces leave
 * caches. */
#define COPY_PIECE ((size_t)256 * 1024)

/* Fetched on the spot, by whoever matched it: at most 15 us, less than handing it over costs when
 * another thread must wake for it. */
#define COPY_INLINE ((size_t)128 * 1024)

/* A layout with pieces smaller than this on average goes through a packed buffer. */
#define SMALL_PIECE ((size_t)512)

/* The same where the kernel copies, to whom each piece costs as much as some KiB. */
#define SMALL_COPY ((size_t)2048)

/* A DATA packet's share when either side has to pack or unpack aside. */
#define CHUNK ((size_t)64 * 1024)

static void ask_with(struct weft_req *r, unsigned flags)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	weft_comm_path_cost_end(&v->gate->x_ways, &v->trip, 0); /* it takes neither way */
	v->got = 0;
	v->out.type = WEFT_OUT_CTS;
	v->out.head = (struct weft_wire){
		.kind = WEFT_WIRE_CTS,
		.flags = (uint8_t)flags,
		.context = v->out.rts.id,
		/* The tag bounds each DATA packet's payload; 0: no bound. */
		.tag = r->buf.type ? (int32_t)CHUNK : 0,
		.length = v->want,
	};
	weft_comm_gate_submit(v->gate, &v->out);
}

static void ask(struct weft_req *r)
{
	ask_with(r, weft_comm_rdma_write_wanted(r) ? WEFT_WIRE_WINDOW : 0);
}

void weft_comm_rndv_start(struct weft_req *r, struct weft_gate *g, int tag, uint64_t length,
			  uint32_t id, uint64_t addr, bool quiet, bool late)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	r->status = (struct weft_status){.peer = g->peer, .tag = tag, .bytes = length};
	if (length > r->buf.bytes) {
		r->status.bytes = r->buf.bytes;
		r->status.err = WEFT_ERR_TRUNC;
	}
	v->want = r->status.bytes;
	v->got = 0;
	v->gate = g;
	v->share = 0;
	v->trip.way = WEFT_WAYS_NONE;
	v->open = false;
	v->quiet = quiet;
	v->late = late;
	v->out.rts.id = id;
	v->out.rts.addr = addr;
	if (!weft_comm_copy_leave_recv(r))
		weft_comm_rndv_go_on(r);
}

void weft_comm_rndv_go_on(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	if (weft_comm_gate_down(g)) {
		weft_comm_recv_finish(r, WEFT_ERR_PEER);
	} else if (!v->want) {
		weft_comm_gate_fin_as(g, v->out.rts.id, v->quiet);
		weft_comm_recv_finish(r, WEFT_OK);
	} else if (g->core->offer && weft_comm_rndv_offer(r)) {
		return;
	} else if (v->out.rts.addr && weft_comm_gate_can_get(g) &&
		   !atomic_load_explicit(&g->x_get_failed, memory_order_relaxed)) {
		bool none_left = weft_comm_share_begin(r);
		weft_comm_copy_start(g->core, r, false,
				     none_left ||
					     (v->want <= COPY_INLINE && !weft_comm_share_waits(r)));
	} else {
		ask(r);
	}
}

/* ---- fetching ----------------------------------------------------------------------------- */

bool weft_comm_pieces_small(size_t held, unsigned n)
{
	return held < n * SMALL_COPY;
}

weft_err weft_comm_pull_piece(struct weft_req *r, uint64_t off, size_t most, size_t *len_p)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	uint64_t from = v->out.rts.addr + off;
	size_t len = v->want - off < most ? v->want - off : most;
	struct iovec iov[WEFT_IOV_MAX];
	unsigned n = 1;

	if (!r->buf.type) {
		iov[0] = (struct iovec){(char *)r->buf.base + off, len};
		*len_p = len;
		return g->driver->get(g->net, g->peer, from, iov, n, len);
	}
	n = WEFT_IOV_MAX;
	size_t held = weft_data_iov(&r->buf, off, iov, &n);
	if (held >= len || !weft_comm_pieces_small(held, n)) {
		size_t have = 0;
		unsigned i = 0;
		for (; i < n && have < len; i++) {
			if (iov[i].iov_len > len - have)
				iov[i].iov_len = len - have;
			have += iov[i].iov_len;
		}
		*len_p = have;
		return g->driver->get(g->net, g->peer, from, iov, i, have);
	}
	void *aside = malloc(len);
	if (!aside)
		return WEFT_ERR_NOMEM;
	iov[0] = (struct iovec){aside, len};
	weft_err err = g->driver->get(g->net, g->peer, from, iov, 1, len);
	if (!err)
		weft_data_unpack(&r->buf, off, aside, len);
	free(aside);
	*len_p = len;
	return err;
}

bool weft_comm_pull_step(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	struct weft_core *core = g->core;
	size_t len = 0;

	if (v->share)
		return weft_comm_share_pull_step(r);
	weft_err err = weft_comm_gate_down(g) ? WEFT_ERR_PEER
					      : weft_comm_pull_piece(r, v->got, COPY_PIECE, &len);
	if (err) {
		if (weft_comm_gate_down(g)) {
			weft_comm_recv_finish(r, WEFT_ERR_PEER);
		} else {
			/* Not permitted here, or the peer is about to be found dead: ask. */
			if (!atomic_exchange_explicit(&g->x_get_failed, true, memory_order_relaxed))
				weft_info("rank %d: fetching large messages fails (%s); asking for "
					  "them instead",
					  g->peer, weft_strerror(err));
			ask(r);
		}
		atomic_fetch_sub_explicit(&core->x_owed, 1, memory_order_acq_rel);
		return true;
	}
	v->got += len;
	if (v->got < v->want) {
		weft_comm_share_late(r);
		return false;
	}
	/* Relaxed: a hint, set once. */
	if (weft_unlikely(!atomic_load_explicit(&g->x_get_works, memory_order_relaxed)))
		atomic_store_explicit(&g->x_get_works, true, memory_order_relaxed);
	weft_comm_path_cost_end(&g->x_ways, &v->trip, v->want);
	weft_count(WEFT_CNT_RNDV_FETCHED, 1);
	weft_comm_gate_fin_as(g, v->out.rts.id, v->quiet);
	weft_comm_recv_finish(r, WEFT_OK);
	atomic_fetch_sub_explicit(&core->x_owed, 1, memory_order_acq_rel);
	return true;
}

/* ---- offering and pushing ----------------------------------------------------------------- */

bool weft_comm_rndv_offer(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	if (r->buf.type || v->share || weft_comm_gate_down(g) || !weft_comm_gate_can_put(g))
		return false;
	ask_with(r, WEFT_WIRE_OFFER | (r->then ? 0 : WEFT_WIRE_QUIET));
	return true;
}

/* Sends the data as packets after all. */
static void send_data(struct weft_req *r)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	s->off = 0;
	s->out.type = WEFT_OUT_DATA;
	weft_comm_gate_submit(s->gate, &s->out);
}

/* Our next pieces of at most COPY_PIECE bytes in all; 0: too small to be worth it. */
static size_t push_pieces(struct weft_req *r, struct iovec *iov, unsigned *n_p)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	size_t len = s->want - s->off < COPY_PIECE ? s->want - s->off : COPY_PIECE;

	if (!r->buf.type) {
		iov[0] = (struct iovec){(char *)r->buf.base + s->off, len};
		*n_p = 1;
		return len;
	}
	unsigned n = WEFT_IOV_MAX;
	size_t held = weft_data_iov(&r->buf, s->off, iov, &n), have = 0;
	if (held < len && weft_comm_pieces_small(held, n))
		return 0;
	unsigned i = 0;
	for (; i < n && have < len; i++) {
		if (iov[i].iov_len > len - have)
			iov[i].iov_len = len - have;
		have += iov[i].iov_len;
	}
	*n_p = i;
	return have;
}

bool weft_comm_push_step(struct weft_req *r)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct weft_gate *g = s->gate;
	struct weft_core *core = g->core;
	struct iovec iov[WEFT_IOV_MAX];
	unsigned n = 0;

	size_t len = push_pieces(r, iov, &n);
	if (!len || weft_comm_gate_down(g) ||
	    g->driver->put(g->net, g->peer, s->out.rts.addr + s->off, iov, n, len)) {
		send_data(r); /* or fails there, if the peer is gone */
	} else {
		s->off += len;
		if (s->off < s->want)
			return false;
		weft_count(WEFT_CNT_RNDV_PUSHED, 1);
		weft_comm_gate_control_as(g,
					  &(struct weft_wire){.kind = WEFT_WIRE_DATA,
							      .flags = WEFT_WIRE_PLACED,
							      .context = s->out.rts.id,
							      .length = s->want},
					  s->quiet);
		weft_comm_send_drop(r, WEFT_OK);
	}
	/* LAST -> SEE (weft_comm_core_idle).  Carries: the answers that its steps have posted. */
	atomic_fetch_sub_explicit(&core->x_owed, 1, memory_order_acq_rel);
	return true;
}

/* ---- posting, mask held ------------------------------------------------------------------- */

static enum weft_post post_cts_locked(struct weft_gate *g, struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	uint32_t id = weft_comm_ids_give(&g->core->ids, r, weft_comm_id_recv(g->peer));
	if (!id) {
		r->status.err = WEFT_ERR_NOMEM;
		return WEFT_POST_DOWN;
	}
	struct weft_wire head = v->out.head;
	head.sequence = id;
	/* From the post on, the data may come and the request be over: it is not touched. */
	struct weft_net_ticket where = {.addr = (uint64_t)(uintptr_t)r->buf.base};
	weft_comm_rdma_write_open(r, &head, &where);
	struct iovec iov = {&where, weft_comm_rdma_write_bytes(&head)};
	enum weft_post p =
		weft_comm_gate_post_locked(g, &head, &iov, iov.iov_len > 0, iov.iov_len, NULL);
	if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED)
		return p;
	(void)weft_comm_ids_take(&g->core->ids, id, weft_comm_id_recv(g->peer));
	weft_comm_rdma_write_close(r);
	return p;
}

/* A packed piece that the driver may keep for a while. */
struct packed {
	struct weft_req *req;
	alignas(16) char data[];
};

/* The sent() of a packed piece has this bit in its cookie. */
#define COOKIE_PACKED ((uintptr_t)1)

bool weft_comm_rndv_cookie_is_data(void *cookie)
{
	if ((uintptr_t)cookie & COOKIE_PACKED)
		return true;
	return weft_comm_req_send((struct weft_req *)cookie)->out.type == WEFT_OUT_DATA;
}

void *weft_comm_rndv_cookie_open(void *cookie)
{
	if (!((uintptr_t)cookie & COOKIE_PACKED))
		return cookie;
	struct packed *p = (struct packed *)((uintptr_t)cookie & ~COOKIE_PACKED);
	struct weft_req *r = p->req;
	free(p);
	return r;
}

/* Posts the next piece of the data; *len_p: its length. */
static enum weft_post post_data_piece_locked(struct weft_gate *g, struct weft_req *r, size_t *len_p)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct iovec iov[WEFT_IOV_MAX];
	struct packed *aside = NULL;
	void *cookie = r;
	size_t len = s->want - s->off;
	size_t bound = (size_t)(uint32_t)s->out.rts.reserved;
	unsigned n = 1;

	if (len > g->max_payload)
		len = g->max_payload;
	if (bound && len > bound)
		len = bound;
	if (g->strategy->apart && g->strategy->piece && len > g->strategy->piece)
		len = g->strategy->piece;
	if (!r->buf.type) {
		iov[0] = (struct iovec){(char *)r->buf.base + s->off, len};
	} else {
		n = WEFT_IOV_MAX;
		size_t held = weft_data_iov(&r->buf, s->off, iov, &n), have = 0;
		size_t chunk = len < CHUNK ? len : CHUNK;
		if (held < len && held < n * SMALL_PIECE)
			aside = malloc(sizeof *aside + chunk);
		if (!aside) {
			/* Large pieces, or no memory to gather small ones. */
			unsigned i = 0;
			for (; i < n && have < len; i++) {
				if (iov[i].iov_len > len - have)
					iov[i].iov_len = len - have;
				have += iov[i].iov_len;
			}
			n = i;
			len = have;
		} else {
			len = chunk;
			aside->req = r;
			weft_data_pack(&r->buf, s->off, aside->data, len);
			iov[0] = (struct iovec){aside->data, len};
			n = 1;
			cookie = (void *)((uintptr_t)aside | COOKIE_PACKED);
		}
	}
	struct weft_wire head = {.kind = WEFT_WIRE_DATA,
				 .flags = s->rest ? WEFT_WIRE_REST : 0,
				 .context = s->out.rts.id,
				 .sequence = (uint32_t)s->off,
				 .tag = (int32_t)(uint32_t)(s->off >> 32),
				 .length = len};
	enum weft_post p = weft_comm_gate_post_locked(g, &head, iov, n, len, cookie);
	if (p != WEFT_POST_ACCEPTED)
		free(aside);
	*len_p = len;
	return p;
}

static enum weft_post post_data_locked(struct weft_gate *g, struct weft_req *r)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);

	/* Bound: each round posts a piece, or ends. */
	while (s->off < s->want) {
		size_t len = 0;
		/* Relaxed: our own reference keeps it above 1. */
		atomic_fetch_add_explicit(&s->x_refs, 1, memory_order_relaxed);
		enum weft_post p = s->window ? weft_comm_rdma_write_write_locked(g, r, &len)
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
	return s->window ? weft_comm_rdma_write_placed_locked(g, r) : WEFT_POST_DONE;
}

static enum weft_post post_cts_out_locked(struct weft_gate *g, struct weft_out *o)
{
	return post_cts_locked(g, weft_comm_req_of_recv_out(o));
}

static enum weft_post post_data_out_locked(struct weft_gate *g, struct weft_out *o)
{
	return post_data_locked(g, weft_comm_req_of_send_out(o));
}

static void cts_failed(struct weft_gate *g, struct weft_out *o)
{
	(void)g;
	weft_comm_recv_finish(weft_comm_req_of_recv_out(o), WEFT_ERR_PEER);
}

const struct weft_out_ops weft_comm_rndv_data_ops = {.post_locked = post_data_out_locked,
						     .posted = weft_comm_send_out_posted,
						     .failed = weft_comm_send_out_failed};
const struct weft_out_ops weft_comm_rndv_cts_ops = {.post_locked = post_cts_out_locked,
						    .failed = cts_failed};

/* ---- what the peer says ------------------------------------------------------------------- */

/* Nothing of it has gone, or the part that was claimed has gone whole, and only the answer is left.
 */
static bool may_ask(struct weft_core_req_send *s)
{
	if (s->out.type != WEFT_OUT_DATA)
		return s->out.type == WEFT_OUT_RTS; /* not an eager one that waits for its answer */
	return s->rest && atomic_load_explicit(&s->x_refs, memory_order_acquire) == 1;
}

void weft_comm_rndv_cts(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			size_t len)
{
	if (h->flags & WEFT_WIRE_SHARE) {
		weft_comm_share_help(g, h, payload, len);
		return;
	}
	struct weft_req *r =
		weft_comm_ids_peek(&g->core->ids, h->context, weft_comm_id_send(g->peer));
	struct weft_core_req_send *s = r ? weft_comm_req_send(r) : NULL;
	bool offer = h->flags & WEFT_WIRE_OFFER, window = h->flags & WEFT_WIRE_WINDOW;
	struct weft_net_ticket where = {0};

	if (!r || !may_ask(s) || h->length > r->buf.bytes || !h->length || h->tag < 0 ||
	    len != weft_comm_rdma_write_bytes(h) ||
	    (window && (offer || !weft_comm_gate_has_windows(g))) ||
	    !weft_comm_ids_take(&g->core->ids, h->context, weft_comm_id_send(g->peer))) {
		weft_comm_gate_protocol_error(g, "a CTS that answers nothing");
		return;
	}
	if (weft_unlikely(g->learn != NULL))
		weft_comm_eager_threshold_asked(g->learn, weft_clock_ns() - s->off);
	s->want = h->length;
	s->off = 0;
	s->out.rts.id = h->sequence;
	s->out.rts.reserved = (uint32_t)h->tag;
	if (len)
		memcpy(&where, payload, len);
	s->out.rts.addr = where.addr;
	s->out.head.length = where.key;
	s->window = window && !r->buf.type; /* what has holes goes as packets all the same */
	s->quiet = h->flags & WEFT_WIRE_QUIET;
	bool push = offer && weft_comm_gate_can_put(g);
	if (!weft_comm_copy_leave_send(r, push))
		weft_comm_rndv_cts_go_on(r, push);
}

void weft_comm_rndv_cts_go_on(struct weft_req *r, bool push)
{
	if (push)
		weft_comm_copy_start(weft_comm_req_send(r)->gate->core, r, true, false);
	else
		send_data(r);
}

void weft_comm_rndv_fin(struct weft_gate *g, const struct weft_wire *h)
{
	struct weft_req *r =
		weft_comm_ids_take(&g->core->ids, h->context, weft_comm_id_send(g->peer));
	if (!r) {
		weft_comm_gate_protocol_error(g, "a FIN that answers nothing");
		return;
	}
	weft_comm_send_drop(r, WEFT_OK);
}

void weft_comm_rndv_data(struct weft_gate *g, const struct weft_wire *h, const void *data,
			 size_t len)
{
	uint64_t off = h->sequence | (uint64_t)(uint32_t)h->tag << 32;
	if (h->flags & WEFT_WIRE_SHARE) {
		weft_comm_share_report(g, h);
		return;
	}
	struct weft_req *r =
		weft_comm_ids_peek(&g->core->ids, h->context, weft_comm_id_recv(g->peer));
	struct weft_core_req_recv *v = r ? weft_comm_req_recv(r) : NULL;

	bool shared = r && v->share && h->flags & WEFT_WIRE_REST;
	if (r && v->share && !shared)
		r = NULL;
	if (r && !shared && h->flags & WEFT_WIRE_PLACED && !len && !off && !v->got &&
	    h->length == v->want)
		len = h->length; /* the sender has written it all */
	if (!r || h->length != len || len > v->want - off ||
	    (shared ? !weft_comm_share_expects(r, off, len) : off != v->got)) {
		weft_comm_gate_protocol_error(g, "DATA that nobody asked for");
		return;
	}
	if (data && !(h->flags & WEFT_WIRE_PLACED)) { /* else it is in place already */
		if (r->buf.type)
			weft_data_unpack(&r->buf, off, data, len);
		else
			memcpy((char *)r->buf.base + off, data, len);
	}
	if (shared) {
		weft_comm_share_came(r, off, len);
		return;
	}
	v->got += len;
	if (v->got == v->want &&
	    weft_comm_ids_take(&g->core->ids, h->context, weft_comm_id_recv(g->peer)))
		weft_comm_rndv_recv_over(r, WEFT_OK);
}
