/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.c - the tcp driver: its table, poll, arming; tcp_post.c: post.
 *
 * With one or two connections a poll reads the sockets themselves: a recv that finds nothing is
 * cheaper than epoll_wait, and one that finds something saves it.  With more, epoll says which.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/cancel.h"
#include "base/log.h"
#include "base/settings.h"
#include "net/forked.h"
#include "net/tcp/tcp_int.h"

#define DIRECT_MAX 2

static void on_linked(void *arg, int peer, int fd)
{
	struct weft_tcp *t = arg;
	weft_net_tcp_conn_up(t, peer, fd);
	weft_net_tcp_rest_make_room(t, &t->conn[peer]);
}

static void on_lost(void *arg, int peer, weft_err err, const char *why)
{
	struct weft_tcp *t = arg;
	weft_net_tcp_conn_down(t, &t->conn[peer], err, why);
}

/* Only where peers are revivable: else a second connection of a linked peer counts as an attack. */
static void on_stale(void *arg, int peer)
{
	struct weft_tcp *t = arg;
	weft_net_tcp_conn_down(t, &t->conn[peer], WEFT_ERR_PEER, "the peer connects anew");
}

static const struct weft_lobby_ops lobby_ops = {
	.driver = "tcp",
	.dial = weft_net_tcp_addr_dial,
	.linked = on_linked,
	.resting = weft_net_tcp_serve_resting,
	.lost = on_lost,
};

static const struct weft_lobby_ops lobby_ops_revivable = {
	.driver = "tcp",
	.dial = weft_net_tcp_addr_dial,
	.linked = on_linked,
	.stale = on_stale,
	.lost = on_lost,
};

static void let_go(void *arg)
{
	struct weft_tcp *t = arg;
	weft_net_lobby_let_go(&t->lobby);
	for (int i = 0; i < t->job.size; i++)
		if (t->conn[i].fd >= 0)
			close(t->conn[i].fd);
}

static weft_err tcp_open(const struct weft_net_job *job, const struct weft_net_events *events,
			 struct weft_net **net_p)
{
	weft_err err = WEFT_ERR_NOMEM;
	struct weft_tcp *t = calloc(1, sizeof *t);
	if (!t || sodium_init() < 0)
		goto free_t;
	t->net.driver = &weft_net_driver_tcp;
	t->events = *events;
	t->job = *job;
	if (weft_net_network_key(t->network_key, sizeof t->network_key))
		strcpy(t->network_key, "unknown"); /* differs from each key that is known */
	size_t bytes = weft_align_up((size_t)job->size * sizeof *t->conn, WEFT_CACHELINE);
	t->conn = aligned_alloc(WEFT_CACHELINE, bytes);
	t->up = calloc((size_t)job->size, sizeof *t->up);
	if (!t->conn || !t->up)
		goto free_conn;
	memset(t->conn, 0, bytes);
	for (int i = 0; i < job->size; i++) {
		t->conn[i].peer = i;
		t->conn[i].fd = -1;
		t->conn[i].last_round = UINT64_MAX;
		weft_net_tcp_out_init(&t->conn[i].out);
	}
	err = weft_net_hub_open(&t->hub);
	if (err)
		goto free_conn;
	err = weft_net_lobby_open(&t->lobby, job->revivable ? &lobby_ops_revivable : &lobby_ops, t,
				  &t->job, &t->hub);
	if (err)
		goto close_hub;
	weft_net_tcp_rest_init(t);
	t->watchdog_ms = (unsigned)weft_setting_int(WEFT_SET_TCP_SILENCE) * 1000 / 6;
	t->card = (struct weft_net_card){
		.max_payload = WEFT_TCP_MAX_PAYLOAD,
		.inline_max = WEFT_TCP_INLINE,
		.eager_max = (size_t)weft_setting_int(WEFT_SET_EAGER_TCP),
		.gathers = true,
		.streams = true,
		.latency_us = 4,
		.bandwidth_mbs = 6000,
	};
	weft_net_forked_add(let_go, t);
	*net_p = &t->net;
	return WEFT_OK;
close_hub:
	weft_net_hub_close(&t->hub);
free_conn:
	free(t->up);
	free(t->conn);
free_t:
	free(t);
	return err;
}

