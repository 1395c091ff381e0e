/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watcher.c - the thread that sees to communication while the application computes: it sleeps where
 * it is, and does what its table says about what it finds (watcher_table.h).
 *
 * While waiters poll it ticks: sleeps T, looks whether the count of rounds has moved; T grows while
 * each look finds that it has.  When waits follow each other for long and no operation was left
 * behind, a tick becomes a nap, which weft_task_engine_pending() ends.  While something is held back to
 * travel in company, it ticks fast enough to send it off.  Under the watch set an arrival wakes it
 * even when all cores compute, because it asks for a short slice (thread.c).
 */
#include "base/futex.h"
#include "base/mechanism.h"
#include "base/membarrier.h"
#include "task/wake/arm.h"
#include "task/wake/watcher_int.h"
#include "task/wake/release.h"
#include "task/thread.h"
#include "task/wake/budget.h"
#include "task/wake/kick.h"
#include "task/wake/outside.h"
#include "task/wake/relay_hand.h"
#include "task/wake/watcher.h"

#include <unistd.h>

#define TICK_MIN_NS 20000u  /* a tick costs about 4 us of a core: the shortest worth taking */
#define TICK_MAX_NS 200000u /* 2 % of a core, and the longest that a departure goes unseen */
/* But to wake costs a guest's core up to 40 us, a fifth of such ticks.  So where each look has
 * found waiters polling a tick may take a share of the time since that began: what a departure
 * loses by it is a small part of what was waited before. */
#define TICK_SHARE 16
#define TICK_LONG_NS 1000000u

#define SPEND_EVERY 8    /* ticks between looks at what we have used: that is a system call */
#define CALM_TICKS 4     /* ticks at which waiters polled and nothing had been left behind */
#define NAP_NS 10000000u /* the tick after that: waking costs a guest's core up to 30 us */

/* Sleeps on our own word while it is `seen`. */
static void word_sleep(struct weft_engine *e, uint32_t seen, uint64_t ns)
{
	weft_assert(!weft_task_engine_self.in_handler && !weft_task_engine_self.holds);
	weft_futex_wait(&e->x_watcher_word, seen,
			ns == WEFT_FOREVER ? WEFT_NEVER : weft_clock_ns() + ns);
	weft_count(WEFT_CNT_WATCHER_WAKEUPS, 1);
}

static uint32_t load_word(struct weft_engine *e)
{
	/* TELL: what the kicker wrote before is visible. */
	return atomic_load_explicit(&e->x_watcher_word, memory_order_acquire);
}

/* Before we look: kicks from now on are for the next look.  The word as it is now. */
static uint32_t note_wake_up(struct weft_engine *e)
{
	uint32_t seen = load_word(e);
	weft_task_kick_filter_woke(&e->kick_filter);
	e->word_seen = seen;
	return seen;
}

/* ---- ticking -----------------------------------------------------------------------------------
 */

/* The longest tick by now. */
static uint64_t tick_most(const struct weft_watcher *w)
{
	uint64_t share = (weft_clock_ns() - w->polled_since_ns) / TICK_SHARE;
	if (!weft_mechanism_on(WEFT_MECH_LONG_TICKS))
		return TICK_MAX_NS;
	return share < TICK_MAX_NS ? TICK_MAX_NS : share < TICK_LONG_NS ? share : TICK_LONG_NS;
}

static void tick_slower(struct weft_watcher *w)
{
	uint64_t most = tick_most(w);
	weft_assert(w->tick_ns >= TICK_MIN_NS && w->tick_ns <= TICK_LONG_NS);
	w->tick_ns = w->tick_ns * 2 > most ? most : w->tick_ns * 2;
}

/* Sends off what has been held back for long enough. */
static enum weft_task_batch_hold_state send_held_back(struct weft_engine *e, struct weft_watcher *w)
{
	enum weft_task_batch_hold_state state = weft_task_batch_hold_look(
		&e->batch_hold, weft_task_watcher_rounds(e), weft_clock_ns, tick_most(w));
	if (state == WEFT_HOLD_DUE) {
		w->polled_since_ns = weft_clock_ns();
		weft_task_watcher_drain(e);
	}
	return state;
}

/* Before a sleep that nothing but a kick ends. */
static void take_lease_back(struct weft_engine *e)
{
	while (weft_task_relay_take_back(e)) /* ends: no word came with it */
		weft_task_watcher_drain(e);
}

