/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle_out.c - the way out: units, which rail carries them, what is confirmed and what goes
 * again.
 *
 * Each rail takes the next piece of a large packet when it has less than AHEAD bytes unconfirmed,
 * so a rail gets work as fast as it does it.  Near the end of what waits, a slow rail takes no
 * piece that the fastest one would have carried sooner, as the measured bandwidths say.
 */
#include <stdlib.h>
#include "base/trace.h"
#include "net/bundle/bundle_int.h"
#include "net/shm/ring_tx.h"

#define MEASURE_BYTES (512u << 10)

void weft_net_bundle_out_check_locked(const struct weft_bundle *b, const struct weft_bundle_peer *p)
{
	weft_assert_held(weft_net_bundle, p);
	/* The peer has taken no number that was not given, and all that are out fit its window. */
	weft_assert(p->number - p->peer_next <= WEFT_BUNDLE_WINDOW);
	weft_assert(!p->large || p->large->given < p->large->len);
	weft_assert(p->spare_bytes <= 2 * (WEFT_BUNDLE_AHEAD + WEFT_BUNDLE_WHOLE_MAX));
	for (unsigned r = 0; r < b->n_rails; r++) {
		const struct weft_bundle_way *w = &p->way[r];
		uint32_t under = w->lane.sent - w->lane.confirmed;
		weft_assert(w->state <= WEFT_BUNDLE_GONE);
		weft_assert(under <= WEFT_BUNDLE_WINDOW && w->pieces <= under);
		weft_assert(!under == !w->lane.under.first && (under || !w->under_bytes));
		weft_assert(w->got - w->told_got >= w->asked);
		(void)under;
	}
}

/* Neither the peer nor a rail needs the unit any more. */
static void unit_over(struct weft_bundle_peer *p, struct weft_bundle_unit *u,
		      struct weft_bundle_large **over)
{
	struct weft_bundle_large *l = u->large;
	weft_assert(l || p->kept_bytes >= u->len);
	weft_assert(!l || l->n_units > 0);
	p->kept_bytes -= l ? 0 : u->len;
	weft_net_bundle_unit_free(p, u);
	if (l && --l->n_units == 0 && l->given == l->len) {
		l->next = *over;
		*over = l;
	}
}

/* The peer needs the unit no more, but a rail still reads it. */
static void keep_until_read(struct weft_bundle_peer *p, struct weft_bundle_unit *u)
{
	weft_assert(u->held && !u->confirmed);
	u->confirmed = true;
	u->link.next = p->lingering;
	p->lingering = &u->link;
}

void weft_net_bundle_unit_released(struct weft_bundle_peer *p, struct weft_bundle_unit *u,
				   struct weft_bundle_large **over)
{
	weft_assert(u->held);
	u->held = false;
	if (!u->confirmed)
		return;
	/* Bound: what the rails read at the same time. */
	for (struct weft_bundle_link **at = &p->lingering; *at; at = &(*at)->next)
		if (*at == &u->link) {
			*at = u->link.next;
			break;
		}
	unit_over(p, u, over);
}

/* The rails' heads say what came in meanwhile. */
static void fill_news(struct weft_bundle_peer *p, struct weft_bundle_way *w,
		      struct weft_bundle_head *h)
{
	h->got = w->got;
	/* Relaxed: a number that only grows; one too low is told better with the next head. */
	h->next = atomic_load_explicit(&p->x_in_next, memory_order_relaxed);
}

static void news_told(struct weft_bundle_peer *p, struct weft_bundle_way *w,
		      const struct weft_bundle_head *h)
{
	w->told_got = w->got;
	w->asked = 0;
	w->asked_bytes = 0;
	w->asked_now = false;
	p->told_next = h->next;
}

/* A piece is read from the upper layer's memory.  Of what is copied, enough has gone unasked? */
static enum weft_bundle_ask ask_for(const struct weft_bundle_way *w,
				    const struct weft_bundle_unit *u)
{
	if (u->head.kind == WEFT_BUNDLE_PART)
		return WEFT_BUNDLE_SOON;
	return w->silent_units + 1 >= WEFT_BUNDLE_ASK_UNITS ||
			       w->silent_bytes + u->len >= WEFT_BUNDLE_ASK_BYTES
		       ? WEFT_BUNDLE_NOW
		       : WEFT_BUNDLE_LATER;
}

