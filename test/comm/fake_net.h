/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_net.h - a network within one process, for tests of comm/: N ranks, each with its own core,
 * and a fabric that is full, slow, late and out of order across peers as a seed says.
 *
 * It keeps to net/driver.h: in order per pair of peers, each packet once.
 */
#ifndef WEFT_TEST_FAKE_NET_H
#define WEFT_TEST_FAKE_NET_H

#include <pthread.h>
#include <string.h>
#include "check.h"
#include "comm/core.h"
#include "comm/core_check.h"

#define FAKE_RANKS 8
#define FAKE_EAGER 1024
#define FAKE_INLINE 256
#define FAKE_PAYLOAD 65536

struct fake_packet {
	struct fake_packet *next;
	char head[WEFT_NET_HEAD];
	size_t len;
	char *data;
	/* accepted, not copied yet */
	bool pending;
	struct iovec iov[WEFT_IOV_MAX];
	unsigned n;
	void *cookie;
	bool is_write;
};

/* In driver_private. */
struct fake_region {
	struct weft_net_region *next;
	char *base;
	int peer;
} __attribute__((may_alias));

static inline struct fake_region *fake_region_of(struct weft_net_region *r)
{
	return (struct fake_region *)(void *)r->driver_private;
}

struct fake_lane { /* from one rank to another */
	pthread_mutex_t lock;
	struct fake_packet *first, **last;
	unsigned queued;
	bool want_ready;
	/* receiver's: a payload that is half placed */
	struct fake_packet *placing;
	struct weft_net_sink sink;
};

struct fake_net {
	struct weft_net base;
	int rank, size;
	struct weft_net_events ev;
	struct weft_net_card card;
	uint64_t seed;
	bool told_down[FAKE_RANKS];
	struct weft_net_region *region;
	uint64_t regions; /* there were */
};

static struct fake_fabric {
	struct fake_lane lane[FAKE_RANKS][FAKE_RANKS];
	_Atomic bool x_dead[FAKE_RANKS];
	unsigned chance_full, chance_accept, chance_place, chance_late; /* of 100 */
	bool can_get, get_fails, put_fails, offer, rtr, rdma;
	bool asks;       /* each post of an eager message asks hold(), as if it began a burst */
	uint64_t credit; /* 0: any */
	double latency_us;
	bool (*spare)(void);
	size_t inline_max;
	unsigned asked, may; /* how often, and how often the answer was yes */
	uint64_t seed;
	/* An envelope is about to be matched. */
	void (*arrives)(int from, int to, const struct weft_wire *head);
	/* A fetch from peer's memory begins. */
	void (*gets)(int peer);
	_Atomic uint64_t x_word[FAKE_RANKS][WEFT_NET_WORDS];
} fake = {.chance_full = 10,
	  .chance_accept = 30,
	  .chance_place = 30,
	  .chance_late = 30,
	  .can_get = true,
	  .inline_max = FAKE_INLINE};

static pthread_mutex_t fake_seed_lock = PTHREAD_MUTEX_INITIALIZER;

static bool fake_chance(unsigned of_100)
{
	pthread_mutex_lock(&fake_seed_lock);
	bool yes = weft_rand_next(&fake.seed) % 100 < of_100;
	pthread_mutex_unlock(&fake_seed_lock);
	return yes;
}

static void fake_init(uint64_t seed)
{
	fake.seed = seed;
	for (int i = 0; i < FAKE_RANKS; i++) {
		fake.x_dead[i] = false;
		for (int j = 0; j < FAKE_RANKS; j++) {
			struct fake_lane *l = &fake.lane[i][j];
			memset(l, 0, sizeof *l);
			pthread_mutex_init(&l->lock, NULL);
			l->last = &l->first;
		}
	}
}

static weft_err fake_open(const struct weft_net_job *job, const struct weft_net_events *ev,
			  struct weft_net **net_p);
static void fake_region_close(struct weft_net *net, struct weft_net_region *r);
static void fake_close(struct weft_net *net)
{
	struct weft_net_region *r;
	while ((r = ((struct fake_net *)net)->region))
		fake_region_close(net, r);
	free(net);
}

static weft_err fake_address(struct weft_net *net, char *buf, size_t size)
{
	(void)net;
	snprintf(buf, size, "fake");
	return WEFT_OK;
}

static weft_err fake_reach(struct weft_net *net, int peer, const char *address)
{
	(void)net;
	(void)peer;
	(void)address;
	return WEFT_OK;
}

