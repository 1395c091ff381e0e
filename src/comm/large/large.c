/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * large.c - large messages: what follows when one is matched, when its peer answers, and when a copy
 * ends.  Routes and states: route.h.  What is called from here answers, and calls nothing here.
 */
#include <string.h>
#include "base/counters.h"
#include "base/log.h"
#include "comm/core.h"
#include "comm/large/large.h"
#include "comm/large/large_int.h"
#include "comm/large/packets.h"
#include "comm/large/pieces.h"
#include "comm/large/rdma_write.h"
#include "comm/large/share_copy.h"
#include "comm/recv/deliver.h"
#include "comm/send/credit.h"
#include "comm/send/send_ref.h"

#define SELDOM_US 200

static weft_comm_copy_step fetch_step;

/* ---- receiving: ends and questions ---------------------------------------------------------- */

static void end_receive(struct weft_req *r, weft_err err)
{
	weft_comm_large_recv_to(weft_comm_req_recv(r), WEFT_LARGE_OVER);
	weft_comm_rdma_write_close(r);
	if (err == WEFT_ERR_PEER)
		r->status.bytes = 0;
	weft_comm_recv_finish(r, err);
}

/* All data are there, and the sender waits to hear it. */
static void end_copy(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	weft_comm_gate_fin_as(v->gate, v->from.id, v->from.quiet);
	end_receive(r, WEFT_OK);
}

static struct weft_comm_route_facts facts_of(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	return (struct weft_comm_route_facts){
		.bytes = v->want,
		.flat = !r->buf.type,
		.readable = v->from.addr && weft_comm_gate_can_get(g) &&
			    /* Relaxed: a hint; another failure says it again. */
			    !atomic_load_explicit(&g->x_get_failed, memory_order_relaxed),
		.writable = weft_comm_gate_can_put(g),
		.opens = weft_comm_gate_has_rdma(g),
		.offers = g->core->offer,
		.one_packet = g->inline_max,
		.both_least = g->core->share_min,
	};
}

/* Asks the sender for the data: by packets, by writes of its network, or by a copy of its own. */
static void ask_sender(struct weft_req *r, enum weft_comm_route route)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	weft_assert(route == WEFT_ROUTE_PACKETS || route == WEFT_ROUTE_RDMA ||
		    route == WEFT_ROUTE_PUSH);
	weft_comm_path_cost_end(&v->gate->x_path_cost, &v->trip, 0); /* neither of those measured */
	weft_comm_large_recv_route(v, route);
	weft_comm_large_recv_to(v, WEFT_LARGE_ASKED);
	v->got = 0;
	v->region = NULL;
	v->out.type = WEFT_OUT_CTS;
	v->out.head = (struct weft_wire){
		.kind = WEFT_WIRE_CTS,
		.context = v->from.id,
		/* The tag bounds each DATA packet's payload; 0: no bound. */
		.tag = r->buf.type ? (int32_t)WEFT_LARGE_CHUNK : 0,
		.length = v->want,
	};
	if (route == WEFT_ROUTE_PUSH)
		v->out.head.flags = WEFT_WIRE_OFFER | (r->then ? 0 : WEFT_WIRE_QUIET);
	weft_comm_gate_submit(v->gate, &v->out);
}

/* ---- receiving: copies ---------------------------------------------------------------------- */

/*
 * Is it long since the peer's last large message?  Then what both sides would run to share this one has
 * left their caches, and so has what was measured then.
 */
static bool comes_seldom(struct weft_gate *g)
{
	uint64_t now = weft_cycles();
	/* Relaxed, both: a hint. */
	uint64_t last = atomic_load_explicit(&g->x_large_came, memory_order_relaxed);
	atomic_store_explicit(&g->x_large_came, now, memory_order_relaxed);
	return now - last > SELDOM_US * weft_cycles_per_us();
}