/* The rail took the unit. */
static void note_sent(struct weft_bundle_way *w, struct weft_bundle_unit *u)
{
	bool silent = u->head.ask == WEFT_BUNDLE_LATER;
	w->silent_units = silent ? w->silent_units + 1 : 0;
	w->silent_bytes = silent ? w->silent_bytes + u->len : 0;
	if (!w->lane.under.first)
		w->since_ns = weft_clock_ns();
	/* What is copied may be confirmed late: it says nothing about the rail. */
	if (u->head.kind == WEFT_BUNDLE_PART && !w->pieces++) {
		w->busy_ns = weft_clock_ns();
		w->busy_bytes = 0;
	}
	weft_assert(u->len && w->state == WEFT_BUNDLE_UP);
	w->under_bytes += u->len;
	weft_net_bundle_lane_sent(&w->lane, &u->link);
}

/* The pieces of memory of a part of a large packet. */
static unsigned part_pieces(const struct weft_bundle_large *l, size_t offset, size_t len,
			    struct iovec *to)
{
	unsigned n = 0;
	for (unsigned i = 0; i < l->n_iov && len; i++) {
		if (offset >= l->iov[i].iov_len) {
			offset -= l->iov[i].iov_len;
			continue;
		}
		size_t have = l->iov[i].iov_len - offset;
		to[n].iov_base = (char *)l->iov[i].iov_base + offset;
		to[n].iov_len = have < len ? have : len;
		len -= to[n++].iov_len;
		offset = 0;
	}
	return n;
}

/* One try to send a unit over one rail. */
static bool unit_try(struct weft_bundle *b, int peer, unsigned rail, struct weft_bundle_unit *u)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	struct weft_bundle_net *r = &b->rail[rail];
	struct iovec iov[WEFT_BUNDLE_PIECES];
	unsigned n = 1;

	if (u->large && u->head.kind == WEFT_BUNDLE_PART)
		n = part_pieces(u->large, u->head.offset, u->len, iov);
	else
		iov[0] = (struct iovec){u->data, u->len};
	fill_news(p, w, &u->head);
	u->head.ask = (uint8_t)ask_for(w, u);
	u->held = true; /* before: sent() may come while the post returns; it waits for the lock */
	enum weft_post a = r->driver->post(r->net, peer, &u->head, iov, n, u->len, u);
	u->held = a == WEFT_POST_ACCEPTED;
	if (a != WEFT_POST_DONE && a != WEFT_POST_ACCEPTED) {
		w->full = true; /* DOWN: down() comes and says the rest */
		return false;
	}
	news_told(p, w, &u->head);
	note_sent(w, u);
	weft_trace(WEFT_TRACE_RAIL, rail, (uint32_t)peer, 0, u->len);
	/* Relaxed: statistics. */
	atomic_fetch_add_explicit(&r->x_units, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->x_bytes, u->len, memory_order_relaxed);
	return true;
}

static bool has_room(const struct weft_bundle_way *w)
{
	return w->state == WEFT_BUNDLE_UP && !w->full;
}

/* Over the first rail that takes it; one that has much to do comes last. */
static bool unit_send(struct weft_bundle *b, int peer, struct weft_bundle_unit *u)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	for (int busy = 0; busy < 2; busy++)
		for (unsigned r = 0; r < b->n_rails; r++) {
			struct weft_bundle_way *w = &p->way[r];
			if (has_room(w) && (w->under_bytes >= WEFT_BUNDLE_AHEAD) == busy &&
			    unit_try(b, peer, r, u))
				return true;
		}
	return false;
}

/* Would the fastest rail, with all that waits in front of it, still be first to carry `len`? */
static bool too_slow(struct weft_bundle *b, struct weft_bundle_peer *p, unsigned rail, size_t len,
		     size_t left)
{
	double mine = p->way[rail].bytes_per_ns;
	double own = mine > 0 ? ((double)p->way[rail].under_bytes + (double)len) / mine : 0;
	for (unsigned r = 0; r < b->n_rails; r++) {
		double other = p->way[r].bytes_per_ns;
		if (r == rail || p->way[r].state != WEFT_BUNDLE_UP || other <= mine || mine <= 0)
			continue;
		if (((double)p->way[r].under_bytes + (double)left) / other < own)
			return true;
	}
	return false;
}

