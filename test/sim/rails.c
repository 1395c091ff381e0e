/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails.c - the driver `bundle`, as it is, over several rails of the driver `sim`, in virtual time:
 * a hub without descriptors, cables that are cut and mended, ranks that sleep until something
 * rings.
 *
 * The core sees the driver `sim_rails`: the bundle's table with the simulator in between, which
 * lets others move around a post and asks the oracle whenever a peer is given up.
 */
#include <stdlib.h>
#include "comm/send/pack.h"
#include "net/bundle/bundle_int.h"
#include "sim.h"
#include "virtual.h"
#undef weft_clock_ns
#undef weft_net_hub_due

#define MS 1000000ull
/* What a driver's patience has to bear of a peer that nothing reaches. */
#define DARK_NS (1000 * MS)

/* Bytes that one peer can make another hold: what its rails may have unconfirmed, in slots. */
#define HELD_MAX                                                                                   \
	(SIM_RAILS * (size_t)(2 * WEFT_BUNDLE_AHEAD + WEFT_BUNDLE_PIECE) +                         \
	 WEFT_BUNDLE_WINDOW * (size_t)(WEFT_NET_HEAD + WEFT_BUNDLE_INLINE))

static struct weft_bundle *bundle_of(int rank)
{
	return (struct weft_bundle *)sim.rank[rank].bundle;
}

/* ---- time and the hub --------------------------------------------------------------------- */

uint64_t sim_clock_ns(void)
{
	/* 0 means never to some. */
	return sim.now_ns + 1;
}

bool sim_hub_due(void)
{
	return sim_chance(30);
}

weft_err weft_net_hub_open(struct weft_hub *hub)
{
	*hub = (struct weft_hub){.epfd = -1, .timer_fd = -1};
	return WEFT_OK;
}

void weft_net_hub_close(struct weft_hub *hub)
{
	(void)hub;
}

weft_err weft_net_hub_add(struct weft_hub *hub, int fd, uint32_t events, uint64_t data)
{
	(void)hub, (void)fd, (void)events, (void)data;
	return WEFT_OK;
}

void weft_net_hub_change(struct weft_hub *hub, int fd, uint32_t events, uint64_t data)
{
	(void)hub, (void)fd, (void)events, (void)data;
}

void weft_net_hub_remove(struct weft_hub *hub, int fd)
{
	(void)hub, (void)fd;
}

/* wake_fd: it rang.  next_cycle: the next tick. */
int weft_net_hub_look(struct weft_hub *hub, struct epoll_event *ev, int max)
{
	int n = 0;
	CHECK(max >= 2);
	if (hub->wake_fd)
		ev[n++].data.u64 = weft_net_hub_data(WEFT_HUB_WAKE, 0);
	if (hub->tick_ms && hub->next_cycle <= sim.now_ns)
		ev[n++].data.u64 = weft_net_hub_data(WEFT_HUB_TIMER, 0);
	return n;
}

void weft_net_hub_ring(struct weft_hub *hub)
{
	hub->wake_fd = 1;
}

void weft_net_hub_quiet(struct weft_hub *hub)
{
	hub->wake_fd = 0;
}

void weft_net_hub_tick(struct weft_hub *hub, unsigned ms)
{
	if (ms == hub->tick_ms)
		return;
	hub->tick_ms = ms;
	hub->next_cycle = sim.now_ns + ms * MS;
}

void weft_net_hub_ticked(struct weft_hub *hub)
{
	hub->next_cycle = sim.now_ns + hub->tick_ms * MS;
}

/* When a rank that sleeps would wake. */
uint64_t sim_rails_next(int rank)
{
	struct weft_bundle *b = bundle_of(rank);
	uint64_t next = UINT64_MAX;
	if (b->hub.wake_fd)
		return 0;
	if (b->hub.tick_ms)
		next = b->hub.next_cycle;
	for (int r = 0; r < sim.plan.rails; r++) {
		uint64_t at = sim_net_next(sim.rank[rank].net[r]);
		next = at < next ? at : next;
	}
	return next;
}

/* ---- the bundle, seen from above ---------------------------------------------------------- */

