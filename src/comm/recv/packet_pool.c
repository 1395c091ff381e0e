/* SPDX-License-Identifier: BSD-3-Clause */
/* packet_pool.c - pools of packets, one per core, and the shared one. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/counters.h"
#include "comm/recv/packet_pool.h"

/* A power of two, at least the cores there are. */
static unsigned pools_wanted(void)
{
	static _Atomic unsigned x_pools; /* the system reads a file for it: once will do */
	/* Relaxed: each thread that finds 0 computes the same. */
	unsigned n = atomic_load_explicit(&x_pools, memory_order_relaxed);
	if (n)
		return n;
	long cores = sysconf(_SC_NPROCESSORS_CONF);
	for (n = 1; n < WEFT_PACKET_POOLS_MAX && (long)n < cores; n *= 2)
		;
	atomic_store_explicit(&x_pools, n, memory_order_relaxed);
	return n;
}

weft_err weft_comm_packet_pool_init(struct weft_comm_packet_pool *s, unsigned batch, unsigned most)
{
	memset(s, 0, sizeof *s);
	s->pools = pools_wanted();
	s->batch = batch;
	s->batches_max = most / batch;
	s->pool = aligned_alloc(WEFT_CACHELINE, s->pools * sizeof *s->pool);
	if (!s->pool)
		return WEFT_ERR_NOMEM;
	memset(s->pool, 0, s->pools * sizeof *s->pool);
	return WEFT_OK;
}

static struct weft_comm_packet_pool_pool *pool_here(const struct weft_comm_packet_pool *s)
{
	/* An error, -1, is a core like any other. */
	return &s->pool[(unsigned)sched_getcpu() & (s->pools - 1)];
}

/* ---- the pool of a core --------------------------------------------------------------------- */

static inline void kept_add_locked(struct weft_comm_packet_pool_pool *p, unsigned n)
{
	weft_assert_held(weft_comm_spin, &p->lock);
	/* Relaxed: under the lock; a thief's peek is a hint. */
	unsigned kept = atomic_load_explicit(&p->x_kept, memory_order_relaxed);
	atomic_store_explicit(&p->x_kept, kept + n, memory_order_relaxed);
}

static inline unsigned kept_of(const struct weft_comm_packet_pool_pool *p)
{
	/* Relaxed: as above. */
	return atomic_load_explicit(&p->x_kept, memory_order_relaxed);
}

static inline struct weft_comm_packet_pool_item *
pop_hot_locked(struct weft_comm_packet_pool_pool *p)
{
	weft_assert_held(weft_comm_spin, &p->lock);
	struct weft_comm_packet_pool_item *i = p->hot;
	if (!i)
		return NULL;
	p->hot = i->next;
	if (p->hot)
		p->hot->prev = NULL;
	else
		p->cold = NULL;
	kept_add_locked(p, -1u);
	return i;
}

static inline void push_hot_locked(struct weft_comm_packet_pool_pool *p,
				   struct weft_comm_packet_pool_item *i)
{
	weft_assert_held(weft_comm_spin, &p->lock);
	i->prev = NULL;
	i->next = p->hot;
	if (p->hot)
		p->hot->prev = i;
	else
		p->cold = i;
	p->hot = i;
	kept_add_locked(p, 1);
}

static struct weft_comm_packet_pool_item *pop_cold_locked(struct weft_comm_packet_pool_pool *p)
{
	weft_assert_held(weft_comm_spin, &p->lock);
	struct weft_comm_packet_pool_item *i = p->cold;
	if (!i || i == p->hot)
		return pop_hot_locked(p);
	p->cold = i->prev;
	p->cold->next = NULL;
	kept_add_locked(p, -1u);
	return i;
}

/* Takes a batch off the cold end of a pool that holds more than that. */
static struct weft_comm_packet_pool_item *cut_cold_locked(struct weft_comm_packet_pool_pool *p,
							  unsigned batch)
{
	weft_assert_held(weft_comm_spin, &p->lock);
	struct weft_comm_packet_pool_item *first = p->cold;
	for (unsigned n = 1; n < batch; n++) /* bound: batch */
		first = first->prev;
	p->cold = first->prev;
	p->cold->next = NULL;
	kept_add_locked(p, -batch);
	return first;
}

/* ---- the shared pool ---------------------------------------------------------------------- */

/* Returns the batch if there is no room for it. */
static struct weft_comm_packet_pool_item *batch_give(struct weft_comm_packet_pool *s,
						     struct weft_comm_packet_pool_item *first)
{
	weft_comm_spin_lock(&s->lock);
	/* Relaxed: under the lock; see batch_take. */
	unsigned n = atomic_load_explicit(&s->x_batches, memory_order_relaxed);
	if (n < s->batches_max) {
		first->prev = s->batches;
		s->batches = first;
		atomic_store_explicit(&s->x_batches, n + 1, memory_order_relaxed);
		first = NULL;
	}
	weft_comm_spin_unlock(&s->lock);
	return first;
}

/* A whole batch, or NULL. */
static struct weft_comm_packet_pool_item *batch_take(struct weft_comm_packet_pool *s)
{
	/* Relaxed: a hint that saves the lock; what it misses comes just now. */
	if (!atomic_load_explicit(&s->x_batches, memory_order_relaxed))
		return NULL;
	weft_comm_spin_lock(&s->lock);
	struct weft_comm_packet_pool_item *first = s->batches;
	if (first) {
		s->batches = first->prev;
		/* Relaxed: under the lock. */
		unsigned n = atomic_load_explicit(&s->x_batches, memory_order_relaxed);
		atomic_store_explicit(&s->x_batches, n - 1, memory_order_relaxed);
	}
	weft_comm_spin_unlock(&s->lock);
	return first;
}

