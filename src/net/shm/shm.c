/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.c - the shared memory driver: its table, start and end, and what peers show each other. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"
#include "net/forked.h"
#include "net/shm/shm_int.h"

static void on_linked(void *arg, int peer, int fd)
{
	weft_net_shm_link_greet(arg, peer, fd);
}

static void on_lost(void *arg, int peer, weft_err err, const char *why)
{
	struct weft_shm *s = arg;
	weft_net_shm_link_down(s, &s->link[peer], err, why);
}

static void on_stale(void *arg, int peer)
{
	struct weft_shm *s = arg;
	weft_net_shm_link_down(s, &s->link[peer], WEFT_ERR_PEER, "the peer connects anew");
}

static const struct weft_lobby_ops lobby_ops = {
	.driver = "shm",
	.screen = weft_net_shm_socket_screen,
	.dial = weft_net_shm_socket_dial,
	.linked = on_linked,
	.lost = on_lost,
};

static const struct weft_lobby_ops lobby_ops_revivable = {
	.driver = "shm",
	.screen = weft_net_shm_socket_screen,
	.dial = weft_net_shm_socket_dial,
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
	s->card_copy = s->card_plain;
	s->card_copy.access = WEFT_NET_READ | WEFT_NET_WRITE;
	s->card_copy.copies = true;
}

static void let_go(void *arg)
{
	struct weft_shm *s = arg;
	weft_net_lobby_let_go(&s->lobby);
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
	s->net.driver = &weft_net_driver_shm;
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
	err = weft_net_shm_memory_create(sizeof *s->inbox, &s->inbox_fd, &map);
	if (err)
		goto free_link;
	s->inbox = map;
	err = weft_net_hub_open(&s->hub);
	if (err)
		goto free_inbox;
	err = weft_net_lobby_open(&s->lobby, job->revivable ? &lobby_ops_revivable : &lobby_ops, s,
				  &s->job, &s->hub);
	if (err)
		goto close_hub;
	randombytes_buf(s->nonce, sizeof s->nonce);
	s->registered = !weft_net_shm_lacks.membarrier && weft_net_bell_register();
	fill_cards(s);
	s->regions.shown = &s->inbox->regions;
	weft_net_forked_add(let_go, s);
	*net_p = &s->net;
	return WEFT_OK;
close_hub:
	weft_net_hub_close(&s->hub);
free_inbox:
	weft_net_shm_memory_unmap(s->inbox, sizeof *s->inbox);
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
	weft_net_forked_remove(s);
	weft_net_lobby_close(&s->lobby);
	for (int i = 0; i < s->job.size; i++)
		weft_net_shm_link_free(&s->link[i]);
	weft_net_hub_close(&s->hub);
	weft_net_shm_memory_unmap(s->inbox, sizeof *s->inbox);
	close(s->inbox_fd);
	free(s->scan);
	free(s->link);
	free(s);
}

static weft_err shm_address(struct weft_net *net, char *buf, size_t size)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (!s->listening) {
		int fd = weft_net_shm_socket_listen(s);
		if (fd < 0)
			return WEFT_ERR_SYS;
		weft_err err = weft_net_lobby_listen(&s->lobby, fd);
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
	if (peer == s->job.rank || !weft_net_shm_same_host(address, s->host_key))
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

static unsigned shm_fds(struct weft_net *net, int fd[WEFT_NET_FDS])
{
	fd[0] = ((struct weft_shm *)net)->hub.epfd;
	return 1;
}

static weft_err shm_drain(struct weft_net *net)
{
	struct weft_shm *s = (struct weft_shm *)net;
	weft_err err = s->n_greeting ? WEFT_AGAIN : WEFT_OK;
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		if (k->bye_sent)
			continue;
		(void)weft_net_ring_refresh(&k->tx);
		if (!weft_net_ring_room(&k->tx, 0)) {
			err = WEFT_AGAIN;
			continue;
		}
		weft_net_ring_publish_bye(&k->tx);
		k->bye_sent = true;
		if (weft_net_bell_urgent(k->bell))
			weft_net_bell_ring(k->bell, k->bell_fd);
	}
	if (err)
		weft_net_hub_hurry(&s->hub);
	return err;
}

static const struct weft_net_card *shm_card(struct weft_net *net, int peer)
{
	struct weft_shm *s = (struct weft_shm *)net;
	bool up = peer >= 0 && peer < s->job.size && weft_net_shm_is_up(&s->link[peer]);
	return up && s->link[peer].can_copy ? &s->card_copy : &s->card_plain;
}

static void *shm_board(struct weft_net *net, int peer)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (peer == s->job.rank)
		return s->inbox->board;
	if (peer < 0 || peer >= s->job.size || !weft_net_shm_is_up(&s->link[peer]))
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
		inbox = weft_net_shm_is_up(&s->link[peer]) ? s->link[peer].tx_inbox : NULL;
	return inbox ? &inbox->word[i].x_word : NULL;
}

static bool shm_awake(struct weft_net *net, int peer)
{
	struct weft_shm_link *k = &((struct weft_shm *)net)->link[peer];
	/* A hint: it may fall asleep, or wake, at any moment. */
	return weft_net_shm_is_up(k) && weft_net_bell_level(k->bell) == WEFT_ARM_OFF;
}

static bool shm_computes(struct weft_net *net, int peer)
{
	struct weft_shm_link *k = &((struct weft_shm *)net)->link[peer];
	/* A hint, too. */
	return weft_net_shm_is_up(k) && weft_arm_is_for_replies(weft_net_bell_level(k->bell));
}

static void shm_drop(struct weft_net *net, int peer, const char *why)
{
	struct weft_shm *s = (struct weft_shm *)net;
	weft_net_shm_link_down(s, &s->link[peer], WEFT_ERR_PEER, why);
}

static void shm_revive(struct weft_net *net, int peer)
{
	struct weft_shm *s = (struct weft_shm *)net;
	weft_net_shm_link_reset(s, &s->link[peer]);
}

static bool shm_ended(struct weft_net *net, int peer)
{
	return ((struct weft_shm *)net)->lobby.peers[peer].refused;
}

static bool shm_lives(struct weft_net *net, int peer)
{
	return weft_net_lobby_taken(&((struct weft_shm *)net)->lobby, peer);
}

static void shm_upcalls(struct weft_net *net, const struct weft_net_events *events)
{
	weft_net_events_take(&((struct weft_shm *)net)->events, events);
}

const struct weft_driver weft_net_driver_shm = {
	.name = "shm",
	.open = shm_open_driver,
	.close = shm_close,
	.upcalls = shm_upcalls,
	.address = shm_address,
	.reach = shm_reach,
	.post = weft_net_shm_post,
	.urge = weft_net_shm_urge,
	.post_plain = weft_net_shm_post_plain,
	.poll = weft_net_shm_poll,
	.spin = weft_net_shm_spin,
	.arm = weft_net_shm_arm,
	.arms_levels = true,
	.fds = shm_fds,
	.region_open = weft_net_shm_region_open,
	.region_close = weft_net_shm_region_close,
	.transfer = weft_net_shm_transfer,
	.flush = weft_net_shm_flush,
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
	.died = weft_net_shm_died,
	.expect = weft_net_shm_expect,
};
