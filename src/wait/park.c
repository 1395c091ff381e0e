/* SPDX-License-Identifier: BSD-3-Clause */
/* park.c - parkers of plain threads: a word each, slept on by futex, recycled, never freed. */
#include "base/assert.h"
#include "wait/park.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/futex.h"
#include "base/log.h"
#include "base/trace.h"
#include "wait/foreign.h"
#include "wait/note.h"
#include "wait/stack.h"

static _Thread_local struct weft_parker *self;
static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;
static bool have_key;
static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_thread_parker *free_list; /* under free_lock */

static struct weft_parker *(*_Atomic x_self_hook)(void);
static void (*_Atomic x_elsewhere_hook)(struct weft_parker *);

static void futex_sleep(struct weft_parker *p, uint64_t deadline_ns)
{
	weft_trace(WEFT_TRACE_SLEEP, 0, 0, 0, 0);
	weft_futex_wait(&p->x_word, WEFT_PARKER_PARKED, deadline_ns);
	weft_trace(WEFT_TRACE_AWAKE, 0, 0, 0, 0);
}

static void futex_wake(struct weft_parker *p)
{
	weft_futex_wake(&p->x_word);
}

static const struct weft_parker_ops futex_ops = {
	.name = "futex",
	.sleep = futex_sleep,
	.wake = futex_wake,
};

bool weft_wait_parker_is_thread(const struct weft_parker *p)
{
	return p->ops == &futex_ops;
}

static void thread_ends(void *arg)
{
	struct weft_thread_parker *t = arg;
	self = NULL;
	t->parker.note = NULL; /* it was cancelled in a wait */
	/* Relaxed: for readers outside. */
	atomic_store_explicit(&t->x_tid, 0, memory_order_relaxed);
	pthread_mutex_lock(&free_lock);
	t->next_free = free_list;
	free_list = t;
	pthread_mutex_unlock(&free_lock);
}

static void make_key(void)
{
	have_key = pthread_key_create(&end_key, thread_ends) == 0;
}

/* Readers outside walk the list. */
static void list_thread(struct weft_thread_parker *t)
{
	/* Relaxed: the exchange publishes. */
	t->next = atomic_load_explicit(&weft_wait_live.x_threads, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&weft_wait_live.x_threads, &t->next, t,
						      memory_order_release, memory_order_relaxed))
		; /* ends: another thread has made progress */
}

static struct weft_parker *thread_parker(void)
{
	pthread_once(&end_once, make_key);
	pthread_mutex_lock(&free_lock);
	struct weft_thread_parker *t = free_list;
	if (t)
		free_list = t->next_free;
	pthread_mutex_unlock(&free_lock);
	if (!t) {
		t = aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *t, WEFT_CACHELINE));
		if (!t)
			return NULL;
		weft_wait_parker_init(&t->parker, &futex_ops, NULL);
		list_thread(t);
	}
	struct weft_parker *p = &t->parker;
	/* Relaxed: for readers outside. */
	atomic_store_explicit(&t->x_tid, (int)gettid(), memory_order_relaxed);
	/* A notification for the thread that had it before may still come, now or later. */
	weft_assert(p->ops == &futex_ops);
	if (have_key)
		pthread_setspecific(end_key, p);
	self = p;
	return p;
}

struct weft_parker *weft_wait_parker_self(void)
{
	/* Set once before the first user-level thread runs. */
	struct weft_parker *(*hook)(void) =
		atomic_load_explicit(&x_self_hook, memory_order_acquire);
	if (weft_unlikely(hook != NULL)) {
		struct weft_parker *p = hook();
		if (p)
			return p;
	}
	struct weft_parker *foreign = weft_wait_foreign_self();
	if (weft_unlikely(foreign != NULL))
		return foreign;
	return weft_likely(self != NULL) ? self : thread_parker();
}

void weft_wait_parker_set_self_hook(struct weft_parker *(*hook)(void))
{
	/* HOOK -> self.  Carries: what the hook needs. */
	atomic_store_explicit(&x_self_hook, hook, memory_order_release);
}

void weft_wait_parker_set_elsewhere_hook(void (*hook)(struct weft_parker *))
{
	/* HOOK -> unpark.  Carries: what the hook needs. */
	atomic_store_explicit(&x_elsewhere_hook, hook, memory_order_release);
}

bool weft_wait_park(struct weft_parker *p, uint64_t deadline_ns)
{
	uint32_t empty = WEFT_PARKER_EMPTY;
	if (p->ops->park)
		return p->ops->park(p, deadline_ns);
	p->cpu = sched_getcpu();
	bool notified = true;
	/* PARK -> WAKE (unpark).  Acquire on failure: it was notified, see what came with it. */
	if (atomic_compare_exchange_strong_explicit(&p->x_word, &empty, WEFT_PARKER_PARKED,
						    memory_order_acq_rel, memory_order_acquire)) {
		for (;;) { /* ends: notified, or the deadline */
			p->ops->sleep(p, deadline_ns);
			notified = weft_wait_parker_notified(p);
			if (notified ||
			    (deadline_ns != WEFT_NEVER && weft_clock_ns() >= deadline_ns))
				break;
		}
	}
	/* Consumes the notification.  Acquire: one that came just now carries its cargo too. */
	if (atomic_exchange_explicit(&p->x_word, WEFT_PARKER_EMPTY, memory_order_acq_rel) ==
	    WEFT_PARKER_NOTIFIED)
		notified = true;
	return notified;
}

void weft_wait_yield(const struct weft_parker *p)
{
	if (p && p->ops->yield)
		p->ops->yield();
	else
		sched_yield();
}

void weft_wait_unpark(struct weft_parker *p)
{
	if (weft_unlikely(p->ops->unpark != NULL)) {
		p->ops->unpark(p);
		return;
	}
	/* WAKE <- PARK and CALL <- SLEEP.  Carries: what the notifier wrote before.  Without the
	 * release the woken thread could look and not find it. */
	uint32_t old =
		atomic_exchange_explicit(&p->x_word, WEFT_PARKER_NOTIFIED, memory_order_acq_rel);
	weft_assert(old <= WEFT_PARKER_ELSEWHERE);
	if (old == WEFT_PARKER_PARKED) {
		p->ops->wake(p);
	} else if (old == WEFT_PARKER_ELSEWHERE) {
		void (*hook)(struct weft_parker *) =
			atomic_load_explicit(&x_elsewhere_hook, memory_order_acquire);
		if (!hook)
			weft_panic("a thread sleeps where no hook can wake it");
		hook(p);
	}
}
