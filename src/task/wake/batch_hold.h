/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch_hold.h - what is held back: messages that shall travel in company, tasks that their
 * submitter runs itself in a moment.  The watcher ticks meanwhile, and looks when it is due.
 *
 * Callers   vacant, begin: the thread that holds something back.  A task is published before; a message
 *           after, and then its source is asked whether it is armed: then it goes at once.
 *           look: the watcher after each tick.  over: the watcher, after it has said that it is
 *           off.  some: the watcher, a hint.
 * Owner     x_max_ns is learned by the watcher; x_tick_end_ns is its hint for begin.
 * Order     a task published before begin() is visible to the look that is promised.
 * Progress  a few atomic operations each.
 * Promise   begin() holds only if the watcher looks afterwards: after a tick when it is due, on its
 *           way under the watch set, or when it goes off.  Where it lies under the set already, or
 *           a holder sleeps there, the sources are armed: messages go at once, and a task is found
 *           by the last look of the thread that falls asleep, or rings.
 */
#ifndef WEFT_TASK_BATCH_HOLD_H
#define WEFT_TASK_BATCH_HOLD_H

#include "base/base.h"
#include "task/wake/baton.h"

/* The longest that something held back should wait: at first, and once polls have followed; look()
 * allows more where threads poll all the time. */
#define WEFT_HOLD_NS 50000u
#define WEFT_HOLD_MOST_NS 200000u

struct weft_task_batch_hold {
	_Atomic uint64_t x_ns;          /* since when something is held back; 0: nothing */
	_Atomic uint32_t x_rounds;      /* the waiters' rounds at that time */
	_Atomic uint64_t x_max_ns;      /* how long it may wait */
	_Atomic uint64_t x_tick_end_ns; /* the watcher's sleep ends then */
	_Atomic bool x_kick;            /* one change of its word says no more than: tick again */
};

enum weft_held {
	WEFT_HELD_NOT,  /* no thread would look in time: see to it now */
	WEFT_HELD,      /* the watcher looks */
	WEFT_HELD_KICK, /* it does if it is kicked: its tick is a long one */
};

/* Could the watcher be told in time there? */
static inline bool weft_task_batch_hold_at(uint32_t pos)
{
	return pos == WEFT_WATCHER_TICKS || pos == WEFT_WATCHER_UNDER;
}

static inline uint64_t weft_task_batch_hold_max_ns(const struct weft_task_batch_hold *h)
{
	/* Relaxed: a hint; 0 at first. */
	uint64_t ns = atomic_load_explicit(&h->x_max_ns, memory_order_relaxed);
	return ns ? ns : WEFT_HOLD_NS;
}

/* No thread polls or sleeps with the baton: a task that was submitted just now may be held back. */
static inline bool weft_task_batch_hold_vacant(const struct weft_baton *b)
{
	/* HOLD <- DOZE (baton.h).  seq_cst: comes after the task's push.  If the baton was vacant,
	 * a thread that falls asleep with it from now on finds the task in its last look.  Without
	 * it that thread could be asleep already, the watcher about to sit down beside it, and none
	 * looks. */
	return atomic_load_explicit(&b->x_state, memory_order_seq_cst) == WEFT_BATON_VACANT;
}

/* The watcher shall look within ns from now. */
static inline enum weft_held weft_task_batch_hold_begin(struct weft_task_batch_hold *h,
							const struct weft_baton *b, uint64_t now,
							uint64_t ns, uint32_t rounds)
{
	weft_assert(now && ns); /* 0 says that nothing is held back */
	/* Relaxed: a hint for the watcher, which looks at what is held itself. */
	atomic_store_explicit(&h->x_rounds, rounds, memory_order_relaxed);
	/* HELD <-> OVER.  Two exchanges of one word: if ours is the later one it acquires where the
	 * watcher has gone, else it finds ours and acquires what was published.  Without it we
	 * could rely on a tick that does not come. */
	atomic_exchange_explicit(&h->x_ns, now, memory_order_acq_rel);
	/* Relaxed: as said.  Under the set, or beside a sleeper: see the promise. */
	uint32_t pos = atomic_load_explicit(&b->x_watcher, memory_order_relaxed);
	if (!weft_task_batch_hold_at(pos))
		return WEFT_HELD_NOT;
	/* Relaxed: a hint; missed, it looks when its tick ends. */
	if (pos == WEFT_WATCHER_TICKS &&
	    atomic_load_explicit(&h->x_tick_end_ns, memory_order_relaxed) > now + ns &&
	    !atomic_exchange_explicit(&h->x_kick, true, memory_order_relaxed))
		return WEFT_HELD_KICK;
	return WEFT_HELD;
}

/* The watcher: how many changes of its word were no more than that. */
static inline unsigned weft_task_batch_hold_kicks(struct weft_task_batch_hold *h)
{
	/* Relaxed: a change too few or too many is a look too many or one tick more. */
	return atomic_exchange_explicit(&h->x_kick, false, memory_order_relaxed);
}

enum weft_task_batch_hold_state {
	WEFT_HOLD_NOTHING, /* is held back */
	WEFT_HOLD_NOT_DUE, /* a burst goes on for a while: let it */
	WEFT_HOLD_POLLED,  /* a thread has polled meanwhile: it is gone, most likely */
	WEFT_HOLD_DUE,     /* send it off */
};

/* After a tick.  Nothing shall learn to wait for longer than most_ns. */
static inline enum weft_task_batch_hold_state
weft_task_batch_hold_look(struct weft_task_batch_hold *h, uint32_t rounds, uint64_t (*clock)(void),
			  uint64_t most_ns)
{
	/* Relaxed: a tick later it is seen. */
	uint64_t since = atomic_load_explicit(&h->x_ns, memory_order_relaxed);
	if (weft_likely(!since))
		return WEFT_HOLD_NOTHING;
	/* Relaxed: a hint; no thread polled, or it goes out once more for nothing. */
	bool polled = atomic_load_explicit(&h->x_rounds, memory_order_relaxed) != rounds;
	if (!polled && clock() - since < weft_task_batch_hold_max_ns(h) * 3 / 10)
		return WEFT_HOLD_NOT_DUE;
	/* A thread that holds back and polls soon, time after time, needs no tick each time. */
	uint64_t max = polled ? 2 * weft_task_batch_hold_max_ns(h) : WEFT_HOLD_NS;
	atomic_store_explicit(&h->x_max_ns, max > most_ns ? most_ns : max, memory_order_relaxed);
	/* DUE <- HELD.  Acquire: what was published before it is found by the caller's look.  A
	 * hold that comes now has another time and stays. */
	(void)atomic_compare_exchange_strong_explicit(&h->x_ns, &since, 0, memory_order_acq_rel,
						      memory_order_relaxed);
	return polled ? WEFT_HOLD_POLLED : WEFT_HOLD_DUE;
}

/* Is something held back? */
static inline bool weft_task_batch_hold_some(const struct weft_task_batch_hold *h)
{
	/* Relaxed: a hint; a tick later it is seen. */
	return atomic_load_explicit(&h->x_ns, memory_order_relaxed) != 0;
}

/* No ticks any more.  True: something was held back, see to it. */
static inline bool weft_task_batch_hold_over(struct weft_task_batch_hold *h)
{
	/* OVER <-> HELD.  Release: that the caller is off.  Acquire: what was published. */
	return atomic_exchange_explicit(&h->x_ns, 0, memory_order_acq_rel) != 0;
}

/* batch_hold.c: as weft_task_engine_hold, for a task: looked at within WEFT_HOLD_NS whatever was
 * learned. */
bool weft_task_engine_hold_task(void) weft_must_use;

#endif
