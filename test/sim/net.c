/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.c - the driver `sim`: posts, arrivals, access to memory.  It keeps to net/driver.h: in order
 * per peer and rail, each packet once; and takes every liberty that the contract leaves: late,
 * full, kept, in pieces, as a whole or as a stream, ready() and sent() before the post returns, an
 * end at any moment.  Connections begin and end in link.c.
 */
#include <stdlib.h>
#include "sim.h"

int sim_rail_of(int a, int b)
{
	return (a + b) % sim.plan.rails;
}

bool sim_uses(const struct sim_net *f, int peer)
{
	return peer != f->rank && (sim.plan.bundle || sim_rail_of(f->rank, peer) == f->rail);
}

/* ---- post --------------------------------------------------------------------------------- */

/* What other threads could do while a post is under way. */
void sim_others(void)
{
	if (sim.depth >= 3 || !sim_chance(sim.plan.nest))
		return;
	sim.depth++;
	for (unsigned i = 1 + sim_pick(6); i > 0; i--)
		sim_move();
	sim.depth--;
}

static enum weft_post post_full(struct sim_lane *l)
{
	l->want_ready = true;
	sim_others();
	if (!l->want_ready)
		sim_cover(SIM_READY_IN_POST);
	return WEFT_POST_FULL;
}

static enum weft_post post(struct sim_net *f, int peer, const void *head, const struct iovec *iov,
			   unsigned n, size_t len, void *cookie)
{
	struct sim_lane *l = sim_lane_of(f->rank, peer, f->rail);

	if (f->end[peer].state == SIM_ENDED)
		return WEFT_POST_DOWN;
	if (f->end[peer].state != SIM_LINKED) {
		sim_link_dial(f, peer);
		l->want_ready = true;
		return WEFT_POST_FULL;
	}
	if (l->queued >= sim.plan.window || sim_chance(sim.plan.full))
		return post_full(l);
	struct sim_packet *p = sim_packet_make(head, iov, n, len, cookie);
	p->pending = len > sim.plan.inline_max && sim_chance(sim.plan.accept);
	bool accepted = p->pending;
	if (!accepted)
		sim_packet_gather(p);
	struct weft_wire h = sim_head_of(p);
	sim_lane_append(l, p);
	if (f->end[peer].broken) /* neither end knows yet; it will not arrive */
		p->due_ns = UINT64_MAX;
	sim_others();
	/* p may be gone by now. */
	if (!sim.plan.bundle)
		sim_cover_post(&h, accepted ? WEFT_POST_ACCEPTED : WEFT_POST_DONE);
	return accepted ? WEFT_POST_ACCEPTED : WEFT_POST_DONE;
}

static enum weft_post sim_post(struct weft_net *net, int peer, const void *head,
			       const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct sim_net *f = (struct sim_net *)net;
	struct sim_rank *me = &sim.rank[f->rank];
	struct weft_wire h;

	CHECK(n <= WEFT_IOV_MAX && len <= f->card.max_payload);
	memcpy(&h, head, sizeof h);
	if (sim.plan.bundle) {
		/* The bundle's lock is held: no other call of this rank gets far. */
		me->locked++;
		enum weft_post p = post(f, peer, head, iov, n, len, cookie);
		me->locked--;
		return p;
	}
	sim_strategy_posts(&me->core->gate[peer], &h);
	me->posting[peer]++;
	/* One at a time: the caller holds the gate's mask. */
	CHECK_EQ(me->posting[peer], 1);
	enum weft_post p = post(f, peer, head, iov, n, len, cookie);
	me->posting[peer]--;
	if (p == WEFT_POST_FULL || p == WEFT_POST_DOWN)
		sim_cover_post(&h, p);
	sim_say_post(f->rank, peer, &h, len, p);
	return p;
}

/* ---- poll: our side of what we sent ------------------------------------------------------- */

static int poll_out(struct sim_net *f, int peer)
{
	struct sim_lane *l = sim_lane_of(f->rank, peer, f->rail);
	int n = 0;

	/* One at a time: the upcall may post. */
	for (struct sim_packet *p = l->first; p; p = p->next) {
		if (!p->pending || !sim_chance(60))
			continue;
		sim_packet_gather(p);
		if (sim.rank[f->rank].posting[peer])
			sim_cover(SIM_SENT_IN_POST);
		f->ev.sent(f->ev.arg, peer, p->cookie, WEFT_OK);
		n++;
		break;
	}
	if (l->want_ready && l->queued < sim.plan.window) {
		l->want_ready = false;
		f->ev.ready(f->ev.arg, peer);
		n++;
	}
	return n;
}

