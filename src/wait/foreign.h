/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * foreign.h - parkers of the threads of a foreign runtime (weft/plugin.h).
 *
 * Each of its threads that ever waited has a parker, found by its name in a table; like all parkers
 * it is never freed, and a thread that gets the name later gets the parker.
 *
 * Callers   self: any thread.  is, yield: any; yield: a foreign thread.
 * Order     as park.h.
 *
 * The runtime sees one unpark per park and none later: a thread leaves park only after the waker's call
 * is over (x_woken).  So a thread may end, and its runtime free it, as soon as its wait is over.
 */
#ifndef WEFT_WAIT_FOREIGN_H
#define WEFT_WAIT_FOREIGN_H

#include "wait/park.h"

/* The caller's, NULL: not one of the runtime's threads, there is no runtime, or no memory. */
struct weft_parker *weft_wait_foreign_self(void);

bool weft_wait_foreign_is(const struct weft_parker *p);
void weft_wait_foreign_yield(void);

#endif
