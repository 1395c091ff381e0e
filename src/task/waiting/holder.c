/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * holder.c - polls as holder of the baton for as long as it is worth it (patience.h), then sleeps
 * in the watch set with the baton in hand, so that an arrival costs one wake-up.
 *
 * A poller that completes another thread's operation, and not its own, gives up the baton, wakes
 * that thread and parks: on a shared core that thread can only run if it does.
 */
#include "task/waiting/app_work.h"
#include "task/waiting/holder.h"
#include "task/waiting/patience.h"
#include "task/waiting/spin.h"
#include "task/waiting/turn.h"
#include "task/wake/arm.h"
#include "task/wake/kick.h"
#include "task/wake/watcher.h"
#include "wait/note.h"

#include <sched.h>

#define YIELDS_MAX 64 /* turned away so often: some 50 us, more than a handler may take */
#define LOOKS_AGAIN 4 /* times in a wait, before it lets others have the core */
#define HOT_WAITS 4   /* waits that polling ended, before the doorbells are put away */

/* ---- leaving -----------------------------------------------------------------------------------
 */

/*
 * After a sleep the bells that rang are armed again before we go, here and now: that costs less
 * than to send the watcher ticking until it does the same.
 */
static void arm_before_leaving(struct weft_engine *e, const struct wait_call *w)
{
	if (w->slept && !weft_task_sources_armed(e) &&
	    atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) >= WEFT_WATCHER_UNDER)
		(void)weft_task_sources_arm(
			e, weft_task_sources_level_to_leave(
				   e, false)); /* WEFT_AGAIN: then the watcher is kicked */
}

/* Back to the application. */
static void leave_to_application(struct weft_engine *e, struct wait_call *w)
{
	arm_before_leaving(e, w);
	weft_task_baton_release(e, w->slept ? WEFT_LEAVER_SLEEPER : WEFT_LEAVER_WAITER, w->site);
	weft_wait_wake_batch_self = NULL;
	if (weft_unlikely(w->batch.count))
		weft_wait_wake_batch_flush(&w->batch, w->parker);
}

/*
 * We hold the baton and have completed others' operations, not our own: let them have it.
 * With the watcher off a thread must stay: true means that we still hold the baton.
 */
static bool hand_over(struct weft_engine *e, struct wait_call *w)
{
	weft_assert(weft_wait_wake_batch_self == &w->batch);
	struct weft_parked me = {.parker = w->parker};
	/* Relaxed: if it goes off just now, leave_to_application() tells us to wake one, perhaps ourselves. */
	if (atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) == WEFT_WATCHER_OFF ||
	    !weft_task_wait_call_enlist(w)) {
		weft_wait_wake_batch_flush(&w->batch, w->parker);
		return true;
	}
	weft_task_parked_add(e, &me);
	(void)weft_task_baton_park(&e->baton);
	arm_before_leaving(e, w);
	weft_task_baton_release(e, w->slept ? WEFT_LEAVER_SLEEPER : WEFT_LEAVER_WAITER, w->site);
	weft_wait_wake_batch_self = NULL;
	/* Relaxed: a hint, see give_way(). */
	atomic_store_explicit(&e->x_woken, true, memory_order_relaxed);
	if (weft_wait_wake_batch_flush(&w->batch, w->parker))
		weft_count(WEFT_CNT_BATON_HANDOVERS, 1);
	if (!weft_task_wait_call_done(w) && !weft_task_app_work_waiting() &&
	    !weft_task_wait_call_stopped(e)) {
		weft_count(WEFT_CNT_PARKS, 1);
		w->parked_once = true;
		weft_wait_note_park(w->parker, w->deadline_ns);
	}
	weft_task_parked_remove(e, &me);
	return false;
}

/* ---- sleeping ----------------------------------------------------------------------------------
 */

static uint64_t sleep_ns(struct weft_engine *e, const struct wait_call *w)
{
	uint64_t ns = weft_task_engine_nap_ns(e);
	/* Relaxed: a kicker's that came before is of a shorter nap than FOREVER, and one that comes
	 * now is kicked for. */
	atomic_store_explicit(&e->x_sleep_ns, ns, memory_order_relaxed);
	uint64_t until = weft_wait_note_until(w->parker, w->deadline_ns);
	if (until != WEFT_NEVER) {
		uint64_t now = weft_clock_ns();
		uint64_t left = until > now ? until - now : 0;
		if (left < ns)
			ns = left;
	}
	return ns;
}