/* ---- poll: what arrives ------------------------------------------------------------------- */

/* Writes the next bytes of the payload that is being placed; a random piece, or the rest. */
static bool place_more(struct sim_lane *l, bool all)
{
	struct sim_packet *p = l->placing;
	size_t want = p->len < l->sink.room ? p->len : l->sink.room;
	size_t piece = want - l->placed;

	if (!l->sink.n)
		return true;
	if (!all && piece > 1 && sim_chance(50)) {
		piece = 1 + sim_pick((unsigned)piece - 1);
		sim_cover(SIM_PLACE_PIECES);
	}
	size_t at = 0;
	for (unsigned i = 0; i < l->sink.n && piece; i++) {
		size_t len = l->sink.iov[i].iov_len;
		if (at + len > l->placed) {
			size_t skip = l->placed - at, k = len - skip < piece ? len - skip : piece;
			memcpy((char *)l->sink.iov[i].iov_base + skip, p->data + l->placed, k);
			l->placed += k;
			piece -= k;
		}
		at += len;
	}
	return l->placed == want;
}

static void cover_arrival(const struct weft_wire *h, uint64_t unexpected_before)
{
	if (sim.plan.bundle)
		return; /* its own heads */
	bool unexpected = weft_counter_sum(WEFT_CNT_UNEXPECTED) != unexpected_before;
	if (h->kind == WEFT_WIRE_EAGER)
		sim_cover(unexpected ? SIM_UNEXPECTED_EAGER : SIM_MATCHED_EAGER);
	else if (h->kind == WEFT_WIRE_RTS)
		sim_cover(unexpected ? SIM_UNEXPECTED_RTS : SIM_MATCHED_RTS);
	else if (h->kind == WEFT_WIRE_DATA && h->flags & WEFT_WIRE_SHARE)
		sim_cover(SIM_SHARED);
}

static void cover_stream(const struct weft_wire *h)
{
	if (h->kind == WEFT_WIRE_EAGER)
		sim_cover(SIM_PLACE_EAGER);
	else if (h->kind == WEFT_WIRE_RTS)
		sim_cover(SIM_PLACE_RTS);
	else if (h->kind == WEFT_WIRE_DATA)
		sim_cover(SIM_PLACE_DATA);
	else if (h->kind == WEFT_WIRE_PACK)
		sim_cover(SIM_PLACE_PACK);
}

static struct sim_region *region_of(struct weft_net_region *r)
{
	return (struct sim_region *)(void *)r->driver_private;
}

/* The region is open: until its sender has said that it has written, or is gone. */
static void written(struct sim_net *f, int from, struct sim_packet *p)
{
	uint64_t where[3];
	memcpy(where, p->head, sizeof where);
	struct weft_net_region *r = f->region;
	while (r && r->ticket.key != where[0])
		r = region_of(r)->next;
	CHECK(r && region_of(r)->peer == from && r->ticket.len == where[2]);
	CHECK(where[1] <= where[2] && p->len <= where[2] - where[1]);
	memcpy(region_of(r)->base + where[1], p->data, p->len);
	sim_packet_free(p);
	sim_cover(SIM_WRITTEN);
}

/* What the bundle says of itself is so short that no driver delivers it as a stream. */
static bool may_stream(const void *head)
{
	return !sim.plan.bundle || sim_rails_streams(head);
}

/* Delivers at most one packet of a lane, or a part of one. */
static int poll_in(struct sim_net *f, int from)
{
	struct sim_lane *l = sim_lane_of(from, f->rank, f->rail);

	if (l->placing) {
		struct sim_packet *p = l->placing;
		if (!place_more(l, false))
			return 1;
		struct weft_wire h = sim_head_of(p);
		uint64_t before = weft_counter_sum(WEFT_CNT_UNEXPECTED);
		l->placing = NULL;
		f->ev.placed(f->ev.arg, from, l->sink.cookie, WEFT_OK);
		if (h.kind == WEFT_WIRE_RTS)
			cover_arrival(&h, before);
		sim_packet_free(p);
		return 1;
	}
	struct sim_packet *p = l->first;
	if (!p || p->pending || p->due_ns > sim.now_ns)
		return 0;
	(void)sim_lane_pop(l);
	if (p->is_write) {
		written(f, from, p);
		return 1;
	}
	struct weft_wire h = sim_head_of(p);
	uint64_t before = weft_counter_sum(WEFT_CNT_UNEXPECTED);
	SIM_SAY("%d->%d (%d) arrives kind %d seq %u tag %d length %llu", from, f->rank, f->rail,
		h.kind, h.sequence, h.tag, (unsigned long long)h.length);
	if (sim.plan.bundle)
		sim_rails_arrives(f->rank, from, p->head);
	if (p->len && may_stream(p->head) && sim_chance(sim.plan.stream)) {
		l->sink = (struct weft_net_sink){0};
		l->placed = 0;
		l->placing = p;
		f->ev.place(f->ev.arg, from, p->head, p->len, &l->sink);
		if (sim.plan.bundle)
			sim_rails_cover_stream(p->head);
		else
			cover_stream(&h);
		if (h.kind != WEFT_WIRE_RTS)
			cover_arrival(&h, before);
	} else {
		f->ev.packet(f->ev.arg, from, p->head, p->data, p->len);
		cover_arrival(&h, before);
		sim_packet_free(p);
	}
	return 1;
}

