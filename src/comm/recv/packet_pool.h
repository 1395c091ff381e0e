/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet_pool.h - packets of one size kept ready: a small pool per core, a shared one behind.
 *
 *   a core's pool  a list from hot (given last) to cold.  The core takes and gives at the hot end,
 *                  whose lines lie in its cache.  Holds two batches (more only while several threads
 *                  of the core refill it at once); what is beyond leaves from the cold end, a batch
 *                  at once.
 *   shared pool    a list of whole batches, each moved in O(1).  Bounded; what it does not take the
 *                  caller frees.
 *   thief          a core whose own pool and the shared pool are empty: takes an item from the cold
 *                  end of another core's pool, if that is not locked.
 *
 * A thread uses the pool of the core that it runs on.  It may be moved to another core between that
 * look and the lock: then two cores meet at one lock, no more.
 *
 * Callers   take, give: any thread; not a signal handler.
 * Owner     the pool owns an item from give until take.
 * Order     what was written to an item before give() is visible after take(); by the locks.
 * Progress  take never waits for an item: NULL means make one, or go without.  The locks cover a few
 *           dozen instructions, a cut walks one batch.
 * Full      give() returns what it does not keep.
 * Destroy   fini, when nothing else can be running.
 *
 *           take  give  fini      .  together, each under the lock of the pool it touches
 *   take     .     .    no
 *   give           .    no
 */
#ifndef WEFT_COMM_PACKET_POOL_H
#define WEFT_COMM_PACKET_POOL_H

#include "comm/lock.h"

#define WEFT_PACKET_POOLS_MAX 64u

/* The first bytes of what lies in a pool. */
struct weft_comm_packet_pool_item {
	struct weft_comm_packet_pool_item *next; /* towards cold */
	struct weft_comm_packet_pool_item
		*prev; /* towards hot; of the first item of a batch: the next batch */
};

struct weft_comm_packet_pool_pool {
	alignas(WEFT_CACHELINE) struct weft_spin lock;
	_Atomic unsigned x_kept;                       /* L; thieves peek */
	struct weft_comm_packet_pool_item *hot, *cold; /* L */
};

struct weft_comm_packet_pool {
	struct weft_comm_packet_pool_pool *pool; /* I */
	unsigned pools;                          /* I: a power of two */
	unsigned batch;                          /* I: items */
	unsigned batches_max;                    /* I: of the shared pool */
	alignas(WEFT_CACHELINE) struct weft_spin lock;
	_Atomic unsigned x_batches;                 /* L; peeked at */
	struct weft_comm_packet_pool_item *batches; /* L: first items, by prev */
};

/* Keeps at most `most` items in the shared pool, and 2 * batch for each core. */
weft_err weft_comm_packet_pool_init(struct weft_comm_packet_pool *s, unsigned batch,
				    unsigned most) weft_must_use;
/* All that it holds, by next; the pool is empty and gone. */
struct weft_comm_packet_pool_item *weft_comm_packet_pool_fini(struct weft_comm_packet_pool *s);

/* NULL: there is none. */
struct weft_comm_packet_pool_item *weft_comm_packet_pool_take(struct weft_comm_packet_pool *s);
/* Keeps i.  Returns what the caller must free instead, by next, or NULL. */
struct weft_comm_packet_pool_item *
weft_comm_packet_pool_give(struct weft_comm_packet_pool *s,
			   struct weft_comm_packet_pool_item *i) weft_must_use;

/* How many items there are; -1: an invariant is broken.  No other thread is using it. */
long weft_comm_packet_pool_check(const struct weft_comm_packet_pool *s);

#endif
