/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * look.h - a thread that waits for words in shared memory looks at them for a while before it sleeps.
 *
 * Callers   a thread or user-level thread that may block.
 * Blocking  for as long as a waiter would poll (weft_task_engine_patience): it yields where others need the
 *           core, and polls now and then.
 */
#ifndef WEFT_TASK_LOOK_H
#define WEFT_TASK_LOOK_H

#include <sched.h>
#include "base/assert.h"
#include "base/base.h"
#include "task/task.h"

#define WEFT_TASK_LOOK_YIELDS 3   /* looks with a yield, between polls, less 1 */
#define WEFT_TASK_LOOK_SPINS 127u /* and looks without */

/* True: ready(arg). */
static inline __attribute__((always_inline)) bool
weft_task_look_for_a_while(bool (*ready)(const void *arg), const void *arg)
{
	bool yield;
	uint64_t patience = weft_task_engine_patience(&yield), begun = weft_cycles();
	weft_assert(ready);
	unsigned mask = yield ? WEFT_TASK_LOOK_YIELDS : WEFT_TASK_LOOK_SPINS;
	for (unsigned i = 1;; i++) { /* ends: ready, or patience is over */
		if (ready(arg)) {
			if (i > 1) /* else it has not spun */
				weft_task_engine_looked(true);
			return true;
		}
		if ((i & mask) == 0) {
			(void)weft_task_engine_poll();
			if (weft_cycles() - begun > patience)
				break;
		}
		if (!patience)
			break;
		if (yield)
			sched_yield();
		else
			weft_cpu_relax();
	}
	weft_task_engine_looked(false);
	return ready(arg);
}

#endif
