/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * credit.h - bounds the eager payload that lies with a process that does not receive it.
 *
 * A sender may have `credit` bytes of eager payload under way to a peer: posted, and not known to
 * have left the peer's library.  What goes beyond goes out as RTS, which waits with its sender; so
 * envelopes are never held back, and order stays.  The receiver gives credit back in units with
 * every packet that it sends anyway (head.credit), and with a packet of its own (CREDIT) once half
 * of it has come together; that packet needs no credit.
 *
 * The receiver's setting says how much; peers learn it at start.  Both sides count: more payload than
 * there was credit for, or more credit given back than was spent, ends the connection; neither can
 * happen by delay, because both counts move before the post.
 *
 * Callers   may_locked, spend_locked, post_locked: holder of the gate's mask.  got, take, used: the
 *           poller of the connection.  used_late: any thread.
 */
#ifndef WEFT_COMM_CREDIT_H
#define WEFT_COMM_CREDIT_H

#include "base/trace.h"
#include "comm/send/gate.h"
#include "comm/send/urge.h"
#include "comm/wire.h"

#define WEFT_CREDIT_UNIT 256

/* May len more bytes go out eagerly? */
static inline bool weft_comm_credit_may_locked(struct weft_gate *g, size_t len)
{
	weft_assert_held(weft_comm_gate, g);
	/* Relaxed: written under the mask. */
	uint64_t spent = atomic_load_explicit(&g->x_credit_spent, memory_order_relaxed);
	if (weft_likely(spent + len <= g->spend_limit) || !len)
		return true;
	/* Relaxed: a count that only grows; an old value is merely cautious. */
	g->spend_limit = atomic_load_explicit(&g->x_credit_got, memory_order_relaxed) + g->credit;
	return spent + len <= g->spend_limit;
}

/* Before a post of len bytes of eager payload; and with what was spent, when it came to nothing. */
static inline void weft_comm_credit_spend_locked(struct weft_gate *g, size_t len)
{
	weft_assert_held(weft_comm_gate, g);
	/* Relaxed: written under the mask; the peer's answer, which the poller compares with it,
	 * comes after the post. */
	uint64_t spent = atomic_load_explicit(&g->x_credit_spent, memory_order_relaxed);
	atomic_store_explicit(&g->x_credit_spent, spent + len, memory_order_relaxed);
}

static inline void weft_comm_credit_unspend_locked(struct weft_gate *g, size_t len)
{
	weft_assert_held(weft_comm_gate, g);
	weft_comm_credit_spend_locked(g, -len);
}

/* Will weft_comm_credit_take(len) succeed, by the limit read last? */
static inline bool weft_comm_credit_room(const struct weft_gate *g, size_t len)
{
	return g->recv_eager + len <= g->recv_limit;
}

/* Eager payload has come: had the peer credit for it? */
static inline bool weft_comm_credit_take(struct weft_gate *g, size_t len)
{
	g->recv_eager += len;
	if (weft_likely(g->recv_eager <= g->recv_limit))
		return true;
	/* Relaxed: raised before the packet that gives credit back is posted, so never too small.
	 */
	g->recv_limit =
		atomic_load_explicit(&g->x_returned, memory_order_relaxed) + g->credit_given;
	return g->recv_eager <= g->recv_limit;
}

/* Bytes to give back. */
static inline uint64_t weft_comm_credit_due(const struct weft_gate *g)
{
	/* Relaxed: counts; what is missed now is given back next time. */
	return atomic_load_explicit(&g->x_used, memory_order_relaxed) +
	       atomic_load_explicit(&g->x_used_late, memory_order_relaxed) -
	       atomic_load_explicit(&g->x_returned, memory_order_relaxed);
}

/* Every packet leaves through here.  quiet: it needs no answer; a peer where no thread waits may
 * sleep on. */
