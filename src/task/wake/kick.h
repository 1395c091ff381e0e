/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kick.h - kicks, at once or a moment later, and the sleep in the watch set that they end.
 */
#ifndef WEFT_TASK_KICK_H
#define WEFT_TASK_KICK_H

#include "task/engine_int.h"

#define WEFT_EV_KICK_TIMER                                                                         \
	UINT32_MAX /* in the watch set, beside 0, the kick, and slots' numbers + 1 */
void weft_task_engine_kick(struct weft_engine *e, enum weft_kick kick);
/* KICK_SET in a while, for the watcher in the watch set; false: not possible. */
bool weft_task_engine_kick_later(struct weft_engine *e, enum weft_task_kick_timer_what what);
/* Was an operation left behind since the last call for that one? */
enum { WEFT_LEFT_WATCHER = 1, WEFT_LEFT_AWAY = 2, WEFT_LEFT_ALL = 3 };
static inline bool weft_task_engine_behind_since(struct weft_engine *e, unsigned reader)
{
	/* Relaxed, both: see weft_task_engine_pending. */
	return (atomic_load_explicit(&e->x_pending, memory_order_relaxed) & reader) != 0 &&
	       (atomic_fetch_and_explicit(&e->x_pending, (uint8_t)~reader, memory_order_relaxed) &
		reader) != 0;
}
void weft_task_engine_set_kick_timer(struct weft_engine *e,
				     enum weft_task_kick_timer_what what); /* sets the timer */
/* A thread waits, or will, beside those that sleep in the watch set or are parked: from now on all
 * that comes rings.  Before it looks for the last time. */
void weft_task_engine_ears(struct weft_engine *e);
static inline void weft_task_engine_hears(struct weft_engine *e)
{
	/* Relaxed: set once, and a thread that finds it set comes after the kick that follows. */
	if (weft_unlikely(!atomic_load_explicit(&e->baton.x_ears, memory_order_relaxed)))
		weft_task_engine_ears(e);
}
/* Sleeps in the watch set; timeout_ns WEFT_FOREVER: until something happens.  True: a source rang,
 * and is no longer armed. */
bool weft_task_engine_watch(struct weft_engine *e, uint64_t timeout_ns);
/* How long one may sleep when some source or task needs looking at. */
uint64_t weft_task_engine_nap_ns(struct weft_engine *e);

#endif
