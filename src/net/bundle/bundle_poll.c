/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle_poll.c - one look at all rails: what they brought, what the peers are to hear of it, which
 * posters may post again; and the sleep on all of them.
 */
#include <poll.h>
#include "base/cancel.h"
#include "net/bundle/bundle_int.h"

static void take_new(struct weft_bundle *b)
{
	/* SEE <- NEW.  Carries: awake. */
	if (!atomic_load_explicit(&b->x_new, memory_order_acquire))
		return;
	atomic_store_explicit(&b->x_new, false, memory_order_relaxed);
	for (int i = 0; i < b->job.size; i++) {
		weft_net_bundle_lock(&b->peer[i]);
		bool awake = b->peer[i].awake;
		weft_net_bundle_unlock(&b->peer[i]);
		if (awake)
			weft_net_bundle_list(b, i);
	}
}

/* Is a word due over this rail? */
static bool word_due(const struct weft_bundle_way *w, enum weft_bundle_say say)
{
	if (w->asked_now || w->asked >= WEFT_BUNDLE_ACK_UNITS ||
	    w->asked_bytes >= WEFT_BUNDLE_ACK_BYTES)
		return true;
	return say == WEFT_BUNDLE_SAY_ALL ? w->got != w->told_got
					  : say == WEFT_BUNDLE_SAY_ASKED && w->asked;
}

int weft_net_bundle_tell(struct weft_bundle *b, enum weft_bundle_say say)
{
	int n = 0;
	for (int i = 0; i < b->n_active; i++) {
		int peer = b->active[i];
		struct weft_bundle_peer *p = &b->peer[peer];
		bool ready = false, up = false;
		if (atomic_load_explicit(&p->x_down, memory_order_relaxed))
			continue;
		weft_net_bundle_lock(p);
		/* Relaxed: we wrote it. */
		bool behind =
			atomic_load_explicit(&p->x_in_next, memory_order_relaxed) - p->told_next >=
			WEFT_BUNDLE_BEHIND;
		for (unsigned r = 0; r < b->n_rails; r++) {
			struct weft_bundle_way *w = &p->way[r];
			up |= w->state == WEFT_BUNDLE_UP;
			if (word_due(w, say) || (behind && w->state == WEFT_BUNDLE_UP)) {
				weft_net_bundle_ack_locked(b, peer, r);
				behind = false;
			}
		}
		if (weft_unlikely(atomic_load_explicit(&p->x_blocked, memory_order_relaxed)) &&
		    up && weft_net_bundle_roomy_locked(b, p)) {
			atomic_store_explicit(&p->x_blocked, false, memory_order_relaxed);
			ready = true;
		}
		weft_net_bundle_unlock(p);
		if (ready) {
			b->events.ready(b->events.arg, peer);
			n++;
		}
	}
	return n;
}

/* The bundle's own bell and timer. */
static void look_at_hub(struct weft_bundle *b)
{
	struct epoll_event ev[2];
	int got = weft_net_hub_look(&b->hub, ev, weft_countof(ev));
	for (int i = 0; i < got; i++) {
		if (weft_net_hub_kind(ev[i].data.u64) == WEFT_HUB_TIMER)
			weft_net_hub_ticked(&b->hub);
		else
			weft_net_hub_quiet(&b->hub);
	}
}

/* Which rails have something, by the kernel's word: a bit for each.  Takes the bell and the timer.
 */
static unsigned look_armed(struct weft_bundle *b)
{
	struct pollfd p[1 + WEFT_BUNDLE_RAILS * WEFT_BUNDLE_FDS];
	unsigned rails = 0, n = 0, at = 1;
	p[n++] = (struct pollfd){.fd = b->hub.epfd, .events = POLLIN};
	for (unsigned r = 0; r < b->n_rails; r++)
		for (unsigned i = 0; i < b->rail[r].n_fds; i++)
			p[n++] = (struct pollfd){.fd = b->rail[r].fd[i], .events = POLLIN};
	if (poll(p, n, 0) < 0)
		return ~0u; /* EINTR: all may have something */
	if (p[0].revents)
		look_at_hub(b);
	for (unsigned r = 0; r < b->n_rails; r++)
		for (unsigned i = 0; i < b->rail[r].n_fds; i++)
			rails |= (p[at++].revents != 0 ? 1u : 0u) << r;
	return rails;
}

