/* SPDX-License-Identifier: BSD-3-Clause */
/* submit_kick.c - the kick that follows a submission, and what is tried in its place. */
#include "task/wake/submit_kick.h"
#include "task/wake/kick.h"
#include "task/wake/relay_hand.h"

/*
 * Does another thread poll all the time, without the baton?  Then the watcher need not be rung while
 * it ticks: it looks within 0.4 ms should that thread have stopped just now.  Asked once per look of
 * the watcher: the count of rounds is a line that pollers write.
 */
static bool others_poll(struct weft_engine *e, struct weft_engine_self *self, uint64_t key)
{
	/* Relaxed: a hint; a tick that begins or ends meanwhile looks all the same. */
	uint32_t rounds = atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
	if (!weft_task_streak_polled(&self->streak, rounds, weft_clock_ns))
		return false;
	self->unrung = key;
	return true;
}

void weft_task_submit_kick_at_once(struct weft_engine *e, enum weft_kick kick, uint64_t key,
				   bool any)
{
	weft_assert(kick == WEFT_KICK_SET || kick == WEFT_KICK_WATCHER);
	struct weft_engine_self *self = &weft_task_engine_self;
	bool ticks = kick == WEFT_KICK_WATCHER &&
		     atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) ==
			     WEFT_WATCHER_TICKS &&
		     !atomic_load_explicit(&e->kick_filter.x_napping, memory_order_relaxed);
	if (ticks && (self->unrung == key || others_poll(e, self, key)))
		return;
	if (any && weft_task_relay_tell(e)) /* an idle worker that is awake sees to it */
		return;
	if (ticks && atomic_load_explicit(&e->kick_filter.x_spared, memory_order_relaxed))
		return;
	/* It would wake the caller, which looks again. */
	if (self->drains &&
	    atomic_load_explicit(&e->baton.x_state, memory_order_relaxed) != WEFT_BATON_ASLEEP) {
		self->submitted = true;
		return;
	}
	weft_task_engine_kick(e, kick);
	weft_task_kick_filter_note(&e->kick_filter, key);
}

/* Rung at once, the watcher would take the core of the caller. */
void weft_task_submit_kick_later(struct weft_engine *e, bool any)
{
	if (!weft_task_batch_hold_vacant(&e->baton) || !weft_task_engine_hold_task())
		weft_task_submit_kick_now(e, any);
	else if (atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) ==
		 WEFT_WATCHER_UNDER)
		weft_task_engine_kick(e, WEFT_KICK_SET); /* it ticks for a while, and looks then */
}

void weft_task_submit_kick_spare(struct weft_engine *e)
{
	if (weft_task_baton_submit_target(&e->baton) != WEFT_KICK_NONE && !weft_task_relay_tell(e))
		weft_task_submit_kick_now(e, true);
}
