/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle_in.c - the way in: what rails deliver, put back into order, each once.
 *
 * A piece of the large packet that is being put together goes straight into its place.  What comes
 * before its turn waits in a slot; a piece whose packet has not begun yet waits aside, and so does
 * a packet that comes as a stream until all of it is there.  A large packet ends when all of it is
 * there and no rail writes into it any more: a rail that the peer has given up may still hold the
 * first half of a piece that came again elsewhere; such a rail is ended here, too.
 */
#include <stdlib.h>
#include "net/bundle/bundle_int.h"

static struct weft_bundle_head head_of(const void *head)
{
	struct weft_bundle_head h;
	memcpy(&h, head, sizeof h);
	return h;
}

static void close_peer(struct weft_bundle *b, int peer, const char *what)
{
	weft_net_bundle_peer_down(b, peer, WEFT_ERR_PROTO, what);
}

/* Copies a piece to where the upper layer wants it. */
static void copy_piece(const struct weft_bundle_peer *p, size_t offset, const void *data,
		       size_t len)
{
	const uint8_t *from = data;
	size_t end = offset + len < p->sink.room ? offset + len : p->sink.room, at = 0;
	for (unsigned i = 0; i < p->sink.n && offset < end; i++) {
		size_t has = p->sink_iov[i].iov_len;
		if (offset < at + has) {
			size_t part = at + has - offset;
			part = part < end - offset ? part : end - offset;
			memcpy((uint8_t *)p->sink_iov[i].iov_base + (offset - at), from, part);
			from += part;
			offset += part;
		}
		at += has;
	}
}

/* The same place as pieces for a stream. */
static void aim_sink(const struct weft_bundle_peer *p, struct weft_bundle_way *w, size_t offset,
		     size_t len, struct weft_net_sink *sink)
{
	size_t end = offset + len < p->sink.room ? offset + len : p->sink.room, at = 0;
	*sink = (struct weft_net_sink){.iov = w->in_iov};
	for (unsigned i = 0; i < p->sink.n && offset < end; i++) {
		size_t has = p->sink_iov[i].iov_len;
		if (offset < at + has) {
			size_t part = at + has - offset;
			part = part < end - offset ? part : end - offset;
			w->in_iov[sink->n++] = (struct iovec){
				(uint8_t *)p->sink_iov[i].iov_base + (offset - at), part};
			sink->room += part;
			offset += part;
		}
		at += has;
	}
}

/* Does a rail still write into the packet that is being put together? */
static bool is_written(struct weft_bundle *b, struct weft_bundle_peer *p)
{
	bool any = false;
	for (unsigned r = 0; r < b->n_rails; r++) {
		struct weft_bundle_way *w = &p->way[r];
		if (w->in_what == WEFT_BUNDLE_IN_PLACE && w->in.begin == p->placing_begin) {
			w->drop = b->stirred = true;
			any = true;
		}
	}
	return any;
}

/* A large packet begins: asks where it shall go, and puts there what came before. */
static bool begin_large(struct weft_bundle *b, int peer, uint32_t number, const void *data)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_begin begin;
	memcpy(&begin, data, sizeof begin);
	weft_assert(!p->placing && begin.len && begin.len <= WEFT_BUNDLE_MAX_PAYLOAD);
	p->sink = (struct weft_net_sink){0};
	b->events.place(b->events.arg, peer, begin.head, (size_t)begin.len, &p->sink);
	p->placing = true;
	p->placing_begin = number;
	p->placing_len = (size_t)begin.len;
	p->placing_got = 0;
	if (p->sink.n > WEFT_BUNDLE_PIECES)
		return false;
	memcpy(p->sink_iov, p->sink.iov, p->sink.n * sizeof *p->sink_iov);
	/* Its pieces have the numbers behind its own. */
	for (uint32_t i = 1;
	     p->n_aside && p->placing_got < p->placing_len && i < WEFT_BUNDLE_WINDOW; i++) {
		struct weft_bundle_slot *s = &p->slot[(number + i) % WEFT_BUNDLE_WINDOW];
		if (s->kind != WEFT_BUNDLE_PART || !s->data || s->begin != number)
			continue;
		if (s->offset > p->placing_len || s->len > p->placing_len - s->offset)
			return false;
		copy_piece(p, s->offset, s->data, s->len);
		p->placing_got += s->len;
		weft_assert(p->placing && p->n_aside > 0);
		free(s->data);
		s->data = NULL;
		p->n_aside--;
	}
	return true;
}