/* Until the end of the wait. */
static void shorten_slice(struct wait_call *w)
{
	if (!w->slice_ns && weft_unlikely(weft_task_spin_preempted()))
		w->slice_ns = weft_task_turn_sleeps();
}

/*
 * Something is there, or a sender or poller is half done: let it have the core.  Among strangers
 * that costs their turns, too: look again first.
 */
static void not_armed(struct wait_call *w)
{
	if (!weft_task_spin_preempted() || w->turned_away++ >= LOOKS_AGAIN)
		sched_yield();
}

/*
 * Tasks wait in a queue whose mask a thread holds that has lost its core, perhaps to us.  It will
 * run them, but we are to look again: let it have the core, then look more rarely.
 */
static void turned_away(struct wait_call *w)
{
	if (++w->turned_away < YIELDS_MAX)
		sched_yield();
	else
		weft_task_wait_call_nap();
}

/* Sleeps in the watch set with the baton in hand; returns awake, holding it. */
static void sleep_armed(struct weft_engine *e, struct wait_call *w)
{
	shorten_slice(w);
	if (!weft_task_wait_call_enlist(w)) {
		weft_task_wait_call_nap();
		return;
	}
	bool fresh = weft_task_sources_level(e) != WEFT_ARM_ALL ||
		     atomic_load_explicit(&e->x_some_armed, memory_order_relaxed);
	if (fresh && weft_task_sources_arm(e, WEFT_ARM_ALL)) {
		not_armed(w);
		return;
	}
	if (!weft_wait_parker_sleep_begin(w->parker)) {
		weft_wait_parker_sleep_end(w->parker); /* notified already */
		return;
	}
	atomic_store_explicit(&e->x_sleep_ns, WEFT_FOREVER, memory_order_relaxed);
	weft_assert(weft_task_sources_level(e) == WEFT_ARM_ALL ||
		    weft_task_sources_level(e) == WEFT_ARM_OFF); /* a bell has rung since */
	weft_assert(w->enlisted && w->parker);
	atomic_store_explicit(&e->x_sleeper, w->parker, memory_order_release);
	weft_task_baton_sleep(&e->baton);
	/*
	 * The last look.  Armed since long, an arrival would have rung.  Armed just now, the source
	 * has looked for itself; this one catches what a taken mask hid.
	 */
	int found = fresh || weft_task_engine_tasks_left(e)
			    ? weft_task_engine_round(e, WEFT_ROUND_FULL)
			    : 0;
	if (!found && !w->batch.count && !weft_task_engine_tasks_left(e) &&
	    !weft_task_app_work_waiting() && !weft_task_wait_call_done(w)) {
		uint64_t t0 = weft_clock_ns();
		weft_count(WEFT_CNT_PARKS, 1);
		weft_wait_note_sleep(w->parker);
		weft_task_engine_watch(e, sleep_ns(e, w));
		w->slept = true;
		if (!w->pauses)
			weft_task_spin_slept(w->site, weft_clock_ns() - t0);
	}
	weft_task_baton_wake(&e->baton);
	weft_wait_parker_sleep_end(w->parker);
	weft_task_watcher_redirect(e);
	if (w->slept && weft_task_engine_self.expired)
		weft_wait_note_expired(w->parker);
	if (!found && weft_task_engine_tasks_left(e))
		turned_away(w);
}

/* ---- polling -----------------------------------------------------------------------------------
 */

static void disarm_if_needed(struct weft_engine *e)
{
	if (weft_unlikely(weft_task_holder_some_armed(e)))
		(void)weft_task_sources_arm(e, WEFT_ARM_OFF);
}

/*
 * A thread was handed a message and has not come back from its wait: it may be ready to run on this
 * very core, and what we poll for may depend on it.
 */
static void give_way(struct weft_engine *e)
{
	/* Relaxed, both: a hint; missed, it costs the others our spin, seen twice, a system call.
	 */
	if (weft_likely(!atomic_load_explicit(&e->x_woken, memory_order_relaxed)))
		return;
	atomic_store_explicit(&e->x_woken, false, memory_order_relaxed);
	sched_yield();
}

