/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_post.c - posting, and what is held back.
 *
 * Corking: a packet that follows another one with no poll between them is kept with those after it,
 * and the next poll or arm sends all in one system call; a lone packet goes at once.  After STREAK
 * bursts in a row the next packet is taken for the first of one, too, unless hold() knows better;
 * each time that it was not, it takes twice as many.
 */
#include "net/tcp/tcp_int.h"

#define BURST_LONG 8 /* packets behind the first: worth a system call less */
#define STREAK 4u    /* bursts; the packet that ends them waits for a poll, the others go at once */
#define DOUBTS_MAX 8 /* then 1,024 bursts, not STREAK */
#define RIGHT 32     /* firsts with others behind them: one doubt less */

static void ring_poller(struct weft_tcp *t)
{
	/* RING <- ARM (tcp_arm): the caller's flag was stored seq_cst before. */
	if (atomic_load_explicit(&t->x_armed, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&t->x_armed, false, memory_order_seq_cst))
		weft_net_hub_ring(&t->hub);
}

static void set_blocked(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	/* BLOCK -> READY (tell_ready): seq_cst, so that our second look comes after it. */
	if (!atomic_exchange_explicit(&c->x_blocked, true, memory_order_seq_cst))
		atomic_fetch_add_explicit(&t->x_blocked, 1, memory_order_seq_cst);
}

void weft_net_tcp_died(struct weft_net *net, int peer)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	if (weft_net_lobby_died(&t->lobby, peer))
		ring_poller(t);
}

void weft_net_tcp_expect(struct weft_net *net, int peer)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	const struct weft_tcp_conn *c = &t->conn[peer];
	if ((c->later || c->n_candidates) && weft_net_lobby_expect(&t->lobby, peer))
		ring_poller(t);
}

/* Not connected: asks for it.  True: it is by now. */
static bool post_early(struct weft_tcp *t, struct weft_tcp_conn *c, enum weft_post *answer_p)
{
	*answer_p = WEFT_POST_DOWN;
	if (!c->later && !c->n_candidates)
		return false;
	set_blocked(t, c);
	int state = atomic_load_explicit(&c->x_state, memory_order_seq_cst);
	if (state == WEFT_TCP_UP)
		return true;
	if (state == WEFT_TCP_DOWN)
		return false;
	if (weft_net_lobby_want(&t->lobby, c->peer))
		ring_poller(t);
	*answer_p = WEFT_POST_FULL;
	return false;
}

/* The connection has ended since, or rests (tcp_rest.c): the poller says when to try again. */
static enum weft_post post_late(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	enum weft_post answer;
	set_blocked(t, c);
	int state = atomic_load_explicit(&c->x_state, memory_order_seq_cst);
	if (state == WEFT_TCP_DOWN)
		return WEFT_POST_DOWN;
	if (state == WEFT_TCP_NONE && !post_early(t, c, &answer))
		return answer;
	/* A new one may have come up before the flag was there: the poller looks at it. */
	weft_net_tcp_out_mark_dirty(t, c);
	ring_poller(t);
	return WEFT_POST_FULL;
}

/*
 * A burst has ended whose first packet was held back.  Others came behind it: it was right to. Else
 * it may have left late, and the next one asks for twice as many bursts before it, so that a
 * program in which this happens again and again pays for one in some 32 bursts at most.
 */
static void judge_lead(struct weft_tcp_conn *c)
{
	weft_assert(c->led && c->doubts <= DOUBTS_MAX && c->right < RIGHT);
	c->led = false;
	if (c->burst < BURST_LONG) {
		c->doubts += c->doubts < DOUBTS_MAX;
		c->right = 0;
	} else if (c->doubts && ++c->right == RIGHT) {
		c->doubts--;
		c->right = 0;
	}
}