/* A peer is given up: did fate allow that? */
static void given_up(int rank, int peer)
{
	if (sim_broken(rank, peer))
		return;
	SIM_SAY("%d gives up %d", rank, peer);
	CHECK(sim.dark_ns[rank][peer] > DARK_NS);
	sim_cover(SIM_RAILS_GONE);
	sim_mark_broken(rank, peer);
}

static void up_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	struct sim_rank *k = arg;
	k->up.packet(k->up.arg, peer, head, payload, len);
}

static void up_place(void *arg, int peer, const void *head, size_t len, struct weft_net_sink *sink)
{
	struct sim_rank *k = arg;
	k->up.place(k->up.arg, peer, head, len, sink);
}

static void up_placed(void *arg, int peer, void *cookie, weft_err err)
{
	struct sim_rank *k = arg;
	if (err)
		given_up((int)(k - sim.rank), peer);
	else
		sim_cover(SIM_RAILS_LARGE);
	k->up.placed(k->up.arg, peer, cookie, err);
}

static void up_sent(void *arg, int peer, void *cookie, weft_err err)
{
	struct sim_rank *k = arg;
	if (err)
		given_up((int)(k - sim.rank), peer);
	k->up.sent(k->up.arg, peer, cookie, err);
}

static void up_ready(void *arg, int peer)
{
	struct sim_rank *k = arg;
	k->up.ready(k->up.arg, peer);
}

static void up_down(void *arg, int peer, weft_err err, const char *why)
{
	struct sim_rank *k = arg;
	int rank = (int)(k - sim.rank);
	given_up(rank, peer);
	sim_tell_down(&k->up, rank, peer, err, why);
}

static weft_err rails_open(const struct weft_net_job *job, const struct weft_net_events *ev,
			   struct weft_net **net_p)
{
	struct sim_rank *k = &sim.rank[job->rank];
	struct weft_bundle_rail plan[SIM_RAILS] = {{0}};
	struct weft_net_events mine = {.arg = k,
				       .packet = up_packet,
				       .place = up_place,
				       .placed = up_placed,
				       .sent = up_sent,
				       .ready = up_ready,
				       .down = up_down};
	k->up = *ev;
	for (int r = 0; r < sim.plan.rails; r++)
		plan[r].driver = r == sim.plan.once ? &sim_driver_once : &sim_driver;
	weft_net_bundle_plan(plan, (unsigned)sim.plan.rails);
	weft_err err = weft_net_driver_bundle.open(job, &mine, net_p);
	if (err)
		return err;
	k->bundle = *net_p;
	k->card = *weft_net_driver_bundle.card(*net_p, -1);
	k->card.eager_max = sim.plan.eager_max;
	k->card.latency_us = sim.plan.latency_us;
	k->card.gathers = false;
	char line[256];
	CHECK(!weft_net_driver_bundle.address(*net_p, line, sizeof line));
	for (int p = 0; p < sim.plan.ranks; p++)
		if (p != job->rank)
			CHECK(!weft_net_driver_bundle.reach(*net_p, p, line));
	k->card.access = sim.plan.can_get ? WEFT_NET_READ | WEFT_NET_WRITE : 0u;
	k->card.copies = sim.plan.can_get;
	return WEFT_OK;
}

static enum weft_post rails_post(struct weft_net *net, int peer, const void *head,
				 const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	struct sim_rank *me = &sim.rank[b->job.rank];
	struct weft_wire h;

	memcpy(&h, head, sizeof h);
	sim_strategy_posts(&me->core->gate[peer], &h);
	CHECK_EQ(++me->posting[peer], 1);
	sim_others();
	enum weft_post p = weft_net_driver_bundle.post(net, peer, head, iov, n, len, cookie);
	sim_others();
	me->posting[peer]--;
	sim_say_post(b->job.rank, peer, &h, len, p);
	sim_cover_post(&h, p);
	return p;
}

static void look_at(int rank)
{
	struct weft_bundle *b = bundle_of(rank);
	for (int p = 0; p < sim.plan.ranks; p++) {
		struct weft_bundle_peer *q = &b->peer[p];
		size_t held = 0;
		for (uint32_t i = 0; q->slot && i < WEFT_BUNDLE_WINDOW; i++)
			held += q->slot[i].data ? q->slot[i].len : 0;
		CHECK(held <= HELD_MAX);
		for (int r = 0; r < sim.plan.rails; r++)
			CHECK(q->way[r].under_bytes <= HELD_MAX);
		CHECK(q->kept_bytes <=
		      (size_t)sim.plan.rails * WEFT_BUNDLE_AHEAD + WEFT_BUNDLE_WHOLE_MAX +
			      WEFT_BUNDLE_WINDOW * (WEFT_NET_HEAD + WEFT_BUNDLE_INLINE));
	}
}

