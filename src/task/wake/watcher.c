/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watcher.c - the thread that sees to communication while the application computes.
 *
 * While waiters poll it ticks: sleeps T, looks whether the round counter moved; T grows while each
 * look finds that it did.  When it has not,
 * nobody polls: it arms every source, looks once more, and sleeps in the watch set (watcher_armed.c)
 * without a timeout. An arrival wakes it even when all cores compute, because it asks for a short
 * slice. When waits follow each other for long and no operation was left behind, a tick becomes a
 * nap; whoever leaves one behind ends it (weft_task_engine_pending). While something is held back to
 * travel in company, it ticks fast enough to send it off. Where it is, and who must kick it, is in
 * baton.h.
 */
#include "base/log.h"
#include "task/wake/watcher_int.h"
#include "task/wake/release.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
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
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};
	(void)syscall(SYS_futex, &e->x_watcher_word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, seen,
		      ns == WEFT_FOREVER ? NULL : &ts, NULL, 0);
	weft_count(WEFT_CNT_WATCHER_WAKEUPS, 1);
}

static uint32_t word(struct weft_engine *e)
{
	/* TELL: what the kicker wrote before is visible. */
	return atomic_load_explicit(&e->x_watcher_word, memory_order_acquire);
}

/* Before we look: kicks from now on are for the next look.  The word as it is now. */
static uint32_t woke(struct weft_engine *e)
{
	uint32_t seen = word(e);
	weft_task_kick_pending_woke(&e->kick_pending);
	e->word_seen = seen;
	return seen;
}

void weft_task_watcher_drain(struct weft_engine *e)
{
	unsigned rounds = 0;
	uint64_t begun = weft_cycles();
	weft_task_engine_self.drains = true;
	do {
		rounds++;
		weft_task_engine_self.submitted = false;
		if (weft_cycles() - begun > 1000 * weft_cycles_per_us()) {
			(void)weft_task_budget_pause();
			begun = weft_cycles();
		}
	} while ((weft_task_engine_round(e, WEFT_ROUND_FULL) || weft_task_engine_self.submitted) &&
		 weft_task_watcher_wanted(e));
	weft_task_engine_self.drains = false;
	weft_count(WEFT_CNT_POLL_WATCHER, rounds);
	/* Relaxed: seen late, it is woken a look later. */
	uint64_t wish = atomic_load_explicit(&e->x_wish_ns, memory_order_relaxed);
	if (weft_unlikely(wish != 0)) {
		atomic_store_explicit(&e->x_wish_ns, 0, memory_order_relaxed);
		weft_task_idle_stay(wish);
	}
	if (rounds > 1 || wish)
		weft_task_idle_event();
}

/* The longest tick by now. */
static uint64_t tick_most(const struct weft_ticks *t)
{
	uint64_t share = (weft_clock_ns() - t->polled_since_ns) / TICK_SHARE;
	return share < TICK_MAX_NS ? TICK_MAX_NS : share < TICK_LONG_NS ? share : TICK_LONG_NS;
}

/* Sends off what has been held back for long enough. */
static enum weft_task_batch_hold_state unhold(struct weft_engine *e, struct weft_ticks *t)
{
	enum weft_task_batch_hold_state state = weft_task_batch_hold_look(
		&e->batch_hold, weft_task_watcher_rounds(e), weft_clock_ns, tick_most(t));
	if (state == WEFT_HOLD_DUE) {
		t->polled_since_ns = weft_clock_ns();
		weft_task_watcher_drain(e);
	}
	return state;
}

/* Before a sleep that nothing but a kick ends. */
static void no_lease(struct weft_engine *e)
{
	while (weft_task_relay_take_back(e)) /* ends: no word came with it */
		weft_task_watcher_drain(e);
}

static void off(struct weft_engine *e)
{
	uint32_t seen = word(e);
	no_lease(e);
	weft_task_watcher_sit(&e->baton, WEFT_WATCHER_OFF);
	/* Whoever left just now without seeing us off has made the baton vacant: see leave(). */
	if (!e->baton.fence)
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	if (weft_task_baton_try_take(&e->baton)) {
		if (weft_task_sources_armed(e))
			(void)weft_task_sources_arm(e, WEFT_ARM_OFF);
		weft_task_baton_release(e, WEFT_LEAVER_POLLER, NULL);
	}
	if (weft_task_batch_hold_over(&e->batch_hold))
		weft_task_watcher_drain(e);
	/* CALL <- CALL (weft_task_watcher_call): we have looked up; what is called from here on is for
	 * our next look at weft_task_watcher_wanted(), below. */
	atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
	/* An event loop of others that armed while we still watched must do so by itself now. */
	weft_task_outside_ring(e);
	if (!weft_task_watcher_wanted(e) && !atomic_load_explicit(&e->x_stop, memory_order_seq_cst))
		word_sleep(e, seen, WEFT_FOREVER);
}

