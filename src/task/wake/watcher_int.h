/* SPDX-License-Identifier: BSD-3-Clause */
/* watcher_int.h - what the watcher's two files share: watcher.c, where it ticks, and watcher_armed.c. */
#ifndef WEFT_WATCHER_INT_H
#define WEFT_WATCHER_INT_H

#include "task/engine_int.h"

struct weft_ticks {
	uint64_t ns;     /* T */
	uint32_t rounds; /* of the waiters, when we last looked */
	bool hold;       /* something is held back now and then */
	unsigned turns;
	unsigned calm; /* ticks in a row that found waiters polling and nothing left behind */
	struct weft_task_poll_activity polls;
	bool spare;               /* nobody need ring during the next tick */
	uint64_t polled_since_ns; /* each look since then has found that waiters polled */
	unsigned deferred;        /* kicks in a row that the timer gave too early */
};

static inline bool weft_task_watcher_wanted(struct weft_engine *e)
{
	/* WANTED <- STOP, and <- the switch.  seq_cst: comes after the watcher has said where it
	 * is; either it sees the change or is kicked out of its sleep. */
	return atomic_load_explicit(&e->x_progress, memory_order_seq_cst) &&
	       !atomic_load_explicit(&e->x_stop, memory_order_seq_cst);
}

static inline uint32_t weft_task_watcher_rounds(struct weft_engine *e)
{
	return atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
}

/* After a kick.  True: nobody need ring during the next tick, others poll. */
static inline bool weft_task_watcher_spare(struct weft_engine *e, struct weft_ticks *t)
{
	t->spare = weft_task_poll_activity_kicked(&t->polls, weft_task_watcher_rounds(e),
						  weft_clock_ns());
	return t->spare;
}

/* watcher.c: polls until a round finds nothing; what goes on for ever does so within the budget. */
void weft_task_watcher_drain(struct weft_engine *e);

/* watcher_armed.c: with the baton in hand: all is armed, or gets armed.  Gives the baton back; true: went
 * under. */
bool weft_task_watcher_go_under(struct weft_engine *e, struct weft_ticks *t);

#endif
