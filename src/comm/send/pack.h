/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack.h - several small messages of one gate in one packet (WEFT_WIRE_PACK).
 *
 * A message that enters a pack is copied, and its send is over; the pack then goes before anything
 * else of that gate does.  Two ways lead into it:
 *
 *   fan-in   messages that wait at the gate, because another thread was posting or the network was
 *            full, are packed by the thread that posts them; the pack goes when nothing is left
 *   hold     a message right behind another, with no poll between them, is held back if the engine
 *            says that a thread polls soon; the next poll sends the pack.  The first of a burst,
 *            and so a lone message, is never held.
 *
 * Callers   _locked: holder of the gate's mask.
 * Owner     the gate, from the choice of its strategy to the end.
 * Order     that of the gate: nothing is posted while a pack waits.
 * Full      add answers false; the pack must go first.
 */
#ifndef WEFT_COMM_PACK_H
#define WEFT_COMM_PACK_H

#include "comm/core.h"
#include "comm/send/credit.h"

#define WEFT_PACK_MAX ((size_t)8192) /* of one packet; what its receiver may have to keep */
#define WEFT_PACK_EACH                                                                             \
	((size_t)2048) /* of one message: beyond, the copy costs more than a packet */

struct weft_pack {
	struct weft_mpsc_node node; /* in the rail's queue of packs that were held back */
	/* Is it in that queue?  Set by the holder of the gate's mask, cleared by the rail's poller. */
	_Atomic bool x_listed;
	bool may_hold;          /* I */
	size_t most;            /* I: bytes */
	struct weft_gate *gate; /* I */
	struct weft_rail *rail; /* I */
	uint64_t last_round;    /* M: the poller's count at the last message */
	unsigned n;             /* M: messages in it */
	size_t len;             /* M */
	bool held;              /* M: by choice, not because the network is full */
	alignas(8) char data[WEFT_PACK_MAX];
};

/* Gives the gate a pack if its strategy wants one.  No memory: there is none, and each message goes
 * by itself. */
void weft_comm_pack_open(struct weft_gate *g, struct weft_rail *rail);
void weft_comm_pack_close(struct weft_gate *g);

static inline bool weft_comm_pack_waits(const struct weft_gate *g)
{
	return weft_unlikely(g->pack != NULL) && g->pack->n;
}

/* May the holder post at once: does nothing wait before it? */
static inline bool weft_comm_gate_clear_locked(const struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	/* Relaxed: the thread sees its own pushes anyway, and those of other threads have no
	 * order against it. */
	return !g->out_head && !atomic_load_explicit(&g->x_in, memory_order_relaxed) &&
	       !weft_comm_pack_waits(g);
}

/* Asserts what a pack promises, while no thread is in the core. */
void weft_comm_pack_check(const struct weft_pack *k);
/* May this packet travel in a pack? */
bool weft_comm_pack_fits(const struct weft_gate *g, struct weft_out *o);
/* Puts it in; false: no room. */
bool weft_comm_pack_add_locked(struct weft_gate *g, struct weft_out *o);
/* Posts the pack.  DONE also when there is none. */
enum weft_post weft_comm_pack_send_locked(struct weft_gate *g);
/* A message that has found the gate free.  True: it is in the pack; false: post or queue it. */
bool weft_comm_pack_hold_locked(struct weft_gate *g, const struct weft_wire *head,
				const struct weft_buf *buf);

#endif
