/* SPDX-License-Identifier: BSD-3-Clause */
/* bundle.c - the bundle driver: its table, its rails, post. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/settings.h"
#include "net/bundle/bundle_int.h"

#define ADDRESS_MAX 1024
#define SILENCE_NS 3000000000u

static struct {
	struct weft_bundle_rail rail[WEFT_BUNDLE_RAILS];
	unsigned n;
} plan;

/* ---- the plan ------------------------------------------------------------------------------ */

static const struct weft_driver *const drivers[] = {&weft_net_driver_shm, &weft_net_driver_tcp,
						    &weft_net_driver_ofi};

static weft_err parse_word(const char *w, size_t n, struct weft_bundle_rail *rail)
{
	const char *colon = memchr(w, ':', n);
	size_t name = colon ? (size_t)(colon - w) : n, rest = colon ? n - name - 1 : 0;
	*rail = (struct weft_bundle_rail){0};
	for (size_t i = 0; i < weft_countof(drivers); i++)
		if (strlen(drivers[i]->name) == name && !strncmp(w, drivers[i]->name, name))
			rail->driver = drivers[i];
	if (!rail->driver || rest >= sizeof rail->interface || (colon && !rest)) {
		weft_error(
			"WEFT_RAILS: '%.*s' is no rail; one is shm, tcp, ofi, or DRIVER:INTERFACE",
			(int)n, w);
		return WEFT_ERR_ARG;
	}
	if (colon)
		memcpy(rail->interface, colon + 1, rest);
	return WEFT_OK;
}

weft_err weft_net_bundle_parse(const char *text, struct weft_bundle_rail *rails, unsigned *n_p)
{
	unsigned n = 0;
	while (*text) {
		size_t len = strcspn(text, ", ");
		if (len && n == WEFT_BUNDLE_RAILS) {
			weft_error("WEFT_RAILS: more than %d rails", WEFT_BUNDLE_RAILS);
			return WEFT_ERR_ARG;
		}
		if (len && parse_word(text, len, &rails[n++]))
			return WEFT_ERR_ARG;
		text += len + strspn(text + len, ", ");
	}
	*n_p = n;
	return WEFT_OK;
}

void weft_net_bundle_plan(const struct weft_bundle_rail *rails, unsigned n)
{
	plan.n = n;
	memcpy(plan.rail, rails, n * sizeof *rails);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void bundle_close(struct weft_net *net)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	for (unsigned r = b->n_rails; r-- > 0;)
		b->rail[r].driver->close(b->rail[r].net);
	for (int i = 0; b->peer && i < b->job.size; i++) {
		weft_net_bundle_out_end(b, i, false);
		weft_net_bundle_in_end(b, i);
		for (unsigned r = 0; r < b->n_rails; r++)
			free(b->peer[i].way[r].aside);
	}
	weft_net_hub_close(&b->hub);
	free(b->active);
	free(b->peer);
	free(b);
}

static weft_err open_rail(struct weft_bundle *b, const struct weft_bundle_rail *wish)
{
	struct weft_bundle_net *r = &b->rail[b->n_rails];
	struct weft_net_job job = b->job;
	*r = (struct weft_bundle_net){.bundle = b, .index = b->n_rails, .driver = wish->driver};
	memcpy(r->interface, wish->interface, sizeof r->interface);
	job.revivable = true;
	job.interface = r->interface[0] ? r->interface : NULL;
	struct weft_net_events events = weft_net_bundle_rail_events(r);
	weft_err err = wish->driver->open(&job, &events, &r->net);
	if (err) {
		weft_error("rail %u: driver %s cannot start: %s", b->n_rails, wish->driver->name,
			   weft_strerror(err));
		return err;
	}
	b->n_rails++;
	int fd[WEFT_NET_FDS];
	r->n_fds = r->driver->fds(r->net, fd);
	if (r->n_fds > WEFT_BUNDLE_FDS)
		return WEFT_ERR_LIMIT;
	memcpy(r->fd, fd, r->n_fds * sizeof *fd);
	return WEFT_OK;
}

static void fill_cards(struct weft_bundle *b)
{
	b->card_plain = (struct weft_net_card){
		.max_payload = WEFT_BUNDLE_MAX_PAYLOAD,
		.inline_max = WEFT_BUNDLE_INLINE,
		.eager_max = (size_t)weft_setting_int(WEFT_SET_EAGER_TCP),
		.gathers = true,
		.streams = true,
		.latency_us = 5,
		.bandwidth_mbs = 6000,
	};
	if (b->card_plain.eager_max > WEFT_BUNDLE_MAX_PAYLOAD)
		b->card_plain.eager_max = WEFT_BUNDLE_MAX_PAYLOAD;
	b->card_copy = b->card_plain;
	b->card_copy.access = WEFT_NET_READ | WEFT_NET_WRITE;
	b->card_copy.copies = true;
}

