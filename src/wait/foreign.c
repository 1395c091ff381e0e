/* SPDX-License-Identifier: BSD-3-Clause */
/* foreign.c - how threads of a foreign runtime sleep, by its own four functions. */
#include "base/assert.h"
#include "wait/foreign.h"

#include <pthread.h>
#include <stdlib.h>
#include <weft/plugin.h>
#include "wait/stack.h"

#define BUCKETS_LOG2 16 /* half a megabyte, once; a million threads are 16 in each */

struct foreign {
	struct weft_parker parker;
	void *thread;             /* I: as the runtime calls it */
	struct foreign *next;     /* I: in its bucket */
	_Atomic uint32_t x_woken; /* waker, then the thread: its unpark is over */
};

static _Atomic(const struct weft_plugin *) x_plugin;
static _Atomic(struct foreign *) *bucket; /* under set_lock, once, before x_plugin */
static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct weft_plugin *current_plugin(void)
{
	/* USE <- SET.  Carries: the functions and the table. */
	return atomic_load_explicit(&x_plugin, memory_order_acquire);
}

void weft_wait_foreign_yield(void)
{
	const struct weft_plugin *p = current_plugin();
	if (p)
		p->yield();
}

/* Lets the runtime's other threads run until the caller is notified, or the deadline. */
static void yield_until(struct weft_parker *p, uint64_t deadline_ns)
{
	while (!weft_wait_parker_notified(p) &&
	       weft_clock_ns() < deadline_ns) /* ends: as it says */
		weft_wait_foreign_yield();
}

static void park_for_wake(struct foreign *f)
{
	uint32_t empty = WEFT_PARKER_EMPTY;
	/* PARK -> WAKE (weft_wait_unpark).  Carries: x_woken is ours, and 0.  Acquire on failure: it was
	 * notified, see what came with it. */
	if (!atomic_compare_exchange_strong_explicit(&f->parker.x_word, &empty, WEFT_PARKER_PARKED,
						     memory_order_acq_rel, memory_order_acquire))
		return;
	/* Even if it is notified by now: each unpark has its park.  Ends: notified. */
	do
		current_plugin()->park(f->thread);
	while (!weft_wait_parker_notified(&f->parker));
	/* GONE <- OVER.  Carries: the waker's call has ended.  Without it, the thread could end and
	 * be freed by its runtime while unpark() still looks at it. */
	while (!atomic_load_explicit(&f->x_woken, memory_order_acquire))
		weft_wait_foreign_yield(); /* ends: the waker is past its exchange */
	/* Relaxed: PARK carries it. */
	atomic_store_explicit(&f->x_woken, 0, memory_order_relaxed);
}

static bool foreign_park(struct weft_parker *p, uint64_t deadline_ns)
{
	struct foreign *f = weft_container_of(p, struct foreign, parker);
	weft_assert(f->thread && current_plugin());
	if (deadline_ns == WEFT_NEVER)
		park_for_wake(f);
	else
		yield_until(p, deadline_ns);
	/* Consumes the notification.  Acquire: what the notifier wrote. */
	return atomic_exchange_explicit(&p->x_word, WEFT_PARKER_EMPTY, memory_order_acq_rel) ==
	       WEFT_PARKER_NOTIFIED;
}

static void foreign_wake(struct weft_parker *p)
{
	struct foreign *f = weft_container_of(p, struct foreign, parker);
	weft_assert(!atomic_load_explicit(&f->x_woken, memory_order_relaxed));
	current_plugin()->unpark(f->thread);
	/* OVER -> GONE.  Our last access; parkers stay. */
	atomic_store_explicit(&f->x_woken, 1, memory_order_release);
}

static const struct weft_parker_ops foreign_ops = {
	.name = "a foreign runtime's thread",
	.park = foreign_park,
	.wake = foreign_wake,
	.yield = weft_wait_foreign_yield,
};

bool weft_wait_foreign_is(const struct weft_parker *p)
{
	return p->ops == &foreign_ops;
}

static struct foreign *find_thread(struct foreign *first, const void *thread)
{
	while (first && first->thread != thread) /* ends: the list is finite, it only grows */
		first = first->next;
	return first;
}

static struct foreign *add_thread(_Atomic(struct foreign *) *at, void *thread)
{
	struct foreign *f = aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *f, WEFT_CACHELINE));
	if (!f)
		return NULL;
	weft_wait_parker_init(&f->parker, &foreign_ops, NULL);
	f->thread = thread;
	atomic_store_explicit(&f->x_woken, 0, memory_order_relaxed);
	f->next = atomic_load_explicit(at, memory_order_relaxed);
	/* KNOWN -> LOOK.  Carries: *f.  Only this thread makes its own.  Ends: another thread's success. */
	while (!atomic_compare_exchange_weak_explicit(at, &f->next, f, memory_order_release,
						      memory_order_relaxed))
		;
	return f;
}

struct weft_parker *weft_wait_foreign_self(void)
{
	const struct weft_plugin *p = current_plugin();
	void *thread = p ? p->self() : NULL;
	if (!thread)
		return NULL;
	uint64_t hash = (uint64_t)(uintptr_t)thread * 0x9e3779b97f4a7c15u;
	_Atomic(struct foreign *) *at = &bucket[hash >> (64 - BUCKETS_LOG2)];
	/* LOOK <- KNOWN. */
	struct foreign *f = find_thread(atomic_load_explicit(at, memory_order_acquire), thread);
	if (!f)
		f = add_thread(at, thread);
	return f ? &f->parker : NULL;
}

/* Their stacks may be small, and we have no other: the calls go the ways that need little of it,
 * and the waits the way of threads that do not poll. */
static void on_this_stack(void (*fn)(void *arg), void *arg)
{
	fn(arg);
}

static bool not_small(void)
{
	return false;
}

static const struct weft_stacks no_stacks = {on_this_stack, not_small, on_this_stack};

static void stacks_may_be_small(void)
{
	const struct weft_stacks *none = NULL;
	/* STACKS -> HERE, as in ult/.  Those that are set already do as well. */
	(void)atomic_compare_exchange_strong_explicit(&weft_wait_x_stacks, &none, &no_stacks,
						      memory_order_release, memory_order_relaxed);
}

weft_err weft_plugin_set(const struct weft_plugin *p)
{
	weft_err err = WEFT_OK;
	if (p && (!p->self || !p->park || !p->unpark || !p->yield))
		return WEFT_ERR_ARG;
	pthread_mutex_lock(&set_lock);
	if (p && !bucket)
		bucket = calloc((size_t)1 << BUCKETS_LOG2, sizeof *bucket);
	if (p && !bucket)
		err = WEFT_ERR_NOMEM;
	else if (p && current_plugin())
		err = WEFT_ERR_STATE;
	if (!err && p)
		stacks_may_be_small();
	if (!err)
		/* SET -> USE. */
		atomic_store_explicit(&x_plugin, p, memory_order_release);
	pthread_mutex_unlock(&set_lock);
	return err;
}