/* It comes from another position.  If it was worth going under, the next departure shall be seen
 * soon; if a thread polled again at once, we were too quick. */
static void begin_to_tick(struct weft_engine *e, struct weft_watcher *w)
{
	w->rounds = weft_task_watcher_rounds(e);
	if (w->under_since_ns && weft_clock_ns() - w->under_since_ns > TICK_MAX_NS)
		w->tick_ns = TICK_MIN_NS;
	else if (w->under_since_ns)
		tick_slower(w);
	w->under_since_ns = 0;
}

/* One tick; returns whether we were kicked, for more than what is held back. */
static bool sleep_one_tick(struct weft_engine *e, uint64_t ns, bool spared)
{
	uint32_t seen = e->word_seen;
	/* Relaxed: a hint for a thread that holds back, which may kick us once more than needed. */
	atomic_store_explicit(&e->batch_hold.x_tick_end_ns, weft_clock_ns() + ns,
			      memory_order_relaxed);
	bool out = weft_task_watcher_at(e) == WEFT_WATCHER_UNDER;
	weft_task_watcher_sit(&e->baton, WEFT_WATCHER_TICKS);
	/* Out of the watch set: a thread that submitted before we said so has kicked us there, and
	 * we have left.  One that submits from now on changes our word. */
	bool tasks = out && weft_task_engine_tasks_waiting(e);
	bool held = tasks && weft_task_batch_hold_some(&e->batch_hold);
	if (tasks && !held)
		weft_task_watcher_drain(e);
	if (!tasks || held || spared)
		word_sleep(e, seen, held && ns > WEFT_HOLD_NS ? WEFT_HOLD_NS : ns);
	unsigned hold = weft_task_batch_hold_kicks(&e->batch_hold);
	return note_wake_up(e) - seen > hold;
}

/* The same, and no submitter need ring us meanwhile. */
static bool tick_spared(struct weft_engine *e, struct weft_watcher *w)
{
	/* Relaxed, both: a hint; a submitter that does not ring has seen that we tick, and we look
	 * when that ends. */
	atomic_store_explicit(&e->kick_filter.x_spared, true, memory_order_relaxed);
	bool kicked = sleep_one_tick(e, TICK_MIN_NS, true);
	atomic_store_explicit(&e->kick_filter.x_spared, false, memory_order_relaxed);
	w->spare = false;
	return kicked;
}

static bool nap_on_word(struct weft_engine *e, struct weft_watcher *w)
{
	take_lease_back(e);
	atomic_store_explicit(&e->kick_filter.x_napping, true, memory_order_relaxed);
	bool pending = (atomic_load_explicit(&e->x_pending, memory_order_relaxed) &
			WEFT_LEFT_WATCHER) != 0;
	/* Even then the tick is said: from here on the watcher counts as one that ticks. */
	uint64_t ns = pending ? 0 : e->timer_ns < NAP_NS ? e->timer_ns : NAP_NS;
	bool kicked = sleep_one_tick(e, ns, false) || pending;
	atomic_store_explicit(&e->kick_filter.x_napping, false, memory_order_relaxed);
	if (kicked)
		w->tick_ns = TICK_MIN_NS;
	return kicked;
}

/* A tick of the right length; true: kicked. */
static bool tick_or_nap(struct weft_engine *e, struct weft_watcher *w)
{
	uint64_t ns = w->shortly ? TICK_MIN_NS : w->tick_ns;
	bool shortly = w->shortly;
	w->shortly = false;
	/* Relaxed: what we miss is seen a tick later. */
	if (w->hold || weft_task_batch_hold_some(&e->batch_hold)) {
		uint64_t max = weft_task_engine_tasks_waiting(e)
				       ? WEFT_HOLD_NS
				       : weft_task_batch_hold_max_ns(&e->batch_hold);
		return sleep_one_tick(e, ns > max ? max : ns, false);
	}
	if (shortly || w->calm < CALM_TICKS)
		return w->spare ? tick_spared(e, w) : sleep_one_tick(e, ns, false);
	return nap_on_word(e, w);
}