/* May a small packet be held back?  Yes if others came right before it, and a thread will poll. */
static bool may_cork(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	/* Relaxed: the number of polls so far; being late by one makes a packet go at once. */
	uint64_t round = atomic_load_explicit(&t->x_round, memory_order_relaxed);
	if (c->last_round == round) {
		c->burst++;
	} else {
		if (c->led)
			judge_lead(c);
		c->streak = c->burst < BURST_LONG ? 0 : c->streak + 1;
		c->burst = 0;
	}
	c->last_round = round;
	/* Armed, the first one held back rings, which costs as much as to send a few. */
	unsigned least = atomic_load_explicit(&t->x_armed, memory_order_relaxed) ? 4
			 : c->streak < STREAK << c->doubts                       ? 1
										 : 0;
	/* Behind what waits it goes anyway, that was asked for. */
	bool held = c->burst >= least && weft_net_tcp_out_empty(&c->out) && t->events.hold &&
		    t->events.hold(t->events.arg, c->peer, !c->burst);
	c->led |= held && !c->burst;
	return held;
}

/* Does a burst wait for the next poll, in a frame that may grow?  Lock held. */
static inline bool may_join(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	/* Relaxed: as in may_cork(). */
	return c->out.run.at &&
	       c->last_round == atomic_load_explicit(&t->x_round, memory_order_relaxed);
}

enum weft_post weft_net_tcp_post(struct weft_net *net, int peer, const void *head,
				 const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	struct weft_tcp_conn *c = &t->conn[peer];
	enum weft_post answer;

	weft_assert(peer >= 0 && peer < t->job.size && peer != t->job.rank);
	/* USE <- UP (weft_net_tcp_conn_up).  Carries: fd. */
	if (weft_unlikely(atomic_load_explicit(&c->x_state, memory_order_acquire) != WEFT_TCP_UP) &&
	    !post_early(t, c, &answer))
		return answer;
	if (weft_unlikely(!weft_net_tcp_out_lock(c, false))) {
		set_blocked(t, c);
		weft_net_tcp_out_mark_dirty(t, c);
		ring_poller(t);
		return WEFT_POST_FULL;
	}
	if (weft_unlikely(c->rest ||
			  atomic_load_explicit(&c->x_state, memory_order_relaxed) != WEFT_TCP_UP)) {
		weft_net_tcp_out_unlock(c);
		return post_late(t, c);
	}
	/* Relaxed: the number of polls so far. */
	c->used_round = atomic_load_explicit(&t->x_round, memory_order_relaxed);
	/* The most frequent way in a burst. */
	if (may_join(t, c) && weft_net_tcp_out_join(&c->out, head, iov, n, len)) {
		c->burst++;
		weft_net_tcp_out_unlock(c);
		return WEFT_POST_DONE;
	}
	bool cork = len <= WEFT_TCP_CORK && may_cork(t, c);
	answer = weft_net_tcp_out_post(t, c, head, iov, n, len, cookie, cork);
	weft_net_tcp_out_unlock(c);

	/* Relaxed: see tcp_arm(). */
	if (!atomic_load_explicit(&t->x_sent, memory_order_relaxed))
		atomic_store_explicit(&t->x_sent, true, memory_order_relaxed);
	if (weft_unlikely(answer == WEFT_POST_FULL)) {
		set_blocked(t, c);
		weft_net_tcp_out_mark_dirty(t, c);
	}
	/* Relaxed: if the flag is set, its store was seq_cst, and so is the ring. */
	if (atomic_load_explicit(&c->x_dirty, memory_order_relaxed))
		ring_poller(t);
	return answer;
}

enum weft_post weft_net_tcp_join_plain(struct weft_net *net, int peer, uint64_t w0, uint64_t w1,
				       const void *data, size_t len)
{
	struct weft_tcp *t = (struct weft_tcp *)net;
	struct weft_tcp_conn *c = &t->conn[peer];
	/* Relaxed: a hint; something waits for the poll. */
	if (!atomic_load_explicit(&c->x_dirty, memory_order_relaxed) ||
	    !weft_net_tcp_out_lock(c, false))
		return WEFT_POST_FULL;
	uint64_t head[3] = {w0, w1, len};
	struct iovec iov = {(void *)(uintptr_t)data, len};
	_Static_assert(sizeof head == WEFT_NET_HEAD, "a head is three numbers");
	bool joined = may_join(t, c) && weft_net_tcp_out_join(&c->out, head, &iov, len != 0, len);
	c->burst += joined;
	weft_net_tcp_out_unlock(c);
	return joined ? WEFT_POST_DONE : WEFT_POST_FULL;
}