/* One tick; returns whether we were kicked, for more than what is held back. */
static bool tick(struct weft_engine *e, uint64_t ns, bool spared)
{
	uint32_t seen = e->word_seen;
	/* Relaxed: a hint for hold(), which may kick us once more than needed. */
	atomic_store_explicit(&e->batch_hold.x_tick_end_ns, weft_clock_ns() + ns,
			      memory_order_relaxed);
	/* Relaxed: ours. */
	bool out = atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) ==
		   WEFT_WATCHER_UNDER;
	weft_task_watcher_sit(&e->baton, WEFT_WATCHER_TICKS);
	/* Out of the watch set: who submitted before we said so has kicked us there, and we have
	 * left.  Who comes now changes our word. */
	bool tasks = out && weft_task_engine_tasks_waiting(e);
	bool held = tasks && weft_task_batch_hold_some(&e->batch_hold);
	if (tasks && !held)
		weft_task_watcher_drain(e);
	if (!tasks || held || spared)
		word_sleep(e, seen, held && ns > WEFT_HOLD_NS ? WEFT_HOLD_NS : ns);
	unsigned hold = weft_task_batch_hold_kicks(&e->batch_hold);
	return woke(e) - seen > hold;
}

/* The same, and nobody need ring us meanwhile. */
static bool tick_spared(struct weft_engine *e, struct weft_ticks *t)
{
	/* Relaxed, both: a hint; who does not ring has seen that we tick, and we look when that
	 * ends. */
	atomic_store_explicit(&e->kick_pending.x_spared, true, memory_order_relaxed);
	bool kicked = tick(e, TICK_MIN_NS, true);
	atomic_store_explicit(&e->kick_pending.x_spared, false, memory_order_relaxed);
	t->spare = false;
	return kicked;
}

static void slower(struct weft_ticks *t)
{
	uint64_t most = tick_most(t);
	t->ns = t->ns * 2 > most ? most : t->ns * 2;
}

/*
 * With the baton in hand: goes under.  If that was worth it the next departure shall be seen soon;
 * if somebody polled again at once, we were too quick.
 */
static void lie_under(struct weft_engine *e, struct weft_ticks *t)
{
	uint64_t begun = weft_clock_ns();
	if (!weft_task_watcher_go_under(e, t))
		return;
	if (weft_clock_ns() - begun > TICK_MAX_NS)
		t->ns = TICK_MIN_NS;
	else
		slower(t);
}

/* The holder sleeps in the watch set; so do we, on our word.  True: moved because he leaves. */
static bool sit_beside(struct weft_engine *e)
{
	uint32_t seen = e->word_seen;
	no_lease(e);
	if (!weft_task_watcher_sit_beside(&e->baton))
		return false;
	while (word(e) == seen) /* ends: kicked by the leaving holder, a switch or a submission */
		word_sleep(e, seen, WEFT_FOREVER);
	(void)woke(e);
	return true;
}

/* A tick of the right length; true: kicked. */
static bool tick_or_nap(struct weft_engine *e, struct weft_ticks *t)
{
	/* Relaxed: what we miss is seen a tick later. */
	if (t->hold || weft_task_batch_hold_some(&e->batch_hold)) {
		uint64_t max = weft_task_engine_tasks_waiting(e)
				       ? WEFT_HOLD_NS
				       : weft_task_batch_hold_max_ns(&e->batch_hold);
		return tick(e, t->ns > max ? max : t->ns, false);
	}
	if (t->calm < CALM_TICKS)
		return t->spare ? tick_spared(e, t) : tick(e, t->ns, false);
	no_lease(e);
	atomic_store_explicit(&e->kick_pending.x_napping, true, memory_order_relaxed);
	bool kicked = (atomic_load_explicit(&e->x_pending, memory_order_relaxed) &
		       WEFT_LEFT_WATCHER) != 0 ||
		      tick(e, e->timer_ns < NAP_NS ? e->timer_ns : NAP_NS, false);
	atomic_store_explicit(&e->kick_pending.x_napping, false, memory_order_relaxed);
	if (kicked)
		t->ns = TICK_MIN_NS;
	return kicked;
}

