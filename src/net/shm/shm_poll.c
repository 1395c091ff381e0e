/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_poll.c - looking for packets, and arming for the time in which no thread does.
 *
 * Which rings to look at: the eight that spoke last in every poll, the others four at a time in
 * turn.  A sender then pays nothing for being found (a bit in a shared word would cost it an atomic
 * on a contended line per message, or a full fence before it may skip that), an empty poll costs at
 * most twelve cached loads, and a message from the coldest of N peers is found within N/4 polls.
 */
#include "base/cancel.h"
#include "net/shm/shm_int.h"

#define TAKES_PER_LINK 32
#define COLD_PER_POLL 4

/* Has the receiver made room since the poster found none, or is the link still being made? */
static bool has_news(struct weft_shm_link *k)
{
	/* Relaxed: we are the only writer. */
	if (atomic_load_explicit(&k->x_state, memory_order_relaxed) != WEFT_SHM_UP)
		return false;
	/* READY <- BLOCK (set_blocked, shm_out.c).  Carries: x_blocked_word. */
	return atomic_load_explicit(&k->x_blocked, memory_order_seq_cst) &&
	       weft_net_ring_word(k->tx.control) !=
		       atomic_load_explicit(&k->x_blocked_word, memory_order_relaxed);
}

static int scan_blocked(struct weft_shm *s)
{
	int n = 0;
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		if (has_news(k)) {
			weft_net_shm_link_ready(s, k);
			n++;
		}
	}
	return n;
}

/* Looks at the descriptors: connections being made, peers that ended. */
static int run_deadlines(struct weft_shm *s)
{
	struct epoll_event ev[32];
	int n = 0, was = weft_cancel_off();
	int got = weft_net_hub_look(&s->hub, ev, weft_countof(ev));
	s->lobby.upcalls = 0;
	for (int i = 0; i < got; i++) {
		unsigned kind = weft_net_hub_kind(ev[i].data.u64);
		switch (kind) {
		case WEFT_HUB_TIMER:
			weft_net_hub_ticked(&s->hub);
			break;
		case WEFT_HUB_WAKE:
			weft_net_hub_quiet(&s->hub);
			break;
		case WEFT_SHM_EV_SOCKET:
		case WEFT_SHM_EV_PID:
			weft_net_shm_link_event(s, weft_net_hub_index(ev[i].data.u64), kind);
			n++;
			break;
		default:
			weft_net_lobby_event(&s->lobby, ev[i].data.u64, ev[i].events);
			break;
		}
	}
	weft_net_lobby_work(&s->lobby);
	weft_net_hub_tick(&s->hub, weft_net_lobby_tick_ms(&s->lobby));
	weft_cancel_back(was);
	return n + s->lobby.upcalls;
}

static bool is_busy(struct weft_shm *s)
{
	return s->n_greeting || weft_net_lobby_busy(&s->lobby);
}

/* Looks at some of the peers that did not speak lately; a peer that speaks becomes hot. */
static int poll_cold(struct weft_shm *s)
{
	weft_assert(s->n_scan > WEFT_SHM_HOT);
	int n = 0;
	for (int i = 0; i < COLD_PER_POLL && s->n_scan > WEFT_SHM_HOT; i++) {
		if (s->next_cold < WEFT_SHM_HOT || s->next_cold >= s->n_scan)
			s->next_cold = WEFT_SHM_HOT;
		int at = s->next_cold++;
		int peer = s->scan[at];
		if (!weft_net_ring_peek(&s->link[peer].rx))
			continue;
		int victim = s->next_victim++ % WEFT_SHM_HOT;
		s->scan[at] = s->scan[victim];
		s->scan[victim] = peer;
		n += weft_net_shm_link_take(s, &s->link[peer], TAKES_PER_LINK);
	}
	return n;
}

/* Is it time to ring the peers that have not come back? */
static __attribute__((noinline)) void ring_owed_if_due(struct weft_shm *s)
{
	/* Relaxed, all: see urge(). */
	uint64_t due = atomic_load_explicit(&s->x_owed_due, memory_order_relaxed);
	if (!due)
		atomic_store_explicit(&s->x_owed_due, weft_net_shm_owed_until(),
				      memory_order_relaxed);
	else if (weft_cycles() >= due)
		weft_net_shm_ring_owed(s);
}

/* Packets of the peers that spoke last. */
static int take_hot(struct weft_shm *s)
{
	int n = 0;
	for (int i = 0; i < s->n_scan && i < WEFT_SHM_HOT; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		if (weft_net_ring_peek(&k->rx))
			n += weft_net_shm_link_take(s, k, TAKES_PER_LINK);
	}
	return n;
}

/* Polled while armed: stays armed, whatever has rung.  Looks at everything, since a sleep may
 * follow, unless a packet is found at once: then none does. */
