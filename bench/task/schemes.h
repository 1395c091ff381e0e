/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schemes.h - what weft's queues are compared with: one list for the machine under a spin lock, and
 * per queue a ring under a spin lock, a lock-free ring, or a list whose lock is held while its
 * tasks run.  The last two are what the 2015 paper (IV-B) tried and rejected: with a lock held, a
 * submitter waits for what runs; a lock-free queue knows no walk, so each poll is taken out, run and
 * put in again, against the submitters.  All hold pointers to tasks and do nothing else: no
 * options, no waiting, no wake-ups, 1,024 tasks at most in a ring.
 */
#ifndef WEFT_BENCH_SCHEMES_H
#define WEFT_BENCH_SCHEMES_H

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define RING 1024
#define QUEUES_MAX 160 /* places */

struct item {
	alignas(64) struct item *next;
	void (*fn)(void *arg);
	void *arg;
	bool again; /* a poll: goes back until x_polls_over */
	_Atomic int x_done;
};

static _Atomic int x_polls_over;

/* Runs it; true: it wants to go back. */
static bool run_item(struct item *t)
{
	t->fn(t->arg);
	if (t->again && !atomic_load_explicit(&x_polls_over, memory_order_relaxed))
		return true;
	/* Carries: what it did, to the waiter. */
	atomic_store_explicit(&t->x_done, 1, memory_order_release);
	return false;
}

/* x86: pause; elsewhere nothing. */
static inline void spin_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static inline void spin_lock(_Atomic int *x_lock)
{
	unsigned turns = 0;
	while (atomic_exchange_explicit(x_lock, 1, memory_order_acquire))
		/* Its holder may have lost the core. */
		if (++turns % 256 == 0)
			sched_yield();
		else
			spin_pause();
}

static inline void spin_unlock(_Atomic int *x_lock)
{
	atomic_store_explicit(x_lock, 0, memory_order_release);
}

/* ---- one list ---------------------------------------------------------------------------- */

static struct {
	alignas(64) _Atomic int x_lock;
	struct item *first, **last;
} list = {.last = &list.first};

static void list_put(int queue, struct item *t)
{
	(void)queue;
	t->next = NULL;
	spin_lock(&list.x_lock);
	*list.last = t;
	list.last = &t->next;
	spin_unlock(&list.x_lock);
}

static struct item *list_get(int queue)
{
	(void)queue;
	spin_lock(&list.x_lock);
	struct item *t = list.first;
	if (t && !(list.first = t->next))
		list.last = &list.first;
	spin_unlock(&list.x_lock);
	return t;
}

/* ---- a ring each, under a lock ----------------------------------------------------------- */

static struct locked_ring {
	alignas(64) _Atomic int x_lock;
	unsigned put, got;
	struct item *slot[RING];
} locked[QUEUES_MAX];

static void locked_put(int queue, struct item *t)
{
	struct locked_ring *r = &locked[queue];
	for (bool in = false; !in;) { /* ends: the poller makes room */
		spin_lock(&r->x_lock);
		if (r->put - r->got < RING) {
			r->slot[r->put++ % RING] = t;
			in = true;
		}
		spin_unlock(&r->x_lock);
	}
}

static struct item *locked_get(int queue)
{
	struct locked_ring *r = &locked[queue];
	spin_lock(&r->x_lock);
	struct item *t = r->put != r->got ? r->slot[r->got++ % RING] : NULL;
	spin_unlock(&r->x_lock);
	return t;
}

/* ---- a lock-free ring each: a sequence number per slot ------------------------------------ */

static struct free_ring {
	alignas(64) _Atomic size_t x_put;
	alignas(64) _Atomic size_t x_got;
	struct {
		_Atomic size_t x_seq;
		struct item *item;
	} slot[RING];
} lockfree[QUEUES_MAX];

static void free_init(void)
{
	for (int q = 0; q < QUEUES_MAX; q++)
		for (size_t i = 0; i < RING; i++)
			atomic_store_explicit(&lockfree[q].slot[i].x_seq, i, memory_order_relaxed);
}

static void free_put(int queue, struct item *t)
{
	struct free_ring *r = &lockfree[queue];
	size_t at = atomic_load_explicit(&r->x_put, memory_order_relaxed);
	for (;;) { /* ends: the poller makes room */
		size_t seq = atomic_load_explicit(&r->slot[at % RING].x_seq, memory_order_acquire);
		if (seq == at && atomic_compare_exchange_weak_explicit(&r->x_put, &at, at + 1,
								       memory_order_relaxed,
								       memory_order_relaxed))
			break;
		if (seq != at)
			at = atomic_load_explicit(&r->x_put, memory_order_relaxed);
	}
	r->slot[at % RING].item = t;
	/* Carries: the item, to its taker. */
	atomic_store_explicit(&r->slot[at % RING].x_seq, at + 1, memory_order_release);
}

static struct item *free_get(int queue)
{
	struct free_ring *r = &lockfree[queue];
	size_t at = atomic_load_explicit(&r->x_got, memory_order_relaxed);
	for (;;) { /* ends: empty, or ours */
		size_t seq = atomic_load_explicit(&r->slot[at % RING].x_seq, memory_order_acquire);
		if (seq == at)
			return NULL;
		if (seq == at + 1 && atomic_compare_exchange_weak_explicit(&r->x_got, &at, at + 1,
									   memory_order_relaxed,
									   memory_order_relaxed))
			break;
		if (seq != at + 1)
			at = atomic_load_explicit(&r->x_got, memory_order_relaxed);
	}
	struct item *t = r->slot[at % RING].item;
	/* Carries: our read of the slot is over. */
	atomic_store_explicit(&r->slot[at % RING].x_seq, at + RING, memory_order_release);
	return t;
}

/* ---- a list each, the lock held while a task runs ------------------------------------------- */

static struct held_list {
	alignas(64) _Atomic int x_lock;
	struct item *first, **last;
} held[QUEUES_MAX];

static void held_append(struct held_list *h, struct item *t)
{
	t->next = NULL;
	*(h->first ? h->last : &h->first) = t;
	h->last = &t->next;
}

static void held_put(int queue, struct item *t)
{
	spin_lock(&held[queue].x_lock);
	held_append(&held[queue], t);
	spin_unlock(&held[queue].x_lock);
}

static bool held_poll(int queue)
{
	struct held_list *h = &held[queue];
	spin_lock(&h->x_lock);
	struct item *t = h->first;
	if (t) {
		h->first = t->next;
		if (run_item(t))
			held_append(h, t);
	}
	spin_unlock(&h->x_lock);
	return t != NULL;
}

struct scheme {
	const char *name;
	void (*put)(int queue, struct item *t);
	struct item *(*get)(int queue);
	bool (*poll)(int queue); /* NULL: get, run, and put again what wants to */
};

static const struct scheme schemes[] = {
	{"one list", list_put, list_get, NULL},
	{"locked ring", locked_put, locked_get, NULL},
	{"lock-free ring", free_put, free_get, NULL},
	{"lock held", held_put, NULL, held_poll},
};

#define SCHEMES ((int)(sizeof schemes / sizeof *schemes))

/* One task, if there is one. */
static bool scheme_poll(const struct scheme *s, int queue)
{
	if (s->poll)
		return s->poll(queue);
	struct item *t = s->get(queue);
	if (t && run_item(t))
		s->put(queue, t);
	return t != NULL;
}

#endif