static void watch(struct weft_engine *e, struct weft_ticks *t)
{
	/* Kicks meanwhile have changed our word. */
	if (t->turns++ % SPEND_EVERY == 0)
		(void)weft_task_budget_pause();
	bool kicked = tick_or_nap(e, t);
	bool pending = weft_task_engine_behind_since(e, WEFT_LEFT_WATCHER);
	bool still = kicked || weft_task_watcher_rounds(e) == t->rounds;
	t->calm = still || pending ? 0 : t->calm + 1;
	if (still)
		t->polled_since_ns = weft_clock_ns();
	/* CALL <- CALL (weft_task_watcher_call), below. */
	atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
	if (!weft_task_watcher_wanted(e))
		return;
	if (kicked)
		(void)weft_task_watcher_spare(e, t);
	else
		(void)weft_task_poll_activity_moved(&t->polls, weft_task_watcher_rounds(e),
						    weft_clock_ns());
	if (weft_task_relay_check(e) || kicked)
		weft_task_watcher_drain(e);
	enum weft_task_batch_hold_state held = unhold(e, t);
	t->hold = held != WEFT_HOLD_NOTHING;
	/* Not due yet, or there again: to go under would be to look at it. */
	if (t->hold && !kicked && weft_task_batch_hold_some(&e->batch_hold)) {
		t->rounds = weft_task_watcher_rounds(e);
		return;
	}
	uint32_t state = atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst);
	uint32_t rounds = weft_task_watcher_rounds(e);
	if (state == WEFT_BATON_ASLEEP && sit_beside(e)) {
		if (!weft_task_watcher_wanted(e))
			return;
		weft_task_watcher_drain(e);
		/* He has gone and left all armed: straight under it. */
		if (weft_task_baton_try_take(&e->baton))
			lie_under(e, t);
	} else if (rounds != t->rounds) {
		slower(t);
		/* Who polls may not look there: see who does not ring, in task.c. */
		if (weft_task_engine_tasks_waiting(e))
			weft_task_watcher_drain(e);
		/* Nobody waits at this moment: perhaps somebody has just gone to compute. */
		if (state == WEFT_BATON_VACANT && pending && !kicked) {
			t->rounds = rounds;
			tick(e, TICK_MIN_NS, false);
			if (weft_task_watcher_rounds(e) == rounds && weft_task_watcher_wanted(e) &&
			    weft_task_baton_try_take(&e->baton))
				lie_under(e, t);
		}
	} else if (t->spare) {
		; /* they get their core now */
	} else if (weft_task_baton_try_take(&e->baton)) {
		lie_under(e, t);
	} else {
		weft_task_watcher_drain(e); /* the holder does not get a core: poll in its place */
		slower(t);
	}
	t->rounds = weft_task_watcher_rounds(e);
}

static void *run(void *arg)
{
	struct weft_engine *e = arg;
	struct weft_ticks t = {.ns = TICK_MIN_NS,
			       .rounds = weft_task_watcher_rounds(e),
			       .polled_since_ns = weft_clock_ns()};
	e->slice_honoured = weft_task_engine_thread_settle("weft-watcher");
	(void)woke(e);
	weft_task_engine_self.runner = WEFT_RUNNER_WATCHER;
	while (!atomic_load_explicit(&e->x_stop, memory_order_seq_cst)) { /* ends: stop */
		if (weft_task_watcher_wanted(e))
			watch(e, &t);
		else
			off(e);
	}
	weft_task_watcher_sit(&e->baton, WEFT_WATCHER_OFF);
	return NULL;
}

weft_err weft_task_watcher_start(struct weft_engine *e)
{
	weft_err err = weft_task_engine_thread(&e->watcher, run, e);
	e->have_watcher = err == WEFT_OK;
	return err;
}

void weft_task_watcher_call(struct weft_engine *e)
{
	/* CALL -> redirect.  seq_cst: set before the kick, so whoever the kick wakes sees it. */
	atomic_store_explicit(&e->x_call_watcher, true, memory_order_seq_cst);
	weft_task_engine_kick(e, WEFT_KICK_WATCHER);
	weft_task_engine_kick(e, WEFT_KICK_SET);
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
