/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_rest.c - where descriptors are few, the connection that has been quiet longest makes room, and is made anew when it
 * is needed.
 *
 * Each side sends REST as its last word, and takes no post for this connection any more (FULL; ready() comes when
 * the next one can be asked for).  A side that has sent REST and has read the peer's has sent and received everything: it
 * closes, and is as if it had never been connected.  The side that did not begin answers a REST with its own, behind what it
 * still has to send, so that nothing is lost and nothing overtakes.  Both may begin at once: then each takes the other's
 * word for the answer.  One of them may then dial before the other has read: judge_guest() lets it look first, and the dialer
 * comes once more (weft_net_lobby_show_out).
 *
 * A connection that rests tells of no death: the launcher does, the next message, or, where a receive waits for the peer, the
 * lobby, which dials in a while (rests() of net/driver.h).
 */
#include <sys/resource.h>
#include <unistd.h>
#include "base/log.h"
#include "net/tcp/tcp_int.h"

#define SPARE_LEAST                                                                                \
	12 /* descriptors that stay free: connections under way, files of the application */

void weft_net_tcp_rest_init(struct weft_tcp *t)
{
	struct rlimit files;
	/* Where peers are revivable, another layer decides about connections; callers cannot be dialed. */
	if (t->job.revivable || t->job.callers || getrlimit(RLIMIT_NOFILE, &files) ||
	    files.rlim_cur == RLIM_INFINITY || files.rlim_cur > INT32_MAX)
		return;
	int spare = (int)files.rlim_cur / 8;
	t->fd_crowded = (int)files.rlim_cur - (spare > SPARE_LEAST ? spare : SPARE_LEAST);
	if (t->fd_crowded < 1)
		t->fd_crowded = 1;
}

/* When something last went over it, in poll rounds; small: long ago. */
static uint64_t last_use(const struct weft_tcp_conn *c)
{
	return c->used_round > c->heard_round ? c->used_round : c->heard_round;
}

/* May it rest?  x_lock held. */
static bool is_quiet(const struct weft_tcp_conn *c)
{
	/* Relaxed: a poster that blocks now comes too late for the lock. */
	return !c->rest && !c->bye_queued && weft_net_tcp_out_empty(&c->out) && !c->out.done &&
	       !c->out.error && !c->in.placing && !c->in.rest && !c->in.bye && !c->in.more &&
	       c->in.begin == c->in.end &&
	       !atomic_load_explicit(&c->x_blocked, memory_order_relaxed);
}

/* The quiet one that was used longest ago, locked; NULL: none is quiet. */
static struct weft_tcp_conn *lock_quietest(struct weft_tcp *t, const struct weft_tcp_conn *fresh)
{
	struct weft_tcp_conn *best = NULL;
	for (int i = 0; i < t->n_up; i++) {
		struct weft_tcp_conn *c = &t->conn[t->up[i]];
		if (c == fresh || !weft_net_tcp_out_lock(c, false))
			continue;
		if (!is_quiet(c) || (best && last_use(best) <= last_use(c))) {
			weft_net_tcp_out_unlock(c);
			continue;
		}
		if (best)
			weft_net_tcp_out_unlock(best);
		best = c;
	}
	return best;
}

/* Our last word, behind what waits.  x_lock held; false: no memory, so it goes on. */
static bool say_rest(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	weft_net_tcp_out_close(&c->out);
	c->rest = weft_net_tcp_out_rest(t, c);
	weft_net_tcp_out_mark_dirty(t, c);
	return c->rest;
}

static bool one_rests(const struct weft_tcp *t)
{
	for (int i = 0; i < t->n_up; i++)
		if (t->conn[t->up[i]].rest)
			return true;
	return false;
}

void weft_net_tcp_rest_make_room(struct weft_tcp *t, const struct weft_tcp_conn *fresh)
{
	if (!t->fd_crowded || (fresh ? fresh->fd < t->fd_crowded : one_rests(t)))
		return;
	struct weft_tcp_conn *c = lock_quietest(t, fresh);
	if (!c)
		return;
	if (say_rest(t, c))
		weft_debug("tcp: the connection to rank %d is to rest", c->peer);
	weft_net_tcp_out_unlock(c);
}

/* Both have said all: as if there had been no connection. */
static int close_rested(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	weft_net_tcp_conn_unlist(t, c);
	weft_net_tcp_out_lock(c, true);
	struct weft_tcp_item *done = weft_net_tcp_out_take_done(c, true);
	close(c->fd); /* leaves the epoll set by itself */
	c->fd = -1;
	weft_net_tcp_conn_clear_locked(t, c);
	weft_net_tcp_out_unlock(c);
	weft_net_lobby_show_out(&t->lobby, c->peer);
	/* Relaxed: a hint for the poller, which is us. */
	if (atomic_exchange_explicit(&c->x_dirty, false, memory_order_seq_cst))
		atomic_fetch_sub_explicit(&t->x_dirty, 1, memory_order_relaxed);
	weft_debug("tcp: the connection to rank %d rests", c->peer);
	int n = weft_net_tcp_conn_report(t, c, done);
	/* A poster that was told FULL asks for the next connection; what waits for the peer is to expect it again. */
	weft_net_tcp_conn_ready(t, c);
	if (t->events.rests)
		t->events.rests(t->events.arg, c->peer);
	return n + 1;
}

int weft_net_tcp_rest_step(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	/* Relaxed: only the poller, we, writes it. */
	if (!c->in.rest || c->bye_queued ||
	    atomic_load_explicit(&c->x_state, memory_order_relaxed) != WEFT_TCP_UP)
		return 0;
	if (!weft_net_tcp_out_lock(c, true))
		return 0;
	bool said = c->rest || say_rest(t, c);
	bool out = said && weft_net_tcp_out_empty(&c->out);
	weft_net_tcp_out_unlock(c);
	return out ? close_rested(t, c) : 0;
}