/* Cuts the next piece of the large packet in front, for this rail; false: none now. */
static bool next_piece(struct weft_bundle *b, int peer, unsigned rail)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	struct weft_bundle_large *l = p->large;
	if (!l || !has_room(w) || w->under_bytes >= WEFT_BUNDLE_AHEAD ||
	    !weft_net_bundle_room_long(p->number, p->peer_next, 0))
		return false;
	size_t left = l->len - l->given, len = left;
	size_t most = p->max_piece;
	/* Two rails shall share what one piece could hold. */
	if (b->n_rails > 1 && len > 65536 && len < 2 * most)
		len = (len / 2 + 4095) & ~(size_t)4095;
	if (len > most)
		len = most;
	if (too_slow(b, p, rail, len, left))
		return false;
	struct weft_bundle_unit *u = weft_net_bundle_unit_new(p, 0);
	if (!u)
		return false;
	u->head.kind = WEFT_BUNDLE_PART;
	u->head.begin = l->begin;
	u->head.offset = (uint32_t)l->given;
	u->large = l;
	u->len = (uint32_t)len;
	l->n_units++;
	if (!unit_try(b, peer, rail, u)) {
		l->n_units--;
		weft_net_bundle_unit_free(p, u);
		return false;
	}
	weft_assert(len && len <= WEFT_BUNDLE_PIECE && l->given + len <= l->len);
	p->number++;
	l->given += len;
	if (l->given == l->len)
		p->large = NULL;
	return true;
}

void weft_net_bundle_pump_locked(struct weft_bundle *b, int peer)
{
	weft_assert_held(weft_net_bundle, &b->peer[peer]);
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_unit *u;
	/* Bound: the queue; ends at the first that finds no rail. */
	while ((u = (struct weft_bundle_unit *)weft_net_bundle_fifo_take(&p->queue))) {
		if (unit_send(b, peer, u))
			continue;
		struct weft_bundle_fifo back;
		weft_net_bundle_fifo_init(&back);
		weft_net_bundle_fifo_put(&back, &u->link);
		weft_net_bundle_fifo_prepend(&p->queue, &back);
		return;
	}
	/* Bound: what the rails may have unconfirmed. */
	for (bool any = true; any && p->large;) {
		any = false;
		for (unsigned r = 0; r < b->n_rails; r++)
			any |= next_piece(b, peer, r);
	}
	weft_net_bundle_out_check_locked(b, p);
}

static bool post_whole(struct weft_bundle *b, int peer, const void *head, const struct iovec *iov,
		       unsigned n, size_t len)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_unit *u = weft_net_bundle_unit_new(p, WEFT_NET_HEAD + len);
	if (!u)
		return false;
	p->number++;
	u->head.kind = WEFT_BUNDLE_WHOLE;
	u->len = (uint32_t)(WEFT_NET_HEAD + len);
	p->kept_bytes += u->len;
	memcpy(u->data, head, WEFT_NET_HEAD);
	if (len)
		weft_net_ring_gather(u->data + WEFT_NET_HEAD, iov, n, len);
	if (p->queue.first || !unit_send(b, peer, u))
		weft_net_bundle_fifo_put(&p->queue, &u->link);
	return true;
}

static bool post_large(struct weft_bundle *b, int peer, const void *head, const struct iovec *iov,
		       unsigned n, size_t len, void *cookie)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_large *l = NULL;
	if (n <= WEFT_BUNDLE_PIECES)
		l = malloc(sizeof *l + n * sizeof *iov);
	struct weft_bundle_unit *u =
		l ? weft_net_bundle_unit_new(p, sizeof(struct weft_bundle_begin)) : NULL;
	if (!u) {
		free(l);
		return false;
	}
	*l = (struct weft_bundle_large){.cookie = cookie, .len = len, .n_iov = n};
	memcpy(l->iov, iov, n * sizeof *iov);
	struct weft_bundle_begin begin = {.len = len};
	memcpy(begin.head, head, WEFT_NET_HEAD);
	u->head.kind = WEFT_BUNDLE_BEGIN;
	u->len = sizeof begin;
	p->kept_bytes += u->len;
	memcpy(u->data, &begin, sizeof begin);
	l->begin = p->number++;
	if (p->queue.first || !unit_send(b, peer, u))
		weft_net_bundle_fifo_put(&p->queue, &u->link);
	p->large = l;
	weft_net_bundle_pump_locked(b, peer);
	return true;
}

