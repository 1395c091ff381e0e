/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_serve.c - what the poller does for a connection that is up: it reads, pushes and reports. */
#include <string.h>
#include "net/tcp/tcp_int.h"

int weft_net_tcp_serve_read(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	struct weft_tcp_end end;
	end.over = false; /* the rest is set with it */
	int n = weft_net_tcp_in_read(t, c, &end);
	/* Relaxed: the poller, we, writes it. */
	if (n)
		c->heard_round = atomic_load_explicit(&t->x_round, memory_order_relaxed);
	if (weft_unlikely(c->in.rest) && !end.over)
		n += weft_net_tcp_rest_step(t, c);
	if (weft_unlikely(end.over)) {
		weft_net_tcp_conn_down(t, c, end.err, end.why);
		n++;
	}
	return n;
}

int weft_net_tcp_serve_push(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	int n = 0;
	/* Taken before looking: what a poster adds now sets it again. */
	if (atomic_exchange_explicit(&c->x_dirty, false, memory_order_seq_cst))
		atomic_fetch_sub_explicit(&t->x_dirty, 1, memory_order_relaxed);
	/* A poster holds the lock for one sendmsg at most; not worth a wait here. */
	if (!weft_net_tcp_out_lock(c, false)) {
		weft_net_tcp_out_mark_dirty(t, c);
		return 0;
	}
	if (!c->out.stuck && !weft_net_tcp_out_push(t, c) && !c->out.stuck && !c->out.error)
		weft_net_tcp_out_mark_dirty(t, c);
	struct weft_tcp_item *done = weft_net_tcp_out_take_done(c, false);
	bool roomy = weft_net_tcp_out_roomy(&c->out) && !c->rest;
	int error = c->out.error;
	weft_net_tcp_out_unlock(c);

	n += weft_net_tcp_conn_report(t, c, done);
	if (weft_unlikely(c->in.rest))
		return n + weft_net_tcp_rest_step(t, c);
	/* READY <- BLOCK (set_blocked), after the lock: a poster that found no room before is
	 * seen here. */
	if (roomy && !error && atomic_load_explicit(&c->x_blocked, memory_order_seq_cst)) {
		weft_net_tcp_conn_ready(t, c);
		n++;
	}
	if (error) {
		/* First what the peer said before. */
		n += weft_net_tcp_serve_read(t, c);
		if (!c->in.more)
			weft_net_tcp_conn_down(t, c, c->bye_queued ? WEFT_OK : WEFT_ERR_PEER,
					       strerror(error));
		else
			weft_net_tcp_out_mark_dirty(t, c);
		n++;
	}
	return n;
}

bool weft_net_tcp_serve_resting(void *arg, int peer)
{
	struct weft_tcp *t = arg;
	struct weft_tcp_conn *c = &t->conn[peer];
	if (!c->rest)
		return false;
	t->lobby.upcalls += weft_net_tcp_serve_read(t, c);
	return true;
}