static enum weft_watcher_finds sleep_ticking(struct weft_engine *e, struct weft_watcher *w)
{
	if (weft_task_watcher_at(e) != WEFT_WATCHER_TICKS)
		begin_to_tick(e, w);
	if (w->turns++ % SPEND_EVERY == 0) /* kicks meanwhile have changed our word */
		(void)weft_task_budget_pause();
	struct weft_watcher_view v = {.kicked = tick_or_nap(e, w)};
	v.pending = weft_task_engine_behind_since(e, WEFT_LEFT_WATCHER);
	bool still = v.kicked || weft_task_watcher_rounds(e) == w->rounds;
	w->calm = still || v.pending ? 0 : w->calm + 1;
	if (still)
		w->polled_since_ns = weft_clock_ns();
	/* CALL <- CALL (weft_task_watcher_call), below. */
	atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
	v.wanted = weft_task_watcher_wanted(e);
	if (!v.wanted)
		return weft_task_watcher_finds_ticking(&v);
	if (v.kicked)
		(void)weft_task_watcher_spare(e, w);
	else
		(void)weft_task_poll_activity_moved(&w->polls, weft_task_watcher_rounds(e),
						    weft_clock_ns());
	if (weft_task_relay_check(e) || v.kicked)
		weft_task_watcher_drain(e);
	w->hold = send_held_back(e, w) != WEFT_HOLD_NOTHING;
	/* Not due yet, or there again: to go under would be to look at it. */
	v.held_back = w->hold && !v.kicked && weft_task_batch_hold_some(&e->batch_hold);
	v.spared = w->spare;
	v.state = (enum weft_baton_state)atomic_load_explicit(&e->baton.x_state,
							      memory_order_seq_cst);
	v.moved = weft_task_watcher_rounds(e) != w->rounds;
	w->rounds = weft_task_watcher_rounds(e);
	return weft_task_watcher_finds_ticking(&v);
}

/* Pollers may not look where a task was submitted: see the submitters that do not ring. */
static bool tick_longer(struct weft_engine *e, struct weft_watcher *w)
{
	tick_slower(w);
	if (weft_task_engine_tasks_waiting(e))
		weft_task_watcher_drain(e);
	return true;
}

/* A thread has just gone to compute, perhaps. */
static bool tick_shorter(struct weft_engine *e, struct weft_watcher *w)
{
	w->shortly = true;
	return tick_longer(e, w);
}

static bool go_under(struct weft_engine *e, struct weft_watcher *w)
{
	if (weft_task_watcher_go_under(e, w))
		return true;
	tick_slower(w);
	return false;
}

/* ---- beside a sleeping holder, and off ---------------------------------------------------------
 */

static bool sit_beside(struct weft_engine *e)
{
	weft_assert(weft_task_watcher_at(e) == WEFT_WATCHER_TICKS);
	take_lease_back(e);
	return weft_task_watcher_sit_beside(&e->baton);
}

static enum weft_watcher_finds sleep_beside(struct weft_engine *e)
{
	uint32_t seen = e->word_seen;
	while (load_word(e) ==
	       seen) /* ends: kicked by the leaving holder, a switch or a submission */
		word_sleep(e, seen, WEFT_FOREVER);
	(void)note_wake_up(e);
	return weft_task_watcher_wanted(e) ? WEFT_WATCHER_KICKED : WEFT_WATCHER_UNWANTED;
}

static bool go_off(struct weft_engine *e, struct weft_watcher *w)
{
	w->off_seen = load_word(e);
	take_lease_back(e);
	weft_task_watcher_sit(&e->baton, WEFT_WATCHER_OFF);
	/* A thread that left just now without seeing us off has made the baton vacant: see leave().
	 */
	if (!e->baton.fence)
		weft_membarrier_private();
	if (weft_task_baton_try_take(&e->baton)) {
		if (weft_task_sources_armed(e))
			(void)weft_task_sources_arm(e, WEFT_ARM_OFF);
		weft_task_baton_release(e, WEFT_LEAVER_POLLER, NULL);
	}
	if (weft_task_batch_hold_over(&e->batch_hold))
		weft_task_watcher_drain(e);
	/* CALL <- CALL (weft_task_watcher_call): we have looked up; what is called from here on is
	 * for our next look at weft_task_watcher_wanted(). */
	atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
	/* An event loop of others that armed while we still watched must do so by itself now. */
	weft_task_outside_ring(e);
	return true;
}

static enum weft_watcher_finds sleep_off(struct weft_engine *e, struct weft_watcher *w)
{
	/* STOP: as in wanted; the stopper changes our word after it. */
	if (!weft_task_watcher_wanted(e) && !atomic_load_explicit(&e->x_stop, memory_order_seq_cst))
		word_sleep(e, w->off_seen, WEFT_FOREVER);
	return weft_task_watcher_wanted(e) ? WEFT_WATCHER_WANTED : WEFT_WATCHER_UNWANTED;
}