/* How much may be copied and not confirmed. */
static size_t kept_max(const struct weft_bundle *b)
{
	static_assert(WEFT_BUNDLE_ASK_BYTES + WEFT_BUNDLE_WHOLE_MAX + WEFT_NET_HEAD <
			      WEFT_BUNDLE_AHEAD / 2,
		      "a poster that waits for room has asked");
	return (size_t)b->n_rails * WEFT_BUNDLE_AHEAD;
}

bool weft_net_bundle_roomy_locked(const struct weft_bundle *b, const struct weft_bundle_peer *p)
{
	weft_assert_held(weft_net_bundle, p);
	static_assert(WEFT_BUNDLE_BEHIND < WEFT_BUNDLE_LONG - WEFT_BUNDLE_RESERVE - 128,
		      "a poster that waits for numbers hears of them");
	return !p->large && p->kept_bytes <= kept_max(b) / 4 * 3 &&
	       weft_net_bundle_room_long(p->number, p->peer_next, WEFT_BUNDLE_RESERVE + 128);
}

enum weft_post weft_net_bundle_post_locked(struct weft_bundle *b, int peer, const void *head,
					   const struct iovec *iov, unsigned n, size_t len,
					   void *cookie)
{
	weft_assert_held(weft_net_bundle, &b->peer[peer]);
	weft_assert(len <= WEFT_BUNDLE_MAX_PAYLOAD);
	struct weft_bundle_peer *p = &b->peer[peer];
	bool up = false;
	for (unsigned r = 0; r < b->n_rails; r++)
		up |= p->way[r].state == WEFT_BUNDLE_UP;
	/* What comes behind a large packet gets its number when the last piece has one: pieces of
	 * packets further behind could else fill the window before the first packet is whole. */
	if (!up || p->large || !weft_net_bundle_room(p->number, p->peer_next, WEFT_BUNDLE_RESERVE))
		return WEFT_POST_FULL;
	if (len > WEFT_BUNDLE_INLINE &&
	    (len > WEFT_BUNDLE_WHOLE_MAX || WEFT_NET_HEAD + len > p->max_piece))
		return post_large(b, peer, head, iov, n, len, cookie) ? WEFT_POST_ACCEPTED
								      : WEFT_POST_FULL;
	if (p->kept_bytes > kept_max(b) ||
	    (len > WEFT_BUNDLE_INLINE &&
	     !weft_net_bundle_room_long(p->number, p->peer_next, WEFT_BUNDLE_RESERVE)))
		return WEFT_POST_FULL;
	return post_whole(b, peer, head, iov, n, len) ? WEFT_POST_DONE : WEFT_POST_FULL;
}

static bool post_news(struct weft_bundle *b, int peer, unsigned rail, enum weft_bundle_kind kind)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	struct weft_bundle_net *r = &b->rail[rail];
	struct weft_bundle_head h = {.kind = (uint8_t)kind};
	fill_news(p, w, &h);
	enum weft_post a = r->driver->post(r->net, peer, &h, NULL, 0, 0, NULL);
	if (a != WEFT_POST_DONE && a != WEFT_POST_ACCEPTED) {
		w->full = true;
		return false;
	}
	news_told(p, w, &h);
	return true;
}

void weft_net_bundle_greet_locked(struct weft_bundle *b, int peer)
{
	weft_assert_held(weft_net_bundle, &b->peer[peer]);
	struct weft_bundle_peer *p = &b->peer[peer];
	for (unsigned r = 0; r < b->n_rails; r++) {
		struct weft_bundle_way *w = &p->way[r];
		if (w->state == WEFT_BUNDLE_IDLE)
			w->state = WEFT_BUNDLE_WANTED;
		if (w->state == WEFT_BUNDLE_WANTED && !w->hello_sent && !w->full)
			w->hello_sent = post_news(b, peer, r, WEFT_BUNDLE_HELLO);
	}
}

void weft_net_bundle_ack_locked(struct weft_bundle *b, int peer, unsigned rail)
{
	weft_assert_held(weft_net_bundle, &b->peer[peer]);
	struct weft_bundle_way *w = &b->peer[peer].way[rail];
	if (w->state == WEFT_BUNDLE_UP && !w->full)
		(void)post_news(b, peer, rail, WEFT_BUNDLE_ACK);
}

