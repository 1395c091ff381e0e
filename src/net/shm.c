/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.c - the shared memory driver: its table, polling and arming.
 *
 * Which rings to look at: the eight that spoke last in every poll, the others four at a time in
 * turn.  A sender then pays nothing for being found (a bit in a shared word would cost it an atomic
 * on a contended line per message, or a full fence before it may skip that), an empty poll costs at
 * most twelve cached loads, and a message from the coldest of N peers is found within N/4 polls.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cancel.h"
#include "base/log.h"
#include "base/settings.h"
#include "net/forked.h"
#include "net/shm_int.h"

#define TAKES_PER_LINK 32
#define COLD_PER_POLL 4

struct weft_shm_lacks weft_shm_lacks;

static void on_linked(void *arg, int peer, int fd)
{
	weft_shm_link_greet(arg, peer, fd);
}

static void on_lost(void *arg, int peer, weft_err err, const char *why)
{
	struct weft_shm *s = arg;
	weft_shm_link_down(s, &s->link[peer], err, why);
}

static void on_stale(void *arg, int peer)
{
	struct weft_shm *s = arg;
	weft_shm_link_down(s, &s->link[peer], WEFT_ERR_PEER, "the peer connects anew");
}

static const struct weft_lobby_ops lobby_ops = {
	.driver = "shm",
	.screen = weft_shm_socket_screen,
	.dial = weft_shm_socket_dial,
	.linked = on_linked,
	.lost = on_lost,
};

static const struct weft_lobby_ops lobby_ops_revivable = {
	.driver = "shm",
	.screen = weft_shm_socket_screen,
	.dial = weft_shm_socket_dial,
	.linked = on_linked,
	.stale = on_stale,
	.lost = on_lost,
};

static void fill_cards(struct weft_shm *s)
{
	s->card_plain = (struct weft_net_card){
		.max_payload = WEFT_SHM_MAX_PAYLOAD,
		.inline_max = WEFT_SHM_MAX_PAYLOAD,
		.eager_max = (size_t)weft_setting_int(WEFT_SET_EAGER_SHM),
		.latency_us = 0.2,
		.bandwidth_mbs = 8000,
	};
	s->card_get = s->card_plain;
	s->card_get.can_get = s->card_get.can_put = true;
}

static void let_go(void *arg)
{
	struct weft_shm *s = arg;
	weft_lobby_let_go(&s->lobby);
	for (int i = 0; i < s->job.size; i++)
		if (s->link[i].fd >= 0)
			close(s->link[i].fd);
}

static weft_err shm_open_driver(const struct weft_net_job *job,
				const struct weft_net_events *events, struct weft_net **net_p)
{
	weft_err err = WEFT_ERR_NOMEM;
	struct weft_shm *s = calloc(1, sizeof *s);
	if (!s || sodium_init() < 0)
		goto free_s;
	s->net.driver = &weft_driver_shm;
	s->events = *events;
	s->job = *job;
	s->n_local = 1;
	s->inbox_fd = -1;
	err = weft_net_host_key(s->host_key, sizeof s->host_key);
	if (err)
		goto free_s;
	size_t bytes = weft_align_up((size_t)job->size * sizeof *s->link, WEFT_CACHELINE);
	s->link = aligned_alloc(WEFT_CACHELINE, bytes);
	s->scan = calloc((size_t)job->size, sizeof *s->scan);
	err = WEFT_ERR_NOMEM;
	if (!s->link || !s->scan)
		goto free_link;
	memset(s->link, 0, bytes);
	for (int i = 0; i < job->size; i++) {
		s->link[i].peer = i;
		s->link[i].fd = s->link[i].pid_fd = s->link[i].bell_fd = -1;
	}
	void *map;
	err = weft_shm_memory_create(sizeof *s->inbox, &s->inbox_fd, &map);
	if (err)
		goto free_link;
	s->inbox = map;
	err = weft_hub_open(&s->hub);
	if (err)
		goto free_inbox;
	err = weft_lobby_open(&s->lobby, job->revivable ? &lobby_ops_revivable : &lobby_ops, s,
			      &s->job, &s->hub);
	if (err)
		goto close_hub;
	randombytes_buf(s->nonce, sizeof s->nonce);
	s->registered = !weft_shm_lacks.membarrier && weft_bell_register();
	fill_cards(s);
	weft_forked_add(let_go, s);
	*net_p = &s->net;
	return WEFT_OK;
close_hub:
	weft_hub_close(&s->hub);
free_inbox:
	weft_shm_memory_unmap(s->inbox, sizeof *s->inbox);
	close(s->inbox_fd);
free_link:
	free(s->scan);
	free(s->link);
free_s:
	free(s);
	return err;
}

