/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_hold.c - what a caller leaves to the next poller: held back for company, or not over yet. */
#include "base/mechanism.h"
#include "task/engine_int.h"
#include "task/wake/kick.h"

/* As weft_task_engine_hold; the watcher looks within ns. */
static bool hold_for(struct weft_engine *e, uint64_t ns)
{
	/* Relaxed, both: looked at again below, and the rounds are a hint. */
	uint32_t pos = atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed);
	uint32_t rounds = atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
	if (weft_task_progress_off_here || !weft_task_batch_hold_at(pos) ||
	    !weft_mechanism_on(WEFT_MECH_BATCH_HOLD) ||
	    !atomic_load_explicit(&e->x_progress, memory_order_relaxed))
		return false;
	enum weft_held held =
		weft_task_batch_hold_begin(&e->batch_hold, &e->baton, weft_clock_ns(), ns, rounds);
	if (held == WEFT_HELD_KICK)
		weft_task_engine_kick(e, WEFT_KICK_WATCHER);
	return held != WEFT_HELD_NOT;
}

bool weft_task_engine_hold(void)
{
	return hold_for(&weft_task_engine,
			weft_task_batch_hold_max_ns(&weft_task_engine.batch_hold));
}

bool weft_task_engine_hold_task(void)
{
	return hold_for(&weft_task_engine, WEFT_HOLD_NS);
}

void weft_task_engine_pending(void)
{
	struct weft_engine *e = &weft_task_engine;
	/* Relaxed, all: hints.  A mark that crosses the watcher's look costs one nap, no more. */
	if (atomic_load_explicit(&e->x_pending, memory_order_relaxed) != WEFT_LEFT_ALL)
		atomic_store_explicit(&e->x_pending, WEFT_LEFT_ALL, memory_order_relaxed);
	if (weft_unlikely(atomic_load_explicit(&e->kick_filter.x_napping, memory_order_relaxed)) &&
	    !weft_task_progress_off_here &&
	    atomic_exchange_explicit(&e->kick_filter.x_napping, false, memory_order_relaxed))
		weft_task_engine_kick(e, WEFT_KICK_WATCHER);
}