void sim_rails_look(void)
{
	for (int r = 0; sim.plan.bundle && r < sim.plan.ranks; r++)
		look_at(r);
}

/* To give up a peer the core waits for the poster to it, which here would be for ever. */
static bool may_end_posted(int rank)
{
	struct weft_bundle *b = bundle_of(rank);
	for (int i = 0; i < sim.plan.ranks; i++) {
		struct weft_bundle_peer *p = &b->peer[i];
		bool up = false;
		for (int r = 0; r < sim.plan.rails; r++)
			up = up || (r != sim.plan.once && p->way[r].state == WEFT_BUNDLE_UP);
		if (sim.rank[rank].posting[i] && (!up || p->dying_ns))
			return true;
	}
	return false;
}

/* As comm.c does. */
static bool rails_arm(struct weft_net *net, struct weft_rail *rail)
{
	if (rail->packs && !weft_comm_rail_packs_arm(rail))
		return false;
	if (weft_net_driver_bundle.arm(net, WEFT_ARM_ALL) == WEFT_OK)
		return true;
	weft_comm_rail_packs_disarm(rail);
	return false;
}

bool sim_rails_busy(int rank)
{
	return sim.plan.bundle &&
	       (sim.rank[rank].at_poll[0] || sim.rank[rank].locked || may_end_posted(rank));
}

static int rails_poll(struct weft_net *net)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	struct sim_rank *me = &sim.rank[b->job.rank];
	uint64_t revived = weft_counter_sum(WEFT_CNT_RAILS_REVIVED);
	uint64_t again = weft_counter_sum(WEFT_CNT_RAIL_UNITS_AGAIN);

	if (may_end_posted(b->job.rank))
		return 0;
	if (me->armed && sim_rails_next(b->job.rank) > sim.now_ns)
		return 0; /* it sleeps */
	if (me->armed && sim_chance(50)) {
		sim_cover(SIM_RAILS_WOKEN);
		(void)weft_net_driver_bundle.arm(net, WEFT_ARM_OFF);
		weft_comm_rail_packs_disarm(&me->core->rail[0]);
		me->armed = false;
	}
	int n = weft_net_driver_bundle.poll(net);
	if (!n && !me->armed && sim_chance(30))
		me->armed = rails_arm(net, &me->core->rail[0]);
	if (weft_counter_sum(WEFT_CNT_RAILS_REVIVED) != revived)
		sim_cover(SIM_RAIL_REVIVED);
	if (weft_counter_sum(WEFT_CNT_RAIL_UNITS_AGAIN) != again)
		sim_cover(SIM_RAIL_AGAIN);
	return n;
}

static enum weft_post rails_transfer(struct weft_net *net, int peer,
				     const struct weft_net_transfer *t)
{
	return weft_net_driver_bundle.transfer(net, peer, t);
}

static void rails_close(struct weft_net *net)
{
	weft_net_driver_bundle.close(net);
}

static weft_err rails_drain(struct weft_net *net)
{
	(void)net;
	return WEFT_OK;
}

static const struct weft_net_card *rails_card(struct weft_net *net, int peer)
{
	(void)peer;
	return &sim.rank[((struct weft_bundle *)net)->job.rank].card;
}

const struct weft_driver sim_driver_rails = {
	.name = "sim_rails",
	.open = rails_open,
	.close = rails_close,
	.post = rails_post,
	.poll = rails_poll,
	.transfer = rails_transfer,
	.drain = rails_drain,
	.card = rails_card,
};

/* ---- fate --------------------------------------------------------------------------------- */