/* The first item of the batch is the caller's, the rest goes to p.  Threads of one core that find it
 * empty at the same moment may bring a batch each; give() cuts what is too much. */
static void refill_pool(struct weft_comm_packet_pool_pool *p,
			const struct weft_comm_packet_pool_item *first)
{
	weft_comm_spin_lock(&p->lock);
	for (struct weft_comm_packet_pool_item *i = first->next, *next; i;
	     i = next) { /* bound: a batch */
		next = i->next;
		push_hot_locked(p, i);
	}
	weft_comm_spin_unlock(&p->lock);
}

/* From the cold end of another pool; locked pools are skipped. */
static struct weft_comm_packet_pool_item *steal_item(const struct weft_comm_packet_pool *s,
						     const struct weft_comm_packet_pool_pool *own)
{
	unsigned at = (unsigned)(own - s->pool);
	for (unsigned n = 1; n < s->pools; n++) {
		struct weft_comm_packet_pool_pool *p = &s->pool[(at + n) & (s->pools - 1)];
		if (!kept_of(p) || !weft_comm_spin_try(&p->lock))
			continue;
		struct weft_comm_packet_pool_item *i = pop_cold_locked(p);
		weft_comm_spin_unlock(&p->lock);
		if (i) {
			weft_count(WEFT_CNT_POOL_STOLEN, 1);
			return i;
		}
	}
	return NULL;
}

/* ---- the calls ---------------------------------------------------------------------------- */

static __attribute__((noinline)) struct weft_comm_packet_pool_item *
take_elsewhere(struct weft_comm_packet_pool *s, struct weft_comm_packet_pool_pool *p)
{
	struct weft_comm_packet_pool_item *first = batch_take(s);
	if (!first)
		return steal_item(s, p);
	weft_count(WEFT_CNT_POOL_REFILLED, 1);
	refill_pool(p, first);
	return first;
}

struct weft_comm_packet_pool_item *weft_comm_packet_pool_take(struct weft_comm_packet_pool *s)
{
	struct weft_comm_packet_pool_pool *p = pool_here(s);
	weft_comm_spin_lock(&p->lock);
	struct weft_comm_packet_pool_item *i = pop_hot_locked(p);
	weft_comm_spin_unlock(&p->lock);
	return weft_likely(i != NULL) ? i : take_elsewhere(s, p);
}

struct weft_comm_packet_pool_item *weft_comm_packet_pool_give(struct weft_comm_packet_pool *s,
							      struct weft_comm_packet_pool_item *i)
{
	struct weft_comm_packet_pool_pool *p = pool_here(s);
	struct weft_comm_packet_pool_item *beyond = NULL;
	weft_comm_spin_lock(&p->lock);
	push_hot_locked(p, i);
	if (weft_unlikely(kept_of(p) > 2 * s->batch))
		beyond = cut_cold_locked(p, s->batch);
	weft_comm_spin_unlock(&p->lock);
	return weft_likely(!beyond) ? NULL : batch_give(s, beyond);
}

/* ---- the end ------------------------------------------------------------------------------ */

struct weft_comm_packet_pool_item *weft_comm_packet_pool_fini(struct weft_comm_packet_pool *s)
{
	struct weft_comm_packet_pool_item *all = NULL, *i;
	while ((i = s->batches)) {
		s->batches = i->prev;
		for (struct weft_comm_packet_pool_item *next; i; i = next) {
			next = i->next;
			i->next = all;
			all = i;
		}
	}
	for (unsigned n = 0; s->pool && n < s->pools; n++) {
		weft_comm_spin_lock(&s->pool[n].lock);
		while ((i = pop_hot_locked(&s->pool[n]))) {
			i->next = all;
			all = i;
		}
		weft_comm_spin_unlock(&s->pool[n].lock);
	}
	free(s->pool);
	memset(s, 0, sizeof *s);
	return all;
}

/* -1: broken. */
static long pool_check(const struct weft_comm_packet_pool_pool *p)
{
	long n = 0;
	const struct weft_comm_packet_pool_item *last = NULL;
	for (const struct weft_comm_packet_pool_item *i = p->hot; i; i = i->next, n++) {
		if (i->prev != last)
			return -1;
		last = i;
	}
	return p->cold == last && n == kept_of(p) ? n : -1;
}

long weft_comm_packet_pool_check(const struct weft_comm_packet_pool *s)
{
	long all = 0;
	unsigned batches = 0;
	for (unsigned n = 0; n < s->pools; n++) {
		long k = pool_check(&s->pool[n]);
		if (k < 0)
			return -1;
		all += k;
	}
	for (const struct weft_comm_packet_pool_item *b = s->batches; b; b = b->prev, batches++) {
		unsigned n = 0;
		for (const struct weft_comm_packet_pool_item *i = b; i; i = i->next)
			n++;
		if (n != s->batch)
			return -1;
		all += n;
	}
	/* Relaxed: no other thread uses it. */
	if (batches != atomic_load_explicit(&s->x_batches, memory_order_relaxed) ||
	    batches > s->batches_max)
		return -1;
	return all;
}
