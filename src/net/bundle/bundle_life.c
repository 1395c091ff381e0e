/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle_life.c - rails that come up, end, are tried again; and when a peer counts as dead.
 *
 * A rail ends when its driver says so, or when it is silent: units wait for their confirmation
 * while the peer speaks on another rail.  A peer that is silent on all rails is left to the
 * drivers, and so is one without a rail whose process a driver knows to be there.
 */
#include <stdio.h>
#include "base/counters.h"
#include "base/log.h"
#include "base/trace.h"
#include "net/bundle/bundle_int.h"

#define BACKOFF_MIN_NS 5000000u
#define BACKOFF_MAX_NS 500000000u
#define GAP_NS 1000000000u /* ticks come much more often while anything is awaited */

/* Has more than `wait` passed since then?  `then` may be younger than now. */
static bool has_passed(uint64_t now, uint64_t then, uint64_t wait)
{
	return (int64_t)(now - then) > (int64_t)wait;
}

static bool any_up(const struct weft_bundle *b, const struct weft_bundle_peer *p)
{
	for (unsigned r = 0; r < b->n_rails; r++)
		if (p->way[r].state == WEFT_BUNDLE_UP)
			return true;
	return false;
}

void weft_net_bundle_way_up(struct weft_bundle *b, int peer, unsigned rail)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	weft_net_bundle_lock(p);
	weft_assert(w->hello_sent && w->hello_got && w->state == WEFT_BUNDLE_WANTED);
	weft_assert(w->lane.sent == w->lane.confirmed); /* its first unit is still to come */
	w->state = WEFT_BUNDLE_UP;
	w->refused = false;
	w->backoff_ns = 0;
	w->since_ns = w->heard_ns = weft_clock_ns();
	p->dying_ns = 0;
	weft_net_bundle_pump_locked(b, peer);
	weft_net_bundle_unlock(p);
	weft_trace(WEFT_TRACE_RAIL_UP, rail, (uint32_t)peer, w->was_up, 0);
	/* Relaxed: statistics. */
	atomic_fetch_add_explicit(&b->rail[rail].x_up, 1, memory_order_relaxed);
	if (w->was_up) {
		atomic_fetch_add_explicit(&b->rail[rail].x_revived, 1, memory_order_relaxed);
		weft_count(WEFT_CNT_RAILS_REVIVED, 1);
		weft_info("rail %u (%s) to rank %d is up again", rail, b->rail[rail].driver->name,
			  peer);
	}
	w->was_up = true;
	b->stirred = true;
	if (!b->first_up_ns)
		b->first_up_ns = w->since_ns;
}

/* Patience begins.  A rail that was never wanted is, now: its driver may know that the process is
 * there. */
static void begin_to_die(struct weft_bundle *b, int peer)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	p->dying_ns = weft_clock_ns();
	weft_net_bundle_lock(p);
	p->awake = true;
	weft_net_bundle_greet_locked(b, peer);
	weft_net_bundle_unlock(p);
}

/* Is there still a rail over which the peer may come back?  Else it is gone. */
static void judge_peer(struct weft_bundle *b, int peer)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	bool hope = false, left = false;
	if (any_up(b, p))
		return;
	for (unsigned r = 0; r < b->n_rails; r++) {
		struct weft_bundle_way *w = &p->way[r];
		left |= w->left;
		hope |= w->state != WEFT_BUNDLE_GONE && !w->refused;
	}
	if (left)
		weft_net_bundle_peer_down(b, peer, WEFT_OK, "it left");
	else if (!hope)
		weft_net_bundle_peer_down(b, peer, p->why_err, p->why);
	else if (!p->dying_ns)
		begin_to_die(b, peer);
}

static void count_lost(struct weft_bundle *b, int peer, unsigned rail, uint64_t again,
		       const char *why)
{
	struct weft_bundle_net *r = &b->rail[rail];
	/* Relaxed: statistics. */
	atomic_fetch_sub_explicit(&r->x_up, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->x_lost, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->x_again, again, memory_order_relaxed);
	weft_trace(WEFT_TRACE_RAIL_DOWN, rail, (uint32_t)peer, 0, again);
	weft_count(WEFT_CNT_RAILS_LOST, 1);
	weft_count(WEFT_CNT_RAIL_UNITS_AGAIN, again);
	weft_info("rail %u (%s) to rank %d ended, %llu packets go again: %s", rail, r->driver->name,
		  peer, (unsigned long long)again, why);
}

