/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_conn.c - a connection's life: up, watched for silence, down. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"
#include "net/tcp/tcp_int.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif

/*
 * Keepalive finds a dead host while nothing is under way.  TCP_USER_TIMEOUT would find it while
 * something is, but it also ends a connection to a process that is merely stopped and lets its
 * window run full; so weft_net_tcp_conn_watch() looks at the acknowledgements instead.  A handshake
 * fills no window: there it may tell.  The kernel asks a full window, and repeats what was lost,
 * ever more seldom, after a minute or two only every two minutes: where it lets us we bound that.
 */
static void keep_alive(int fd)
{
	int silence = (int)weft_setting_int(WEFT_SET_TCP_SILENCE);
	int one = 1, idle = (silence + 2) / 3, interval = (silence + 5) / 6, count = 4;
	int again_ms = interval < 120 ? interval * 1000 : 120000;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &again_ms, sizeof again_ms);
}

void weft_net_tcp_conn_dialing(int fd)
{
	unsigned silence_ms = (unsigned)weft_setting_int(WEFT_SET_TCP_SILENCE) * 1000;
	keep_alive(fd);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
}

static void set_options(int fd)
{
	int one = 1, none = 0;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof none);
	keep_alive(fd);
}

/* Are both ends addresses of this very stack?  Then no wire lies between. */
static bool is_inner(int fd)
{
	union weft_tcp_sockaddr mine = {0}, theirs = {0};
	socklen_t mine_len = sizeof mine, theirs_len = sizeof theirs;
	if (getsockname(fd, &mine.sa, &mine_len) != 0 ||
	    getpeername(fd, &theirs.sa, &theirs_len) != 0 ||
	    mine.sa.sa_family != theirs.sa.sa_family)
		return false;
	if (mine.sa.sa_family == AF_INET)
		return mine.in.sin_addr.s_addr == theirs.in.sin_addr.s_addr;
	return mine.sa.sa_family == AF_INET6 &&
	       !memcmp(&mine.in6.sin6_addr, &theirs.in6.sin6_addr, sizeof mine.in6.sin6_addr);
}

/*
 * bbr paces by a timer: within a host that doubles the time of a large message, and there is
 * no other traffic to be fair to.  reno is in each kernel and sends what the windows allow.
 */
static void set_congestion(int fd)
{
	const char *wish = weft_setting_str(WEFT_SET_TCP_CONGESTION);
	if (!strcmp(wish, "auto"))
		wish = is_inner(fd) ? "reno" : "";
	if (!*wish ||
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, wish, (socklen_t)strlen(wish)) == 0)
		return;
	static _Atomic bool x_said;
	/* Relaxed: guards nothing but a second line. */
	if (!atomic_exchange_explicit(&x_said, true, memory_order_relaxed))
		weft_warn("tcp: congestion control %s: %s; the system's is used", wish,
			  strerror(errno));
}

void weft_net_tcp_conn_ready(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	/* READY <- BLOCK (set_blocked): the poster's second look comes after it, or this sees it.
	 */
	if (!atomic_exchange_explicit(&c->x_blocked, false, memory_order_seq_cst))
		return;
	/* Relaxed: a hint for the poller, which is us. */
	atomic_fetch_sub_explicit(&t->x_blocked, 1, memory_order_relaxed);
	t->events.ready(t->events.arg, c->peer);
}

void weft_net_tcp_conn_up(struct weft_tcp *t, int peer, int fd)
{
	struct weft_tcp_conn *c = &t->conn[peer];
	weft_assert(peer != t->job.rank && c->fd < 0 && !c->in.buf && t->n_up < t->job.size);
	c->in.buf = malloc(WEFT_TCP_IN_BUFFER);
	if (!c->in.buf || weft_net_hub_add(&t->hub, fd, EPOLLIN | EPOLLRDHUP,
					   weft_net_hub_data(WEFT_TCP_EV_CONN, (uint64_t)peer))) {
		close(fd);
		weft_net_tcp_conn_down(t, c, WEFT_ERR_NOMEM, "no memory for its connection");
		return;
	}
	set_options(fd);
	set_congestion(fd);
	c->in.limit = WEFT_TCP_IN_BUFFER / 4;
	/* Relaxed: the poller, we, counts.  What it was made for is yet to come: now is when it was used last. */
	c->heard_round = atomic_load_explicit(&t->x_round, memory_order_relaxed);
	c->fd = fd;
	t->up[t->n_up++] = peer;
	weft_debug("tcp: rank %d is connected", peer);
	/* UP -> USE (posters).  Carries: fd.  seq_cst: pairs with x_blocked, so that a poster
	 * either sees UP or has left the flag that ready() takes. */
	atomic_store_explicit(&c->x_state, WEFT_TCP_UP, memory_order_seq_cst);
	weft_net_tcp_conn_ready(t, c);
}

/* Tells of accepted posts that are over. */
static int report_posts(struct weft_tcp *t, struct weft_tcp_conn *c, struct weft_tcp_item *list,
			struct weft_tcp_item *bad_from, weft_err err)
{
	int n = 0;
	bool bad = false;
	while (list) {
		struct weft_tcp_item *it = list;
		void *cookie = it->cookie;
		list = it->next;
		bad |= it == bad_from;
		weft_net_tcp_item_free(it);
		t->events.sent(t->events.arg, c->peer, cookie, bad ? err : WEFT_OK);
		n++;
	}
	return n;
}