/* ---- the thread --------------------------------------------------------------------------------
 */

static enum weft_watcher_finds sleep_at(struct weft_engine *e, struct weft_watcher *w,
					enum weft_watcher_pos at)
{
	switch (at) {
	case WEFT_WATCHER_TICKS:
		return sleep_ticking(e, w);
	case WEFT_WATCHER_UNDER:
		return weft_task_watcher_sleep_under(e, w);
	case WEFT_WATCHER_BESIDE:
		return sleep_beside(e);
	default:
		return sleep_off(e, w);
	}
}

/* False: it was not possible. */
static bool act_on(struct weft_engine *e, struct weft_watcher *w, enum weft_watcher_does what)
{
	switch (what) {
	case WEFT_WATCHER_GOES_OFF:
		return go_off(e, w);
	case WEFT_WATCHER_SITS_BESIDE:
		return sit_beside(e);
	case WEFT_WATCHER_TICKS_LONGER:
		return tick_longer(e, w);
	case WEFT_WATCHER_TICKS_SHORTER:
		return tick_shorter(e, w);
	case WEFT_WATCHER_GOES_UNDER:
		return go_under(e, w);
	case WEFT_WATCHER_ARMS_AGAIN:
		return weft_task_watcher_arm_again(e);
	case WEFT_WATCHER_RUNS_WORK:
		return weft_task_watcher_run_work(e);
	case WEFT_WATCHER_LOOKS_AND_SETS_TIMER:
		weft_task_watcher_drain(e);
		return weft_task_watcher_set_timer(e, w);
	case WEFT_WATCHER_SETS_TIMER:
		return weft_task_watcher_set_timer(e, w);
	case WEFT_WATCHER_LOOKS_AND_CHECKS:
		return weft_task_watcher_check_by_timer(e, w);
	case WEFT_WATCHER_LOOKS_AND_ARMS:
		return weft_task_watcher_arm_by_timer(e, w);
	case WEFT_WATCHER_DISARMS:
		return weft_task_watcher_disarm(e, w);
	case WEFT_WATCHER_SERVES:
		return weft_task_watcher_serve(e, w);
	case WEFT_WATCHER_SERVES_AND_CHECKS:
		return weft_task_watcher_serve_and_check(e, w);
	case WEFT_WATCHER_SERVES_AND_ARMS:
		return weft_task_watcher_serve_and_arm(e, w);
	default:
		return true;
	}
}

static void *run_watcher(void *arg)
{
	struct weft_engine *e = arg;
	struct weft_watcher w = {.tick_ns = TICK_MIN_NS,
				 .rounds = weft_task_watcher_rounds(e),
				 .polled_since_ns = weft_clock_ns()};
	e->slice_honoured = weft_task_engine_thread_settle("weft-watcher");
	w.off_seen = note_wake_up(e);
	weft_task_engine_self.runner = WEFT_RUNNER_WATCHER;
	enum weft_watcher_pos at = WEFT_WATCHER_OFF;
	while (!atomic_load_explicit(&e->x_stop, memory_order_seq_cst)) { /* ends: stop */
		enum weft_watcher_finds finds = sleep_at(e, &w, at);
		const struct weft_watcher_row *row =
			weft_task_watcher_row(weft_watcher_table, at, finds);
		at = act_on(e, &w, row->does) ? row->then : row->otherwise;
		/* TICKS is said when the tick begins. */
		weft_assert(at == WEFT_WATCHER_TICKS || at == weft_task_watcher_at(e));
	}
	weft_task_watcher_sit(&e->baton, WEFT_WATCHER_OFF);
	return NULL;
}

weft_err weft_task_watcher_start(struct weft_engine *e)
{
	weft_assert(!e->have_watcher && e->watch_fd >= 0);
	weft_err err = weft_task_engine_thread(&e->watcher, run_watcher, e);
	e->have_watcher = err == WEFT_OK;
	return err;
}

void weft_task_watcher_stop(struct weft_engine *e)
{
	if (!e->have_watcher)
		return;
	/* STOP -> wanted.  seq_cst: comes before the kick, which the watcher's last look follows.
	 */
	atomic_store_explicit(&e->x_stop, true, memory_order_seq_cst);
	weft_task_watcher_call(e);
	pthread_join(e->watcher, NULL);
	e->have_watcher = false;
}
