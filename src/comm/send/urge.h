/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urge.h - may the ring for a large message's RTS wait a moment?
 *
 * A ring wakes the peer's watcher, on the core where the peer computes: some 20 us of both sides.
 * Ranks that compute for about as long and then exchange would ring each other each time, just before the
 * peer comes by itself.  So where the sender is known to poll soon after such a send, as most are that
 * wait for what they send, the ring is left to its polls (net/shm/delayed_ring.h).
 *
 * Learned    per context and tag: how often in a row the thread has polled within SHORT_NS.
 * Not for    messages whose transfer takes longer than the ring is late.
 * Mistaken   a sender that computes after all: its watcher looks within some ms
 *            (weft_task_engine_check_later), then the place proves itself anew.
 * Callers    late: the poster of an RTS, before the post.  back: an application thread that polls.
 * Progress   some loads and stores, all relaxed: hints.
 * Checked    test/comm/send/test_urge.c.
 */
#ifndef WEFT_COMM_URGE_H
#define WEFT_COMM_URGE_H

#include "comm/wire.h"

#define WEFT_URGE_MOST ((uint64_t)128 * 1024) /* bytes: longer ones ring at once */
#define WEFT_URGE_SHORT_NS 50000u
#define WEFT_URGE_SURE 4 /* in a row, to count on it */
#define WEFT_URGE_BITS 5 /* of the places that are told apart */

struct weft_comm_urge {
	_Atomic uint64_t x_at; /* cycles: of the first RTS that no poll has followed yet; 0: none */
	_Atomic uint32_t x_open; /* bits: the places of all of them */
	_Atomic uint8_t x_shorts[1u << WEFT_URGE_BITS];
};

static inline unsigned weft_comm_urge_place(const struct weft_wire *h)
{
	uint64_t key = (uint64_t)h->context << 32 | (uint32_t)h->tag;
	return (unsigned)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - WEFT_URGE_BITS));
}

/* True: its sender is likely to poll in a moment. */
static inline bool weft_comm_urge_late(struct weft_comm_urge *u, const struct weft_wire *h,
				       uint64_t now)
{
	if (h->kind != WEFT_WIRE_RTS || h->length > WEFT_URGE_MOST)
		return false;
	unsigned at = weft_comm_urge_place(h);
	uint32_t open = atomic_load_explicit(&u->x_open, memory_order_relaxed);
	atomic_store_explicit(&u->x_open, open | UINT32_C(1) << at, memory_order_relaxed);
	if (!atomic_load_explicit(&u->x_at, memory_order_relaxed))
		atomic_store_explicit(&u->x_at, now, memory_order_relaxed);
	return atomic_load_explicit(&u->x_shorts[at], memory_order_relaxed) >= WEFT_URGE_SURE;
}

static inline bool weft_comm_urge_open(const struct weft_comm_urge *u)
{
	return atomic_load_explicit(&u->x_at, memory_order_relaxed) != 0;
}

/* The thread polls. */
static inline void weft_comm_urge_back(struct weft_comm_urge *u, uint64_t now,
				       uint64_t short_cycles)
{
	uint64_t then = atomic_exchange_explicit(&u->x_at, 0, memory_order_relaxed);
	uint32_t open = atomic_exchange_explicit(&u->x_open, 0, memory_order_relaxed);
	for (; then && open; open &= open - 1) { /* bound: the places */
		unsigned at = (unsigned)__builtin_ctz(open);
		uint8_t shorts = atomic_load_explicit(&u->x_shorts[at], memory_order_relaxed);
		if (now - then >= short_cycles)
			shorts = 0;
		else if (shorts < WEFT_URGE_SURE)
			shorts++;
		atomic_store_explicit(&u->x_shorts[at], shorts, memory_order_relaxed);
	}
}

struct weft_gate;
/* Before an answer is asked for: may the peer be rung late? */
bool weft_comm_urge_may_be_late(struct weft_gate *g, const struct weft_wire *head);
/* It has been asked for. */
void weft_comm_urge_ring(struct weft_gate *g, bool late);

#endif
