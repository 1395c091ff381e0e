/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - asserts what holds of a worker's pools, timers and ready threads. */
#include "base/assert.h"
#include "ult/ult_int.h"

static void check_pool(struct weft_ult_worker *w)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&w->pool_lock);
	for (int class = 0; class < WEFT_ULT_CLASSES; class ++)
		for (struct weft_ult *t = w->pool[class]; t; t = t->next) {
			weft_assert(t->home == w && t->class == class && t->slot < w->slots);
			weft_assert(t == weft_ult_of(w, t->slot) &&
				    !weft_ult_is(t, WEFT_ULT_ALIVE));
			bytes += weft_ult_stack_bytes(class);
		}
	weft_assert(bytes == w->pooled && w->slots <= WEFT_READY_SLOTS);
	weft_assert(w->colds <= WEFT_ULT_COLD && w->colds <= w->cold_stacks);
	pthread_mutex_unlock(&w->pool_lock);
}

/* The next timer of the heap, parents first; NULL: t was the last. */
static struct weft_ult_timer *next_timer(struct weft_ult_timer *t)
{
	if (t->child)
		return t->child;
	while (t && !t->sibling) /* ends: at the root */
		t = t->parent;
	return t ? t->sibling : NULL;
}

static void check_timers(struct weft_ult_worker *w)
{
	pthread_mutex_lock(&w->timer_lock);
	weft_assert(atomic_load_explicit(&w->x_next_timer, memory_order_relaxed) ==
		    (w->timers ? w->timers->deadline_ns : WEFT_NEVER));
	for (struct weft_ult_timer *t = w->timers; t; t = next_timer(t)) {
		weft_assert(t->in_heap && t->thread);
		weft_assert(!t->parent || t->parent->deadline_ns <= t->deadline_ns);
	}
	pthread_mutex_unlock(&w->timer_lock);
}

static uint32_t list_length(const struct weft_ult_list *l)
{
	uint32_t n = 0;
	for (struct weft_ult *t = l->first; t; t = t->next) {
		weft_assert(t->next || t == l->last);
		n++;
	}
	return n;
}

/* As a thief, when the worker lets one in. */
static void check_ready(struct weft_ult_worker *w)
{
	if (!weft_wait_owner_steal_begin(&w->lock, w->fence))
		return;
	weft_ult_ready_check(&w->ready);
	uint32_t listed = list_length(&w->first) + list_length(&w->stolen);
	weft_assert(listed == atomic_load_explicit(&w->x_listed, memory_order_relaxed));
	(void)listed;
	weft_wait_owner_steal_end(&w->lock);
}

void weft_ult_check(void)
{
#ifdef WEFT_CHECKED
	weft_assert(!weft_ult_worker_here());
	for (int i = 0; i < WEFT_ULT_WORKERS_MAX && weft_ult_all.worker[i]; i++) {
		check_pool(weft_ult_all.worker[i]);
		check_timers(weft_ult_all.worker[i]);
		check_ready(weft_ult_all.worker[i]);
	}
#else
	(void)check_pool;
	(void)check_timers;
	(void)check_ready;
#endif
}
