/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watcher_armed.c - the watcher in the watch set: its sleep there, and what it does about what has
 * ended that (watcher_table.h).  All sources are armed, and the baton is vacant or asleep.
 */
#include "task/wake/arm.h"
#include "task/wake/watcher_int.h"
#include "task/wake/release.h"
#include "task/waiting/app_work.h"
#include "task/wake/kick.h"
#include "task/wake/relay_hand.h"
#include "task/wake/watcher.h"

/* Polls with the baton in hand: no other thread waits then. */
static void drain_holding(struct weft_engine *e)
{
	weft_task_baton_check_held(&e->baton);
	weft_assert(!weft_task_engine_self.holds);
	weft_task_engine_self.holds = true;
	weft_task_watcher_drain(e);
	weft_task_engine_self.holds = false;
}

/* ---- the sleep ---------------------------------------------------------------------------------
 */

static bool is_held(struct weft_engine *e)
{
	/* Seq_cst: after weft_task_kick_timer_fired(); a thread that leaves from now on sets the
	 * timer anew. */
	return atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) == WEFT_BATON_HELD;
}

/* A waiter needs a thread that polls: a parked one takes the baton.  None: we nap briefly. */
static void pass_to_parked(struct weft_engine *e)
{
	/* Relaxed: a hint; a waiter that takes the baton meanwhile polls. */
	if (weft_task_repeat_awaited(&e->repeat) &&
	    atomic_load_explicit(&e->baton.x_state, memory_order_relaxed) == WEFT_BATON_VACANT)
		weft_task_engine_kick(e, WEFT_KICK_PARKED);
}

static uint64_t shorter_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t sleep_ns(struct weft_engine *e, uint64_t nap)
{
	uint64_t ns =
		shorter_ns(shorter_ns(nap, weft_task_relay_nap_ns()), weft_task_app_work_due_ns());
	return weft_task_sources_unchecked(e) ? shorter_ns(ns, WEFT_CHECK_NS) : ns;
}

enum weft_watcher_finds weft_task_watcher_sleep_under(struct weft_engine *e, struct weft_watcher *w)
{
	weft_assert(weft_task_watcher_at(e) == WEFT_WATCHER_UNDER);
	if (!weft_task_watcher_wanted(e))
		return WEFT_WATCHER_UNWANTED;
	/* What we have run may want to hear more than is armed for; or a thread that left had found
	 * it armed for replies, and another waits. */
	if (weft_task_baton_unheard(&e->baton))
		return WEFT_WATCHER_UNHEARD;
	if (!weft_task_app_work_due_ns())
		return WEFT_WATCHER_WORK_DUE;
	pass_to_parked(e);
	uint64_t nap = weft_task_engine_nap_ns(e);
	bool rang = weft_task_engine_watch(e, sleep_ns(e, nap));
	weft_count(WEFT_CNT_WATCHER_WAKEUPS, 1);
	if (nap != WEFT_FOREVER && !rang)
		weft_count(WEFT_CNT_POLL_TIMER, 1);
	/* CALL <- CALL (weft_task_watcher_call), as in watcher.c. */
	atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
	/* A word that it took is its own now, whatever else it finds. */
	if (weft_task_relay_check(e))
		weft_task_watcher_drain(e);
	struct weft_watcher_view v = {
		.wanted = true,
		.timer = weft_task_engine_self.deferred,
		.rang = rang,
		.expired = weft_task_engine_self.expired,
		.armed = weft_task_sources_armed(e),
		.state = is_held(e) ? WEFT_BATON_HELD : WEFT_BATON_VACANT,
		.held_back = weft_task_batch_hold_some(&e->batch_hold),
		/* Relaxed: a hint. */
		.moved = weft_task_watcher_rounds(e) !=
			 atomic_load_explicit(&e->kick_timer.x_rounds, memory_order_relaxed),
	};
	w->spare = false;
	if (!rang && (!v.timer || v.held_back))
		v.spared = weft_task_watcher_spare(e, w);
	return weft_task_watcher_finds_under(&v);
}

/* ---- what it does ------------------------------------------------------------------------------
 */

