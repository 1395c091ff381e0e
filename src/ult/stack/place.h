/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h - descriptors by the thousand, and what the address of one tells about its stack.
 *
 * Chunks are aligned to their size, and threads that are made together have their stacks in a row.
 * So a thread that is about to call another can fetch its stack together with its descriptor,
 * before a word of the latter is there: among more threads than caches hold, these two misses are
 * most of what a call costs.
 *
 * Callers   place: under the pool's lock.  guess: any thread.
 * Order     none: a guess may be of another time, or of another thread; it is for prefetches.
 */
#ifndef WEFT_ULT_PLACE_H
#define WEFT_ULT_PLACE_H

#include "base/assert.h"
#include "ult/ult_int.h"

#ifdef WEFT_TSAN
#define WEFT_ULT_CHUNK_BYTES ((uintptr_t)2 << 20) /* descriptors are larger */
#else
#define WEFT_ULT_CHUNK_BYTES ((uintptr_t)1 << 20)
#endif

struct weft_ult_chunk {
	struct weft_ult thread[WEFT_READY_CHUNK];
	struct weft_ready_chunk ready;
	/* For each 64: where the first one's stack ends, on a page; below, the number of their
	 * worker and the class.  0 in a worker's first chunk: so few stay in the caches anyway. */
	_Atomic uintptr_t x_place[WEFT_READY_CHUNK / 64];
};
_Static_assert(sizeof(struct weft_ult_chunk) <= WEFT_ULT_CHUNK_BYTES, "a chunk is too large");
_Static_assert(WEFT_ULT_WORKERS_MAX <= 256 && WEFT_ULT_CLASSES <= 16, "they fit below a page");

static inline struct weft_ult_chunk *weft_ult_chunk_of(const struct weft_ult *t)
{
	return (struct weft_ult_chunk *)((uintptr_t)t & ~(WEFT_ULT_CHUNK_BYTES - 1));
}

/* t has its slot, home and stack from now on. */
static inline void weft_ult_place(struct weft_ult *t)
{
	uint32_t i = t->slot % WEFT_READY_CHUNK;
	weft_assert(t == &weft_ult_chunk_of(t)->thread[i]);
	uintptr_t top = (uintptr_t)t->stack + weft_ult_stack_bytes(t->class);
	if (t->slot < WEFT_READY_CHUNK)
		return;
	/* Relaxed: a guess. */
	atomic_store_explicit(&weft_ult_chunk_of(t)->x_place[i / 64],
			      (top - i % 64 * weft_ult_stack_step(t->class)) |
				      (uintptr_t)t->home->id << 4 | t->class,
			      memory_order_relaxed);
}

/* Where the stack of t is likely to end; NULL: no idea, or t is not worker id's. */
static inline const char *weft_ult_guess(const struct weft_ult *t, int id)
{
	struct weft_ult_chunk *k = weft_ult_chunk_of(t);
	uint32_t i = (uint32_t)(t - k->thread);
	/* Relaxed: a guess. */
	uintptr_t place = atomic_load_explicit(&k->x_place[i / 64], memory_order_relaxed);
	if (place < 4096 || (place >> 4 & 255) != (uintptr_t)id)
		return NULL;
	return (const char *)(place & ~(uintptr_t)4095) +
	       i % 64 * weft_ult_stack_step((int)(place & 15));
}

#endif
