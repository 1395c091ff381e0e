/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtr.h - receives that are posted early tell their sender, who need not ask then.
 *
 * A receive of more than eager_max bytes, posted before its message, sends RTR: context, tag, room,
 * and how many of the peer's envelopes had been matched before.  The sender keeps it until its next
 * message with that context and tag; if that one fits, it goes out as an eager message of any
 * length, without RTS and CTS, and straight into the buffer that waits for it.
 *
 * An RTR is a permission, no more: the message is matched when it comes, in its order, as every
 * other is.  So it does no harm when another message took the receive (a wildcard was older, the
 * receive was cancelled, both crossed): the payload is kept as an unexpected one, within the
 * credit, of which these messages use at most half.
 *
 * Told are exact receives into one piece of memory, in a context without wildcards, if they may
 * advance in the background; a peer whose messages came with a request all the same is told one
 * time in sixteen.  The sender drops what is
 * stale: it has sent such a message since.
 *
 * Only where payloads come as a stream and the peer's memory cannot be read (driver.h).
 *
 * Callers   _locked: holder of the gate's mask.  heard: the poller of the connection.  before,
 *           tell: any thread.
 * Full      heard() drops what is too much; its message asks.
 */
#ifndef WEFT_COMM_RTR_H
#define WEFT_COMM_RTR_H

#include "comm/comm_int.h"

#define WEFT_EARLY_NEWS 16
#define WEFT_EARLY_KEPT 32
#define WEFT_EARLY_SENT 64 /* a power of two */

/* No message is longer than this without having asked. */
#define WEFT_EARLY_MAX ((size_t)8 * 1024 * 1024)

struct weft_comm_rtr_note {
	uint32_t context;
	int32_t tag;
	uint32_t sequence; /* of our envelopes, these had been matched */
	uint64_t room;
};

struct weft_comm_rtr {
	struct weft_spin lock;
	_Atomic uint32_t x_news;                         /* L; read without as a hint */
	struct weft_comm_rtr_note news[WEFT_EARLY_NEWS]; /* L: not looked at by the holder yet */
	unsigned n;                                      /* M */
	struct weft_comm_rtr_note note[WEFT_EARLY_KEPT]; /* M: oldest first */
	/* M: by a hash of context and tag: how many envelopes there were with the last such one. */
	uint32_t sent[WEFT_EARLY_SENT];
	_Atomic uint32_t x_misses; /* told, and the peer asked all the same */
	_Atomic uint32_t x_held_back;
};

/* Gives the gate what it needs for this, if it is worth it; no memory: it does without. */
void weft_comm_rtr_open(struct weft_gate *g);
void weft_comm_rtr_close(struct weft_gate *g);

/* ---- receiving ------------------------------------------------------------------------------ */

/* Before a receive is posted: is it one to tell of?  Then *sequence_p is for tell(). */
bool weft_comm_rtr_before(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf,
			  uint32_t *sequence_p);
/* It is posted, and no message was there. */
void weft_comm_rtr_tell(struct weft_ctx *ctx, int peer, int tag, size_t room, uint32_t sequence);
/* Its message has asked (missed), or has not. */
void weft_comm_rtr_outcome(struct weft_gate *g, bool missed);

/* ---- sending -------------------------------------------------------------------------------- */

void weft_comm_rtr_heard(struct weft_gate *g, const struct weft_wire *h);
/* May r, which would ask, go at once? */
bool weft_comm_rtr_may_locked(struct weft_gate *g, const struct weft_req *r);
/* The message with that context and tag has gone: its note ends. */
void weft_comm_rtr_take_locked(struct weft_comm_rtr *e, uint32_t context, int32_t tag);

static inline uint32_t *weft_comm_rtr_sent(struct weft_comm_rtr *e, uint32_t context, int32_t tag)
{
	return &e->sent[((uint32_t)tag + context * 0x9e3779b1u) % WEFT_EARLY_SENT];
}

/* An envelope with that context and tag has been posted. */
static inline void weft_comm_gate_numbered_locked(struct weft_gate *g, uint32_t context,
						  int32_t tag)
{
	struct weft_comm_rtr *e = g->early;
	g->send_seq++;
	if (!e)
		return;
	/* Relaxed: a hint; what is missed now counts as stale at the next message. */
	if (weft_unlikely(e->n || atomic_load_explicit(&e->x_news, memory_order_relaxed)))
		weft_comm_rtr_take_locked(e, context, tag);
	*weft_comm_rtr_sent(e, context, tag) = g->send_seq;
}

#endif