/* After a fruitless round.  True: go on polling. */
static bool polls_on(struct weft_engine *e, const struct wait_call *w, struct weft_patience *p,
		     unsigned round)
{
	give_way(e);
	switch (weft_task_patience_next(p, w->site, round)) {
	case WEFT_PATIENCE_OVER:
		return false;
	case WEFT_PATIENCE_WHILE:
		disarm_if_needed(e); /* no doorbells, please */
		break;
	default:
		break;
	}
	weft_task_patience_pass(p);
	return true;
}
/* Waits that ended by polling, since the last that slept; the baton holder's. */
static unsigned polled_in_a_row;

/*
 * A wait, ours or one that we hand over to, has ended.  When one after the other ends by polling
 * no thread sleeps, and the doorbells that peers still ring for us cost both sides a system call for
 * nothing.
 */
static void note_polled(struct weft_engine *e, const struct wait_call *w)
{
	if (weft_likely(!weft_task_holder_some_armed(e)))
		return;
	if (w->slept)
		polled_in_a_row = 0;
	else
		polled_in_a_row++;
	if (polled_in_a_row < HOT_WAITS)
		return;
	polled_in_a_row = 0;
	if (weft_task_spin_wanted())
		disarm_if_needed(e);
}

/* Holds the baton until the call is done, handed over, or expired; returns without it. */
void weft_task_holder_wait(struct weft_engine *e, struct wait_call *w)
{
	struct weft_patience patience = {.started = w->pauses}; /* and then it is over */
	weft_task_baton_check_held(&e->baton);
	weft_assert(!weft_task_engine_self.wait && !weft_task_engine_self.in_handler);
	weft_assert(w->ready || w->first <= w->n);
	w->slept = false;
	w->slice_ns = 0;
	if (!w->held) {
		weft_wait_wake_batch_init(&w->batch);
		weft_wait_wake_batch_self = &w->batch;
	}
	w->held = false;
	weft_task_engine_self.wait = w;
	enum weft_round_kind kind = weft_task_spin_crowded() ? WEFT_ROUND_QUICK : WEFT_ROUND_SPIN;
	unsigned rounds = 1;
	if (e->gap.since)
		weft_task_gap_back(&e->gap, weft_cycles(),
				   weft_task_engine_behind_since(e, WEFT_LEFT_AWAY),
				   weft_task_spin_cycles(WEFT_GAP_SHORT_NS));
	if (weft_task_sources_armed(e) && weft_task_sources_level(e) != WEFT_ARM_ALL &&
	    weft_task_spin_wanted())
		disarm_if_needed(e); /* as we left: no thread sleeps now */
	for (;; rounds++) { /* ends: done, handed over or expired; sleeps when nothing comes */
		int found = weft_task_holder_round(e, kind);
		w->found |= w->pauses && found;
		bool woke = w->ready && w->batch.count;
		if (woke) /* perhaps one of its own: it is ready once it has been woken */
			weft_wait_wake_batch_flush(&w->batch, w->parker);
		if (weft_task_wait_call_done(w)) {
			if (patience.started && !w->slept && !w->pauses)
				weft_task_spin_paid(w->site);
			note_polled(e, w);
			leave_to_application(e, w);
			break;
		}
		if (weft_unlikely(w->batch.count != 0 || woke)) {
			note_polled(e, w);
			if (!hand_over(e, w))
				break;
			patience.started = true; /* the watcher is off: sleep in the set at once */
			patience.budget = 0;
		}
		if (found) {
			if (weft_task_sources_armed(e) && weft_task_spin_wanted())
				disarm_if_needed(e); /* hot: polled messages need no doorbell */
			patience.started = false;
			continue;
		}
		if (weft_unlikely(w->deadline_ns != WEFT_NEVER) &&
		    (rounds & WEFT_PATIENCE_CHECK) == 0 && weft_task_wait_call_expired(w)) {
			leave_to_application(e, w);
			break;
		}
		if (polls_on(e, w, &patience, rounds))
			continue;
		if (weft_task_repeat_awaited(&e->repeat) && weft_task_spin_wanted()) {
			sched_yield(); /* a waiter's task only a poll ends */
			continue;
		}
		sleep_armed(e, w);
		if (weft_task_wait_call_stopped(e) || weft_task_wait_call_expired(w)) {
			leave_to_application(e, w);
			break;
		}
	}
	weft_assert(weft_task_engine_self.wait == w);
	weft_task_engine_self.wait = NULL;
	weft_task_turn_wakes(w->slice_ns);
	w->slice_ns = 0;
	weft_count(WEFT_CNT_POLL_EXPLICIT, rounds);
}
