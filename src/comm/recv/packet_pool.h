/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stash.h - packets of one size kept ready: a small pool per core, a shared one behind.
 *
 *   a core's pool   a list from hot (given last) to cold.  The core takes and gives at the hot end,
 *                   whose lines lie in its cache.  Holds two batches (more only while several
 *                   threads of the core refill it at once); what is beyond leaves from the cold
 * end, a batch at once. the shared one  a list of whole batches, each moved in O(1).  Bounded; what
 * it does not take the caller frees. a thief         whose own pool and the shared one are empty
 * takes one item from the cold end of another core's pool, if that is not locked.
 *
 * A thread uses the pool of the core that it runs on.  It may be moved to another core between that
 * look and the lock: then two cores meet at one lock, no more.
 *
 * Callers   take, give: any thread; not a signal handler.
 * Owner     the stash owns an item from give until take.
 * Order     what was written to an item before give() is visible after take(); by the locks.
 * Progress  take never waits for an item: NULL means make one, or go without.  The locks cover a
 * few dozen instructions, a cut walks one batch. Full      give() returns what it does not keep.
 * Destroy   fini, when nothing else can be running.
 *
 *           take  give  fini      .  together, each under the lock of the pool it touches
 *   take     .     .    no
 *   give           .    no
 */
#ifndef WEFT_COMM_STASH_H
#define WEFT_COMM_STASH_H

#include "comm/lock.h"

#define WEFT_STASH_POOLS_MAX 64u

/* The first bytes of what lies in a stash. */
struct weft_stash_item {
	struct weft_stash_item *next; /* towards cold */
	struct weft_stash_item *prev; /* towards hot; of the first one of a batch: the next batch */
};

struct weft_stash_pool {
	alignas(WEFT_CACHELINE) struct weft_spin lock;
	_Atomic unsigned x_kept;            /* L; thieves peek */
	struct weft_stash_item *hot, *cold; /* L */
};

struct weft_stash {
	struct weft_stash_pool *pool; /* I */
	unsigned pools;               /* I: a power of two */
	unsigned batch;               /* I: items */
	unsigned batches_max;         /* I: of the shared pool */
	alignas(WEFT_CACHELINE) struct weft_spin lock;
	_Atomic unsigned x_batches;      /* L; peeked at */
	struct weft_stash_item *batches; /* L: first items, by prev */
};

/* Keeps at most `most` items in the shared pool, and 2 * batch for each core. */
weft_err weft_stash_init(struct weft_stash *s, unsigned batch, unsigned most) weft_must_use;
/* All that it holds, by next; the stash is empty and gone. */
struct weft_stash_item *weft_stash_fini(struct weft_stash *s);

/* NULL: there is none. */
struct weft_stash_item *weft_stash_take(struct weft_stash *s);
/* Keeps i.  Returns what the caller must free instead, by next, or NULL. */
struct weft_stash_item *weft_stash_give(struct weft_stash *s,
					struct weft_stash_item *i) weft_must_use;

/* How many items there are; -1: an invariant is broken.  Nobody else is using it. */
long weft_stash_check(const struct weft_stash *s);

#endif