static void tcp_close(struct weft_net *net)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	weft_net_forked_remove(t);
	weft_net_lobby_close(&t->lobby);
	for (int i = 0; i < t->job.size; i++) {
		struct weft_tcp_conn *c = &t->conn[i];
		if (c->fd >= 0)
			close(c->fd);
		struct weft_tcp_item *it = weft_net_tcp_out_take_done(c, true);
		while (it) {
			struct weft_tcp_item *next = it->next;
			weft_net_tcp_item_free(it);
			it = next;
		}
		weft_net_tcp_out_free(&c->out);
		free(c->in.buf);
	}
	weft_net_hub_close(&t->hub);
	free(t->up);
	free(t->conn);
	free(t);
}

static weft_err tcp_address(struct weft_net *net, char *buf, size_t size)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	if (!t->listening) {
		weft_err err = weft_net_tcp_addr_listen(t);
		if (err)
			return err;
		t->listening = true;
	}
	return weft_net_tcp_addr_print(t, buf, size);
}

static weft_err tcp_reach(struct weft_net *net, int peer, const char *address)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	if (peer == t->job.rank || !address)
		return WEFT_ERR_UNSUPPORTED;
	if (strcmp(address, WEFT_NET_LATER) == 0 && t->job.find) {
		t->conn[peer].later = true;
		return WEFT_OK;
	}
	return weft_net_tcp_addr_learn(t, peer, address);
}

static int serve_dirty(struct weft_tcp *t)
{
	int n = 0;
	for (int i = 0; i < t->n_up; i++) {
		struct weft_tcp_conn *c = &t->conn[t->up[i]];
		/* SERVE <- DIRTY (weft_net_tcp_out_mark_dirty). */
		if (atomic_load_explicit(&c->x_dirty, memory_order_acquire))
			n += weft_net_tcp_serve_push(t, c);
	}
	return n;
}

/* Writable again: goes on with what waits. */
static void resume_output(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	if (!weft_net_tcp_out_lock(c, false))
		return; /* epoll will say it again */
	if (c->out.stuck && c->fd >= 0) {
		/* Relaxed: see set_stuck(). */
		c->out.stuck = false;
		atomic_fetch_sub_explicit(&t->x_stuck, 1, memory_order_relaxed);
		(void)weft_net_tcp_out_push(t, c);
		if (!c->out.stuck)
			weft_net_hub_change(&t->hub, c->fd, EPOLLIN | EPOLLRDHUP,
					    weft_net_hub_data(WEFT_TCP_EV_CONN, (uint64_t)c->peer));
		weft_net_tcp_out_mark_dirty(t, c);
	}
	weft_net_tcp_out_unlock(c);
}

static int conn_event(struct weft_tcp *t, struct weft_tcp_conn *c, uint32_t events)
{
	int n = 0;
	/* Relaxed: only the poller, we, writes it. */
	if (atomic_load_explicit(&c->x_state, memory_order_relaxed) != WEFT_TCP_UP)
		return 0;
	if (events & EPOLLOUT)
		resume_output(t, c);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		n += weft_net_tcp_serve_read(t, c);
	return n;
}

/* Looks for hosts that have fallen silent; the timer goes on while something is unacknowledged. */
static bool watch_silence(struct weft_tcp *t)
{
	uint64_t now = weft_clock_ns();
	bool any = false;
	if (now < t->watchdog_ns)
		return t->hub.tick_ms != 0;
	t->watchdog_ns = now + t->watchdog_ms * 1000000ull;
	atomic_store_explicit(&t->x_sent, false, memory_order_relaxed);
	for (int i = t->n_up - 1; i >= 0; i--)
		any |= weft_net_tcp_conn_watch(t, &t->conn[t->up[i]], now);
	return any;
}