static int poll_armed(struct weft_shm *s)
{
	weft_assert(s->level != WEFT_ARM_OFF);
	int n = take_hot(s);
	if (n)
		return n;
	n = run_deadlines(s);
	if (weft_unlikely(weft_net_delayed_ring_some(&s->owed)))
		ring_owed_if_due(s);
	/* Rung: armed as before, ahead of the look at the rings, as arm() does.  The thread that
	 * was to be back soon has not come. */
	if (!weft_net_bell_level(&s->inbox->bell)) {
		if (s->level == WEFT_ARM_SOON)
			s->level = WEFT_ARM_REPLIES_UNCHECKED;
		weft_net_bell_arm(&s->inbox->bell, s->level, s->fence);
	}
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		if (atomic_load_explicit(&k->x_blocked, memory_order_seq_cst))
			weft_net_ring_wait(k->tx.control);
		n += weft_net_shm_link_take(s, k, TAKES_PER_LINK);
	}
	if (weft_net_lobby_wanted(&s->lobby)) {
		int was = weft_cancel_off();
		weft_net_lobby_work(&s->lobby);
		weft_cancel_back(was);
		n++;
	}
	return n + scan_blocked(s);
}

int weft_net_shm_poll(struct weft_net *net)
{
	struct weft_shm *s = (struct weft_shm *)net;
	int n = 0;
	if (weft_unlikely(s->level != WEFT_ARM_OFF))
		return poll_armed(s);
	n += take_hot(s);
	if (weft_unlikely(s->n_scan > WEFT_SHM_HOT))
		n += poll_cold(s);
	/* Relaxed: a hint; arm() looks in earnest. */
	if (weft_unlikely(atomic_load_explicit(&s->x_blocked, memory_order_relaxed)))
		n += scan_blocked(s);
	if (weft_unlikely(weft_net_delayed_ring_some(&s->owed)))
		ring_owed_if_due(s);
	if (weft_unlikely(weft_net_hub_due(&s->hub, is_busy(s))))
		n += run_deadlines(s);
	return n;
}

/* A message is seen a few cycles after it came, not after the engine's round about us. */
int weft_net_shm_spin(struct weft_net *net, unsigned turns)
{
	struct weft_shm *s = (struct weft_shm *)net;
	int n = 0;
	for (;; weft_cpu_relax()) { /* ends: something is there, or after `turns` */
		for (int i = 0; i < s->n_scan && i < WEFT_SHM_HOT; i++)
			n += weft_net_shm_link_take(s, &s->link[s->scan[i]], TAKES_PER_LINK);
		if (n)
			return n;
		if (turns-- <= 1)
			return weft_net_shm_poll(net);
	}
}

static bool has_packets(const struct weft_shm *s)
{
	for (int i = 0; i < s->n_scan; i++)
		if (weft_net_ring_peek(&s->link[s->scan[i]].rx))
			return true;
	return false;
}

/* The second look, after arming: packets, room for blocked posters, wishes. */
static bool has_anything(struct weft_shm *s)
{
	if (has_packets(s) || weft_net_lobby_wanted(&s->lobby))
		return true;
	if (!atomic_load_explicit(&s->x_blocked, memory_order_seq_cst))
		return false;
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		/* READY <- BLOCK (set_blocked, shm_out.c): the poster sees the bell armed, or we
		 * see this. */
		if (!atomic_load_explicit(&k->x_blocked, memory_order_seq_cst))
			continue;
		weft_net_ring_wait(k->tx.control);
		if (has_news(k))
			return true;
	}
	return false;
}

static void disarm_shm(struct weft_shm *s)
{
	/* The eventfd is emptied by the next poll, so that a thread that would sleep can.  A thread that
	 * had only left, and is back, finds its message first. */
	bool empty = s->level != WEFT_ARM_ALL && weft_net_bell_level(&s->inbox->bell);
	s->level = WEFT_ARM_OFF;
	weft_net_bell_disarm(&s->inbox->bell);
	if (empty)
		weft_net_hub_soon(&s->hub);
	else
		weft_net_hub_hurry(&s->hub);
}

weft_err weft_net_shm_arm(struct weft_net *net, enum weft_arm_level level)
{
	struct weft_shm *s = (struct weft_shm *)net;
	struct weft_bell *bell = &s->inbox->bell;
	if (level == WEFT_ARM_OFF) {
		disarm_shm(s);
		return WEFT_OK;
	}
	weft_assert(level <= WEFT_ARM_ALL);
	if (has_packets(s)) {
		if (s->level != WEFT_ARM_OFF)
			disarm_shm(s);
		return WEFT_AGAIN;
	}
	if (weft_unlikely(weft_net_delayed_ring_some(&s->owed)))
		weft_net_shm_ring_owed(s); /* no thread will poll */
	weft_net_hub_tick(&s->hub, weft_net_lobby_tick_ms(&s->lobby));
	/* A poll while armed may have armed the bell again a moment ago, and then looked. */
	if (s->level < level || level == WEFT_ARM_SOON || !weft_net_bell_level(bell)) {
		s->level = level;
		weft_net_bell_arm(bell, level, s->fence);
	}
	weft_assert(s->level >= level);
	weft_net_shm_check(s);
	if (!has_anything(s))
		return WEFT_OK;
	disarm_shm(s);
	return WEFT_AGAIN;
}
