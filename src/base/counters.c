/* SPDX-License-Identifier: BSD-3-Clause */
/* counters.c - the list of per-thread blocks; blocks of ended threads are used again, values kept.
 */
#include "base/counters.h"

#include <pthread.h>
#include <stdlib.h>
#include "base/log.h"

_Thread_local struct weft_counter_block *weft_counter_self;

/* Blocks are only ever added: readers walk without a lock. */
static struct weft_counter_block *_Atomic x_blocks;
static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;
static struct weft_counter_block last_resort; /* shared when memory is gone: counts may be lost */

static const char *const names[] = {
#define WEFT_COUNTER(id, name, help) name,
#include "base/counters_table.h"
#undef WEFT_COUNTER
};
static const char *const helps[] = {
#define WEFT_COUNTER(id, name, help) help,
#include "base/counters_table.h"
#undef WEFT_COUNTER
};

static void thread_ends(void *arg)
{
	struct weft_counter_block *b = arg;
	weft_counter_self = NULL;
	/* FREE -> REUSE.  Carries: our last counts.  Without it the next owner could overwrite
	 * them. */
	atomic_store_explicit(&b->x_used, false, memory_order_release);
}

static void make_key(void)
{
	if (pthread_key_create(&end_key, thread_ends))
		weft_panic("no pthread key left for the counters");
}

static struct weft_counter_block *reuse(void)
{
	for (struct weft_counter_block *b = atomic_load_explicit(&x_blocks, memory_order_acquire);
	     b; b = b->next) {
		bool used = false;
		/* REUSE: partner FREE in thread_ends. */
		if (atomic_compare_exchange_strong_explicit(
			    &b->x_used, &used, true, memory_order_acquire, memory_order_relaxed))
			return b;
	}
	return NULL;
}

struct weft_counter_block *weft_counter_block_get(void)
{
	pthread_once(&end_once, make_key);
	struct weft_counter_block *b = reuse();
	if (!b) {
		b = aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *b, WEFT_CACHELINE));
		if (!b)
			return &last_resort;
		*b = (struct weft_counter_block){.x_used = true};
		b->next = atomic_load_explicit(&x_blocks, memory_order_relaxed);
		/* PUB -> SEE (readers).  Carries: the zeroed block. */
		while (!atomic_compare_exchange_weak_explicit(
			&x_blocks, &b->next, b, memory_order_release, memory_order_relaxed))
			;
	}
	pthread_setspecific(end_key, b);
	weft_counter_self = b;
	return b;
}

uint64_t weft_counter_sum(enum weft_counter_id id)
{
	uint64_t sum = atomic_load_explicit(&last_resort.x_value[id], memory_order_relaxed);
	for (struct weft_counter_block *b = atomic_load_explicit(&x_blocks, memory_order_acquire);
	     b; b = b->next)
		sum += atomic_load_explicit(&b->x_value[id], memory_order_relaxed);
	return sum;
}

const char *weft_counter_name(enum weft_counter_id id)
{
	return names[id];
}

const char *weft_counter_help(enum weft_counter_id id)
{
	return helps[id];
}

void weft_counters_print(FILE *out)
{
	for (int i = 0; i < WEFT_COUNTER_COUNT; i++) {
		uint64_t v = weft_counter_sum((enum weft_counter_id)i);
		if (v)
			fprintf(out, "  %-18s %12llu  %s\n", names[i], (unsigned long long)v,
				helps[i]);
	}
}