static void shm_close(struct weft_net *net)
{
	struct weft_shm *s = (struct weft_shm *)net;
	weft_forked_remove(s);
	weft_lobby_close(&s->lobby);
	for (int i = 0; i < s->job.size; i++)
		weft_shm_link_free(&s->link[i]);
	weft_hub_close(&s->hub);
	weft_shm_memory_unmap(s->inbox, sizeof *s->inbox);
	close(s->inbox_fd);
	free(s->scan);
	free(s->link);
	free(s);
}

static weft_err shm_address(struct weft_net *net, char *buf, size_t size)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (!s->listening) {
		int fd = weft_shm_socket_listen(s);
		if (fd < 0)
			return WEFT_ERR_SYS;
		weft_err err = weft_lobby_listen(&s->lobby, fd);
		if (err) {
			close(fd);
			return err;
		}
		s->listening = true;
	}
	int n = snprintf(buf, size, "shm1 %s %s", s->host_key, s->name);
	return n > 0 && (size_t)n < size ? WEFT_OK : WEFT_ERR_LIMIT;
}

static weft_err shm_reach(struct weft_net *net, int peer, const char *address)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (peer == s->job.rank || !weft_shm_same_host(address))
		return WEFT_ERR_UNSUPPORTED;
	const char *name = strrchr(address, ' ') + 1;
	if (strlen(name) >= WEFT_SHM_NAME_MAX || strncmp(name, "weft-", 5) != 0) {
		weft_error("shm: rank %d published a socket name that makes no sense", peer);
		return WEFT_ERR_PROTO;
	}
	struct weft_shm_link *k = &s->link[peer];
	strcpy(k->name, name);
	if (!k->reachable)
		s->n_local++;
	k->reachable = true;
	return WEFT_OK;
}

/* Has the receiver made room since the poster found none, or is the link still being made? */
static bool has_news(struct weft_shm_link *k)
{
	/* Relaxed: we are the only writer. */
	if (atomic_load_explicit(&k->x_state, memory_order_relaxed) != WEFT_SHM_UP)
		return false;
	/* READY <- BLOCK (set_blocked, shm_out.c).  Carries: x_blocked_word. */
	return atomic_load_explicit(&k->x_blocked, memory_order_seq_cst) &&
	       weft_ring_word(k->tx.control) !=
		       atomic_load_explicit(&k->x_blocked_word, memory_order_relaxed);
}

static int scan_blocked(struct weft_shm *s)
{
	int n = 0;
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		if (has_news(k)) {
			weft_shm_link_ready(s, k);
			n++;
		}
	}
	return n;
}

/* Looks at the descriptors: connections being made, peers that ended. */
static int housekeep(struct weft_shm *s)
{
	struct epoll_event ev[32];
	int n = 0, was = weft_cancel_off();
	int got = weft_hub_look(&s->hub, ev, weft_countof(ev));
	s->lobby.upcalls = 0;
	for (int i = 0; i < got; i++) {
		unsigned kind = weft_hub_kind(ev[i].data.u64);
		switch (kind) {
		case WEFT_HUB_TIMER:
			weft_hub_ticked(&s->hub);
			break;
		case WEFT_HUB_WAKE:
			weft_hub_quiet(&s->hub);
			break;
		case WEFT_SHM_EV_SOCKET:
		case WEFT_SHM_EV_PID:
			weft_shm_link_event(s, weft_hub_index(ev[i].data.u64), kind);
			n++;
			break;
		default:
			weft_lobby_event(&s->lobby, ev[i].data.u64, ev[i].events);
			break;
		}
	}
	weft_lobby_work(&s->lobby);
	weft_hub_tick(&s->hub, weft_lobby_has_deadline(&s->lobby) ? WEFT_HUB_TICK_MS : 0);
	weft_cancel_back(was);
	return n + s->lobby.upcalls;
}

static bool is_busy(struct weft_shm *s)
{
	return s->n_greeting || weft_lobby_busy(&s->lobby);
}

/* Looks at some of those that did not speak lately; who speaks becomes hot. */
static int poll_cold(struct weft_shm *s)
{
	int n = 0;
	for (int i = 0; i < COLD_PER_POLL && s->n_scan > WEFT_SHM_HOT; i++) {
		if (s->next_cold < WEFT_SHM_HOT || s->next_cold >= s->n_scan)
			s->next_cold = WEFT_SHM_HOT;
		int at = s->next_cold++;
		int peer = s->scan[at];
		if (!weft_ring_peek(&s->link[peer].rx))
			continue;
		int victim = s->next_victim++ % WEFT_SHM_HOT;
		s->scan[at] = s->scan[victim];
		s->scan[victim] = peer;
		n += weft_shm_link_take(s, &s->link[peer], TAKES_PER_LINK);
	}
	return n;
}

