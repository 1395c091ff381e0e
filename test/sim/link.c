/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - connections of the driver `sim`: made, broken, noticed by either end in its own time,
 * dropped, made again.
 *
 * An end is LINKED, ENDED (down() was told), or, after revive(), IDLE until a post begins to DIAL.
 * Without a bundle every connection is there from the start and ends once.  A cable (`cable_ns`)
 * that is cut ends the connection and lets no attempt through until it is whole again.
 */
#include <stdlib.h>
#include "sim.h"

#define MS 1000000u
#define ATTEMPT_NS ((uint64_t)3000 * MS)
#define UNHEARD_NS ((uint64_t)30000 * MS) /* until the driver itself finds a silent link */

static struct sim_end *end_of(int rank, int peer, int rail)
{
	return &sim.rank[rank].net[rail]->end[peer];
}

/* From a random packet on nothing arrives any more. */
static void lane_break(struct sim_lane *l)
{
	unsigned arrive = l->queued ? sim_pick(l->queued + 1) : 0;
	for (struct sim_packet *p = l->first; p; p = p->next) {
		struct weft_wire h = sim_head_of(p);
		/* What its sender still holds cannot have left whole. */
		if (p->pending)
			arrive = 0;
		if (arrive) {
			arrive--;
			continue;
		}
		p->due_ns = UINT64_MAX;
		if (!sim.plan.bundle && !p->is_write)
			sim_cover_lost(&h);
	}
}

static void end_break(struct sim_end *e, uint64_t known_ns)
{
	if (e->state != SIM_LINKED)
		return;
	/* Broken already: perhaps it is known sooner now. */
	if (!e->broken || known_ns < e->known_ns)
		e->known_ns = known_ns;
	e->broken = true;
}

static void link_break(int a, int b, int rail, uint64_t a_knows, uint64_t b_knows)
{
	struct sim_end *e = end_of(a, b, rail), *f = end_of(b, a, rail);
	if (!e->broken && !f->broken) {
		lane_break(sim_lane_of(a, b, rail));
		lane_break(sim_lane_of(b, a, rail));
	}
	end_break(e, a_knows);
	end_break(f, b_knows);
}

void sim_net_break(int a, int b)
{
	uint64_t known = sim.now_ns + sim.plan.notice_ns;
	if (sim_broken(a, b))
		return;
	sim_mark_broken(a, b);
	for (int r = 0; r < sim.plan.rails; r++) {
		sim.cable_ns[a][b][r] = sim.cable_ns[b][a][r] = UINT64_MAX;
		link_break(a, b, r, known, known);
	}
}