static weft_err read_cut(struct weft_bundle *b)
{
	const char *text = weft_setting_str(WEFT_SET_RAIL_CUT);
	int used = 0;
	if (!*text)
		return WEFT_OK;
	if (sscanf(text, "%u:%u:%u%n", &b->cut_rail, &b->cut_at_ms, &b->cut_for_ms, &used) == 3 &&
	    !text[used] && b->cut_rail < b->n_rails)
		return WEFT_OK;
	weft_error("WEFT_RAIL_CUT=%s: it is RAIL:AT:FOR, in milliseconds", text);
	return WEFT_ERR_ARG;
}

static weft_err bundle_open(const struct weft_net_job *job, const struct weft_net_events *events,
			    struct weft_net **net_p)
{
	struct weft_bundle *b = calloc(1, sizeof *b);
	if (!b)
		return WEFT_ERR_NOMEM;
	b->net.driver = &weft_net_driver_bundle;
	b->events = *events;
	b->job = *job;
	b->patience_ns = (uint64_t)weft_setting_int(WEFT_SET_PEER_TIMEOUT) * 1000000000u;
	b->silence_ns = SILENCE_NS;
	fill_cards(b);
	weft_err err = weft_net_hub_open(&b->hub);
	if (err) {
		free(b);
		return err;
	}
	size_t bytes = weft_align_up((size_t)job->size * sizeof *b->peer, WEFT_CACHELINE);
	b->peer = aligned_alloc(WEFT_CACHELINE, bytes);
	b->active = calloc((size_t)job->size, sizeof *b->active);
	err = b->peer && b->active ? WEFT_OK : WEFT_ERR_NOMEM;
	if (b->peer)
		memset(b->peer, 0, bytes);
	for (int i = 0; b->peer && i < job->size; i++) {
		struct weft_bundle_peer *p = &b->peer[i];
		weft_net_bundle_fifo_init(&p->queue);
		for (unsigned r = 0; r < WEFT_BUNDLE_RAILS; r++) {
			weft_net_bundle_lane_init(&p->way[r].lane);
			p->way[r].state = WEFT_BUNDLE_GONE; /* until it is reached */
		}
	}
	for (unsigned r = 0; !err && r < plan.n; r++)
		err = open_rail(b, &plan.rail[r]);
	if (!err)
		err = read_cut(b);
	if (!err && !plan.n)
		err = WEFT_ERR_UNSUPPORTED;
	if (err) {
		bundle_close(&b->net);
		return err;
	}
	*net_p = &b->net;
	return WEFT_OK;
}

/* Line   bundle2|RAIL'S LINE|RAIL'S LINE... */
static weft_err bundle_address(struct weft_net *net, char *buf, size_t size)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	int at = snprintf(buf, size, "bundle2");
	for (unsigned r = 0; r < b->n_rails; r++) {
		char line[ADDRESS_MAX];
		weft_err err = b->rail[r].driver->address(b->rail[r].net, line, sizeof line);
		if (err)
			return err;
		if (at > 0 && (size_t)at < size)
			at += snprintf(buf + at, size - (size_t)at, "|%s", line);
	}
	return at > 0 && (size_t)at < size ? WEFT_OK : WEFT_ERR_LIMIT;
}

static weft_err bundle_reach(struct weft_net *net, int peer, const char *address)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	struct weft_bundle_peer *p = &b->peer[peer];
	const char *at = address ? strchr(address, '|') : NULL;
	if (peer == b->job.rank || !at || strncmp(address, "bundle2", 7) != 0)
		return WEFT_ERR_UNSUPPORTED;
	p->max_piece = WEFT_BUNDLE_PIECE;
	for (unsigned r = 0; at && r < b->n_rails; r++) {
		char line[ADDRESS_MAX];
		const char *end = strchr(at + 1, '|');
		size_t n = end ? (size_t)(end - at - 1) : strlen(at + 1);
		if (n >= sizeof line)
			return WEFT_ERR_PROTO;
		memcpy(line, at + 1, n);
		line[n] = 0;
		at = end;
		if (b->rail[r].driver->reach(b->rail[r].net, peer, line))
			continue;
		size_t most = b->rail[r].driver->card(b->rail[r].net, peer)->max_payload;
		p->way[r].state = WEFT_BUNDLE_IDLE;
		p->max_piece = most < p->max_piece ? most : p->max_piece;
		p->reached = true;
	}
	return p->reached ? WEFT_OK : WEFT_ERR_UNSUPPORTED;
}

/* ---- posting ------------------------------------------------------------------------------- */

