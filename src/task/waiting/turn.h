/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn.h - a waiter's turn on a core that strangers want too.
 *
 * The kernel gives every thread its share.  A thread that looks for messages until the core is taken away
 * has run ahead of the others by a tick of the kernel, 4 ms, and then waits for that times their
 * number.  So a turn ends sooner, and by itself: the waiter looks for as long as WEFT_TURN_NS says,
 * then sleeps whenever it must wait, unless its place is one where polling pays (spin.c).  From then
 * until the wait is over it has a short slice of the kernel's, as the engine's threads have, so that it
 * is let in soon after it is owed the core; what computes has its own.
 *
 * Callers   the waiting thread.
 * Bound     four system calls per wait that sleeps; only where the core was taken away lately.
 */
#ifndef WEFT_TURN_H
#define WEFT_TURN_H

#include "base/base.h"

/* Some ten exchanges of 1 MiB; longer turns mean longer waits (doc/cost.md has the figures). */
#define WEFT_TURN_NS 1000000u

/* The caller runs again: it slept, or its core was taken away. */
void weft_task_turn_begins(void);
uint64_t weft_task_turn_left_ns(void); /* 0: over */

/* Before the first sleep of a wait: asks for the short slice, and says what the thread's own is; 0:
 * it stays as it is. */
uint64_t weft_task_turn_sleeps(void);
void weft_task_turn_wakes(uint64_t slice_ns); /* at its end: as weft_task_turn_sleeps said */

#endif