/* Would the sender take a part, and is REST the sooner way?  Begins to measure what is chosen. */
static void measure_sender(struct weft_req *r, struct weft_comm_route_facts *f)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	size_t least = f->both_least < WEFT_SHARE_LEAST ? f->both_least : WEFT_SHARE_LEAST;

	if (comes_seldom(v->gate) && f->flat)
		least = WEFT_SHARE_OPEN * f->both_least;
	f->sender_waits = f->readable && weft_comm_share_possible(r, least) &&
			  weft_comm_share_sender_waits(v->gate);
	if (!f->sender_waits) {
		f->may_help = f->readable && f->flat &&
			      weft_comm_share_possible(r, WEFT_SHARE_OPEN * f->both_least);
		return;
	}
	if (r->buf.type) {
		struct iovec iov[WEFT_IOV_MAX];
		unsigned n = WEFT_IOV_MAX;
		size_t held = weft_data_iov(&r->buf, v->got, iov, &n);
		f->fine = weft_comm_pieces_small(held, n);
	}
	if (f->fine)
		return;
	unsigned kind = (r->buf.type ? WEFT_PATH_COARSE : WEFT_PATH_FLAT) +
			(v->from.late ? WEFT_PATH_LATE : 0);
	f->sent_sooner = weft_comm_path_cost_begin(&v->gate->x_path_cost, kind, f->bytes,
						   &v->trip) == WEFT_PATH_SENT;
}

/* Takes that route, or FETCH where the offer that it needs cannot go out now. */
static void take_copy_route(struct weft_req *r, enum weft_comm_route route, bool sender_waits)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	weft_comm_large_recv_to(v, WEFT_LARGE_COPYING);
	if (route != WEFT_ROUTE_FETCH) {
		if (weft_comm_share_offer(r, route, sender_waits))
			return;
		weft_comm_path_cost_end(&v->gate->x_path_cost, &v->trip, 0);
	}
	weft_comm_large_recv_route(v, WEFT_ROUTE_FETCH);
}

static void start_copy(struct weft_req *r, bool now)
{
	weft_comm_copy_start(r, WEFT_SIDE_RECEIVER, fetch_step, now);
}

static void begin_receive(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_comm_route_facts f = facts_of(r);

	weft_assert(v->state == WEFT_LARGE_CHOOSING);
	if (weft_comm_gate_down(v->gate)) {
		end_receive(r, WEFT_ERR_PEER);
		return;
	}
	measure_sender(r, &f);
	enum weft_comm_route route = weft_comm_route_choose(&f);
	switch (route) {
	case WEFT_ROUTE_NONE:
		end_copy(r);
		return;
	case WEFT_ROUTE_PACKETS:
	case WEFT_ROUTE_RDMA:
	case WEFT_ROUTE_PUSH:
		ask_sender(r, route);
		return;
	default:
		break;
	}
	take_copy_route(r, route, f.sender_waits);
	bool taken =
		v->route == WEFT_ROUTE_REST && weft_comm_share_taken(r, weft_comm_share_looks(r));
	start_copy(r, taken || (v->want <= WEFT_LARGE_ON_SPOT && !weft_comm_share_pauses(r)));
}

/* A copy by both sides has ended, or goes on elsewhere. */
static void end_shared(struct weft_req *r, enum weft_comm_share_end end)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	if (end == WEFT_SHARE_ELSEWHERE)
		return; /* r may be over */
	struct weft_gate *g = v->gate;
	weft_comm_path_cost_end(&g->x_path_cost, &v->trip, end == WEFT_SHARE_WHOLE ? v->want : 0);
	switch (end) {
	case WEFT_SHARE_WHOLE:
		end_copy(r);
		break;
	case WEFT_SHARE_SHORT:
		v->got = 0;
		weft_comm_large_recv_route(v, WEFT_ROUTE_FETCH);
		start_copy(r, true);
		break;
	case WEFT_SHARE_FAILED:
		/* Relaxed: a hint for the next message. */
		atomic_store_explicit(&g->x_get_failed, true, memory_order_relaxed);
		weft_comm_large_recv_route(v, WEFT_ROUTE_NONE);
		weft_comm_large_recv_to(v, WEFT_LARGE_CHOOSING);
		begin_receive(r);
		break;
	default:
		weft_assert(end == WEFT_SHARE_DOWN);
		end_receive(r, WEFT_ERR_PEER);
		break;
	}
}

