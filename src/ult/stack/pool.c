/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c - descriptors with their stacks: taken by create, given back by join, never unmapped.
 * Beyond ult_keep MiB the memory of stacks in the pool is the kernel's to take back (MADV_FREE).
 *
 * A descriptor keeps its slot, its home and its stack for ever, so a late unpark touches memory
 * that is still a descriptor.  A worker has a list of spare ones for each size, hot first, for
 * itself; what is beyond, and what others give or take, goes through its pool under a lock.
 */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <string.h>
#include <sys/mman.h>
#include "base/log.h"
#include "base/settings.h"
#include "ult/stack/place.h"

#define BATCH 64        /* made, or moved, at a time */
#define SPARES_MAX 1024 /* of one size, kept for the worker alone */

#define ARENA (16 * WEFT_ULT_CHUNK_BYTES) /* of descriptors */

/* Zeroed memory for a chunk; under pool_lock.  By small pages: huge ones take a sixth more time to
 * make a million, and give nothing back. */
static struct weft_ult_chunk *chunk_memory(struct weft_ult_worker *w)
{
	if (w->arena_left < WEFT_ULT_CHUNK_BYTES) {
		char *m = mmap(NULL, ARENA + WEFT_ULT_CHUNK_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (m == MAP_FAILED)
			return NULL;
		w->arena = (char *)weft_align_up((uintptr_t)m, WEFT_ULT_CHUNK_BYTES);
		w->arena_left = ARENA;
		(void)madvise(w->arena, ARENA, MADV_NOHUGEPAGE);
	}
	char *m = w->arena;
	w->arena += WEFT_ULT_CHUNK_BYTES;
	w->arena_left -= WEFT_ULT_CHUNK_BYTES;
	return (struct weft_ult_chunk *)m;
}

/* A chunk of descriptors and its part of the ready vector; under pool_lock. */
static weft_err chunk_new(struct weft_ult_worker *w, uint32_t c)
{
	struct weft_ult_chunk *k = chunk_memory(w);
	if (!k)
		return WEFT_ERR_NOMEM;
	atomic_store_explicit(&w->x_threads[c], k->thread, memory_order_relaxed);
	/* HAVE -> weft_ult_ready_chunk, weft_ult_of. */
	atomic_store_explicit(&w->ready.x_chunk[c], &k->ready, memory_order_release);
	return WEFT_OK;
}

/* Notes that a stack's memory may go back.  What lies next to the one before makes a range with it,
 * guard included: the kernel asks a price for each range, and threads that end together were made
 * together.
 */
static void cold_locked(struct weft_ult_worker *w, char *stack, size_t bytes)
{
	weft_assert_held(weft_mutex, &w->pool_lock);
	weft_assert(w->colds < WEFT_ULT_COLD && w->cold_stacks < WEFT_ULT_COLD_STACKS);
	struct iovec *last = w->colds ? &w->cold[w->colds - 1] : NULL;
	char *at = last ? last->iov_base : NULL;
	if (last && stack == at + last->iov_len + WEFT_ULT_GUARD) {
		last->iov_len += WEFT_ULT_GUARD + bytes;
	} else if (last && stack + bytes + WEFT_ULT_GUARD == at) {
		last->iov_base = stack;
		last->iov_len += WEFT_ULT_GUARD + bytes;
	} else {
		w->cold[w->colds++] = (struct iovec){stack, bytes};
	}
	if (++w->cold_stacks < WEFT_ULT_COLD_STACKS && w->colds < WEFT_ULT_COLD)
		return;
	weft_ult_stacks_cold(w->cold, w->colds, w->cold_stacks);
	w->colds = w->cold_stacks = 0;
}

/* A dead thread goes into the pool; under pool_lock. */
static void put_locked(struct weft_ult_worker *w, struct weft_ult *t)
{
	size_t bytes = weft_ult_stack_bytes(t->class);
	weft_assert_held(weft_mutex, &w->pool_lock);
	weft_assert(t->home == w && !weft_ult_is(t, WEFT_ULT_ALIVE));
	t->next = w->pool[t->class];
	w->pool[t->class] = t;
	w->pooled += bytes;
	if (w->pooled > (uint64_t)weft_setting_int(WEFT_SET_ULT_KEEP) << 20)
		cold_locked(w, t->stack, bytes);
}

static struct weft_ult *get_locked(struct weft_ult_worker *w, int class)
{
	struct weft_ult *t = w->pool[class];
	weft_assert_held(weft_mutex, &w->pool_lock);
	weft_assert(t && t->class == class && w->pooled >= weft_ult_stack_bytes(class));
	w->pool[class] = t->next;
	w->pooled -= weft_ult_stack_bytes(class);
	w->colds = w->cold_stacks = 0; /* t may be among them */
	return t;
}

/* Makes n new ones into the pool; under pool_lock. */
static weft_err make_threads_locked(struct weft_ult_worker *w, int class, unsigned n)
{
	char *stack[BATCH];
	weft_assert_held(weft_mutex, &w->pool_lock);
	weft_assert(n > 0 && n <= BATCH);
	if (w->slots + n > WEFT_READY_SLOTS) {
		weft_error("too many user-level threads: %u on worker %d", w->slots, w->id);
		return WEFT_ERR_LIMIT;
	}
	for (uint32_t c = w->slots / WEFT_READY_CHUNK; c <= (w->slots + n - 1) / WEFT_READY_CHUNK;
	     c++)
		if (!weft_ult_ready_chunk(&w->ready, c) && chunk_new(w, c))
			goto no_memory;
	weft_err err = weft_ult_stacks_get(&w->slab[class], class, n, stack);
	if (err)
		return err;
	for (unsigned i = n; i-- > 0;) {
		uint32_t slot = w->slots + i;
		struct weft_ult *t = weft_ult_of(w, slot);
		weft_wait_parker_init(&t->parker, &weft_ult_parker_ops, NULL);
		t->home = w;
		t->slot = slot;
		t->class = (uint8_t) class;
		t->stack = stack[i];
		t->next = w->pool[class];
		w->pool[class] = t;
		w->pooled += weft_ult_stack_bytes(class);
		weft_ult_place(t);
	}
	w->slots += n;
	return WEFT_OK;
no_memory:
	weft_error("no memory for the descriptors of user-level threads");
	return WEFT_ERR_NOMEM;
}

struct order {
	struct weft_ult_worker *w;
	int class;
	unsigned n;
	weft_err err;
};

static void make_here(void *arg)
{
	struct order *o = arg;
	o->err = make_threads_locked(o->w, o->class, o->n);
}

/* How many to make at once: large stacks one by one. */
static unsigned batch_of(int class)
{
	return class <= 2 ? BATCH : class <= 6 ? 8 : 1;
}

weft_err weft_ult_take(struct weft_ult_worker *home, struct weft_ult_worker *self, int class,
		       struct weft_ult **t_p)
{
	struct weft_ult *t = home == self ? home->spare[class] : NULL;
	weft_err err = WEFT_OK;
	if (weft_likely(t != NULL)) {
		home->spare[class] = t->next;
		home->spares[class]--;
		*t_p = t;
		return WEFT_OK;
	}
	pthread_mutex_lock(&home->pool_lock);
	if (!home->pool[class]) {
		struct order o = {.w = home, .class = class, .n = batch_of(class)};
		weft_ult_on_big_stack(make_here, &o);
		err = o.err;
	}
	if (!err) {
		*t_p = get_locked(home, class);
		for (int i = 0; home == self && i < BATCH && home->pool[class]; i++) {
			t = get_locked(home, class);
			t->next = home->spare[class];
			home->spare[class] = t;
			home->spares[class]++;
		}
	}
	pthread_mutex_unlock(&home->pool_lock);
	return err;
}

/* Half of the spare ones go where others can take them. */
static __attribute__((noinline)) void spill_spares(struct weft_ult_worker *w, int class)
{
	pthread_mutex_lock(&w->pool_lock);
	for (int i = 0; i < SPARES_MAX / 2; i++) {
		struct weft_ult *t = w->spare[class];
		w->spare[class] = t->next;
		put_locked(w, t);
	}
	w->spares[class] -= SPARES_MAX / 2;
	pthread_mutex_unlock(&w->pool_lock);
}

void weft_ult_give(struct weft_ult *t, struct weft_ult_worker *self)
{
	struct weft_ult_worker *home = t->home;
	int class = t->class;
	weft_assert(class < WEFT_ULT_CLASSES && t->slot < WEFT_READY_SLOTS);
	if (weft_likely(home == self)) {
		t->next = home->spare[class];
		home->spare[class] = t;
		if (weft_unlikely(++home->spares[class] >= SPARES_MAX))
			spill_spares(home, class);
		return;
	}
	pthread_mutex_lock(&home->pool_lock);
	put_locked(home, t);
	pthread_mutex_unlock(&home->pool_lock);
}