static int sim_poll(struct weft_net *net)
{
	struct sim_net *f = (struct sim_net *)net;
	int n = 0;

	CHECK(!f->polling);
	f->polling = true;
	int start = (int)sim_pick((unsigned)sim.plan.ranks);
	for (int i = 0; i < sim.plan.ranks; i++) {
		int peer = (start + i) % sim.plan.ranks;
		if (!sim_uses(f, peer) || f->end[peer].state == SIM_ENDED)
			continue;
		if (f->end[peer].state != SIM_LINKED) {
			n += sim_link_poll(f, peer);
			continue;
		}
		n += poll_out(f, peer);
		/* Ends: what is due runs out. */
		while (f->end[peer].state == SIM_LINKED && poll_in(f, peer)) {
			n++;
			if (sim_chance(30))
				break;
		}
		n += sim_link_poll(f, peer);
	}
	f->polling = false;
	return n;
}

/* ---- memory of others --------------------------------------------------------------------- */

static enum weft_post copy_at_once(struct sim_net *f, int peer, const struct weft_net_transfer *t)
{
	/* A write perhaps after a few pieces. */
	bool fails = t->write ? sim.plan.put_fails && sim_chance(50) : sim.plan.get_fails;
	size_t bytes;
	CHECK(weft_net_transfer_fits(t, &bytes) && t->there->key == WEFT_NET_KEY_ANY);
	if (fails || f->end[peer].state == SIM_ENDED || sim_broken(f->rank, peer)) {
		sim_cover(t->write ? SIM_PUT_FAILED : SIM_GET_FAILED);
		return WEFT_POST_REFUSED;
	}
	weft_net_transfer_mapped(t, (char *)(uintptr_t)t->there->addr);
	sim_cover(t->write ? SIM_PUSHED : SIM_FETCHED);
	sim_others();
	return WEFT_POST_DONE;
}

static weft_err sim_region_open(struct weft_net *net, int peer, void *base, size_t len,
				unsigned access, struct weft_net_region *region)
{
	struct sim_net *f = (struct sim_net *)net;
	if (sim_chance(5))
		return WEFT_ERR_NOMEM;
	CHECK(access == WEFT_NET_WRITE);
	region->ticket = (struct weft_net_ticket){.len = len, .key = ++f->regions};
	*region_of(region) = (struct sim_region){f->region, base, peer};
	f->region = region;
	return WEFT_OK;
}

static void sim_region_close(struct weft_net *net, struct weft_net_region *region)
{
	struct weft_net_region **at = &((struct sim_net *)net)->region;
	while (*at != region) /* ends: it is open */
		at = &region_of(*at)->next;
	*at = region_of(region)->next;
}

/* A copy at once, or, into a region, a packet that finds its place by its head. */
static enum weft_post sim_transfer(struct weft_net *net, int peer,
				   const struct weft_net_transfer *t)
{
	struct sim_net *f = (struct sim_net *)net;
	struct sim_lane *l = sim_lane_of(f->rank, peer, f->rail);
	uint64_t head[3] = {t->there->key, t->span->at, t->there->len};
	size_t bytes;
	static_assert(sizeof head == WEFT_NET_HEAD, "a write's place is its packet's head");
	if (f->card.copies)
		return copy_at_once(f, peer, t);
	CHECK(t->write && t->n_spans == 1 && weft_net_transfer_fits(t, &bytes));
	if (f->end[peer].state == SIM_ENDED)
		return WEFT_POST_DOWN;
	if (l->queued >= sim.plan.window || sim_chance(sim.plan.full))
		return post_full(l);
	struct sim_packet *p = sim_packet_make(head, t->piece, t->n_pieces, bytes, t->cookie);
	p->pending = p->is_write = true;
	sim_lane_append(l, p);
	if (f->end[peer].broken)
		p->due_ns = UINT64_MAX;
	sim.rank[f->rank].posting[peer]++;
	sim_others();
	sim.rank[f->rank].posting[peer]--;
	return WEFT_POST_ACCEPTED;
}

