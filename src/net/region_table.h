/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region_table.h - which of a process's regions are open, shown to peers that copy from and to its
 * memory: the kernel checks no regions, so the origin does.
 *
 * A key is a place in the table, the generation of its use there, and what the region was opened
 * for.  The generations lie in memory
 * that peers map (shown); what the owner decides by lies in its own, so that a peer that scribbles
 * there confuses peers, not the owner.
 *
 * Callers   open, close: any thread of the owner.  shown_open: any thread of a process that maps it.
 * Order     an origin that sees a region open began before its close() returned.
 * Progress  lock-free; open() looks at each word of the table once.
 * Full      open() returns 0.
 */
#ifndef WEFT_NET_REGION_TABLE_H
#define WEFT_NET_REGION_TABLE_H

#include "net/region.h"

#define WEFT_REGION_PLACES 1024u

struct weft_region_shown {
	_Atomic uint32_t x_generation[WEFT_REGION_PLACES]; /* odd: open */
};

struct weft_region_table {
	struct weft_region_shown *shown;                  /* I */
	_Atomic uint64_t x_used[WEFT_REGION_PLACES / 64]; /* bits: places in use */
	uint32_t generation[WEFT_REGION_PLACES];          /* the place's user */
};

static inline uint64_t weft_net_region_table_open(struct weft_region_table *t, unsigned access)
{
	for (unsigned i = 0; i < WEFT_REGION_PLACES / 64; i++) {
		/* Relaxed: the exchange below decides. */
		uint64_t seen = atomic_load_explicit(&t->x_used[i], memory_order_relaxed);
		while (~seen) { /* ends: all bits are taken, or one is ours */
			unsigned bit = (unsigned)__builtin_ctzll(~seen);
			/* HAVE <- GAVE (close).  Carries: the generation. */
			if (!atomic_compare_exchange_weak_explicit(
				    &t->x_used[i], &seen, seen | (uint64_t)1 << bit,
				    memory_order_acquire, memory_order_relaxed))
				continue;
			unsigned place = i * 64 + bit;
			uint32_t generation = ++t->generation[place];
			weft_assert(generation & 1); /* the one before has closed it */
			/* OPEN -> SEE (is_open): the ticket carries the rest. */
			atomic_store_explicit(&t->shown->x_generation[place], generation,
					      memory_order_release);
			return (uint64_t)generation << 32 | access << 16 | (place + 1);
		}
	}
	return 0;
}

static inline void weft_net_region_table_close(struct weft_region_table *t, uint64_t key)
{
	unsigned place = (uint16_t)key - 1u;
	weft_assert(place < WEFT_REGION_PLACES);
	weft_assert(t->generation[place] == (uint32_t)(key >> 32)); /* open, and closed once */
	/* seq_cst: an origin that looks behind it sees the region closed. */
	atomic_store_explicit(&t->shown->x_generation[place], ++t->generation[place],
			      memory_order_seq_cst);
	/* GAVE -> HAVE (open).  Carries: the generation. */
	atomic_fetch_and_explicit(&t->x_used[place / 64], ~((uint64_t)1 << place % 64),
				  memory_order_release);
}

/* Is the region open, and for this? */
static inline bool weft_net_region_shown_open(const struct weft_region_shown *s, uint64_t key,
					      enum weft_net_access access)
{
	uint32_t place = (uint16_t)key - 1u, generation = (uint32_t)(key >> 32);
	/* SEE <- OPEN. */
	return place < WEFT_REGION_PLACES && key >> 16 & access && generation & 1 &&
	       atomic_load_explicit(&s->x_generation[place], memory_order_acquire) == generation;
}

#endif