int weft_net_tcp_conn_report(struct weft_tcp *t, struct weft_tcp_conn *c,
			     struct weft_tcp_item *list)
{
	return report_posts(t, c, list, NULL, WEFT_OK);
}

void weft_net_tcp_conn_unlist(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	weft_net_lobby_forget(&t->lobby, c->peer);
	for (int i = 0; i < t->n_up; i++)
		if (t->up[i] == c->peer)
			t->up[i--] = t->up[--t->n_up];
	if (c->in.more)
		t->n_more--;
	c->in.more = false;
}

void weft_net_tcp_conn_down(struct weft_tcp *t, struct weft_tcp_conn *c, weft_err err,
			    const char *why)
{
	char text[320];
	/* Relaxed: only the poller, we, writes it. */
	if (atomic_load_explicit(&c->x_state, memory_order_relaxed) == WEFT_TCP_DOWN)
		return;
	weft_net_tcp_conn_unlist(t, c);

	weft_net_tcp_out_lock(c, true);
	/* DOWN: a poster that gets the lock after us sees it. */
	atomic_store_explicit(&c->x_state, WEFT_TCP_DOWN, memory_order_seq_cst);
	struct weft_tcp_item *fine = weft_net_tcp_out_take_done(c, false);
	struct weft_tcp_item *rest = weft_net_tcp_out_take_done(c, true);
	if (c->out.stuck)
		atomic_fetch_sub_explicit(&t->x_stuck, 1, memory_order_relaxed);
	c->out.stuck = false;
	if (c->fd >= 0)
		close(c->fd); /* leaves the epoll set by itself */
	c->fd = -1;
	weft_net_tcp_out_unlock(c);

	if (atomic_exchange_explicit(&c->x_dirty, false, memory_order_seq_cst))
		atomic_fetch_sub_explicit(&t->x_dirty, 1, memory_order_relaxed);
	if (atomic_exchange_explicit(&c->x_blocked, false, memory_order_seq_cst))
		atomic_fetch_sub_explicit(&t->x_blocked, 1, memory_order_relaxed);
	if (err)
		snprintf(text, sizeof text, "lost rank %d (tcp): %s", c->peer, why);
	else
		snprintf(text, sizeof text, "rank %d left (tcp)", c->peer);
	weft_net_tcp_in_abandon(t, c, WEFT_ERR_PEER);
	report_posts(t, c, fine, NULL, WEFT_OK);
	report_posts(t, c, rest, rest, WEFT_ERR_PEER);
	t->events.down(t->events.arg, c->peer, err, text);
}

void weft_net_tcp_conn_clear_locked(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	weft_assert_held(weft_net_tcp_out, c);
	weft_net_tcp_out_free(&c->out);
	weft_net_tcp_out_init(&c->out);
	free(c->in.buf);
	memset(&c->in, 0, sizeof c->in);
	c->last_round = UINT64_MAX;
	c->burst = c->streak = c->doubts = c->right = 0;
	c->led = false;
	c->rest = false;
	c->bye_queued = false;
	c->unacked_since_ns = 0;
	weft_net_lobby_revive(&t->lobby, c->peer);
	/* seq_cst: as the store of DOWN. */
	atomic_store_explicit(&c->x_state, WEFT_TCP_NONE, memory_order_seq_cst);
}

void weft_net_tcp_conn_reset(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	/* Relaxed: only the poller, we, writes it. */
	if (atomic_load_explicit(&c->x_state, memory_order_relaxed) != WEFT_TCP_DOWN)
		return;
	weft_net_tcp_out_lock(c, true);
	weft_net_tcp_conn_clear_locked(t, c);
	weft_net_tcp_out_unlock(c);
}

uint64_t weft_net_tcp_silent_ms(const struct tcp_info *info)
{
	/* Nothing is under way: its window is full.  One question may be unanswered yet, and its
	 * answer lost; without TCP_RTO_MAX_MS the next one is asked up to two minutes later. */
	if (!info->tcpi_unacked && info->tcpi_probes < 2)
		return 0;
	return info->tcpi_last_ack_recv; /* answers to questions included */
}

bool weft_net_tcp_conn_watch(struct weft_tcp *t, struct weft_tcp_conn *c, uint64_t now)
{
	int queued = 0;
	struct tcp_info info;
	socklen_t len = sizeof info;
	memset(&info, 0, sizeof info);
	if (ioctl(c->fd, SIOCOUTQ, &queued) != 0 || !queued) {
		c->unacked_since_ns = 0;
		return false;
	}
	if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return true;
	if (!c->unacked_since_ns)
		c->unacked_since_ns = now;
	uint64_t silence = (uint64_t)weft_setting_int(WEFT_SET_TCP_SILENCE);
	if (now - c->unacked_since_ns >= silence * 1000000000u &&
	    weft_net_tcp_silent_ms(&info) >= silence * 1000u) {
		char why[64];
		snprintf(why, sizeof why, "its host has not answered for %llu seconds",
			 (unsigned long long)silence);
		weft_net_tcp_conn_down(t, c, WEFT_ERR_PEER, why);
	}
	return true;
}
