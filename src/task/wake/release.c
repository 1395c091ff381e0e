/* SPDX-License-Identifier: BSD-3-Clause */
/* release.c - the kick and the look at the queues that follow when the baton has become vacant. */
#include "base/mechanism.h"
#include "task/wake/release.h"
#include "task/wake/watcher_int.h"
#include "task/waiting/spin.h"
#include "task/wake/arm.h"
#include "task/wake/kick.h"

#define REST_NS 200000u /* so long since the last wait: the next one will not come soon either */
#define REST_ARMS                                                                                  \
	4 /* waits after such a rest that end with the bells armed: an exchange has some */

/* With more ranks than cores each ring takes the core from a rank that would go on: once only. */
static unsigned arms_after_rest(void)
{
	return weft_task_spin_crowded() ? 1 : REST_ARMS;
}

static bool watcher_is_under(const struct weft_engine *e)
{
	/* Relaxed: a hint; elsewhere the watcher arms and checks by itself. */
	return atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) ==
	       WEFT_WATCHER_UNDER;
}

/*
 * A thread that was away for long before this wait will be so after it, or after one of the next:
 * it arms by itself, which costs less than any timer.  The kick that is owed then.
 */
static enum weft_kick arm_on_leaving(struct weft_engine *e, const void *site)
{
	uint64_t now = weft_cycles();
	uint64_t last = atomic_exchange_explicit(&e->x_last_release, now, memory_order_relaxed);
	unsigned arms = now - last >= weft_task_spin_cycles(REST_NS)
				? arms_after_rest()
				/* Relaxed: a hint here, ours once we hold the baton. */
				: atomic_load_explicit(&e->x_rest_arms, memory_order_relaxed);
	if (!arms || !watcher_is_under(e) || weft_task_engine_tasks_left(e) ||
	    !weft_task_baton_try_take(&e->baton))
		return WEFT_KICK_SET;
	atomic_store_explicit(&e->x_rest_arms, arms - 1, memory_order_relaxed);
	bool soon = weft_task_gap_leave(&e->gap, site, now);
	(void)weft_task_engine_behind_since(e, WEFT_LEFT_AWAY);
	if (!weft_task_sources_armed(e))
		(void)weft_task_sources_arm(e, weft_task_sources_level_to_leave(e, soon));
	return weft_task_baton_leave(&e->baton);
}

/* The watcher is to be woken out of the watch set.  True: the timer does it in a while. */
static bool kick_by_timer(struct weft_engine *e)
{
	return weft_mechanism_on(WEFT_MECH_KICK_TIMER) &&
	       !weft_task_batch_hold_some(&e->batch_hold) &&
	       weft_task_engine_kick_later(e, WEFT_KICK_TIMER_KICK);
}

static void back_to_application(struct weft_engine *e, enum weft_kick kick, const void *site)
{
	if (kick == WEFT_KICK_SET && !weft_task_batch_hold_some(&e->batch_hold))
		kick = arm_on_leaving(e, site);
	if (kick == WEFT_KICK_SET && kick_by_timer(e)) {
		if (weft_task_engine_tasks_left(e))
			weft_task_engine_kick(e, kick);
		return;
	}
	weft_task_baton_check(&e->baton);
	weft_task_engine_kick(e, kick);
	if (kick != WEFT_KICK_NONE)
		return; /* the thread that is kicked looks */
	if (weft_task_sources_unchecked(e) && watcher_is_under(e) &&
	    !weft_task_engine_kick_later(e, WEFT_KICK_TIMER_CHECK))
		weft_task_engine_kick(e, WEFT_KICK_SET);
	if (weft_task_engine_tasks_left(e))
		weft_task_engine_kick(e, weft_task_baton_submit_target(&e->baton));
}

void weft_task_baton_released(struct weft_engine *e, enum weft_kick kick, enum weft_leaver leaver,
			      const void *site)
{
	weft_assert(kick <= WEFT_KICK_PARKED && !weft_task_engine_self.holds);
	weft_assert(leaver < WEFT_LEAVER_WATCHER ||
		    weft_task_engine_self.runner == WEFT_RUNNER_WATCHER);
	switch (leaver) {
	case WEFT_LEAVER_WAITER:
	case WEFT_LEAVER_SLEEPER:
		back_to_application(e, kick, site);
		return;
	case WEFT_LEAVER_POLLER:
		weft_task_engine_kick(e, kick);
		if (kick == WEFT_KICK_NONE && weft_task_engine_tasks_left(e))
			weft_task_engine_kick(e, weft_task_baton_submit_target(&e->baton));
		return;
	case WEFT_LEAVER_WATCHER:
		/* The kick would be for itself, and it is awake; before it sleeps again it looks
		 * whether it is armed for less than is wanted. */
		weft_task_watcher_drain(e);
		return;
	case WEFT_LEAVER_TICKER:
		return; /* the same; its tick looks */
	}
}
