/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * home.h - a rank's home: its part of the cores that the ranks of a host share, by its number there.
 *
 * Beside another program the kernel may leave two ranks of a job on one core for as long as they run: it weighs the
 * job, a session of its own, against that program, and finds a core for each of the two.  Then each message waits until its
 * sender has looked in vain for long enough to sleep.  So a rank that stands in the queue for a core outside of its home
 * goes there.  It is not bound: its mask is what it was as soon as it is there, and the kernel may move it on.
 *
 * Callers   set: the thread that starts the job.  look: any thread; only that one ever moves.
 * Bound     look: once in WEFT_HOME_LOOK_NS it asks for its core, and reads a file of the kernel's if that is not at home; a
 *           move is three system calls.
 * Not       more ranks than cores; a rank that is alone, or has been bound; a program that has bound the thread itself.
 * Counted   home_moves.
 */
#ifndef WEFT_TASK_HOME_H
#define WEFT_TASK_HOME_H

#include <sched.h>
#include "base/base.h"

#define WEFT_HOME_LOOK_NS 10000000u
#define WEFT_HOME_QUEUED_SHARE 5 /* a fifth of the time in the queue for a core */

/* Cores are dealt out in the order of their numbers, at least one to each rank: index < ranks <= cores. */
void weft_task_home_part(const cpu_set_t *cores, int index, int ranks, cpu_set_t *part_p);

/* The rank of that index among so many of this host; cores: how many these share. */
void weft_task_home_set(int index, int ranks, int cores);
/* The caller slept, or its core was taken away. */
void weft_task_home_look(void);
/* True: the caller has been moved to its home. */
bool weft_task_home_go(void);

#endif