static inline enum weft_post weft_comm_gate_post_as_locked(struct weft_gate *g,
							   struct weft_wire *head,
							   const struct iovec *iov, unsigned n,
							   size_t len, void *cookie, bool quiet)
{
	weft_assert_held(weft_comm_gate, g);
	uint64_t units = weft_comm_credit_due(g) / WEFT_CREDIT_UNIT;
	bool late =
		!quiet && weft_comm_urge_may_be_late(g, head); /* it may be over after the post */
	enum weft_post p;

	if (weft_likely(!units)) {
		p = g->driver->post(g->net, g->peer, head, iov, n, len, cookie);
	} else {
		/* The head may be the request's, which may be over after the post. */
		struct weft_wire h = *head;
		h.credit = (uint16_t)(units < UINT16_MAX ? units : UINT16_MAX);
		/* Relaxed: written under the mask.  Before the post: what the peer sends with this
		 * credit must not arrive before it is counted as returned. */
		uint64_t r = atomic_load_explicit(&g->x_returned, memory_order_relaxed);
		atomic_store_explicit(&g->x_returned, r + (uint64_t)h.credit * WEFT_CREDIT_UNIT,
				      memory_order_relaxed);
		p = g->driver->post(g->net, g->peer, &h, iov, n, len, cookie);
		if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED)
			atomic_store_explicit(&g->x_credit_asked, false, memory_order_relaxed);
		else
			atomic_store_explicit(&g->x_returned, r, memory_order_relaxed);
	}
	if (!quiet && p == WEFT_POST_DONE && g->driver->urge)
		weft_comm_urge_ring(g, late);
	return p;
}

static inline enum weft_post weft_comm_gate_post_locked(struct weft_gate *g, struct weft_wire *head,
							const struct iovec *iov, unsigned n,
							size_t len, void *cookie)
{
	weft_assert_held(weft_comm_gate, g);
	bool quiet = head->kind == WEFT_WIRE_EAGER && !(head->flags & WEFT_WIRE_SYNC);
	return weft_comm_gate_post_as_locked(g, head, iov, n, len, cookie, quiet);
}

/* False: more than was ever spent. */
static inline bool weft_comm_credit_got(struct weft_gate *g, const struct weft_wire *h)
{
	if (weft_likely(!h->credit))
		return true;
	/* Relaxed: as in may; spent is raised before what the peer answers to is posted. */
	uint64_t got = atomic_load_explicit(&g->x_credit_got, memory_order_relaxed) +
		       (uint64_t)h->credit * WEFT_CREDIT_UNIT;
	if (weft_unlikely(got > atomic_load_explicit(&g->x_credit_spent, memory_order_relaxed)))
		return false;
	atomic_store_explicit(&g->x_credit_got, got, memory_order_relaxed);
	weft_trace(WEFT_TRACE_CREDIT, 0, (uint32_t)g->peer, 0,
		   (uint64_t)h->credit * WEFT_CREDIT_UNIT);
	return true;
}

/* Asserts what both counts promise, while no thread is in the core. */
void weft_comm_credit_check(const struct weft_gate *g);
/* Sends a packet if enough has come together that the peer may be waiting for it. */
void weft_comm_credit_return(struct weft_gate *g);
/* The same, and sets how much more the poller may take in before the next call. */
void weft_comm_credit_look(struct weft_gate *g);

/* Payload has been delivered as it came. */
static inline void weft_comm_credit_used(struct weft_gate *g, size_t len)
{
	/* Relaxed: a count with a single writer. */
	uint64_t used = atomic_load_explicit(&g->x_used, memory_order_relaxed) + len;
	atomic_store_explicit(&g->x_used, used, memory_order_relaxed);
	if (weft_unlikely(used >= g->used_limit))
		weft_comm_credit_look(g);
}

/* An unexpected message has left this process's memory. */
static inline void weft_comm_credit_used_late(struct weft_gate *g, size_t len)
{
	/* Relaxed: a count. */
	atomic_fetch_add_explicit(&g->x_used_late, len, memory_order_relaxed);
	weft_comm_credit_return(g);
}

#endif