/* Not permitted here, or the peer is about to be found dead: ask. */
static void fetch_failed(struct weft_req *r, weft_err err)
{
	struct weft_gate *g = weft_comm_req_recv(r)->gate;
	struct weft_comm_route_facts f = facts_of(r);

	if (weft_comm_gate_down(g)) {
		end_receive(r, WEFT_ERR_PEER);
		return;
	}
	if (!atomic_exchange_explicit(&g->x_get_failed, true, memory_order_relaxed))
		weft_info("rank %d: fetching large messages fails (%s); asking for them instead",
			  g->peer, weft_strerror(err));
	ask_sender(r, weft_comm_route_ask(&f));
}

static enum weft_comm_copy_verdict fetch_piece(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	size_t len = 0;
	weft_err err = weft_comm_gate_down(g)
			       ? WEFT_ERR_PEER
			       : weft_comm_pieces_fetch(r, v->got, WEFT_LARGE_PIECE, &len);
	if (err) {
		fetch_failed(r, err);
		return WEFT_COPY_OVER;
	}
	v->got += len;
	if (v->got < v->want)
		return WEFT_COPY_AGAIN;
	/* Relaxed: a hint, set once. */
	if (weft_unlikely(!atomic_load_explicit(&g->x_get_works, memory_order_relaxed)))
		atomic_store_explicit(&g->x_get_works, true, memory_order_relaxed);
	weft_comm_path_cost_end(&g->x_path_cost, &v->trip, v->want);
	weft_count(WEFT_CNT_RNDV_FETCHED, 1);
	end_copy(r);
	return WEFT_COPY_OVER;
}

void weft_comm_large_choose_again(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_comm_route_facts f = facts_of(r);

	if (v->route != WEFT_ROUTE_FETCH || weft_task_engine_behind())
		return;
	weft_comm_path_cost_end(&v->gate->x_path_cost, &v->trip, 0);
	measure_sender(r, &f);
	enum weft_comm_route route = weft_comm_route_choose(&f);
	if (route == WEFT_ROUTE_BOTH || route == WEFT_ROUTE_REST)
		take_copy_route(r, route, f.sender_waits);
}

/* Before the first piece of a task: which side should copy, and when? */
static enum weft_comm_route_turn turn_of(struct weft_req *r, enum weft_comm_copy_turn turn)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	if (!weft_task_engine_behind())
		return WEFT_ROUTE_COPY;
	return weft_comm_route_before_copy(&(struct weft_comm_route_load){
		.behind = true,
		.sender_computes = g->driver->computes && g->driver->computes(g->net, g->peer),
		.no_core_spare = weft_task_engine_cores_taken(),
		.may_leave = turn == WEFT_COPY_FIRST,
		.may_offer = v->route == WEFT_ROUTE_FETCH && !r->buf.type &&
			     !weft_comm_gate_down(g) && weft_comm_gate_can_put(g)});
}

static enum weft_comm_copy_verdict fetch_step(struct weft_req *r, enum weft_comm_copy_turn turn)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	if (turn == WEFT_COPY_BACK)
		weft_comm_large_choose_again(r);
	if (turn != WEFT_COPY_NEXT) {
		enum weft_comm_route_turn first = turn_of(r, turn);
		if (first == WEFT_ROUTE_LEAVE)
			return WEFT_COPY_ASIDE;
		if (weft_comm_share_pauses(r))
			return WEFT_COPY_WAIT;
		if (first == WEFT_ROUTE_OFFER) {
			ask_sender(r, WEFT_ROUTE_PUSH);
			return WEFT_COPY_OVER;
		}
	}
	if (v->route == WEFT_ROUTE_FETCH)
		return fetch_piece(r);
	enum weft_comm_share_end end = weft_comm_share_step(r);
	if (end == WEFT_SHARE_MORE)
		return WEFT_COPY_AGAIN;
	end_shared(r, end);
	return WEFT_COPY_OVER;
}

