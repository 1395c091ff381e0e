/* SPDX-License-Identifier: BSD-3-Clause */
/* watcher_int.h - what the watcher's two files share: watcher.c, ticking, and watcher_armed.c. */
#ifndef WEFT_WATCHER_INT_H
#define WEFT_WATCHER_INT_H

#include "task/engine_int.h"
#include "task/wake/watcher_table.h"

/* What the watcher remembers; its own. */
struct weft_watcher {
	uint64_t tick_ns;  /* T */
	uint32_t rounds;   /* of the waiters, at the last look */
	uint32_t off_seen; /* its word before it said OFF */
	bool hold;         /* something is held back now and then */
	bool shortly;      /* the next tick is the shortest */
	unsigned turns;
	unsigned calm; /* ticks in a row that found waiters polling and nothing left behind */
	struct weft_task_poll_activity polls;
	bool spare;               /* nothing need ring during the next tick */
	uint64_t polled_since_ns; /* each look since then has found that waiters polled */
	uint64_t under_since_ns;  /* when it went under; 0: the tick has taken note of it */
	unsigned timers;          /* times in a row that the timer was set again */
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

static inline enum weft_watcher_pos weft_task_watcher_at(struct weft_engine *e)
{
	/* Relaxed: its own word. */
	return (enum weft_watcher_pos)atomic_load_explicit(&e->baton.x_watcher,
							   memory_order_relaxed);
}

/* After a kick.  True: nothing need ring during the next tick, other threads poll. */
static inline bool weft_task_watcher_spare(struct weft_engine *e, struct weft_watcher *w)
{
	weft_assert(weft_task_engine_self.runner == WEFT_RUNNER_WATCHER);
	w->spare = weft_task_poll_activity_kicked(&w->polls, weft_task_watcher_rounds(e),
						  weft_clock_ns());
	return w->spare;
}

/* drain.c: polls until a round finds nothing; what goes on for ever does so within the budget. */
void weft_task_watcher_drain(struct weft_engine *e);

/* watcher_armed.c: the sleep in the watch set, and what it does about what it finds there (see the
 * table); false: not possible. */
enum weft_watcher_finds weft_task_watcher_sleep_under(struct weft_engine *e,
						      struct weft_watcher *w);
bool weft_task_watcher_go_under(struct weft_engine *e, struct weft_watcher *w);
bool weft_task_watcher_arm_again(struct weft_engine *e);
bool weft_task_watcher_run_work(struct weft_engine *e);
bool weft_task_watcher_set_timer(struct weft_engine *e, struct weft_watcher *w);
bool weft_task_watcher_check_by_timer(struct weft_engine *e, struct weft_watcher *w);
bool weft_task_watcher_arm_by_timer(struct weft_engine *e, struct weft_watcher *w);
bool weft_task_watcher_disarm(struct weft_engine *e, struct weft_watcher *w);
bool weft_task_watcher_serve(struct weft_engine *e, struct weft_watcher *w);
bool weft_task_watcher_serve_and_check(struct weft_engine *e, struct weft_watcher *w);
bool weft_task_watcher_serve_and_arm(struct weft_engine *e, struct weft_watcher *w);

#endif
