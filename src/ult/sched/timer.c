/* SPDX-License-Identifier: BSD-3-Clause */
/* timer.c - deadlines of parked threads: a pairing heap per worker; the nodes lie on their stacks.
 */
#include "base/assert.h"
#include "ult/ult_int.h"

/* All under the heap's lock. */

static struct weft_ult_timer *meld_heaps(struct weft_ult_timer *a, struct weft_ult_timer *b)
{
	if (!a)
		return b;
	if (!b)
		return a;
	weft_assert(!a->parent && !b->parent);
	if (b->deadline_ns < a->deadline_ns) {
		struct weft_ult_timer *t = a;
		a = b;
		b = t;
	}
	b->sibling = a->child;
	b->parent = a;
	a->child = b;
	return a;
}

/* Makes one heap of a list of siblings: in pairs from the left, then all from the right. */
static struct weft_ult_timer *meld_all(struct weft_ult_timer *list)
{
	struct weft_ult_timer *pairs = NULL, *heap = NULL;
	while (list) { /* ends: the list is finite, each turn takes one or two */
		struct weft_ult_timer *a = list, *b = a->sibling;
		list = b ? b->sibling : NULL;
		a->sibling = a->parent = NULL;
		if (b)
			b->sibling = b->parent = NULL;
		a = meld_heaps(a, b);
		a->sibling = pairs;
		pairs = a;
	}
	while (pairs) { /* ends: as above */
		struct weft_ult_timer *next = pairs->sibling;
		pairs->sibling = NULL;
		heap = meld_heaps(heap, pairs);
		pairs = next;
	}
	return heap;
}

static void unlink_timer(struct weft_ult_worker *w, struct weft_ult_timer *t)
{
	weft_assert_held(weft_mutex, &w->timer_lock);
	weft_assert(t->in_heap && !t->parent == (w->timers == t));
	if (w->timers == t) {
		w->timers = meld_all(t->child);
	} else {
		struct weft_ult_timer **at = &t->parent->child;
		while (*at != t) /* ends: t is a child of its parent */
			at = &(*at)->sibling;
		*at = t->sibling;
		w->timers = meld_heaps(w->timers, meld_all(t->child));
	}
	w->timers ? (void)(w->timers->parent = w->timers->sibling = NULL) : (void)0;
	t->in_heap = false;
}

static void say_next(struct weft_ult_worker *w)
{
	weft_assert_held(weft_mutex, &w->timer_lock);
	weft_assert(!w->timers || (!w->timers->parent && !w->timers->sibling));
	/* Relaxed: the carrier reads it; when another thread adds one, see weft_ult_timer_add. */
	atomic_store_explicit(&w->x_next_timer, w->timers ? w->timers->deadline_ns : WEFT_NEVER,
			      memory_order_relaxed);
}

void weft_ult_timer_add(struct weft_ult_worker *w, struct weft_ult_timer *t)
{
	/* The caller runs on w, so w's carrier is not asleep with an older deadline. */
	pthread_mutex_lock(&w->timer_lock);
	t->child = t->sibling = t->parent = NULL;
	t->in_heap = true;
	w->timers = meld_heaps(w->timers, t);
	say_next(w);
	pthread_mutex_unlock(&w->timer_lock);
}

void weft_ult_timer_remove(struct weft_ult_worker *w, struct weft_ult_timer *t)
{
	pthread_mutex_lock(&w->timer_lock);
	if (t->in_heap) {
		unlink_timer(w, t);
		say_next(w);
	}
	pthread_mutex_unlock(&w->timer_lock);
}

void weft_ult_timers_run(struct weft_ult_worker *w)
{
	/* Relaxed: our own, or removed meanwhile. */
	uint64_t next = atomic_load_explicit(&w->x_next_timer, memory_order_relaxed);
	if (weft_likely(next == WEFT_NEVER))
		return;
	uint64_t now = weft_clock_ns();
	if (now < next)
		return;
	pthread_mutex_lock(&w->timer_lock);
	while (w->timers && w->timers->deadline_ns <= now) { /* ends: the heap is finite */
		struct weft_ult_timer *t = w->timers;
		unlink_timer(w, t);
		weft_ult_timeout(
			t); /* the thread takes the lock before it returns: t lives until then */
	}
	say_next(w);
	pthread_mutex_unlock(&w->timer_lock);
}