static enum weft_bell_level level_of(const struct weft_shm *s)
{
	return s->quiet ? WEFT_BELL_QUIET : WEFT_BELL_LOUD;
}

/* Polled while armed: stays armed, whatever has rung.  Looks at everything, since a sleep may
 * follow. */
static int poll_armed(struct weft_shm *s)
{
	int n = housekeep(s);
	/* Arms before the look at the rings, as arm() does. */
	if (!weft_bell_level(&s->inbox->bell))
		weft_bell_arm(&s->inbox->bell, level_of(s), s->fence && !s->fresh);
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		if (atomic_load_explicit(&k->x_blocked, memory_order_seq_cst))
			weft_ring_wait(k->tx.control);
		n += weft_shm_link_take(s, k, TAKES_PER_LINK);
	}
	if (weft_lobby_wanted(&s->lobby)) {
		int was = weft_cancel_off();
		weft_lobby_work(&s->lobby);
		weft_cancel_back(was);
		n++;
	}
	return n + scan_blocked(s);
}

static int shm_poll(struct weft_net *net)
{
	struct weft_shm *s = (struct weft_shm *)net;
	int n = 0;
	if (weft_unlikely(s->armed))
		return poll_armed(s);
	for (int i = 0; i < s->n_scan && i < WEFT_SHM_HOT; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		if (weft_ring_peek(&k->rx))
			n += weft_shm_link_take(s, k, TAKES_PER_LINK);
	}
	if (weft_unlikely(s->n_scan > WEFT_SHM_HOT))
		n += poll_cold(s);
	/* Relaxed: a hint; arm() looks in earnest. */
	if (weft_unlikely(atomic_load_explicit(&s->x_blocked, memory_order_relaxed)))
		n += scan_blocked(s);
	if (weft_unlikely(weft_hub_due(&s->hub, is_busy(s))))
		n += housekeep(s);
	return n;
}

/* A message is seen a few cycles after it came, not after the engine's round about us. */
static int shm_spin(struct weft_net *net, unsigned turns)
{
	struct weft_shm *s = (struct weft_shm *)net;
	int n = 0;
	for (;; weft_cpu_relax()) { /* ends: something is there, or after `turns` */
		for (int i = 0; i < s->n_scan && i < WEFT_SHM_HOT; i++)
			n += weft_shm_link_take(s, &s->link[s->scan[i]], TAKES_PER_LINK);
		if (n)
			return n;
		if (turns-- <= 1)
			return shm_poll(net);
	}
}

static bool has_packets(const struct weft_shm *s)
{
	for (int i = 0; i < s->n_scan; i++)
		if (weft_ring_peek(&s->link[s->scan[i]].rx))
			return true;
	return false;
}

/* The second look, after arming: packets, room for blocked posters, wishes. */
static bool has_anything(struct weft_shm *s)
{
	if (has_packets(s) || weft_lobby_wanted(&s->lobby))
		return true;
	if (!atomic_load_explicit(&s->x_blocked, memory_order_seq_cst))
		return false;
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		/* READY <- BLOCK (set_blocked, shm_out.c): the poster sees the bell armed, or we
		 * see this. */
		if (!atomic_load_explicit(&k->x_blocked, memory_order_seq_cst))
			continue;
		weft_ring_wait(k->tx.control);
		if (has_news(k))
			return true;
	}
	return false;
}

/* all: rung for everything.  left: nobody waits, so the membarrier may follow. */
static weft_err arm(struct weft_shm *s, bool all, bool left)
{
	if (has_packets(s))
		return WEFT_AGAIN;
	weft_hub_tick(&s->hub, weft_lobby_has_deadline(&s->lobby) ? WEFT_HUB_TICK_MS : 0);
	/* poll_armed() may have done so a moment ago, and then looked. */
	bool stays = s->armed && s->quiet == !all && (left || !s->fresh);
	s->quiet = !all;
	s->fresh = left;
	if (!stays || !weft_bell_level(&s->inbox->bell))
		weft_bell_arm(&s->inbox->bell, level_of(s), s->fence && !left);
	s->armed = !has_anything(s);
	if (s->armed)
		return WEFT_OK;
	weft_bell_disarm(&s->inbox->bell);
	weft_hub_hurry(&s->hub);
	return WEFT_AGAIN;
}

static weft_err shm_arm(struct weft_net *net)
{
	return arm((struct weft_shm *)net, true, false);
}

static weft_err shm_arm_left(struct weft_net *net, bool all)
{
	return arm((struct weft_shm *)net, all, true);
}

