/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll_activity.h - do other threads poll anyway?  Then a submitter need not ring the watcher, and a watcher
 * that is rung all the same keeps off their core.
 *
 * It may well be their core that it wakes on.  Then it is quicker with each task than a switch back
 * to them would be, and the next task rings it again: they never poll, and each task is a system
 * call.
 *
 * Callers   streak: a submitter, before it rings.  polls: the watcher; kicked: after a kick.
 * Owner     each thread has its own; the rounds that all pollers count come as an argument.
 * Promise   a submitter that is told that others poll relies on a watcher that ticks: it looks all the same,
 *           within 0.4 ms, 1 ms where waiters have polled for 16.
 */
#ifndef WEFT_TASK_POLL_ACTIVITY_H
#define WEFT_TASK_POLL_ACTIVITY_H

#include "base/base.h"

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