/* A cable between them was cut: until when is none whole? */
static void darken(int a, int b)
{
	uint64_t until = UINT64_MAX, from = sim.dark_until_ns[a][b];
	for (int r = 0; r < sim.plan.rails; r++)
		if (sim.cable_ns[a][b][r] < until)
			until = sim.cable_ns[a][b][r];
	if (from < sim.now_ns)
		from = sim.now_ns;
	if (until <= from)
		return;
	sim.dark_ns[a][b] = sim.dark_ns[b][a] = sim.dark_ns[a][b] + until - from;
	sim.dark_until_ns[a][b] = sim.dark_until_ns[b][a] = until;
}

void sim_rails_fate(void)
{
	static const uint64_t times[] = {0, 0, 20 * MS, 300 * MS, 3000 * MS, 20000 * MS};
	int a = (int)sim_pick((unsigned)sim.plan.ranks), b = (a + 1) % sim.plan.ranks;
	int rail = (int)sim_pick((unsigned)sim.plan.rails);
	uint64_t for_ns = times[sim_pick(weft_countof(times))];
	bool silent = for_ns && sim_chance(20), all = sim_chance(15);

	for (int r = 0; r < sim.plan.rails; r++) {
		if (r != rail && !all)
			continue;
		SIM_SAY("rail %d of %d and %d breaks for %llu ms%s", r, a, b,
			(unsigned long long)(for_ns / MS), silent ? ", silently" : "");
		sim_cover(SIM_RAIL_CUT);
		sim_link_cut(a, b, r, for_ns, silent);
	}
	darken(a, b);
}

/* May what has this head come as a stream? */
bool sim_rails_streams(const void *head)
{
	struct weft_bundle_head h;
	memcpy(&h, head, sizeof h);
	return h.kind == WEFT_BUNDLE_WHOLE || h.kind == WEFT_BUNDLE_PART;
}

void sim_rails_cover_stream(const void *head)
{
	struct weft_bundle_head h;
	memcpy(&h, head, sizeof h);
	if (h.kind == WEFT_BUNDLE_WHOLE)
		sim_cover(SIM_RAIL_STREAM);
}

/* A head of the bundle's own is about to arrive. */
void sim_rails_arrives(int rank, int from, const void *head)
{
	struct weft_bundle_head h;
	struct weft_bundle_peer *p = &bundle_of(rank)->peer[from];
	memcpy(&h, head, sizeof h);
	if (h.kind < WEFT_BUNDLE_WHOLE)
		return;
	enum weft_bundle_seen seen = weft_net_bundle_look(&p->window, h.number);
	/* Relaxed: one thread. */
	if (!atomic_load_explicit(&p->x_down, memory_order_relaxed))
		CHECK(seen != WEFT_BUNDLE_WILD);
	if (seen == WEFT_BUNDLE_AGAIN)
		sim_cover(SIM_RAIL_TWICE);
	else if (h.number != p->window.next)
		sim_cover(SIM_RAIL_EARLY);
	if (seen == WEFT_BUNDLE_FRESH && h.kind == WEFT_BUNDLE_PART &&
	    !(p->placing && p->placing_begin == h.begin))
		sim_cover(SIM_RAIL_ASIDE);
}

/* Between ranks that have not given each other up everything was confirmed, all rails are back. */
void sim_rails_end(void)
{
	for (int a = 0; a < sim.plan.ranks; a++) {
		for (int b = 0; b < sim.plan.ranks; b++) {
			if (a == b || sim_broken(a, b))
				continue;
			struct weft_bundle_peer *p = &bundle_of(a)->peer[b];
			struct weft_bundle_peer *q = &bundle_of(b)->peer[a];
			CHECK(!p->queue.first && !p->large && !p->placing && !p->n_aside);
			CHECK_EQ(p->number, q->window.next);
			for (int r = 0; r < sim.plan.rails; r++) {
				CHECK(!p->way[r].lane.under.first && !p->way[r].under_bytes);
				if (p->awake && r != sim.plan.once)
					CHECK_EQ(p->way[r].state, WEFT_BUNDLE_UP);
			}
		}
	}
}

void sim_rails_bury(int rank)
{
	for (int p = 0; p < sim.plan.ranks; p++)
		if (p != rank)
			weft_net_bundle_peer_down(bundle_of(rank), p, WEFT_ERR_PEER, "the end");
	int upcalls = 0;
	(void)weft_net_bundle_housekeep(bundle_of(rank), &upcalls);
}