void weft_net_bundle_way_down(struct weft_bundle *b, int peer, unsigned rail, weft_err err,
			      const char *why)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	/* Relaxed: only we, the poller, write it. */
	if (atomic_load_explicit(&p->x_down, memory_order_relaxed))
		return;
	weft_net_bundle_list(b, peer);
	bool was_up = w->state == WEFT_BUNDLE_UP;
	uint64_t again = w->lane.sent - w->lane.confirmed, now = weft_clock_ns();

	weft_net_bundle_lock(p);
	bool comes_back = err && b->rail[rail].driver->revive;
	w->state = comes_back ? WEFT_BUNDLE_LOST : WEFT_BUNDLE_GONE;
	w->hello_sent = w->hello_got = w->drop = false;
	w->full = comes_back; /* until the driver has been told that it may come back */
	w->revive = comes_back;
	w->left |= !err;
	weft_net_bundle_lane_lost(&w->lane, &p->queue);
	w->under_bytes = w->silent_bytes = w->asked_bytes = 0;
	w->silent_units = w->pieces = w->asked = 0;
	w->got = w->told_got = 0;
	w->asked_now = false;
	weft_net_bundle_unlock(p);

	snprintf(p->why, sizeof p->why, "%s", why);
	p->why_err = err;
	/* A second side that gives up at once meets the first at the same moments: random. */
	uint64_t seed = now + (uint64_t)b->job.rank;
	w->backoff_ns = w->backoff_ns ? w->backoff_ns * 2 : BACKOFF_MIN_NS;
	if (w->backoff_ns > BACKOFF_MAX_NS)
		w->backoff_ns = BACKOFF_MAX_NS;
	w->retry_ns = now + w->backoff_ns / 2 + weft_rand_next(&seed) % w->backoff_ns;
	/* Only a peer that listens no more speaks against itself: an attempt may also end because
	 * it met the peer's own, and a link may break before the peer has found time to greet. */
	const struct weft_driver *d = b->rail[rail].driver;
	w->refused |= !was_up && d->ended && d->ended(b->rail[rail].net, peer);
	if (was_up && err)
		count_lost(b, peer, rail, again, why);
	else if (was_up)
		/* Relaxed: statistics. */
		atomic_fetch_sub_explicit(&b->rail[rail].x_up, 1, memory_order_relaxed);
	if (was_up && err)
		/* From here on each rail has to fail once more. */
		for (unsigned r = 0; !any_up(b, p) && r < b->n_rails; r++)
			p->way[r].refused = false;
	b->stirred = true;
	judge_peer(b, peer);
	if (atomic_load_explicit(&p->x_down, memory_order_relaxed))
		return;
	weft_net_bundle_lock(p);
	weft_net_bundle_pump_locked(b, peer);
	weft_net_bundle_unlock(p);
}

void weft_net_bundle_peer_down(struct weft_bundle *b, int peer, weft_err err, const char *why)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	/* DOWN -> LOOK (bundle_post, which looks again under the lock).  Carries: nothing but
	 * itself; weft_net_bundle_out_end() takes the lock later, and what was still posted.  Once
	 * only. */
	if (atomic_exchange_explicit(&p->x_down, true, memory_order_seq_cst))
		return;
	weft_net_bundle_list(b, peer);
	atomic_store_explicit(&p->x_blocked, false, memory_order_relaxed);
	if (why != p->why)
		snprintf(p->why, sizeof p->why, "%s", why);
	p->why_err = err;
	p->ending = b->stirred = true;
}

/*
 * The rest of it, in no rail's upcall.  First the rails end, unless the peer left in order: then it
 * ends them.  Until then they write into the packet that is being put together, and read what was
 * posted; after that both are the upper layer's again.
 */
static void end_peer(struct weft_bundle *b, int peer)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	char text[256];
	weft_assert(p->ending);
	p->ending = false;
	for (unsigned r = 0; p->why_err && r < b->n_rails; r++) {
		struct weft_bundle_way *w = &p->way[r];
		w->drop = false;
		/* A rail that may come back is dropped, too: else the peer links to an end that is
		 * given up, and takes us for alive. */
		bool ended =
			w->state == WEFT_BUNDLE_GONE || (w->state == WEFT_BUNDLE_LOST && w->revive);
		w->revive = false;
		if (b->rail[r].driver->drop && !ended)
			b->rail[r].driver->drop(b->rail[r].net, peer, "given up");
	}
	if (p->placing) {
		p->placing = false;
		b->events.placed(b->events.arg, peer, p->sink.cookie, WEFT_ERR_PEER);
	}
	weft_net_bundle_out_end(b, peer, true);
	if (p->why_err)
		snprintf(text, sizeof text, "%s", p->why);
	else
		snprintf(text, sizeof text, "rank %d left (bundle)", peer);
	b->events.down(b->events.arg, peer, p->why_err, text);
}

/* ---- what has deadlines -------------------------------------------------------------------- */

/* Did the peer speak on another rail that is up since this one fell silent? */
static bool speaks_elsewhere(const struct weft_bundle *b, const struct weft_bundle_peer *p,
			     unsigned rail)
{
	for (unsigned r = 0; r < b->n_rails; r++)
		if (r != rail && p->way[r].state == WEFT_BUNDLE_UP &&
		    p->way[r].heard_ns > p->way[rail].since_ns + b->silence_ns / 2)
			return true;
	return false;
}

static bool is_cut(const struct weft_bundle_net *r, uint64_t now)
{
	return now < r->cut_until_ns;
}