void weft_comm_large_start(struct weft_req *r, struct weft_gate *g, int tag, uint64_t length,
			   const struct weft_comm_large_from *from)
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
	v->route = WEFT_ROUTE_NONE;
	v->state = WEFT_LARGE_CHOOSING;
	v->trip.way = WEFT_PATH_NONE;
	v->from = *from;
	if (!weft_comm_copy_defer(r, WEFT_SIDE_RECEIVER, begin_receive))
		begin_receive(r);
}

void weft_comm_large_abandon(struct weft_req *r)
{
	if (weft_comm_large_shared(weft_comm_req_recv(r)))
		end_shared(r, weft_comm_share_abandon(r));
	else
		end_receive(r, WEFT_ERR_PEER);
}

/* ---- sending -------------------------------------------------------------------------------- */

static void post_data(struct weft_req *r, enum weft_comm_route route)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	weft_comm_large_send_to(s, WEFT_LARGE_POSTING, route);
	s->off = 0;
	s->out.type = WEFT_OUT_DATA;
	weft_comm_gate_submit(s->gate, &s->out);
}

static enum weft_comm_copy_verdict push_step(struct weft_req *r, enum weft_comm_copy_turn turn)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct weft_gate *g = s->gate;
	size_t len = 0;

	(void)turn;
	if (weft_comm_gate_down(g) || weft_comm_pieces_push(r, &len)) {
		post_data(r, WEFT_ROUTE_PACKETS); /* or fails there, if the peer is gone */
		return WEFT_COPY_OVER;
	}
	s->off += len;
	if (s->off < s->want)
		return WEFT_COPY_AGAIN;
	weft_count(WEFT_CNT_RNDV_PUSHED, 1);
	weft_comm_gate_control_as(g,
				  &(struct weft_wire){.kind = WEFT_WIRE_DATA,
						      .flags = WEFT_WIRE_PLACED,
						      .context = s->to.id,
						      .length = s->want},
				  s->quiet);
	weft_comm_send_drop(r, WEFT_OK);
	return WEFT_COPY_OVER;
}

static void begin_send(struct weft_req *r)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	if (s->route != WEFT_ROUTE_PUSH) {
		post_data(r, (enum weft_comm_route)s->route);
		return;
	}
	weft_comm_large_send_to(s, WEFT_LARGE_COPYING, WEFT_ROUTE_PUSH);
	weft_comm_copy_start(r, WEFT_SIDE_SENDER, push_step, false);
}

/* None of its data has gone, or all that was claimed has, and only the answer is left. */
static bool may_be_asked(struct weft_core_req_send *s)
{
	if (s->state != WEFT_LARGE_POSTING)
		return s->state == WEFT_LARGE_ASKED;
	return s->route == WEFT_ROUTE_REST &&
	       atomic_load_explicit(&s->x_refs, memory_order_acquire) == 1;
}

void weft_comm_large_cts(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			 size_t len)
{
	if (h->flags & WEFT_WIRE_SHARE) {
		weft_comm_share_help(g, h, payload, len);
		return;
	}
	struct weft_req *r =
		weft_comm_ids_peek(&g->core->ids, h->context, weft_comm_id_send(g->peer));
	struct weft_core_req_send *s = r ? weft_comm_req_send(r) : NULL;
	bool offer = h->flags & WEFT_WIRE_OFFER, rdma = h->flags & WEFT_WIRE_REGION;
	struct weft_wire_place where = {0};

	if (!r || !may_be_asked(s) || h->length > r->buf.bytes || !h->length || h->tag < 0 ||
	    len != weft_comm_packets_cts_bytes(h) ||
	    (rdma && (offer || !weft_comm_gate_has_rdma(g))) ||
	    !weft_comm_ids_take(&g->core->ids, h->context, weft_comm_id_send(g->peer))) {
		weft_comm_gate_protocol_error(g, "a CTS that answers nothing");
		return;
	}
	if (len)
		memcpy(&where, payload, len);
	s->want = h->length;
	s->to = (struct weft_comm_large_to){
		.addr = where.addr, .key = where.key, .id = h->sequence, .most = (uint32_t)h->tag};
	s->quiet = h->flags & WEFT_WIRE_QUIET;
	s->off = 0;
	enum weft_comm_route route = WEFT_ROUTE_PACKETS;
	if (offer && weft_comm_gate_can_put(g))
		route = WEFT_ROUTE_PUSH;
	else if (rdma && !r->buf.type) /* what has holes goes as packets all the same */
		route = WEFT_ROUTE_RDMA;
	weft_comm_large_send_to(s, WEFT_LARGE_CHOOSING, route);
	if (!weft_comm_copy_defer(r, WEFT_SIDE_SENDER, begin_send))
		begin_send(r);
}

