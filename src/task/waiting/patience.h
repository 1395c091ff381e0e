/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience.h - how the holder of the baton passes the time before it sleeps: it polls, or, with
 * more ranks than cores, yields: hands the core over after each look, so that the thread that it
 * waits for runs.
 *
 * Callers   next, then pass: the holder, after a look that found nothing.
 * Owner     the wait's.
 * Bound     both end after the time learned at the place that waits (spin.c), looked at every
 *           eighth round, or after each yield.  Yielding ends sooner when no thread has taken the
 *           core so often in a row as WEFT_YIELD_MAX says; that is about what sleeping costs.
 * Settings  WEFT_SPIN_US rules over the time; WEFT_YIELD_MAX=0: sleeps where it would yield; a
 *           program chooses for each wait by weft/policy.h.
 * Counted   yields.
 */
#ifndef WEFT_PATIENCE_H
#define WEFT_PATIENCE_H

#include <sched.h>
#include "base/assert.h"
#include "task/engine_int.h"
#include "task/waiting/spin.h"

#define WEFT_PATIENCE_UNTAKEN_NS                                                                   \
	1000                  /* a look and a yield: shorter, no other thread ran meanwhile */
#define WEFT_PATIENCE_CHECK 7 /* rounds between looks at the clock, less 1 */

struct weft_patience {
	uint64_t begun, last, budget; /* cycles; no budget: over */
	uint64_t untaken_cycles;
	unsigned untaken, untaken_max; /* yields in a row that no thread took */
	bool started, yields;
};

enum weft_patience_verdict {
	WEFT_PATIENCE_OVER,  /* sleep */
	WEFT_PATIENCE_ON,    /* pass, and look again */
	WEFT_PATIENCE_WHILE, /* the same; by the clock we shall poll for a while */
};

static inline void weft_task_patience_begin(struct weft_patience *p, const void *site)
{
	struct weft_wait_plan plan = weft_task_spin_plan(site);
	p->started = true;
	p->begun = p->last = weft_cycles();
	p->budget = weft_task_spin_cycles(plan.ns);
	p->yields = plan.yield;
	p->untaken = 0;
	p->untaken_max = weft_task_spin_yield_max();
	p->untaken_cycles = weft_task_spin_cycles(WEFT_PATIENCE_UNTAKEN_NS);
}

/* After a fruitless round, the how-manieth of the wait. */
static inline enum weft_patience_verdict weft_task_patience_next(struct weft_patience *p,
								 const void *site, unsigned round)
{
	if (!p->started)
		weft_task_patience_begin(p, site);
	if (!p->budget)
		return WEFT_PATIENCE_OVER;
	if (!p->yields && (round & WEFT_PATIENCE_CHECK) != 0)
		return WEFT_PATIENCE_ON;
	weft_assert(p->started && p->budget);
	uint64_t now = weft_cycles();
	weft_task_spin_gap(now - p->last);
	p->untaken = now - p->last < p->untaken_cycles ? p->untaken + 1 : 0;
	p->last = now;
	if (now - p->begun > p->budget || (p->yields && p->untaken > p->untaken_max))
		return WEFT_PATIENCE_OVER;
	return WEFT_PATIENCE_WHILE;
}

static inline void weft_task_patience_pass(const struct weft_patience *p)
{
	if (p->yields) {
		weft_count(WEFT_CNT_YIELDS, 1);
		sched_yield();
	} else {
		weft_cpu_relax();
	}
}

#endif
