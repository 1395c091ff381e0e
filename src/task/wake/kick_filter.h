/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kick_filter.h - what makes a kick unnecessary: one that has not been answered yet, an idle worker
 * that is awake, or threads that poll anyway.
 *
 * A kick is a system call, and the thread that it wakes needs some us to come: until then every
 * further submission would kick again.  A watcher that is rung while other threads poll may well
 * wake on their core; then it is quicker with each task than a switch back to them would be, and the
 * next task rings it again: they never poll, and each task is a system call.
 *
 * Callers   woke: a thread that wakes in the watch set or on the watcher's word, before it looks.
 *           already, note: a thread that has published work and is about to kick.
 *           relayed: the submitter of a task that any thread of ours may run.
 *           look_after: the watcher.  begin: the hand, rung by the relay.
 *           streak: a submitter, before it rings.  moved, kicked: the watcher, after a tick or kick.
 * Owner     each thread has its own streak and activity; the rounds that all pollers count come as
 *           an argument.
 * Order     a kick that was noted is done: the thread that it wakes counts a look and then looks.
 * Progress  a load each, or one addition.  None waits.
 * Promise   already() says true only if a look will begin after the caller published.
 *           relayed() says true only if the hand or the watcher looks at the queues afterwards.
 *           Both count their look before they begin it: a word that the one took belongs to a look
 *           that submitters do not rely on before it is counted.
 *           a submitter that is told that others poll relies on a watcher that ticks: it looks all
 *           the same, within 0.4 ms, 1 ms where waiters have polled for 16.
 * Checked   test/task/test_model_kick_filter.c, test_model_kick_or_relay.c, test_model_wake.c.
 *
 *           already note woke    .  together, no help needed
 *   already    .     .    .
 *   note             .    .      a note that comes late names a look of the past and is no note
 *   woke                  .
 */
#ifndef WEFT_TASK_KICK_FILTER_H
#define WEFT_TASK_KICK_FILTER_H

#include "task/wake/relay.h"
#include "task/wake/wake_word.h"

/* ---- one is pending ----------------------------------------------------------------------------
 */

struct weft_kick_filter {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_looks; /* the woken add */
	_Atomic bool x_napping;                           /* the watcher: its tick is a long one */
	_Atomic bool x_spared;   /* the watcher: so short that none need ring */
	_Atomic uint64_t x_note; /* kickers: which look was asked for */
};

/* How: the way of the kick, 1 to 3 (0: a relay); another way may reach another thread.  *key_p: for
 * note. */
static inline bool weft_task_kick_filter_already(struct weft_kick_filter *t, unsigned how,
						 uint64_t *key_p)
{
	weft_assert(how < 4); /* its bits in the key */
	/* TOLD <- LOOK.  seq_cst: comes after the caller's publication, which is seq_cst too; then
	 * the look that has not been counted yet sees it. */
	uint32_t looks = atomic_load_explicit(&t->x_looks, memory_order_seq_cst);
	*key_p = (uint64_t)looks << 2 | how;
	/* Relaxed: it names a look that has not begun, so its kick is done or at least on its way.
	 */
	return atomic_load_explicit(&t->x_note, memory_order_relaxed) == *key_p;
}

/* The kick of that key has been made. */
static inline void weft_task_kick_filter_note(struct weft_kick_filter *t, uint64_t key)
{
	atomic_store_explicit(&t->x_note, key, memory_order_relaxed);
}

static inline void weft_task_kick_filter_woke(struct weft_kick_filter *t)
{
	/* LOOK -> TOLD.  seq_cst: comes before the caller's look.  Without it a submitter could
	 * rely on a look that is over. */
	atomic_fetch_add_explicit(&t->x_looks, 1, memory_order_seq_cst);
}

/* ---- an idle worker is awake -------------------------------------------------------------------
 */

enum { WEFT_TELL_RELAY = 0 }; /* beside the kicks, in the note */

/* True: no system call is needed.  quick: has the relay its core? */
static inline bool weft_task_kick_filter_relayed(struct weft_kick_filter *t, struct weft_relay *r,
						 bool (*quick)(const struct weft_relay *))
{
	uint64_t key;
	if (weft_task_kick_filter_already(t, WEFT_TELL_RELAY, &key))
		return true;
	if (!weft_task_relay_ask(r) || !quick(r))
		return false;
	weft_task_kick_filter_note(t, key);
	return true;
}

/* True: a word lay there; the caller looks now, and its look is counted. */
static inline bool weft_task_kick_filter_look_after(struct weft_kick_filter *t,
						    struct weft_relay *r, bool take_back)
{
	bool word = weft_task_relay_answer(r, WEFT_WORD_NONE);
	if (take_back)
		word |= weft_task_relay_close(r);
	if (word)
		weft_task_kick_filter_woke(t);
	return word;
}

/* The hand: looks next, and then sleeps while the word is what this returns. */
static inline uint32_t weft_task_kick_filter_begin(struct weft_kick_filter *t,
						   const _Atomic uint32_t *x_word)
{
	uint32_t seen = weft_task_wake_word_seen(x_word);
	weft_task_kick_filter_woke(t);
	return seen;
}

/* ---- other threads poll ------------------------------------------------------------------------
 */

#define WEFT_POLLED_STREAK 8    /* so often in a row rounds moved between two submissions */
#define WEFT_POLLED_NS 400000u  /* so long that holds, should they have lost the core now */
#define WEFT_POLLS_MAX 8        /* rounds between two kicks: they need no watcher for tasks */
#define WEFT_KICKS_MAX 4        /* nor when so many kicks come */
#define WEFT_KICKS_NS 200000u   /* in such a time */
#define WEFT_MOVED_NS 10000000u /* and they polled, so long ago at most: some slices */

struct weft_streak {
	uint32_t rounds;  /* at our last submission */
	unsigned n;       /* submissions in a row between which a thread polled */
	uint64_t till_ns; /* it holds until then */
};

/* Another thread polls all the time, or did a moment ago. */
static inline bool weft_task_streak_polled(struct weft_streak *s, uint32_t rounds,
					   uint64_t (*clock)(void))
{
	bool moved = rounds != s->rounds;
	s->rounds = rounds;
	if (moved && ++s->n < WEFT_POLLED_STREAK)
		return false;
	if (moved) {
		s->till_ns = clock() + WEFT_POLLED_NS;
		return true;
	}
	if (s->n >= WEFT_POLLED_STREAK && clock() < s->till_ns)
		return true;
	s->n = 0;
	return false;
}

struct weft_task_poll_activity {
	uint32_t rounds; /* when they were last seen to move */
	uint32_t kicks;
	uint64_t moved_ns; /* then */
	uint64_t since_ns; /* of the kicks */
};

/* How many rounds since the last call. */
static inline uint32_t weft_task_poll_activity_moved(struct weft_task_poll_activity *p,
						     uint32_t rounds, uint64_t now)
{
	uint32_t moved = rounds - p->rounds;
	p->rounds = rounds;
	if (moved)
		p->moved_ns = now;
	return moved;
}

/* The same after a kick; true: others poll, or would if we were off their core. */
static inline bool weft_task_poll_activity_kicked(struct weft_task_poll_activity *p,
						  uint32_t rounds, uint64_t now)
{
	uint32_t moved = weft_task_poll_activity_moved(p, rounds, now);
	if (now - p->since_ns > WEFT_KICKS_NS) {
		p->since_ns = now;
		p->kicks = 0;
	}
	p->kicks++;
	return moved >= WEFT_POLLS_MAX ||
	       (p->kicks >= WEFT_KICKS_MAX && now - p->moved_ns < WEFT_MOVED_NS);
}

#endif