/* After the look at what is not confirmed: if nothing waits, posters ring; else the timer runs. */
static void be_quiet(struct weft_bundle *b, bool waits)
{
	if (waits)
		/* Relaxed: a late ring costs one wake-up. */
		atomic_store_explicit(&b->x_quiet, false, memory_order_relaxed);
	weft_net_hub_tick(&b->hub, waits ? WEFT_BUNDLE_TICK_MS : 0);
}

static int poll_all(struct weft_net *net)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	int n = 0;
	bool waits = false, due = b->armed || atomic_load_explicit(&b->x_cut, memory_order_relaxed);
	/* Armed, a rail whose descriptor says nothing has nothing, unless it has just found
	 * something: that may not have been all. */
	unsigned rails = b->armed ? look_armed(b) | b->found : ~0u;
	b->found = 0;
	b->heard_ns = 0;
	take_new(b);
	for (unsigned r = 0; r < b->n_rails; r++) {
		int found = rails >> r & 1 ? b->rail[r].driver->poll(b->rail[r].net) : 0;
		n += found;
		b->found |= found ? 1u << r : 0;
	}
	n += weft_net_bundle_tell(b,
				  !n || b->armed ? WEFT_BUNDLE_SAY_ASKED : WEFT_BUNDLE_SAY_URGENT);
	due |= b->stirred || weft_net_hub_due(&b->hub, false);
	if (weft_unlikely(due)) {
		if (!b->armed)
			look_at_hub(b);
		else
			/* QUIET -> RING (bundle_post), before the look, as in arm.  After it, what
			 * is posted meanwhile would neither be seen nor ring: a rail that swallows
			 * it would stay up for ever. */
			(void)atomic_exchange_explicit(&b->x_quiet, true, memory_order_seq_cst);
		waits = weft_net_bundle_housekeep(b, &n);
		if (b->armed)
			be_quiet(b, waits);
	}
	return n;
}

int weft_net_bundle_poll(struct weft_net *net)
{
	int was = weft_cancel_off();
	int n = poll_all(net);
	weft_cancel_back(was);
	return n;
}

/* The first n rails. */
static void disarm_rails(struct weft_bundle *b, unsigned n)
{
	b->armed = false;
	/* Relaxed: a late ring costs one wake-up. */
	atomic_store_explicit(&b->x_quiet, false, memory_order_relaxed);
	for (unsigned r = 0; r < n; r++)
		(void)b->rail[r].driver->arm(b->rail[r].net, WEFT_ARM_OFF);
}

weft_err weft_net_bundle_arm(struct weft_net *net, enum weft_arm_level level)
{
	struct weft_bundle *b = (struct weft_bundle *)net;
	weft_assert(level <= WEFT_ARM_ALL);
	int n = 0;
	if (level == WEFT_ARM_OFF) {
		disarm_rails(b, b->n_rails);
		weft_net_hub_hurry(&b->hub);
		return WEFT_OK;
	}
	take_new(b);
	n += weft_net_bundle_tell(b, WEFT_BUNDLE_SAY_ASKED);
	/* QUIET -> RING (bundle_post), before the look at what is not confirmed. */
	(void)atomic_exchange_explicit(&b->x_quiet, true, memory_order_seq_cst);
	bool waits = weft_net_bundle_housekeep(b, &n);
	be_quiet(b, waits);
	unsigned armed = 0;
	while (!n && armed < b->n_rails &&
	       b->rail[armed].driver->arm(b->rail[armed].net, WEFT_ARM_ALL) == WEFT_OK)
		armed++;
	/* Looked at again: a driver's arm may be followed by another's end. */
	if (armed == b->n_rails && !b->stirred) {
		b->armed = true;
		return WEFT_OK;
	}
	weft_assert(armed <= b->n_rails);
	disarm_rails(b, b->armed ? b->n_rails : armed);
	return WEFT_AGAIN;
}
