/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.h - numbers cheap enough to stay on: one block per thread, summed on reading.
 *
 * Callers   count: any thread, any time; not a signal handler on its thread's first use.
 *           sum: any thread; sees each count that happened before, and perhaps later ones.
 * Cost      a relaxed load and store of the thread's own line.
 */
#ifndef WEFT_COUNTERS_H
#define WEFT_COUNTERS_H

#include <stdio.h>
#include "base/base.h"

enum weft_counter_id {
#define WEFT_COUNTER(id, name, help) WEFT_CNT_##id,
#include "base/counters_table.h"
#undef WEFT_COUNTER
	WEFT_COUNTER_COUNT
};

struct weft_counter_block {
	struct weft_counter_block *next;
	_Atomic bool x_used;                          /* taken by a living thread */
	_Atomic uint64_t x_value[WEFT_COUNTER_COUNT]; /* written by the owner only */
};

extern _Thread_local struct weft_counter_block *weft_counter_self;

struct weft_counter_block *weft_counter_block_get(void);

/* Adds n to counter id. */
static inline void weft_count(enum weft_counter_id id, uint64_t n)
{
	struct weft_counter_block *b = weft_counter_self;
	if (weft_unlikely(!b))
		b = weft_counter_block_get();
	/* Relaxed: a statistic with a single writer. */
	uint64_t v = atomic_load_explicit(&b->x_value[id], memory_order_relaxed);
	atomic_store_explicit(&b->x_value[id], v + n, memory_order_relaxed);
}

/* The sum over all threads, ended ones included. */
uint64_t weft_counter_sum(enum weft_counter_id id);

const char *weft_counter_name(enum weft_counter_id id);
const char *weft_counter_help(enum weft_counter_id id);

#endif