static void fake_gather(struct fake_packet *p)
{
	size_t off = 0;
	p->data = malloc(p->len + 1);
	for (unsigned i = 0; i < p->n; i++) {
		memcpy(p->data + off, p->iov[i].iov_base, p->iov[i].iov_len);
		off += p->iov[i].iov_len;
	}
	CHECK(off == p->len);
	p->pending = false;
}

/* A packet or a write, which is like one, but is never over at once. */
static enum weft_post fake_put_in(struct fake_net *f, int peer, const void *head,
				  const struct iovec *iov, unsigned n, size_t len, void *cookie,
				  bool is_write)
{
	struct fake_lane *l = &fake.lane[f->rank][peer];

	if (fake.x_dead[peer] || fake.x_dead[f->rank])
		return WEFT_POST_DOWN;
	pthread_mutex_lock(&l->lock);
	if (l->queued >= 16 || fake_chance(fake.chance_full)) {
		l->want_ready = true;
		pthread_mutex_unlock(&l->lock);
		return WEFT_POST_FULL;
	}
	struct fake_packet *p = calloc(1, sizeof *p);
	memcpy(p->head, head, sizeof p->head);
	p->len = len;
	p->n = n;
	if (n)
		memcpy(p->iov, iov, n * sizeof *iov);
	p->cookie = cookie;
	p->is_write = is_write;
	p->pending = is_write || (len > fake.inline_max && fake_chance(fake.chance_accept));
	bool accepted = p->pending;
	if (!accepted)
		fake_gather(p);
	*l->last = p;
	l->last = &p->next;
	l->queued++;
	pthread_mutex_unlock(&l->lock);
	return accepted ? WEFT_POST_ACCEPTED : WEFT_POST_DONE;
}

static enum weft_post fake_post(struct weft_net *net, int peer, const void *head,
				const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct fake_net *f = (struct fake_net *)net;

	CHECK(n <= WEFT_IOV_MAX && len <= FAKE_PAYLOAD);
	if (fake.asks && !fake.x_dead[peer] && !fake.x_dead[f->rank] &&
	    ((const struct weft_wire *)head)->kind == WEFT_WIRE_EAGER) {
		fake.asked++;
		fake.may += f->ev.hold(f->ev.arg, peer, true);
	}
	return fake_put_in(f, peer, head, iov, n, len, cookie, false);
}

static enum weft_post fake_post_plain(struct weft_net *net, int peer, uint64_t w0, uint64_t w1,
				      const void *data, size_t len)
{
	uint64_t head[3] = {w0, w1, len};
	struct iovec iov = {(void *)(uintptr_t)data, len};
	return fake_post(net, peer, head, &iov, len != 0, len, NULL);
}

/* Copies what was accepted, and reports peers that are ready again. */
static int fake_poll_out(struct fake_net *f)
{
	int n = 0;
	for (int peer = 0; peer < f->size; peer++) {
		struct fake_lane *l = &fake.lane[f->rank][peer];
		void *cookies[16];
		unsigned k = 0;
		pthread_mutex_lock(&l->lock);
		for (struct fake_packet *p = l->first; p && k < 16; p = p->next) {
			if (p->pending && fake_chance(60)) {
				fake_gather(p);
				cookies[k++] = p->cookie;
			}
		}
		bool ready = l->want_ready && l->queued < 16;
		if (ready)
			l->want_ready = false;
		pthread_mutex_unlock(&l->lock);
		weft_err err = fake.x_dead[peer] ? WEFT_ERR_PEER : WEFT_OK;
		for (unsigned i = 0; i < k; i++, n++)
			f->ev.sent(f->ev.arg, peer, cookies[i], err);
		if (ready) {
			f->ev.ready(f->ev.arg, peer);
			n++;
		}
	}
	return n;
}

static void fake_packet_free(struct fake_packet *p)
{
	free(p->data);
	free(p);
}

static void fake_fill(struct weft_net_sink *s, const char *data, size_t len)
{
	size_t off = 0;
	for (unsigned i = 0; i < s->n && off < s->room; i++) {
		size_t k = s->iov[i].iov_len;
		CHECK(off + k <= len);
		memcpy(s->iov[i].iov_base, data + off, k);
		off += k;
	}
	CHECK(s->n == 0 || off == s->room);
}

static void fake_arrives(int from, int to, const struct weft_wire *h)
{
	if (fake.arrives)
		fake.arrives(from, to, h);
}