static int look_at_sockets(struct weft_tcp *t)
{
	struct epoll_event ev[32];
	int n = 0;
	int got = weft_net_hub_look(&t->hub, ev, weft_countof(ev));
	t->lobby.upcalls = 0;
	for (int i = 0; i < got; i++) {
		uint64_t data = ev[i].data.u64;
		switch (weft_net_hub_kind(data)) {
		case WEFT_HUB_TIMER:
			weft_net_hub_ticked(&t->hub);
			break;
		case WEFT_HUB_WAKE:
			weft_net_hub_quiet(&t->hub);
			break;
		case WEFT_TCP_EV_CONN:
			n += conn_event(t, &t->conn[weft_net_hub_index(data)], ev[i].events);
			break;
		default:
			weft_net_lobby_event(&t->lobby, data, ev[i].events);
			break;
		}
	}
	return n + t->lobby.upcalls;
}

/* What has deadlines. */
static int run_deadlines(struct weft_tcp *t)
{
	t->lobby.upcalls = 0;
	weft_net_lobby_work(&t->lobby);
	if (weft_unlikely(t->lobby.paused)) /* no descriptor for a peer that dials */
		weft_net_tcp_rest_make_room(t, NULL);
	bool watched = watch_silence(t);
	unsigned ms = weft_net_lobby_tick_ms(&t->lobby);
	weft_net_hub_tick(&t->hub, watched && (!ms || t->watchdog_ms < ms) ? t->watchdog_ms : ms);
	return t->lobby.upcalls;
}

/* Work that nothing rings for: a thread about to sleep does it first. */
static bool left_to_do(struct weft_tcp *t)
{
	/* ARM -> RING (ring_poller): the second look, after the exchange on x_armed. */
	return t->n_more || atomic_load_explicit(&t->x_dirty, memory_order_seq_cst) ||
	       weft_net_lobby_wanted(&t->lobby);
}

static int poll_all(struct weft_net *net)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	int n = 0;
	/* Relaxed: single writer, read as a hint; see may_cork(). */
	atomic_store_explicit(&t->x_round,
			      atomic_load_explicit(&t->x_round, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (weft_unlikely(t->armed)) {
		/* A poster may have rung: armed again before looking, as in tcp_arm(). */
		n += look_at_sockets(t);
		(void)atomic_exchange_explicit(&t->x_armed, true, memory_order_seq_cst);
		n += run_deadlines(t);
	}
	/* Relaxed: a hint; when armed, the exchange above has ordered it. */
	if (atomic_load_explicit(&t->x_dirty, memory_order_relaxed))
		n += serve_dirty(t);
	bool direct = t->n_up <= DIRECT_MAX;
	for (int i = 0; direct && i < t->n_up; i++)
		n += weft_net_tcp_serve_read(t, &t->conn[t->up[i]]);
	for (int i = 0; !direct && t->n_more && i < t->n_up; i++)
		if (t->conn[t->up[i]].in.more)
			n += weft_net_tcp_serve_read(t, &t->conn[t->up[i]]);
	bool due = weft_net_hub_due(&t->hub, weft_net_lobby_busy(&t->lobby));
	if (!direct || due || atomic_load_explicit(&t->x_stuck, memory_order_relaxed))
		n += look_at_sockets(t);
	if (weft_unlikely(due))
		n += run_deadlines(t);
	/* A batch went out, and there are more: armed, no poll would come for them. */
	return n + (weft_unlikely(t->armed) && left_to_do(t));
}

static int tcp_poll(struct weft_net *net)
{
	int was = weft_cancel_off();
	int n = poll_all(net);
	weft_cancel_back(was);
	return n;
}

static void disarm_tcp(struct weft_tcp *t)
{
	t->armed = false;
	/* Relaxed: a late ring costs one wake-up. */
	atomic_store_explicit(&t->x_armed, false, memory_order_relaxed);
	weft_net_hub_hurry(&t->hub);
}

static weft_err tcp_arm(struct weft_net *net, enum weft_arm_level level)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	weft_assert(level <= WEFT_ARM_ALL && t->n_more >= 0);
	if (level == WEFT_ARM_OFF) {
		disarm_tcp(t);
		return WEFT_OK;
	}
	if (t->n_more || weft_net_lobby_wanted(&t->lobby))
		goto again;
	/* Relaxed: a flag for a timer of seconds. */
	if (!t->hub.tick_ms && atomic_load_explicit(&t->x_sent, memory_order_relaxed))
		weft_net_hub_tick(&t->hub, t->watchdog_ms);
	/* ARM -> RING (ring_poller): exchange before the second look. */
	(void)atomic_exchange_explicit(&t->x_armed, true, memory_order_seq_cst);
	t->armed = !left_to_do(t);
	if (t->armed)
		return WEFT_OK;
again:
	disarm_tcp(t);
	return WEFT_AGAIN;
}