/* Delivers all whose turn has come. */
static void deliver_in_turn(struct weft_bundle *b, int peer)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	/* Relaxed: only we, the poller, write x_down. */
	while (!atomic_load_explicit(&p->x_down, memory_order_relaxed)) {
		if (p->placing && p->placing_got == p->placing_len && !is_written(b, p)) {
			p->placing = false;
			b->events.placed(b->events.arg, peer, p->sink.cookie, WEFT_OK);
			continue;
		}
		if (!weft_net_bundle_has(&p->window, p->window.next))
			break;
		struct weft_bundle_slot *at = &p->slot[p->window.next % WEFT_BUNDLE_WINDOW];
		struct weft_bundle_slot s = *at;
		uint32_t number = p->window.next;
		if (s.kind != WEFT_BUNDLE_PART && p->placing)
			break;
		*at = (struct weft_bundle_slot){0};
		weft_net_bundle_advance(&p->window);
		if (s.kind == WEFT_BUNDLE_WHOLE)
			b->events.packet(b->events.arg, peer, s.data,
					 (uint8_t *)s.data + WEFT_NET_HEAD, s.len - WEFT_NET_HEAD);
		else if (s.kind == WEFT_BUNDLE_BEGIN && !begin_large(b, peer, number, s.data))
			close_peer(b, peer, "a large packet of the wrong shape came");
		free(s.data);
	}
	/* Relaxed: a number; a poster that reads an older one confirms less. */
	atomic_store_explicit(&p->x_in_next, p->window.next, memory_order_relaxed);
}

/* What a head says; units: does it stand for a unit that is complete?  False: it makes no sense. */
static bool hear_head(struct weft_bundle *b, int peer, unsigned rail,
		      const struct weft_bundle_head *h, bool unit, size_t len)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	struct weft_bundle_large *over = NULL;
	if (!b->heard_ns)
		b->heard_ns = weft_clock_ns();
	w->heard_ns = b->heard_ns;
	weft_net_bundle_lock(p);
	bool good = weft_net_bundle_confirm_locked(b, peer, rail, h, &over);
	if (unit) {
		if (w->got++ == w->told_got)
			w->owed_ns = w->heard_ns;
		w->asked_now |= h->ask == WEFT_BUNDLE_NOW;
		w->asked += h->ask != WEFT_BUNDLE_LATER;
		w->asked_bytes += h->ask != WEFT_BUNDLE_LATER ? len : 0;
	}
	if (good)
		weft_net_bundle_pump_locked(b, peer);
	weft_net_bundle_unlock(p);
	weft_net_bundle_tell_over(b, peer, over, WEFT_OK);
	return good;
}

static void on_hello(struct weft_bundle *b, int peer, unsigned rail)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	weft_net_bundle_list(b, peer);
	weft_net_bundle_lock(p);
	w->hello_got = true;
	p->awake = true;
	if (w->state == WEFT_BUNDLE_LOST)
		w->state = WEFT_BUNDLE_IDLE;
	weft_net_bundle_greet_locked(b, peer);
	bool up = w->hello_sent && w->state == WEFT_BUNDLE_WANTED;
	weft_net_bundle_unlock(p);
	if (up)
		weft_net_bundle_way_up(b, peer, rail);
}

