/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - which plain threads wait for user-level ones, so that a deadlock can be told.
 *
 * Callers   plain_park, begin, end: plain threads, about to sleep.  look: a worker without work, or
 *           such a plain thread, after a sleep of weft_ult_look_ns, twice that, and so on.
 * Owner     an entry lies on its thread's stack.
 */
#ifndef WEFT_ULT_WATCH_H
#define WEFT_ULT_WATCH_H

#include "wait/park.h"

extern uint64_t weft_ult_look_ns;             /* of sleep before a look; doubles */
extern _Atomic uint64_t weft_ult_x_deadlocks; /* said so far */

struct weft_ult_worker;

struct weft_ult_plain {
	struct weft_ult_plain *next;
	struct weft_parker *parker; /* NULL: it wakes no thread */
};

void weft_ult_plain_begin(struct weft_ult_plain *p, struct weft_parker *parker);
void weft_ult_plain_end(struct weft_ult_plain *p);

/* weft_wait_park without an end, of a plain thread that another thread has to wake. */
void weft_ult_plain_park(struct weft_parker *me);

/* Says so, once, when all wait for each other.  One of the two is the caller. */
void weft_ult_deadlock_look(const struct weft_ult_worker *w, const struct weft_ult_plain *me);

#endif