static enum weft_post bundle_post(struct weft_net *net, int peer, const void *head,
				  const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	struct weft_bundle_peer *p = &b->peer[peer];
	if (!p->reached || atomic_load_explicit(&p->x_down, memory_order_seq_cst))
		return WEFT_POST_DOWN;
	weft_net_bundle_lock(p);
	if (weft_unlikely(!p->awake)) {
		p->awake = true;
		/* NEW -> SEE (take_new).  Carries: awake. */
		atomic_store_explicit(&b->x_new, true, memory_order_release);
		weft_net_bundle_greet_locked(b, peer);
	}
	enum weft_post a = WEFT_POST_DOWN;
	if (!atomic_load_explicit(&p->x_down, memory_order_seq_cst))
		a = weft_net_bundle_post_locked(b, peer, head, iov, n, len, cookie);
	if (a == WEFT_POST_FULL)
		/* Relaxed: the poller reads it under the lock, too. */
		atomic_store_explicit(&p->x_blocked, true, memory_order_relaxed);
	weft_net_bundle_unlock(p);
	/* RING <- QUIET (weft_net_bundle_arm): a timer must watch what is not confirmed.  Relaxed
	 * first: a hint; a thread that armed after our post sees the unit. */
	if (weft_unlikely(atomic_load_explicit(&b->x_quiet, memory_order_relaxed)) &&
	    atomic_exchange_explicit(&b->x_quiet, false, memory_order_seq_cst))
		weft_net_hub_ring(&b->hub);
	return a;
}

static unsigned bundle_fds(struct weft_net *net, int fd[WEFT_NET_FDS])
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	unsigned n = 0;
	fd[n++] = b->hub.epfd;
	for (unsigned r = 0; r < b->n_rails; r++)
		for (unsigned i = 0; i < b->rail[r].n_fds; i++)
			fd[n++] = b->rail[r].fd[i];
	return n;
}

/* ---- the rest ------------------------------------------------------------------------------ */

/* The first rail that copies from and to the peer's memory, NULL: none. */
static struct weft_bundle_net *copying_rail(struct weft_net *net, int peer)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	for (unsigned i = 0; peer >= 0 && i < b->n_rails; i++) {
		struct weft_bundle_net *r = &b->rail[i];
		if (b->peer[peer].reached && r->driver->card(r->net, peer)->copies)
			return r;
	}
	return NULL;
}

/* For all peers: over the first rail that opens it; rails are the same in all processes. */
static weft_err open_to_all(struct weft_bundle *b, void *base, size_t len, unsigned access,
			    struct weft_net_region *region)
{
	for (unsigned i = 0; i < b->n_rails; i++) {
		struct weft_bundle_net *r = &b->rail[i];
		if (!r->driver->region_open)
			continue;
		weft_err err = r->driver->region_open(r->net, WEFT_NET_ANY_PEER, base, len, access,
						      region);
		region->rail = r;
		if (err != WEFT_ERR_UNSUPPORTED)
			return err;
	}
	return WEFT_ERR_UNSUPPORTED;
}

static weft_err bundle_region_open(struct weft_net *net, int peer, void *base, size_t len,
				   unsigned access, struct weft_net_region *region)
{
	if (peer == WEFT_NET_ANY_PEER)
		return open_to_all((struct weft_bundle *)net, base, len, access, region);
	struct weft_bundle_net *r = region->rail = copying_rail(net, peer);
	return r ? r->driver->region_open(r->net, peer, base, len, access, region)
		 : WEFT_ERR_UNSUPPORTED;
}

static void bundle_region_close(struct weft_net *net, struct weft_net_region *region)
{
	struct weft_bundle_net *r = region->rail;
	r->driver->region_close(r->net, region);
}

static bool is_down(struct weft_net *net, int peer)
{
	struct weft_bundle_peer *p = &((struct weft_bundle *)net)->peer[peer];
	/* Relaxed: a hint; the end itself is told by down(). */
	return !p->reached || atomic_load_explicit(&p->x_down, memory_order_relaxed);
}

/* A rail that is lost is not the peer's end. */
static enum weft_post answer_of(struct weft_net *net, int peer, enum weft_post rail)
{
	if (rail != WEFT_POST_DOWN)
		return rail;
	return is_down(net, peer) ? WEFT_POST_DOWN : WEFT_POST_REFUSED;
}

static enum weft_post bundle_transfer(struct weft_net *net, int peer,
				      const struct weft_net_transfer *t)
{
	struct weft_bundle_net *r = copying_rail(net, peer);
	return answer_of(net, peer, r ? r->driver->transfer(r->net, peer, t) : WEFT_POST_DOWN);
}