/* A piece is here: in place, aside (ours now), or not wanted (NULL, and in_place false). */
static void part_came(struct weft_bundle *b, int peer, const struct weft_bundle_head *h,
		      uint32_t len, void *aside, bool in_place)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	if (weft_net_bundle_look(&p->window, h->number) != WEFT_BUNDLE_FRESH ||
	    (!aside && !in_place)) {
		free(aside);
		return;
	}
	struct weft_bundle_slot *s = &p->slot[h->number % WEFT_BUNDLE_WINDOW];
	*s = (struct weft_bundle_slot){.kind = WEFT_BUNDLE_PART, .len = len};
	weft_net_bundle_mark(&p->window, h->number);
	if (aside && p->placing && p->placing_begin == h->begin) {
		copy_piece(p, h->offset, aside, len);
		in_place = true;
		free(aside);
	}
	if (in_place) {
		p->placing_got += len;
		weft_assert(p->placing);
		return;
	}
	weft_assert(aside && p->n_aside < WEFT_BUNDLE_WINDOW);
	s->data = aside;
	s->begin = h->begin;
	s->offset = h->offset;
	p->n_aside++;
}

static bool part_fits(const struct weft_bundle_peer *p, const struct weft_bundle_head *h,
		      size_t len)
{
	if (!len || len > WEFT_BUNDLE_PIECE || (int32_t)(h->number - h->begin) <= 0)
		return false;
	return !p->placing || p->placing_begin != h->begin ||
	       (h->offset < p->placing_len && len <= p->placing_len - h->offset);
}

/* A piece in one packet. */
static bool part_packet(struct weft_bundle *b, int peer, const struct weft_bundle_head *h,
			const void *payload, size_t len)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	if (!part_fits(p, h, len))
		return false;
	if (weft_net_bundle_look(&p->window, h->number) == WEFT_BUNDLE_AGAIN)
		return true;
	if (p->placing && p->placing_begin == h->begin) {
		copy_piece(p, h->offset, payload, len);
		part_came(b, peer, h, (uint32_t)len, NULL, true);
		return true;
	}
	void *aside = malloc(len);
	if (!aside)
		return false;
	memcpy(aside, payload, len);
	part_came(b, peer, h, (uint32_t)len, aside, false);
	return true;
}

static bool whole_fits(size_t len)
{
	return len >= WEFT_NET_HEAD && len <= WEFT_NET_HEAD + WEFT_BUNDLE_WHOLE_MAX;
}

/*
 * A packet that was copied, or the beginning of a large one.  *aside_p: the memory where `payload`
 * is, if it is ours to keep; NULL afterwards: it was kept.
 */
static bool whole_packet(struct weft_bundle *b, int peer, const struct weft_bundle_head *h,
			 const void *payload, size_t len, void **aside_p)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_begin begin;
	if (!whole_fits(len))
		return false;
	if (h->kind == WEFT_BUNDLE_BEGIN) {
		if (len != sizeof begin)
			return false;
		memcpy(&begin, payload, sizeof begin);
		if (!begin.len || begin.len > WEFT_BUNDLE_MAX_PAYLOAD)
			return false;
	}
	if (weft_net_bundle_look(&p->window, h->number) == WEFT_BUNDLE_AGAIN)
		return true;
	weft_assert(weft_net_bundle_look(&p->window, h->number) == WEFT_BUNDLE_FRESH);
	weft_net_bundle_mark(&p->window, h->number);
	if (h->number == p->window.next && h->kind == WEFT_BUNDLE_WHOLE && !p->placing) {
		/* Its turn, as nearly always: no copy. */
		weft_net_bundle_advance(&p->window);
		b->events.packet(b->events.arg, peer, payload,
				 (const uint8_t *)payload + WEFT_NET_HEAD, len - WEFT_NET_HEAD);
		return true;
	}
	void *copy = *aside_p ? *aside_p : malloc(len);
	if (!copy)
		return false;
	if (!*aside_p)
		memcpy(copy, payload, len);
	*aside_p = NULL;
	p->slot[h->number % WEFT_BUNDLE_WINDOW] =
		(struct weft_bundle_slot){.kind = h->kind, .len = (uint32_t)len, .data = copy};
	return true;
}

