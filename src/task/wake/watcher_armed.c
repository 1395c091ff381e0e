/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watcher_armed.c - the watcher in the watch set, with all sources armed and the baton vacant or asleep.
 *
 * A bell, a kick, the timer of a kick that could wait (kick_timer.h) or the time to check (arm_level.h, what
 * was armed without a membarrier) wakes it.  It polls, sees to it that all is armed again, and
 * sleeps on; or it comes out, because others poll or it must tick.
 */
#include "task/wake/watcher_int.h"
#include "task/wake/release.h"

void weft_task_watcher_redirect(struct weft_engine *e)
{
	/* Acquire: a parker that was named by its sleeper. */
	struct weft_parker *p = atomic_load_explicit(&e->x_sleeper, memory_order_acquire);
	bool other = atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) ==
			     WEFT_BATON_ASLEEP &&
		     (!weft_task_sources_armed(e) || (p && weft_wait_parker_notified(p)));
	bool watcher = atomic_load_explicit(&e->x_call_watcher, memory_order_seq_cst) &&
		       atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) ==
			       WEFT_WATCHER_UNDER;
	if (weft_unlikely(other || watcher))
		weft_task_engine_kick(e, WEFT_KICK_SET);
}

/* The same with the baton in hand: nobody else waits then. */
static void drain_holding(struct weft_engine *e)
{
	weft_task_engine_self.holds = true;
	weft_task_watcher_drain(e);
	weft_task_engine_self.holds = false;
}

/*
 * We lie in wait, and a burst begins, or somebody submits tasks while others poll anyway: tick, so
 * that the next ones need not ring.  False: none.
 */
static bool hold_begins(struct weft_engine *e, bool polled)
{
	if (!polled && !weft_task_batch_hold_some(&e->batch_hold))
		return false;
	if (weft_task_baton_try_take(&e->baton)) { /* else its holder polls */
		(void)weft_task_sources_arm(e, WEFT_ARM_OFF);
		weft_task_baton_release(e, WEFT_LEAVER_TICKER, NULL);
	}
	return true;
}

/* A bell rang, or too few would, and nobody holds the baton: arm it again.  False: somebody else
 * will. */
static bool arm_again(struct weft_engine *e)
{
	if (!weft_task_baton_try_take(&e->baton))
		return false;
	weft_err err;
	while ((err = weft_task_sources_arm(e, weft_task_sources_level_to_leave(e, false))) !=
		       WEFT_OK &&
	       weft_task_watcher_wanted(e)) /* ends: nothing comes now */
		drain_holding(e);
	weft_task_baton_release(e, WEFT_LEAVER_WATCHER, NULL); /* finds what a taken mask hid */
	return err == WEFT_OK;
}

/* Somebody has armed quietly, some time ago.  False: he polls again. */
static bool check(struct weft_engine *e)
{
	if (!weft_task_sources_unchecked(e))
		return true;
	if (!weft_task_baton_try_take(&e->baton))
		return false;
	enum weft_arm_level level = weft_task_sources_level(e);
	weft_err err = weft_arm_is_unchecked(level)
			       ? weft_task_sources_arm(e, weft_arm_checked(level))
			       : WEFT_OK;
	weft_task_baton_release(e, WEFT_LEAVER_WATCHER, NULL);
	return !err || arm_again(e);
}

/* Does somebody poll? */
static bool held(struct weft_engine *e)
{
	/* Seq_cst: after weft_task_kick_timer_fired(); who leaves from now on defers anew. */
	return atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) == WEFT_BATON_HELD;
}

/* We look again a little later.  False: that was so too often. */
static bool later(struct weft_engine *e, struct weft_ticks *t)
{
	if (++t->deferred > WEFT_KICK_TIMER_MAX)
		return false;
	if (weft_task_kick_timer_due(&e->kick_timer, WEFT_KICK_TIMER_KICK))
		weft_task_engine_set_kick_timer(e, WEFT_KICK_TIMER_KICK);
	return true;
}