static enum weft_post bundle_atomic(struct weft_net *net, int peer, const struct weft_net_atomic *a)
{
	struct weft_bundle_net *r = copying_rail(net, peer);
	return answer_of(net, peer,
			 r && r->driver->atomic ? r->driver->atomic(r->net, peer, a)
						: WEFT_POST_DOWN);
}

/* Rails that copy have written when they return. */
static enum weft_post bundle_flush(struct weft_net *net, int peer, void *cookie)
{
	return is_down(net, peer) ? WEFT_POST_DOWN : WEFT_POST_DONE;
}

/* One rail will do: if it finds no process, the others are tried (bundle_life.c). */
static void bundle_expect(struct weft_net *net, int peer)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	struct weft_bundle_peer *p = &b->peer[peer];
	const struct weft_bundle_net *way = NULL;
	weft_net_bundle_lock(p);
	for (unsigned r = 0; r < b->n_rails && !way; r++)
		if (p->way[r].state != WEFT_BUNDLE_GONE && b->rail[r].driver->expect)
			way = &b->rail[r];
	weft_net_bundle_unlock(p);
	if (way)
		way->driver->expect(way->net, peer);
}

static const struct weft_net_card *bundle_card(struct weft_net *net, int peer)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	return copying_rail(net, peer) ? &b->card_copy : &b->card_plain;
}

/* Has the peer confirmed all of ours? */
static bool is_out(struct weft_bundle *b, struct weft_bundle_peer *p)
{
	weft_net_bundle_lock(p);
	bool out = !p->queue.first && !p->large;
	for (unsigned r = 0; r < b->n_rails; r++)
		out = out && !p->way[r].lane.under.first && p->way[r].got == p->way[r].told_got;
	weft_net_bundle_unlock(p);
	return out;
}

static weft_err bundle_drain(struct weft_net *net)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	weft_err err = WEFT_OK;
	(void)weft_net_bundle_tell(b, WEFT_BUNDLE_SAY_ALL);
	for (int i = 0; i < b->job.size; i++) {
		struct weft_bundle_peer *p = &b->peer[i];
		if (!atomic_load_explicit(&p->x_down, memory_order_relaxed) && !is_out(b, p))
			return WEFT_AGAIN;
	}
	for (unsigned r = 0; r < b->n_rails; r++)
		if (b->rail[r].driver->drain(b->rail[r].net) == WEFT_AGAIN)
			err = WEFT_AGAIN;
	return err;
}

unsigned weft_net_bundle_stats(struct weft_net *net, struct weft_bundle_stats *stats, unsigned max)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	unsigned r = 0;
	for (; r < b->n_rails && r < max; r++) {
		struct weft_bundle_net *n = &b->rail[r];
		/* Relaxed: hints. */
		stats[r] = (struct weft_bundle_stats){
			.driver = n->driver->name,
			.up = atomic_load_explicit(&n->x_up, memory_order_relaxed),
			.units = atomic_load_explicit(&n->x_units, memory_order_relaxed),
			.bytes = atomic_load_explicit(&n->x_bytes, memory_order_relaxed),
			.again = atomic_load_explicit(&n->x_again, memory_order_relaxed),
			.lost = atomic_load_explicit(&n->x_lost, memory_order_relaxed),
			.revived = atomic_load_explicit(&n->x_revived, memory_order_relaxed),
			.bandwidth_mbs = atomic_load_explicit(&n->x_mbs, memory_order_relaxed),
		};
	}
	return r;
}

void weft_net_bundle_cut(struct weft_net *net, unsigned rail, unsigned for_ms)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	if (rail >= b->n_rails)
		return;
	/* Relaxed: the ring orders. */
	atomic_store_explicit(&b->rail[rail].x_cut_ms, for_ms, memory_order_relaxed);
	atomic_store_explicit(&b->x_cut, true, memory_order_relaxed);
	weft_net_hub_ring(&b->hub);
}

static void bundle_upcalls(struct weft_net *net, const struct weft_net_events *events)
{
	weft_net_events_take(&((struct weft_bundle *)net)->events, events);
}

const struct weft_driver weft_net_driver_bundle = {
	.name = "bundle",
	.open = bundle_open,
	.close = bundle_close,
	.upcalls = bundle_upcalls,
	.address = bundle_address,
	.reach = bundle_reach,
	.post = bundle_post,
	.poll = weft_net_bundle_poll,
	.arm = weft_net_bundle_arm,
	.fds = bundle_fds,
	.region_open = bundle_region_open,
	.region_close = bundle_region_close,
	.transfer = bundle_transfer,
	.atomic = bundle_atomic,
	.flush = bundle_flush,
	.drain = bundle_drain,
	.card = bundle_card,
	.expect = bundle_expect,
};