static _Atomic uint64_t *sim_word(struct weft_net *net, int peer, unsigned i)
{
	(void)net;
	return i < WEFT_NET_WORDS ? &sim.rank[peer].x_word[i] : NULL;
}

static bool sim_awake(struct weft_net *net, int peer)
{
	(void)net;
	(void)peer;
	return sim_chance(80);
}

/* ---- life --------------------------------------------------------------------------------- */

static weft_err open_as(const struct weft_driver *driver, const struct weft_net_job *job,
			const struct weft_net_events *ev, struct weft_net **net_p)
{
	struct sim_net *f = calloc(1, sizeof *f);
	CHECK(f);
	f->base.driver = driver;
	f->once = driver == &sim_driver_once;
	f->rank = job->rank;
	f->ev = *ev;
	f->card = (struct weft_net_card){.max_payload = sim.plan.max_payload,
					 .inline_max = sim.plan.inline_max,
					 .eager_max = sim.plan.eager_max,
					 .latency_us = sim.plan.latency_us,
					 .access = sim.plan.can_get ? WEFT_NET_READ | WEFT_NET_WRITE
						   : sim.plan.rdma  ? WEFT_NET_WRITE
								    : 0u,
					 .copies = sim.plan.can_get,
					 .streams = true};
	while (sim.rank[f->rank].net[f->rail])
		f->rail++;
	sim.rank[f->rank].net[f->rail] = f;
	for (int p = 0; sim.plan.bundle && p < SIM_RANKS; p++)
		f->end[p].state = SIM_IDLE;
	*net_p = &f->base;
	return WEFT_OK;
}

static weft_err sim_open(const struct weft_net_job *job, const struct weft_net_events *ev,
			 struct weft_net **net_p)
{
	return open_as(&sim_driver, job, ev, net_p);
}

static weft_err once_open(const struct weft_net_job *job, const struct weft_net_events *ev,
			  struct weft_net **net_p)
{
	return open_as(&sim_driver_once, job, ev, net_p);
}

static void sim_close(struct weft_net *net)
{
	struct weft_net_region *r;
	while ((r = ((struct sim_net *)net)->region))
		sim_region_close(net, r);
	free(net);
}

static weft_err sim_address(struct weft_net *net, char *buf, size_t size)
{
	(void)net;
	snprintf(buf, size, "sim");
	return WEFT_OK;
}

static weft_err sim_reach(struct weft_net *net, int peer, const char *address)
{
	(void)net;
	(void)peer;
	(void)address;
	return WEFT_OK;
}

static weft_err sim_drain(struct weft_net *net)
{
	(void)net;
	return WEFT_OK;
}

static const struct weft_net_card *sim_card(struct weft_net *net, int peer)
{
	(void)peer;
	return &((struct sim_net *)net)->card;
}

static weft_err sim_arm(struct weft_net *net, enum weft_arm_level level)
{
	bool off = level == WEFT_ARM_OFF;
	return !off && sim_net_news((struct sim_net *)net) ? WEFT_AGAIN : WEFT_OK;
}

static unsigned sim_fds(struct weft_net *net, int fd[WEFT_NET_FDS])
{
	(void)net;
	(void)fd;
	return 0;
}

#define SIM_TABLE                                                                                  \
	.close = sim_close, .address = sim_address, .reach = sim_reach, .post = sim_post,          \
	.poll = sim_poll, .arm = sim_arm, .fds = sim_fds, .region_open = sim_region_open,          \
	.region_close = sim_region_close, .transfer = sim_transfer, .drain = sim_drain,            \
	.card = sim_card, .word = sim_word, .awake = sim_awake

const struct weft_driver sim_driver = {.name = "sim",
				       .open = sim_open,
				       SIM_TABLE,
				       .drop = sim_link_drop,
				       .revive = sim_link_revive,
				       .ended = sim_link_ended,
				       .lives = sim_link_lives};
const struct weft_driver sim_driver_once = {.name = "once",
					    .open = once_open,
					    SIM_TABLE,
					    .drop = sim_link_drop,
					    .ended = sim_link_ended,
					    .lives = sim_link_lives};