bool weft_task_watcher_arm_again(struct weft_engine *e)
{
	if (!weft_task_baton_try_take(&e->baton))
		return false; /* its holder polls, and arms or kicks when it leaves */
	weft_err err;
	while ((err = weft_task_sources_arm(e, weft_task_sources_level_to_leave(e, false))) !=
		       WEFT_OK &&
	       weft_task_watcher_wanted(e)) /* ends: nothing comes now */
		drain_holding(e);
	weft_task_baton_release(e, WEFT_LEAVER_WATCHER, NULL); /* finds what a taken mask hid */
	return err == WEFT_OK;
}

/* Armed unchecked, some time ago: looks once more. */
static bool check_unchecked(struct weft_engine *e)
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
	return !err || weft_task_watcher_arm_again(e);
}

bool weft_task_watcher_set_timer(struct weft_engine *e, struct weft_watcher *w)
{
	weft_assert(w->timers <= WEFT_KICK_TIMER_MAX);
	if (++w->timers > WEFT_KICK_TIMER_MAX)
		return false;
	if (weft_task_kick_timer_due(&e->kick_timer, WEFT_KICK_TIMER_KICK))
		weft_task_engine_set_kick_timer(e, WEFT_KICK_TIMER_KICK);
	return true;
}

/* done, or tries again a little later */
static bool done_or_timer(struct weft_engine *e, struct weft_watcher *w, bool done)
{
	if (!done)
		return weft_task_watcher_set_timer(e, w);
	w->timers = 0;
	return true;
}

bool weft_task_watcher_check_by_timer(struct weft_engine *e, struct weft_watcher *w)
{
	weft_task_watcher_drain(e);
	return done_or_timer(e, w, check_unchecked(e));
}

bool weft_task_watcher_arm_by_timer(struct weft_engine *e, struct weft_watcher *w)
{
	weft_task_watcher_drain(e);
	return done_or_timer(e, w, weft_task_watcher_arm_again(e));
}

bool weft_task_watcher_run_work(struct weft_engine *e)
{
	weft_task_app_work_run_due();
	weft_task_watcher_drain(e);
	return true;
}

bool weft_task_watcher_disarm(struct weft_engine *e, struct weft_watcher *w)
{
	if (weft_task_baton_try_take(&e->baton)) { /* else its holder polls */
		(void)weft_task_sources_arm(e, WEFT_ARM_OFF);
		weft_task_baton_release(e, WEFT_LEAVER_TICKER, NULL);
	}
	if (w->spare)
		weft_task_watcher_drain(e);
	weft_task_watcher_redirect(e);
	return true;
}

bool weft_task_watcher_serve(struct weft_engine *e, struct weft_watcher *w)
{
	weft_task_watcher_drain(e);
	weft_task_watcher_redirect(e);
	w->timers = 0;
	return weft_task_sources_armed(e);
}

bool weft_task_watcher_serve_and_check(struct weft_engine *e, struct weft_watcher *w)
{
	(void)weft_task_watcher_serve(e, w);
	return check_unchecked(e) && weft_task_sources_armed(e);
}

bool weft_task_watcher_serve_and_arm(struct weft_engine *e, struct weft_watcher *w)
{
	(void)weft_task_watcher_serve(e, w);
	return weft_task_watcher_arm_again(e);
}

bool weft_task_watcher_go_under(struct weft_engine *e, struct weft_watcher *w)
{
	if (!weft_task_baton_try_take(&e->baton)) {
		weft_task_watcher_drain(e); /* the holder does not get a core: in its place */
		return false;
	}
	if (weft_task_baton_unheard(&e->baton) || !weft_task_sources_armed(e) ||
	    atomic_load_explicit(&e->x_some_armed, memory_order_relaxed)) {
		if (weft_task_sources_arm(e, weft_task_sources_level_to_leave(e, false))) {
			drain_holding(e);
			weft_task_baton_release(e, WEFT_LEAVER_TICKER, NULL);
			return false;
		}
	}
	/* Said before the baton is vacant: a thread that takes it and leaves then kicks us. */
	weft_task_baton_check_held(&e->baton);
	weft_task_watcher_sit(&e->baton, WEFT_WATCHER_UNDER);
	w->timers = 0;
	w->under_since_ns = weft_clock_ns();
	weft_task_baton_release(e, WEFT_LEAVER_WATCHER, NULL); /* the last look */
	(void)weft_task_poll_activity_moved(&w->polls, weft_task_watcher_rounds(e),
					    weft_clock_ns());
	return true;
}