static unsigned tcp_fds(struct weft_net *net, int fd[WEFT_NET_FDS])
{
	fd[0] = ((struct weft_tcp *)net)->hub.epfd;
	return 1;
}

/* Is everything that we sent in the other host's hands? */
static bool is_out(struct weft_tcp_conn *c)
{
	int queued = 0;
	bool empty = weft_net_tcp_out_lock(c, true) && weft_net_tcp_out_empty(&c->out);
	weft_net_tcp_out_unlock(c);
	return empty && (ioctl(c->fd, SIOCOUTQ, &queued) != 0 || !queued);
}

static weft_err tcp_drain(struct weft_net *net)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	weft_err err = WEFT_OK;
	for (int i = 0; i < t->n_up; i++) {
		struct weft_tcp_conn *c = &t->conn[t->up[i]];
		if (c->rest) { /* the poller, we, writes it: the peer's consent comes soon */
			err = WEFT_AGAIN;
			continue;
		}
		if (!c->bye_queued) {
			weft_net_tcp_out_lock(c, true);
			c->bye_queued = weft_net_tcp_out_bye(t, c);
			weft_net_tcp_out_mark_dirty(t, c);
			weft_net_tcp_out_unlock(c);
		}
		/* close() with bytes underway could reset the connection and lose them. */
		if (!c->bye_queued || !is_out(c))
			err = WEFT_AGAIN;
	}
	return err;
}

static const struct weft_net_card *tcp_card(struct weft_net *net, int peer)
{
	return &((struct weft_tcp *)net)->card;
}

static void tcp_drop(struct weft_net *net, int peer, const char *why)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	weft_net_tcp_conn_down(t, &t->conn[peer], WEFT_ERR_PEER, why);
}

static void tcp_revive(struct weft_net *net, int peer)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	weft_net_tcp_conn_reset(t, &t->conn[peer]);
}

static bool tcp_ended(struct weft_net *net, int peer)
{
	return ((struct weft_tcp *)net)->lobby.peers[peer].refused;
}

static bool tcp_lives(struct weft_net *net, int peer)
{
	return weft_net_lobby_taken(&((struct weft_tcp *)net)->lobby, peer);
}

static void tcp_upcalls(struct weft_net *net, const struct weft_net_events *events)
{
	weft_net_events_take(&((struct weft_tcp *)net)->events, events);
}

const struct weft_driver weft_net_driver_tcp = {
	.name = "tcp",
	.open = tcp_open,
	.close = tcp_close,
	.upcalls = tcp_upcalls,
	.address = tcp_address,
	.reach = tcp_reach,
	.post = weft_net_tcp_post,
	.join_plain = weft_net_tcp_join_plain,
	.poll = tcp_poll,
	.arm = tcp_arm,
	.fds = tcp_fds,
	.drain = tcp_drain,
	.card = tcp_card,
	.drop = tcp_drop,
	.revive = tcp_revive,
	.ended = tcp_ended,
	.lives = tcp_lives,
	.died = weft_net_tcp_died,
	.expect = weft_net_tcp_expect,
};