/* No sender of ours goes so far beyond what was taken in order. */
static bool is_wild(const struct weft_bundle_peer *p, const struct weft_bundle_head *h, size_t len)
{
	enum weft_bundle_seen seen = weft_net_bundle_look(&p->window, h->number);
	return seen == WEFT_BUNDLE_WILD ||
	       (seen == WEFT_BUNDLE_FRESH && len > WEFT_NET_HEAD + WEFT_BUNDLE_INLINE &&
		h->number - p->window.next >= WEFT_BUNDLE_LONG);
}

/* The peer whose rail speaks; NULL: it is down, what it says is dropped. */
static struct weft_bundle_peer *speaking_peer(struct weft_bundle *b, int peer)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	if (atomic_load_explicit(&p->x_down, memory_order_relaxed))
		return NULL;
	if (!p->slot && !(p->slot = calloc(WEFT_BUNDLE_WINDOW, sizeof *p->slot))) {
		weft_net_bundle_peer_down(b, peer, WEFT_ERR_NOMEM, "no memory to receive");
		return NULL;
	}
	return p;
}

static void on_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	struct weft_bundle_net *r = arg;
	struct weft_bundle *b = r->bundle;
	struct weft_bundle_peer *p = speaking_peer(b, peer);
	struct weft_bundle_head h = head_of(head);
	if (!p)
		return;
	struct weft_bundle_way *w = &p->way[r->index];
	void *none = NULL;
	bool unit = h.kind >= WEFT_BUNDLE_WHOLE, good = h.kind && h.kind <= WEFT_BUNDLE_PART;
	if (h.kind == WEFT_BUNDLE_HELLO && !w->hello_got) {
		on_hello(b, peer, r->index);
		return;
	}
	if (good)
		good = w->state == WEFT_BUNDLE_UP && h.kind != WEFT_BUNDLE_HELLO &&
		       hear_head(b, peer, r->index, &h, unit, len) &&
		       (!unit || !is_wild(p, &h, len));
	if (good && h.kind == WEFT_BUNDLE_PART)
		good = part_packet(b, peer, &h, payload, len);
	else if (good && unit)
		good = whole_packet(b, peer, &h, payload, len, &none);
	if (!good)
		close_peer(b, peer, "a packet that makes no sense came");
	else if (unit)
		deliver_in_turn(b, peer);
}

static void on_place(void *arg, int peer, const void *head, size_t len, struct weft_net_sink *sink)
{
	struct weft_bundle_net *r = arg;
	struct weft_bundle *b = r->bundle;
	struct weft_bundle_peer *p = speaking_peer(b, peer);
	*sink = (struct weft_net_sink){0};
	if (!p)
		return;
	struct weft_bundle_way *w = &p->way[r->index];
	w->in = head_of(head);
	w->in_len = (uint32_t)len;
	w->in_what = WEFT_BUNDLE_IN_DROP;
	bool part = w->in.kind == WEFT_BUNDLE_PART;
	bool fits = part ? part_fits(p, &w->in, len)
			 : w->in.kind == WEFT_BUNDLE_WHOLE && whole_fits(len);
	if (!fits || w->state != WEFT_BUNDLE_UP || is_wild(p, &w->in, len)) {
		close_peer(b, peer, "a stream that makes no sense came");
		return;
	}
	if (weft_net_bundle_look(&p->window, w->in.number) == WEFT_BUNDLE_AGAIN)
		return;
	if (part && p->placing && p->placing_begin == w->in.begin) {
		w->in_what = WEFT_BUNDLE_IN_PLACE;
		aim_sink(p, w, w->in.offset, len, sink);
		return;
	}
	w->aside = malloc(len);
	if (!w->aside) {
		weft_net_bundle_peer_down(b, peer, WEFT_ERR_NOMEM, "no memory to receive");
		return;
	}
	w->in_what = WEFT_BUNDLE_IN_ASIDE;
	w->in_iov[0] = (struct iovec){w->aside, len};
	*sink = (struct weft_net_sink){.iov = w->in_iov, .n = 1, .room = len};
}