static void shm_disarm(struct weft_net *net)
{
	struct weft_shm *s = (struct weft_shm *)net;
	s->armed = false;
	weft_bell_disarm(&s->inbox->bell);
	/* The next poll looks at the descriptors and empties the eventfd. */
	weft_hub_hurry(&s->hub);
}

static weft_err shm_settle(struct weft_net *net)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (s->fence)
		weft_bell_settle();
	if (s->armed && !has_anything(s))
		return WEFT_OK;
	shm_disarm(net);
	return WEFT_AGAIN;
}

static int shm_fd(struct weft_net *net)
{
	return ((struct weft_shm *)net)->hub.epfd;
}

static weft_err shm_drain(struct weft_net *net)
{
	struct weft_shm *s = (struct weft_shm *)net;
	weft_err err = s->n_greeting ? WEFT_AGAIN : WEFT_OK;
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		if (k->bye_sent)
			continue;
		(void)weft_ring_refresh(&k->tx);
		if (!weft_ring_room(&k->tx, 0)) {
			err = WEFT_AGAIN;
			continue;
		}
		weft_ring_publish_bye(&k->tx);
		k->bye_sent = true;
		if (weft_bell_urgent(k->bell))
			weft_bell_ring(k->bell, k->bell_fd);
	}
	if (err)
		weft_hub_hurry(&s->hub);
	return err;
}

static const struct weft_net_card *shm_card(struct weft_net *net, int peer)
{
	struct weft_shm *s = (struct weft_shm *)net;
	bool up = peer >= 0 && peer < s->job.size && weft_shm_is_up(&s->link[peer]);
	return up && s->link[peer].can_get ? &s->card_get : &s->card_plain;
}

static void *shm_board(struct weft_net *net, int peer)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (peer == s->job.rank)
		return s->inbox->board;
	if (peer < 0 || peer >= s->job.size || !weft_shm_is_up(&s->link[peer]))
		return NULL;
	return ((struct weft_shm_inbox *)s->link[peer].tx_inbox)->board;
}

static _Atomic uint64_t *shm_word(struct weft_net *net, int peer, unsigned i)
{
	struct weft_shm *s = (struct weft_shm *)net;
	struct weft_shm_inbox *inbox = s->inbox;
	if (i >= WEFT_NET_WORDS || peer < 0 || peer >= s->job.size)
		return NULL;
	if (peer != s->job.rank)
		inbox = weft_shm_is_up(&s->link[peer]) ? s->link[peer].tx_inbox : NULL;
	return inbox ? &inbox->word[i].x_word : NULL;
}

static bool shm_awake(struct weft_net *net, int peer)
{
	struct weft_shm_link *k = &((struct weft_shm *)net)->link[peer];
	/* A hint: it may fall asleep, or wake, at any moment. */
	return weft_shm_is_up(k) && weft_bell_level(k->bell) == WEFT_BELL_AWAKE;
}

static bool shm_computes(struct weft_net *net, int peer)
{
	struct weft_shm_link *k = &((struct weft_shm *)net)->link[peer];
	/* A hint, too. */
	return weft_shm_is_up(k) && weft_bell_level(k->bell) == WEFT_BELL_QUIET;
}

static void shm_drop(struct weft_net *net, int peer, const char *why)
{
	struct weft_shm *s = (struct weft_shm *)net;
	weft_shm_link_down(s, &s->link[peer], WEFT_ERR_PEER, why);
}

static void shm_revive(struct weft_net *net, int peer)
{
	struct weft_shm *s = (struct weft_shm *)net;
	weft_shm_link_reset(s, &s->link[peer]);
}

static bool shm_ended(struct weft_net *net, int peer)
{
	return ((struct weft_shm *)net)->lobby.peers[peer].refused;
}

static bool shm_lives(struct weft_net *net, int peer)
{
	return weft_lobby_taken(&((struct weft_shm *)net)->lobby, peer);
}

const struct weft_driver weft_driver_shm = {
	.name = "shm",
	.open = shm_open_driver,
	.close = shm_close,
	.address = shm_address,
	.reach = shm_reach,
	.post = weft_shm_post,
	.urge = weft_shm_urge,
	.post_plain = weft_shm_post_plain,
	.poll = shm_poll,
	.spin = shm_spin,
	.arm = shm_arm,
	.arm_left = shm_arm_left,
	.settle = shm_settle,
	.disarm = shm_disarm,
	.fd = shm_fd,
	.get = weft_shm_get,
	.put = weft_shm_put,
	.drain = shm_drain,
	.card = shm_card,
	.board = shm_board,
	.word = shm_word,
	.awake = shm_awake,
	.computes = shm_computes,
	.drop = shm_drop,
	.revive = shm_revive,
	.ended = shm_ended,
	.lives = shm_lives,
};
