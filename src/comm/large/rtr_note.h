/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtr_note.h - the sender's half of rtr.h: notes of receives that are posted early at the peer.
 *
 * Callers   _locked: holder of the gate's mask.  heard: the poller of the connection.
 * Full      heard() drops what is too much; its message asks.
 */
#ifndef WEFT_COMM_RTR_NOTE_H
#define WEFT_COMM_RTR_NOTE_H

#include "comm/lock.h"
#include "comm/request.h"
#include "comm/send/gate.h"

#define WEFT_RTR_NEWS 16
#define WEFT_RTR_KEPT 32
#define WEFT_RTR_SENT 64 /* a power of two */

/* No message is longer than this without having asked. */
#define WEFT_RTR_MAX ((size_t)8 * 1024 * 1024)

struct weft_comm_rtr_note {
	uint32_t context;
	int32_t tag;
	uint32_t sequence; /* of our envelopes, these had been matched */
	uint64_t room;
};

struct weft_comm_rtr {
	struct weft_spin lock;
	_Atomic uint32_t x_news;                       /* L; read without as a hint */
	struct weft_comm_rtr_note news[WEFT_RTR_NEWS]; /* L: not looked at by the holder yet */
	unsigned n;                                    /* M */
	struct weft_comm_rtr_note note[WEFT_RTR_KEPT]; /* M: oldest first */
	/* M: by a hash of context and tag: how many envelopes there were with the last such one. */
	uint32_t sent[WEFT_RTR_SENT];
	_Atomic uint32_t x_misses; /* told, and the peer asked all the same */
	_Atomic uint32_t x_held_back;
};

void weft_comm_rtr_heard(struct weft_gate *g, const struct weft_wire *h);
/* May r, which would ask, go at once? */
bool weft_comm_rtr_may_locked(struct weft_gate *g, const struct weft_req *r);
/* The message with that context and tag has gone: its note ends. */
void weft_comm_rtr_take_locked(struct weft_gate *g, uint32_t context, int32_t tag);

static inline uint32_t *weft_comm_rtr_sent(struct weft_comm_rtr *e, uint32_t context, int32_t tag)
{
	return &e->sent[((uint32_t)tag + context * 0x9e3779b1u) % WEFT_RTR_SENT];
}

/* An envelope with that context and tag has been posted. */
static inline void weft_comm_gate_numbered_locked(struct weft_gate *g, uint32_t context,
						  int32_t tag)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_comm_rtr *e = g->rtr;
	g->send_seq++;
	if (!e)
		return;
	/* Relaxed: a hint; what is missed now counts as stale at the next message. */
	if (weft_unlikely(e->n || atomic_load_explicit(&e->x_news, memory_order_relaxed)))
		weft_comm_rtr_take_locked(g, context, tag);
	*weft_comm_rtr_sent(e, context, tag) = g->send_seq;
}

#endif