/*
 * The timer of deferred kicks has woken us in the watch set: arms if nobody came back to wait since
 * it was set.  False: they come and go; tick instead.
 */
static bool deferred(struct weft_engine *e, struct weft_ticks *t)
{
	if (held(e))
		return later(e, t);
	weft_task_watcher_drain(e);
	/* Relaxed: a hint. */
	if (!weft_task_sources_armed(e) &&
	    weft_task_watcher_rounds(e) !=
		    atomic_load_explicit(&e->kick_timer.x_rounds, memory_order_relaxed))
		return later(e, t);
	if (weft_task_sources_armed(e) ? !check(e) : !arm_again(e))
		return later(e, t);
	t->deferred = 0;
	return true;
}

/* What the application has not come back for. */
static void run_due(struct weft_engine *e)
{
	weft_task_app_work_run_due();
	weft_task_watcher_drain(e);
}

/*
 * In the watch set, below whoever sleeps there with the baton; returns when it must tick.
 * A ring is for us when the holder, if any, is awake; else he is kicked: he arms again.
 */
static void stay_under(struct weft_engine *e, struct weft_ticks *t)
{
	/* Ends: switched off, or somebody disarmed to poll by himself. */
	while (weft_task_watcher_wanted(e)) {
		/* What we have run may want to hear more than is armed for; or who left had found
		 * it armed for nobody, and another waits. */
		if (weft_task_baton_unheard(&e->baton)) {
			if (!arm_again(e))
				break;
			continue; /* what that ran, too */
		}
		uint64_t nap = weft_task_engine_nap_ns(e), lease = weft_task_relay_nap_ns();
		uint64_t ns = lease < nap ? lease : nap;
		if (ns > WEFT_CHECK_NS && weft_task_sources_unchecked(e))
			ns = WEFT_CHECK_NS;
		uint64_t due = weft_task_app_work_due_ns();
		if (!due) {
			run_due(e);
			continue; /* may want to hear more, too */
		}
		if (ns > due)
			ns = due;
		bool rang = weft_task_engine_watch(e, ns);
		weft_count(WEFT_CNT_WATCHER_WAKEUPS, 1);
		if (nap != WEFT_FOREVER && !rang)
			weft_count(WEFT_CNT_POLL_TIMER, 1);
		/* CALL <- CALL (weft_task_watcher_call), as in watcher.c. */
		atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
		if (weft_task_engine_self.deferred && !weft_task_batch_hold_some(&e->batch_hold) &&
		    deferred(e, t))
			continue;
		/* Its holder polls, and has most likely seen it. */
		if (rang && held(e) && !weft_task_batch_hold_some(&e->batch_hold) && later(e, t))
			continue;
		bool polled = !rang && weft_task_watcher_spare(e, t);
		bool hold = hold_begins(e, polled);
		if (weft_task_relay_check(e) || !hold || polled)
			weft_task_watcher_drain(e);
		weft_task_watcher_redirect(e);
		if (weft_task_engine_self.expired && !check(e))
			break;
		if (hold || (rang ? !arm_again(e) : !weft_task_sources_armed(e)))
			break;
		t->deferred = 0;
	}
}

bool weft_task_watcher_go_under(struct weft_engine *e, struct weft_ticks *t)
{
	if (weft_task_baton_unheard(&e->baton) || !weft_task_sources_armed(e) ||
	    atomic_load_explicit(&e->x_some_armed, memory_order_relaxed)) {
		if (weft_task_sources_arm(e, weft_task_sources_level_to_leave(e, false))) {
			drain_holding(e);
			weft_task_baton_release(e, WEFT_LEAVER_TICKER, NULL);
			return false;
		}
	}
	weft_task_watcher_sit(&e->baton, WEFT_WATCHER_UNDER);
	t->deferred = 0;
	weft_task_baton_release(e, WEFT_LEAVER_WATCHER, NULL); /* the last look */
	(void)weft_task_poll_activity_moved(&t->polls, weft_task_watcher_rounds(e),
					    weft_clock_ns());
	stay_under(e, t);
	return true;
}