static void on_placed(void *arg, int peer, void *cookie, weft_err err)
{
	struct weft_bundle_net *r = arg;
	struct weft_bundle *b = r->bundle;
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[r->index];
	weft_assert((w->in_what == WEFT_BUNDLE_IN_ASIDE) == (w->aside != NULL));
	int what = w->in_what;
	void *aside = w->aside;
	w->in_what = WEFT_BUNDLE_IN_NONE;
	w->aside = NULL;
	if (err || atomic_load_explicit(&p->x_down, memory_order_relaxed)) {
		free(aside); /* it comes again over another rail, or has come */
		deliver_in_turn(b, peer);
		return;
	}
	bool good = hear_head(b, peer, r->index, &w->in, true, w->in_len);
	/* Not kept aside, it was not wanted. */
	if (good && aside && w->in.kind == WEFT_BUNDLE_WHOLE)
		good = whole_packet(b, peer, &w->in, aside, w->in_len, &aside);
	if (!good || w->in.kind == WEFT_BUNDLE_WHOLE) {
		free(aside);
		if (good)
			deliver_in_turn(b, peer);
		else
			close_peer(b, peer, "a stream that makes no sense came");
		return;
	}
	/* Aside, its packet may have begun meanwhile, with another length than it was checked for.
	 */
	if (aside && !part_fits(p, &w->in, w->in_len)) {
		free(aside);
		close_peer(b, peer, "a piece beyond its packet came");
		return;
	}
	part_came(b, peer, &w->in, w->in_len, aside, what == WEFT_BUNDLE_IN_PLACE);
	deliver_in_turn(b, peer);
}

static void on_sent(void *arg, int peer, void *cookie, weft_err err)
{
	struct weft_bundle_net *r = arg;
	struct weft_bundle_peer *p = &r->bundle->peer[peer];
	struct weft_bundle_large *over = NULL;
	if (!cookie)
		return;
	weft_net_bundle_lock(p);
	weft_net_bundle_unit_released(p, cookie, &over);
	weft_net_bundle_unlock(p);
	weft_net_bundle_tell_over(r->bundle, peer, over, WEFT_OK);
}

static void on_ready(void *arg, int peer)
{
	struct weft_bundle_net *r = arg;
	struct weft_bundle *b = r->bundle;
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[r->index];
	if (atomic_load_explicit(&p->x_down, memory_order_relaxed))
		return;
	weft_net_bundle_lock(p);
	w->full = false;
	weft_net_bundle_greet_locked(b, peer);
	weft_net_bundle_pump_locked(b, peer);
	bool up = w->hello_sent && w->hello_got && w->state == WEFT_BUNDLE_WANTED;
	weft_net_bundle_unlock(p);
	if (up)
		weft_net_bundle_way_up(b, peer, r->index);
}

static void on_down(void *arg, int peer, weft_err err, const char *why)
{
	struct weft_bundle_net *r = arg;
	weft_net_bundle_way_down(r->bundle, peer, r->index, err, why);
}

static bool on_hold(void *arg, int peer, bool first)
{
	struct weft_bundle *b = ((struct weft_bundle_net *)arg)->bundle;
	return b->events.hold && b->events.hold(b->events.arg, peer, first);
}

struct weft_net_events weft_net_bundle_rail_events(struct weft_bundle_net *r)
{
	return (struct weft_net_events){
		.arg = r,
		.packet = on_packet,
		.place = on_place,
		.placed = on_placed,
		.sent = on_sent,
		.ready = on_ready,
		.down = on_down,
		.hold = on_hold,
	};
}

void weft_net_bundle_in_end(struct weft_bundle *b, int peer)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	for (uint32_t i = 0; p->slot && i < WEFT_BUNDLE_WINDOW; i++)
		free(p->slot[i].data);
	free(p->slot);
	p->slot = NULL;
	p->n_aside = 0;
	memset(&p->window, 0, sizeof p->window);
}