/* Bytes per time while the rail had something to do; a burst too short says nothing. */
static void measure_rate(struct weft_bundle_net *r, struct weft_bundle_way *w, size_t bytes)
{
	w->busy_bytes += bytes;
	uint64_t took = w->since_ns - w->busy_ns;
	if (w->busy_bytes >= MEASURE_BYTES && took) {
		double now = (double)w->busy_bytes / (double)took;
		w->bytes_per_ns = w->bytes_per_ns > 0 ? 0.75 * w->bytes_per_ns + 0.25 * now : now;
		/* Relaxed: a figure for the statistics. */
		atomic_store_explicit(&r->x_mbs, (uint32_t)(w->bytes_per_ns * 1000),
				      memory_order_relaxed);
		w->busy_ns = w->since_ns;
		w->busy_bytes = 0;
	}
}

bool weft_net_bundle_confirm_locked(struct weft_bundle *b, int peer, unsigned rail,
				    const struct weft_bundle_head *h,
				    struct weft_bundle_large **over)
{
	weft_assert_held(weft_net_bundle, &b->peer[peer]);
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	struct weft_bundle_link *l;
	if (!weft_net_bundle_lane_sane(&w->lane, h->got) || (int32_t)(p->number - h->next) < 0)
		return false;
	if ((int32_t)(h->next - p->peer_next) > 0)
		p->peer_next = h->next;
	if (w->lane.confirmed == h->got)
		return true;
	w->since_ns = weft_clock_ns();
	size_t pieces = 0;
	while ((l = weft_net_bundle_lane_confirm(&w->lane, h->got))) {
		struct weft_bundle_unit *u = (struct weft_bundle_unit *)l;
		weft_assert(!u->confirmed && w->under_bytes >= u->len);
		w->under_bytes -= u->len;
		if (u->head.kind == WEFT_BUNDLE_PART) {
			weft_assert(w->pieces > 0);
			w->pieces--;
			pieces += u->len;
		}
		if (u->held)
			keep_until_read(p, u);
		else
			unit_over(p, u, over);
	}
	if (pieces)
		measure_rate(&b->rail[rail], w, pieces);
	return true;
}

int weft_net_bundle_tell_over(struct weft_bundle *b, int peer, struct weft_bundle_large *over,
			      weft_err err)
{
	int n = 0;
	while (over) {
		struct weft_bundle_large *l = over;
		over = l->next;
		b->events.sent(b->events.arg, peer, l->cookie, err);
		free(l);
		n++;
	}
	return n;
}

/* Where no upcalls are made the rails are closed: they read nothing any more. */
static void unit_closed(struct weft_bundle_peer *p, struct weft_bundle_unit *u,
			struct weft_bundle_large **over)
{
	u->held = false;
	unit_over(p, u, over);
}

void weft_net_bundle_out_end(struct weft_bundle *b, int peer, bool tell)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_large *over = NULL;
	struct weft_bundle_link *l;
	weft_net_bundle_lock(p);
	for (unsigned r = 0; r < b->n_rails; r++) {
		weft_net_bundle_lane_lost(&p->way[r].lane, &p->queue);
		p->way[r].under_bytes = 0;
	}
	/* What is not cut yet has no units any more: it counts as cut. */
	if (p->large) {
		struct weft_bundle_large *x = p->large;
		p->large = NULL;
		x->given = x->len;
		if (!x->n_units) {
			x->next = over;
			over = x;
		}
	}
	while ((l = weft_net_bundle_fifo_take(&p->queue))) {
		struct weft_bundle_unit *u = (struct weft_bundle_unit *)l;
		if (tell && u->held)
			keep_until_read(p, u);
		else
			unit_closed(p, u, &over);
	}
	while (!tell && (l = p->lingering)) {
		p->lingering = l->next;
		unit_closed(p, (struct weft_bundle_unit *)l, &over);
	}
	weft_net_bundle_spares_free(p);
	weft_net_bundle_unlock(p);
	if (tell) {
		weft_net_bundle_tell_over(b, peer, over, WEFT_ERR_PEER);
		return;
	}
	while (over) {
		struct weft_bundle_large *x = over;
		over = x->next;
		free(x);
	}
}