static bool tend_way(struct weft_bundle *b, int peer, unsigned rail, uint64_t now)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	struct weft_bundle_way *w = &p->way[rail];
	struct weft_bundle_net *r = &b->rail[rail];

	/* Senders change these at the same time. */
	weft_net_bundle_lock(p);
	bool awake = p->awake, waits = w->lane.under.first != NULL;
	bool silent = waits && has_passed(now, w->since_ns, b->silence_ns) &&
		      speaks_elsewhere(b, p, rail);
	if (w->got != w->told_got && has_passed(now, w->owed_ns, WEFT_BUNDLE_ACK_LATER_NS))
		weft_net_bundle_ack_locked(b, peer, rail);
	waits |= w->got != w->told_got;
	weft_net_bundle_unlock(p);

	if (w->state == WEFT_BUNDLE_UP && silent && r->driver->drop)
		w->drop = true;
	if (w->state == WEFT_BUNDLE_UP && is_cut(r, now))
		w->drop = true;
	if (w->drop) {
		w->drop = false;
		if (w->state != WEFT_BUNDLE_LOST && r->driver->drop)
			r->driver->drop(r->net, peer, is_cut(r, now) ? "cut" : "given up");
	}
	if (w->revive) {
		weft_net_bundle_lock(p);
		w->revive = w->full = false;
		if (!atomic_load_explicit(&p->x_down, memory_order_relaxed))
			r->driver->revive(r->net, peer);
		weft_net_bundle_unlock(p);
	}
	if (w->state == WEFT_BUNDLE_LOST && now >= w->retry_ns && !is_cut(r, now)) {
		weft_net_bundle_lock(p);
		w->state = WEFT_BUNDLE_IDLE;
		weft_net_bundle_greet_locked(b, peer);
		weft_net_bundle_unlock(p);
	}
	return waits || w->state == WEFT_BUNDLE_LOST || is_cut(r, now) ||
	       (w->state != WEFT_BUNDLE_UP && w->state != WEFT_BUNDLE_GONE && awake);
}

static void take_cuts(struct weft_bundle *b, uint64_t now)
{
	/* Relaxed: before the looks below; set again it is seen in the next round. */
	atomic_store_explicit(&b->x_cut, false, memory_order_relaxed);
	for (unsigned r = 0; r < b->n_rails; r++) {
		uint32_t ms =
			atomic_exchange_explicit(&b->rail[r].x_cut_ms, 0, memory_order_relaxed);
		if (ms)
			b->rail[r].cut_until_ns = now + ms * 1000000ull;
	}
	if (b->cut_for_ms && b->first_up_ns &&
	    has_passed(now, b->first_up_ns, b->cut_at_ms * 1000000ull)) {
		b->rail[b->cut_rail].cut_until_ns = now + b->cut_for_ms * 1000000ull;
		b->cut_for_ms = 0;
	}
}

/*
 * No rail is up.  Patience is with a network that may be gone for good: as long as a rail's driver
 * knows that the process is there (it is stopped, or computes and does not poll), time counts for
 * nothing.
 */
static bool given_up(struct weft_bundle *b, int peer, uint64_t now, uint64_t looked_ns)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	bool lives = false;
	if (!p->dying_ns)
		return false;
	for (unsigned r = 0; r < b->n_rails; r++) {
		const struct weft_bundle_net *n = &b->rail[r];
		lives = lives || (n->driver->lives && n->driver->lives(n->net, peer));
	}
	if (lives && has_passed(now, looked_ns, 0))
		p->dying_ns += now - looked_ns;
	if (has_passed(p->dying_ns, now, 0))
		p->dying_ns = now;
	return has_passed(now, p->dying_ns, b->patience_ns);
}

/* We have not looked for a while: stopped, or no thread polled.  What came meanwhile is not
 * read yet, so no silence and no absence has been observed. */
static void begin_anew(struct weft_bundle *b, uint64_t now)
{
	for (int i = 0; i < b->n_active; i++) {
		struct weft_bundle_peer *p = &b->peer[b->active[i]];
		weft_net_bundle_lock(p);
		for (unsigned r = 0; r < b->n_rails; r++)
			p->way[r].since_ns = now;
		weft_net_bundle_unlock(p);
		if (p->dying_ns)
			p->dying_ns = now;
	}
}

bool weft_net_bundle_housekeep(struct weft_bundle *b, int *upcalls_p)
{
	uint64_t now = weft_clock_ns();
	bool waits = false;
	take_cuts(b, now);
	uint64_t looked_ns = b->looked_ns;
	if (has_passed(now, looked_ns, GAP_NS))
		begin_anew(b, now);
	b->looked_ns = now;
	b->stirred = false;
	for (int i = 0; i < b->n_active; i++) {
		int peer = b->active[i];
		struct weft_bundle_peer *p = &b->peer[peer];
		bool down = atomic_load_explicit(&p->x_down, memory_order_relaxed);
		for (unsigned r = 0; r < b->n_rails; r++)
			if (!down || p->way[r].drop)
				waits |= tend_way(b, peer, r, now) && !down;
		if (!down && given_up(b, peer, now, looked_ns))
			weft_net_bundle_peer_down(b, peer, WEFT_ERR_PEER, p->why);
		if (p->ending) {
			end_peer(b, peer);
			++*upcalls_p;
		}
	}
	return waits || b->stirred || (b->cut_for_ms && b->first_up_ns);
}