/* What was posted behind it finds it there. */
static void fake_written(struct fake_net *f, int from, struct fake_packet *p)
{
	uint64_t where[3]; /* key, offset, length of the region */
	memcpy(where, p->head, sizeof where);
	struct weft_net_region *r = f->region;
	while (r && r->ticket.key != where[0])
		r = fake_region_of(r)->next;
	CHECK(r && fake_region_of(r)->peer == from && r->ticket.len == where[2]);
	CHECK(where[1] <= where[2] && p->len <= where[2] - where[1]);
	memcpy(fake_region_of(r)->base + where[1], p->data, p->len);
	fake_packet_free(p);
}

/* Delivers at most one packet of a lane. */
static int fake_poll_in(struct fake_net *f, int from)
{
	struct fake_lane *l = &fake.lane[from][f->rank];

	if (l->placing) {
		struct fake_packet *p = l->placing;
		struct weft_wire h;
		memcpy(&h, p->head, sizeof h);
		if (h.kind == WEFT_WIRE_RTS)
			fake_arrives(from, f->rank, &h);
		l->placing = NULL;
		fake_fill(&l->sink, p->data, p->len);
		f->ev.placed(f->ev.arg, from, l->sink.cookie, WEFT_OK);
		fake_packet_free(p);
		return 1;
	}
	pthread_mutex_lock(&l->lock);
	struct fake_packet *p = l->first;
	if (p && !p->pending) {
		l->first = p->next;
		if (!l->first)
			l->last = &l->first;
		l->queued--;
	} else {
		p = NULL;
	}
	pthread_mutex_unlock(&l->lock);
	if (!p)
		return 0;
	if (p->is_write) {
		fake_written(f, from, p);
		return 1;
	}
	struct weft_wire h;
	memcpy(&h, p->head, sizeof h);
	/* An RTS is matched once its payload is there, an eager message with its head. */
	bool place = p->len && fake_chance(fake.chance_place);
	if (h.kind == WEFT_WIRE_EAGER || (h.kind == WEFT_WIRE_RTS && !place))
		fake_arrives(from, f->rank, &h);
	if (place) {
		l->sink = (struct weft_net_sink){0};
		f->ev.place(f->ev.arg, from, p->head, p->len, &l->sink);
		l->placing = p;
	} else {
		f->ev.packet(f->ev.arg, from, p->head, p->data, p->len);
		fake_packet_free(p);
	}
	return 1;
}

static int fake_poll(struct weft_net *net)
{
	struct fake_net *f = (struct fake_net *)net;
	int n = fake_poll_out(f);

	for (int from = 0; from < f->size; from++) {
		if (from == f->rank)
			continue;
		if (fake.x_dead[from]) {
			struct fake_lane *l = &fake.lane[from][f->rank];
			if (f->told_down[from])
				continue;
			f->told_down[from] = true;
			if (l->placing) {
				f->ev.placed(f->ev.arg, from, l->sink.cookie, WEFT_ERR_PEER);
				fake_packet_free(l->placing);
				l->placing = NULL;
			}
			f->ev.down(f->ev.arg, from, WEFT_ERR_PEER, "killed");
			n++;
			continue;
		}
		while (!fake_chance(fake.chance_late) && fake_poll_in(f, from))
			n++;
	}
	return n;
}

static weft_err fake_region_open(struct weft_net *net, int peer, void *base, size_t len,
				 unsigned access, struct weft_net_region *region)
{
	struct fake_net *f = (struct fake_net *)net;
	CHECK(access == WEFT_NET_WRITE);
	region->ticket = (struct weft_net_ticket){.len = len, .key = ++f->regions};
	*fake_region_of(region) = (struct fake_region){f->region, base, peer};
	f->region = region;
	return WEFT_OK;
}

static void fake_region_close(struct weft_net *net, struct weft_net_region *region)
{
	struct weft_net_region **at = &((struct fake_net *)net)->region;
	while (*at != region) /* ends: it is open */
		at = &fake_region_of(*at)->next;
	*at = fake_region_of(region)->next;
}

static enum weft_post fake_copy(int peer, const struct weft_net_transfer *t)
{
	size_t bytes;
	if (!t->write && fake.gets)
		fake.gets(peer);
	if ((t->write ? fake.put_fails : fake.get_fails) || fake.x_dead[peer])
		return WEFT_POST_REFUSED;
	CHECK(weft_net_transfer_fits(t, &bytes) && t->there->key == WEFT_NET_KEY_ANY);
	weft_net_transfer_mapped(t, (char *)(uintptr_t)t->there->addr);
	return WEFT_POST_DONE;
}