void weft_comm_large_fin(struct weft_gate *g, const struct weft_wire *h)
{
	struct weft_req *r =
		weft_comm_ids_take(&g->core->ids, h->context, weft_comm_id_send(g->peer));
	if (!r) {
		weft_comm_gate_protocol_error(g, "a FIN that answers nothing");
		return;
	}
	weft_comm_send_drop(r, h->flags & WEFT_WIRE_CANCELLED ? WEFT_ERR_CANCELLED : WEFT_OK);
}

/* ---- DATA that arrive ----------------------------------------------------------------------- */

static uint64_t offset_of(const struct weft_wire *h)
{
	return h->sequence | (uint64_t)(uint32_t)h->tag << 32;
}

struct weft_req *weft_comm_large_data_expected(struct weft_gate *g, const struct weft_wire *h,
					       size_t len)
{
	struct weft_req *r =
		weft_comm_ids_peek(&g->core->ids, h->context, weft_comm_id_recv(g->peer));
	struct weft_core_req_recv *v = r ? weft_comm_req_recv(r) : NULL;
	uint64_t off = offset_of(h);

	if (!r || h->length != len || len > v->want - off)
		return NULL;
	if (weft_comm_large_shared(v))
		return h->flags & WEFT_WIRE_REST && weft_comm_share_expects(r, off, len) ? r : NULL;
	return off == v->got ? r : NULL;
}

/* The sender has copied pieces of its own, and says how many bytes. */
static void on_report(struct weft_gate *g, const struct weft_wire *h)
{
	struct weft_req *r =
		weft_comm_ids_take(&g->core->ids, h->context, weft_comm_id_recv(g->peer));
	if (!r || !weft_comm_large_shared(weft_comm_req_recv(r))) {
		weft_comm_gate_protocol_error(g, "a report that was not asked for");
		if (r)
			end_receive(r, WEFT_ERR_PEER); /* its buffer may be open */
		return;
	}
	end_shared(r, weft_comm_share_report(r, h->length));
}

/* Has the sender written all that it was asked for? */
static bool placed_whole(struct weft_gate *g, const struct weft_wire *h, size_t len)
{
	struct weft_req *r =
		weft_comm_ids_peek(&g->core->ids, h->context, weft_comm_id_recv(g->peer));
	struct weft_core_req_recv *v = r ? weft_comm_req_recv(r) : NULL;
	return r && !weft_comm_large_shared(v) && h->flags & WEFT_WIRE_PLACED && !len &&
	       !offset_of(h) && !v->got && h->length == v->want;
}

void weft_comm_large_data(struct weft_gate *g, const struct weft_wire *h, const void *data,
			  size_t len)
{
	if (h->flags & WEFT_WIRE_SHARE) {
		on_report(g, h);
		return;
	}
	if (placed_whole(g, h, len))
		len = h->length;
	struct weft_req *r = weft_comm_large_data_expected(g, h, len);
	if (!r) {
		weft_comm_gate_protocol_error(g, "DATA that was not asked for");
		return;
	}
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	uint64_t off = offset_of(h);
	if (data && !(h->flags & WEFT_WIRE_PLACED)) { /* else they are in place already */
		if (r->buf.type)
			weft_data_unpack(&r->buf, off, data, len);
		else
			memcpy((char *)r->buf.base + off, data, len);
	}
	if (weft_comm_large_shared(v)) {
		end_shared(r, weft_comm_share_came(r, off, len));
		return;
	}
	v->got += len;
	if (v->got == v->want &&
	    weft_comm_ids_take(&g->core->ids, h->context, weft_comm_id_recv(g->peer)))
		end_receive(r, WEFT_OK);
}
