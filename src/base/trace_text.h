/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_text.h - from an address, or the hash of some letters, to the number of a text in the file.
 *
 * Callers   find: any thread.  add: under a lock.
 * Order     none: a number that is on its way reads 0, and a thread that needs it looks again under the lock.
 * Progress  find: wait-free, at most WEFT_TRACE_PROBES looks.
 * Full      add() returns false when the places that find() would look at are taken.
 */
#ifndef WEFT_TRACE_TEXT_H
#define WEFT_TRACE_TEXT_H

#include "base/base.h"

#define WEFT_TRACE_PLACES 4096u
#define WEFT_TRACE_PROBES 16u

struct weft_trace_place {
	_Atomic uint64_t x_key; /* 0: free; written once */
	_Atomic uint32_t x_number;
};

static inline uint32_t weft_trace_place(uint64_t key, uint32_t probe)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15u >> 40) + probe) % WEFT_TRACE_PLACES;
}

/* 0: not there. */
static inline uint32_t weft_trace_find(struct weft_trace_place *p, uint64_t key)
{
	for (uint32_t i = 0; i < WEFT_TRACE_PROBES; i++) {
		struct weft_trace_place *at = &p[weft_trace_place(key, i)];
		/* Relaxed: see Order. */
		uint64_t seen = atomic_load_explicit(&at->x_key, memory_order_relaxed);
		if (seen == key)
			return atomic_load_explicit(&at->x_number, memory_order_relaxed);
		if (!seen)
			return 0;
	}
	return 0;
}

static inline bool weft_trace_add(struct weft_trace_place *p, uint64_t key, uint32_t number)
{
	for (uint32_t i = 0; i < WEFT_TRACE_PROBES; i++) {
		struct weft_trace_place *at = &p[weft_trace_place(key, i)];
		if (atomic_load_explicit(&at->x_key, memory_order_relaxed)) /* under the lock */
			continue;
		atomic_store_explicit(&at->x_number, number, memory_order_relaxed);
		atomic_store_explicit(&at->x_key, key, memory_order_relaxed); /* see Order */
		return true;
	}
	return false;
}

#endif