/* A copy at once, or, to a region, a packet that finds its place by the head. */
static enum weft_post fake_transfer(struct weft_net *net, int peer,
				    const struct weft_net_transfer *t)
{
	struct fake_net *f = (struct fake_net *)net;
	uint64_t head[3] = {t->there->key, t->span->at, t->there->len};
	size_t bytes;
	static_assert(sizeof head == WEFT_NET_HEAD, "a write's place is its packet's head");
	if (f->card.copies)
		return fake_copy(peer, t);
	CHECK(t->write && t->n_spans == 1 && weft_net_transfer_fits(t, &bytes));
	return fake_put_in(f, peer, head, t->piece, t->n_pieces, bytes, t->cookie, true);
}

static weft_err fake_drain(struct weft_net *net)
{
	(void)net;
	return WEFT_OK;
}

static const struct weft_net_card *fake_card(struct weft_net *net, int peer)
{
	(void)peer;
	return &((struct fake_net *)net)->card;
}

static _Atomic uint64_t *fake_word(struct weft_net *net, int peer, unsigned i)
{
	(void)net;
	return i < WEFT_NET_WORDS ? &fake.x_word[peer][i] : NULL;
}

static bool fake_awake(struct weft_net *net, int peer)
{
	(void)net;
	(void)peer;
	return true;
}

static const struct weft_driver fake_driver = {
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.address = fake_address,
	.reach = fake_reach,
	.post = fake_post,
	.post_plain = fake_post_plain,
	.poll = fake_poll,
	.region_open = fake_region_open,
	.region_close = fake_region_close,
	.transfer = fake_transfer,
	.drain = fake_drain,
	.card = fake_card,
	.word = fake_word,
	.awake = fake_awake,
};

static weft_err fake_open(const struct weft_net_job *job, const struct weft_net_events *ev,
			  struct weft_net **net_p)
{
	struct fake_net *f = calloc(1, sizeof *f);
	f->base.driver = &fake_driver;
	f->rank = job->rank;
	f->size = job->size;
	f->ev = *ev;
	f->card = (struct weft_net_card){.max_payload = FAKE_PAYLOAD,
					 .inline_max = fake.inline_max,
					 .eager_max = FAKE_EAGER,
					 .access = fake.can_get ? WEFT_NET_READ | WEFT_NET_WRITE
						   : fake.rdma  ? WEFT_NET_WRITE
								: 0u,
					 .copies = fake.can_get,
					 .streams = true,
					 .latency_us = fake.latency_us};
	*net_p = &f->base;
	return WEFT_OK;
}

/* A core of its own for each of `size` ranks. */
static void fake_cores(struct weft_core **core, int size)
{
	for (int r = 0; r < size; r++) {
		struct weft_net_job job = {.rank = r, .size = size, .jobid = "fake"};
		CHECK(!weft_comm_core_create(r, size, &core[r]));
		core[r]->offer = fake.offer;
		core[r]->rtr = fake.rtr;
		core[r]->spare = fake.spare;
		if (fake.credit)
			core[r]->credit = fake.credit;
		CHECK(!weft_comm_core_rail_add(core[r], &fake_driver, &job));
		for (int p = 0; p < size; p++)
			if (p != r)
				weft_comm_core_gate_set(core[r], p, 0);
	}
}

/* Drops what is still under way. */
static void fake_fini(void)
{
	for (int i = 0; i < FAKE_RANKS; i++) {
		for (int j = 0; j < FAKE_RANKS; j++) {
			struct fake_lane *l = &fake.lane[i][j];
			while (l->first) {
				struct fake_packet *p = l->first;
				l->first = p->next;
				fake_packet_free(p);
			}
			if (l->placing)
				fake_packet_free(l->placing);
			l->placing = NULL;
			l->last = &l->first;
			pthread_mutex_destroy(&l->lock);
		}
	}
}

static inline void fake_end(struct weft_core **core, int size)
{
	for (int r = 0; r < size; r++)
		weft_comm_core_check(core[r]);
	for (int r = 0; r < size; r++)
		weft_comm_core_destroy(core[r]);
	fake_fini();
}

/* Each of them looks so many times, in turn. */
static inline void fake_poll_all(struct weft_core **core, int size, int times)
{
	for (int i = 0; i < times; i++)
		for (int r = 0; r < size; r++)
			(void)weft_comm_core_poll(core[r]);
}

#endif