void sim_link_cut(int a, int b, int rail, uint64_t for_ns, bool silent)
{
	uint64_t until = sim.now_ns + for_ns;
	if (sim.rank[a].net[rail]->once)
		until = UINT64_MAX; /* it does not come back */
	if (until > sim.cable_ns[a][b][rail])
		sim.cable_ns[a][b][rail] = sim.cable_ns[b][a][rail] = until;
	uint64_t wait = silent ? UNHEARD_NS : sim_pick(5) * MS / 4;
	link_break(a, b, rail, sim.now_ns + wait, sim.now_ns + sim_pick(2) * wait);
	if (silent)
		sim_cover(SIM_RAIL_SILENT);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Something that arrives before the end is still to come? */
static bool lane_has_news(struct sim_lane *l)
{
	return l->placing ? sim_chance(50) : l->first && l->first->due_ns != UINT64_MAX;
}

static void end_lane_in(struct sim_net *f, int peer)
{
	struct sim_lane *l = sim_lane_of(peer, f->rank, f->rail);
	struct sim_packet *p = l->placing;
	if (!p)
		return;
	sim_cover(sim.plan.bundle ? SIM_RAIL_HALF : SIM_LOST_HALF);
	l->placing = NULL;
	f->ev.placed(f->ev.arg, peer, l->sink.cookie, WEFT_ERR_PEER);
	sim_packet_free(p);
}

static void end_lane_out(struct sim_net *f, int peer)
{
	struct sim_lane *l = sim_lane_of(f->rank, peer, f->rail);
	l->want_ready = false;
	for (struct sim_packet *p = l->first; p; p = p->next) {
		if (!p->pending)
			continue;
		sim_cover(sim.plan.bundle ? SIM_RAIL_KEPT : SIM_LOST_KEPT);
		sim_packet_gather(p); /* nothing will read it; the pieces are free */
		p->due_ns = UINT64_MAX;
		f->ev.sent(f->ev.arg, peer, p->cookie, WEFT_ERR_PEER);
	}
}

static void end_down(struct sim_net *f, int peer)
{
	struct sim_end *e = &f->end[peer];
	bool linked = e->state == SIM_LINKED;
	SIM_SAY("%d learns that its rail %d to %d is gone", f->rank, f->rail, peer);
	if (linked)
		end_lane_in(f, peer);
	/* From here on a post answers DOWN. */
	e->state = SIM_ENDED;
	e->broken = false;
	if (linked)
		end_lane_out(f, peer);
	const char *why = linked ? "the simulator broke the link" : "no answer";
	if (sim.plan.bundle)
		f->ev.down(f->ev.arg, peer, WEFT_ERR_PEER, why);
	else
		sim_tell_down(&f->ev, f->rank, peer, WEFT_ERR_PEER, why);
}

void sim_link_bury(struct sim_net *f, int peer)
{
	if (sim_uses(f, peer) && f->end[peer].state == SIM_LINKED)
		end_lane_out(f, peer);
}

/* ---- the beginning ------------------------------------------------------------------------ */

void sim_link_dial(struct sim_net *f, int peer)
{
	struct sim_end *e = &f->end[peer];
	if (e->state != SIM_IDLE)
		return;
	e->state = SIM_DIALING;
	e->try_ns = sim.now_ns + sim_pick(1000);
	e->until_ns = sim.now_ns + ATTEMPT_NS;
}

static void join(struct sim_net *f, int peer)
{
	struct sim_end *e = &f->end[peer], *o = end_of(peer, f->rank, f->rail);
	SIM_SAY("%d and %d are linked by rail %d", f->rank, peer, f->rail);
	sim_lane_clear(sim_lane_of(f->rank, peer, f->rail));
	sim_lane_clear(sim_lane_of(peer, f->rank, f->rail));
	e->state = o->state = SIM_LINKED;
	e->broken = o->broken = false;
}

/* No poll runs there now: it is stopped, or below on the stack. */
static bool away(int rank)
{
	return sim.rank[rank].frozen_until_ns > sim.now_ns || sim_rails_busy(rank);
}

/* An attempt's next step.  Returns upcalls. */
static int dial_step(struct sim_net *f, int peer)
{
	struct sim_end *e = &f->end[peer], *o = end_of(peer, f->rank, f->rail);
	bool whole = sim.now_ns >= sim.cable_ns[f->rank][peer][f->rail];

	e->try_ns = sim.now_ns + MS + sim_pick(20 * MS);
	if (whole && away(peer)) {
		/* The kernel has accepted; the process takes its time. */
		e->try_ns = sim.now_ns + 1000 * MS;
		e->until_ns = sim.now_ns + ATTEMPT_NS;
		return 0;
	}
	if (whole && (o->state == SIM_IDLE || o->state == SIM_DIALING)) {
		join(f, peer);
		return 1;
	}
	if (whole && o->state == SIM_LINKED) { /* it has not noticed yet */
		sim_cover(SIM_RAIL_STALE);
		end_break(o, sim.now_ns);
		return 1;
	}
	if (sim.now_ns >= e->until_ns || (whole && sim_chance(20))) {
		sim_cover(SIM_RAIL_REFUSED);
		end_down(f, peer);
		return 1;
	}
	return 0;
}

bool sim_link_ended(struct weft_net *net, int peer)
{
	(void)net;
	return sim.rank[peer].dead;
}

bool sim_link_lives(struct weft_net *net, int peer)
{
	struct sim_net *f = (struct sim_net *)net;
	const struct sim_end *e = &f->end[peer];
	bool taken = !sim.rank[peer].dead && e->state == SIM_DIALING &&
		     sim.now_ns >= sim.cable_ns[f->rank][peer][f->rail];
	return taken || e->state == SIM_LINKED;
}

int sim_link_poll(struct sim_net *f, int peer)
{
	struct sim_end *e = &f->end[peer];

	if (e->state == SIM_DIALING && e->try_ns <= sim.now_ns)
		return dial_step(f, peer);
	if (e->state != SIM_LINKED || !e->broken || sim.now_ns < e->known_ns ||
	    (!sim.plan.bundle && sim.rank[f->rank].posting[peer]) ||
	    lane_has_news(sim_lane_of(peer, f->rank, f->rail)))
		return 0;
	end_down(f, peer);
	return 1;
}

void sim_link_drop(struct weft_net *net, int peer, const char *why)
{
	struct sim_net *f = (struct sim_net *)net;
	struct sim_end *e = &f->end[peer];
	(void)why;
	if (e->state == SIM_ENDED)
		return;
	if (e->state == SIM_LINKED) {
		bool whole = sim.now_ns >= sim.cable_ns[f->rank][peer][f->rail];
		uint64_t knows = sim.now_ns + (whole ? sim_pick(MS) : UNHEARD_NS);
		sim_cover(SIM_RAIL_DROPPED);
		link_break(f->rank, peer, f->rail, sim.now_ns, knows);
	}
	end_down(f, peer);
}

void sim_link_revive(struct weft_net *net, int peer)
{
	struct sim_net *f = (struct sim_net *)net;
	CHECK(!sim.rank[f->rank].locked);
	if (f->end[peer].state == SIM_ENDED)
		f->end[peer].state = SIM_IDLE;
}

/* ---- what is to come ---------------------------------------------------------------------- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When something is there for this end; UINT64_MAX: never. */
static uint64_t end_next(struct sim_net *f, int peer)
{
	struct sim_end *e = &f->end[peer];
	struct sim_lane *in = sim_lane_of(peer, f->rank, f->rail);
	struct sim_lane *out = sim_lane_of(f->rank, peer, f->rail);
	if (e->state == SIM_DIALING)
		return e->try_ns;
	if (e->state != SIM_LINKED)
		return UINT64_MAX;
	if (in->placing || (out->want_ready && out->queued < sim.plan.window))
		return 0;
	for (struct sim_packet *p = out->first; p; p = p->next)
		if (p->pending)
			return 0;
	/* What still arrives comes before the end does. */
	if (in->first && in->first->due_ns != UINT64_MAX)
		return in->first->pending ? UINT64_MAX : in->first->due_ns;
	return e->broken ? e->known_ns : UINT64_MAX;
}

uint64_t sim_net_next(struct sim_net *f)
{
	uint64_t next = UINT64_MAX;
	for (int p = 0; p < sim.plan.ranks; p++)
		if (sim_uses(f, p))
			next = sooner(next, end_next(f, p));
	return next;
}

bool sim_net_news(struct sim_net *f)
{
	return sim_net_next(f) <= sim.now_ns;
}
