/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watcher.c - the thread that sees to communication while the application computes.
 *
 * While waiters poll it ticks: sleeps T, looks whether the round counter moved; T grows while each
 * look finds that it did.  When it has not,
 * nobody polls: it arms every source, looks once more, and sleeps in the watch set without a
 * timeout. An arrival wakes it even when all cores compute, because it asks for a short slice.
 * When waits follow each other for long and no operation was left behind, a tick becomes a nap;
 * whoever leaves one behind ends it (weft_engine_pending).
 * While something is held back to travel in company, it ticks fast enough to send it off.
 * Where it is, and who must kick it, is in baton.h.
 */
#include "base/log.h"
#include "task/engine_int.h"

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
	weft_told_woke(&e->told);
	e->word_seen = seen;
	return seen;
}

static bool wanted(struct weft_engine *e)
{
	/* WANTED <- STOP, and <- the switch.  seq_cst: comes after the watcher has said where it
	 * is; either it sees the change or is kicked out of its sleep. */
	return atomic_load_explicit(&e->x_progress, memory_order_seq_cst) &&
	       !atomic_load_explicit(&e->x_stop, memory_order_seq_cst);
}

/* Polls until a round finds nothing; what goes on for ever does so within the budget. */
static void drain(struct weft_engine *e)
{
	unsigned rounds = 0;
	uint64_t begun = weft_cycles();
	struct weft_engine_self *self = &weft_engine_self;
	self->drains = true;
	do {
		rounds++;
		self->submitted = false;
		if (weft_cycles() - begun > 1000 * weft_cycles_per_us()) {
			(void)weft_budget_pause();
			begun = weft_cycles();
		}
	} while ((weft_engine_round(e, WEFT_ROUND_FULL) || self->submitted) && wanted(e));
	self->drains = false;
	weft_count(WEFT_CNT_POLL_WATCHER, rounds);
	/* Relaxed: seen late, it is woken a look later. */
	uint64_t wish = atomic_load_explicit(&e->x_wish_ns, memory_order_relaxed);
	if (weft_unlikely(wish != 0)) {
		atomic_store_explicit(&e->x_wish_ns, 0, memory_order_relaxed);
		weft_idle_stay(wish);
	}
	if (rounds > 1 || wish)
		weft_idle_event();
}

/* The same with the baton in hand: nobody else waits then. */
static void drain_holding(struct weft_engine *e)
{
	weft_engine_self.holds = true;
	drain(e);
	weft_engine_self.holds = false;
}

void weft_watcher_redirect(struct weft_engine *e)
{
	/* Acquire: a parker that was named by its sleeper. */
	struct weft_parker *p = atomic_load_explicit(&e->x_sleeper, memory_order_acquire);
	bool other = atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) ==
			     WEFT_BATON_ASLEEP &&
		     (!weft_sources_armed(e) || (p && weft_parker_notified(p)));
	bool watcher = atomic_load_explicit(&e->x_call_watcher, memory_order_seq_cst) &&
		       atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) ==
			       WEFT_WATCHER_UNDER;
	if (weft_unlikely(other || watcher))
		weft_engine_kick(e, WEFT_KICK_SET);
}

static uint32_t rounds_now(struct weft_engine *e)
{
	return atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
}

struct ticks {
	uint64_t ns;     /* T */
	uint32_t rounds; /* of the waiters, when we last looked */
	bool hold;       /* something is held back now and then */
	unsigned turns;
	unsigned calm; /* ticks in a row that found waiters polling and nothing left behind */
	struct weft_polls polls;
	bool spare;               /* nobody need ring during the next tick */
	uint64_t polled_since_ns; /* each look since then has found that waiters polled */
	unsigned deferred;        /* kicks in a row that the timer gave too early */
};

/* After a kick.  True: nobody need ring during the next tick, others poll. */
static bool spare(struct weft_engine *e, struct ticks *t)
{
	t->spare = weft_polls_kicked(&t->polls, rounds_now(e), weft_clock_ns());
	return t->spare;
}

/*
 * We lie in wait, and a burst begins, or somebody submits tasks while others poll anyway: tick, so
 * that the next ones need not ring.  False: none.
 */
static bool hold_begins(struct weft_engine *e, bool polled)
{
	if (!polled && !weft_hold_some(&e->hold))
		return false;
	if (weft_baton_try_take(&e->baton)) { /* else its holder polls */
		weft_sources_disarm(e);
		weft_engine_kick(e, weft_baton_leave(&e->baton));
	}
	return true;
}

/* The longest tick by now. */
static uint64_t tick_most(const struct ticks *t)
{
	uint64_t share = (weft_clock_ns() - t->polled_since_ns) / TICK_SHARE;
	return share < TICK_MAX_NS ? TICK_MAX_NS : share < TICK_LONG_NS ? share : TICK_LONG_NS;
}

/* Sends off what has been held back for long enough. */
static enum weft_hold_state unhold(struct weft_engine *e, struct ticks *t)
{
	enum weft_hold_state state =
		weft_hold_look(&e->hold, rounds_now(e), weft_clock_ns, tick_most(t));
	if (state == WEFT_HOLD_DUE) {
		t->polled_since_ns = weft_clock_ns();
		drain(e);
	}
	return state;
}

/* Armed quietly, and somebody waits. */
static bool unheard(struct weft_engine *e)
{
	/* Relaxed, both: the holder's, or set before the kick that has woken us. */
	return weft_sources_armed(e) &&
	       atomic_load_explicit(&e->baton.x_quiet, memory_order_relaxed) &&
	       weft_baton_heard(&e->baton);
}

/* A bell rang, or too few would, and nobody holds the baton: arm it again.  False: somebody else
 * will. */
static bool arm_again(struct weft_engine *e)
{
	if (!weft_baton_try_take(&e->baton))
		return false;
	weft_err err;
	while ((err = weft_sources_arm_left(e)) != WEFT_OK &&
	       wanted(e)) /* ends: nothing comes now */
		drain_holding(e);
	weft_engine_kick(e, weft_baton_leave(&e->baton));
	drain(e); /* what a taken mask hid */
	return err == WEFT_OK;
}

/* Somebody has armed quietly, some time ago.  False: he polls again. */
static bool settle(struct weft_engine *e)
{
	if (!weft_sources_unsettled(e))
		return true;
	if (!weft_baton_try_take(&e->baton))
		return false;
	weft_err err = weft_sources_unsettled(e) ? weft_sources_settle(e) : WEFT_OK;
	weft_engine_kick(e, weft_baton_leave(&e->baton));
	if (err)
		drain(e);
	return !err || arm_again(e);
}

/* Does somebody poll? */
static bool held(struct weft_engine *e)
{
	/* Seq_cst: after weft_defer_fired(); who leaves from now on defers anew. */
	return atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) == WEFT_BATON_HELD;
}

/* We look again a little later.  False: that was so too often. */
static bool later(struct weft_engine *e, struct ticks *t)
{
	if (++t->deferred > WEFT_DEFER_MAX)
		return false;
	if (weft_defer_due(&e->defer))
		weft_engine_defer(e, WEFT_DEFER_NS);
	return true;
}

/*
 * The timer of deferred kicks has woken us in the watch set: arms if nobody came back to wait since
 * it was set.  False: they come and go; tick instead.
 */
static bool deferred(struct weft_engine *e, struct ticks *t)
{
	if (held(e))
		return later(e, t);
	drain(e);
	/* Relaxed: a hint. */
	if (!weft_sources_armed(e) &&
	    rounds_now(e) != atomic_load_explicit(&e->defer.x_rounds, memory_order_relaxed))
		return later(e, t);
	bool armed = weft_sources_armed(e);
	if (armed ? !settle(e) : !arm_again(e))
		return later(e, t);
	t->deferred = 0;
	return true;
}

/*
 * In the watch set, below whoever sleeps there with the baton; returns when it must tick.
 * A ring is for us when the holder, if any, is awake; else he is kicked: he arms again.
 */
static void stay_under(struct weft_engine *e, struct ticks *t)
{
	while (wanted(e)) { /* ends: switched off, or somebody disarmed to poll by himself */
		uint64_t nap = weft_engine_nap_ns(e), lease = weft_relay_nap_ns();
		uint64_t ns = lease < nap ? lease : nap;
		if (ns > WEFT_SETTLE_NS && weft_sources_unsettled(e))
			ns = WEFT_SETTLE_NS;
		bool rang = weft_engine_watch(e, ns);
		weft_count(WEFT_CNT_WATCHER_WAKEUPS, 1);
		if (nap != WEFT_FOREVER && !rang)
			weft_count(WEFT_CNT_POLL_TIMER, 1);
		atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
		if (weft_engine_self.deferred && !weft_hold_some(&e->hold) && deferred(e, t))
			continue;
		/* Its holder polls, and has most likely seen it. */
		if (rang && held(e) && !weft_hold_some(&e->hold) && later(e, t))
			continue;
		bool polled = !rang && spare(e, t);
		bool hold = hold_begins(e, polled);
		if (weft_relay_check(e) || !hold || polled)
			drain(e);
		weft_watcher_redirect(e);
		if (weft_engine_self.expired && !settle(e))
			break;
		if (hold || (rang || unheard(e) ? !arm_again(e) : !weft_sources_armed(e)))
			break;
		t->deferred = 0;
	}
}

/* With the baton in hand: all is armed, or gets armed.  Gives the baton back; true: went under. */
static bool go_under(struct weft_engine *e, struct ticks *t)
{
	if (unheard(e) || !weft_sources_armed(e) ||
	    atomic_load_explicit(&e->x_disarm_left, memory_order_relaxed)) {
		if (weft_sources_arm_left(e)) {
			drain_holding(e);
			weft_engine_kick(e, weft_baton_leave(&e->baton));
			return false;
		}
	}
	weft_watcher_sit(&e->baton, WEFT_WATCHER_UNDER);
	weft_engine_kick(e, weft_baton_leave(&e->baton));
	t->deferred = 0;
	drain(e); /* the last look, after saying where we are */
	(void)weft_polls_moved(&t->polls, rounds_now(e), weft_clock_ns());
	stay_under(e, t);
	return true;
}

/* Before a sleep that nothing but a kick ends. */
static void no_lease(struct weft_engine *e)
{
	while (weft_relay_take_back(e)) /* ends: no word came with it */
		drain(e);
}

static void off(struct weft_engine *e)
{
	uint32_t seen = word(e);
	no_lease(e);
	weft_watcher_sit(&e->baton, WEFT_WATCHER_OFF);
	/* Whoever left just now without seeing us off has made the baton vacant: see leave(). */
	if (!e->baton.fence)
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	if (weft_baton_try_take(&e->baton)) {
		if (weft_sources_armed(e))
			weft_sources_disarm(e);
		weft_engine_kick(e, weft_baton_leave(&e->baton));
	}
	if (weft_hold_over(&e->hold))
		drain(e);
	/* CALL <- CALL (weft_watcher_call): we have looked up; what is called from here on is for
	 * our next look at wanted(), below. */
	atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
	/* An event loop of others that armed while we still watched must do so by itself now. */
	weft_outside_ring(e);
	if (!wanted(e) && !atomic_load_explicit(&e->x_stop, memory_order_seq_cst))
		word_sleep(e, seen, WEFT_FOREVER);
}

/* One tick; returns whether we were kicked, for more than what is held back. */
static bool tick(struct weft_engine *e, uint64_t ns, bool spared)
{
	uint32_t seen = e->word_seen;
	/* Relaxed: a hint for hold(), which may kick us once more than needed. */
	atomic_store_explicit(&e->hold.x_tick_end_ns, weft_clock_ns() + ns, memory_order_relaxed);
	/* Relaxed: ours. */
	bool out = atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) ==
		   WEFT_WATCHER_UNDER;
	weft_watcher_sit(&e->baton, WEFT_WATCHER_TICKS);
	/* Out of the watch set: who submitted before we said so has kicked us there, and we have
	 * left.  Who comes now changes our word. */
	bool tasks = out && weft_engine_tasks_waiting(e);
	bool held = tasks && weft_hold_some(&e->hold);
	if (tasks && !held)
		drain(e);
	if (!tasks || held || spared)
		word_sleep(e, seen, held && ns > WEFT_HOLD_NS ? WEFT_HOLD_NS : ns);
	unsigned hold = weft_hold_kicks(&e->hold);
	return woke(e) - seen > hold;
}

/* The same, and nobody need ring us meanwhile. */
static bool tick_spared(struct weft_engine *e, struct ticks *t)
{
	/* Relaxed, both: a hint; who does not ring has seen that we tick, and we look when that
	 * ends. */
	atomic_store_explicit(&e->told.x_spared, true, memory_order_relaxed);
	bool kicked = tick(e, TICK_MIN_NS, true);
	atomic_store_explicit(&e->told.x_spared, false, memory_order_relaxed);
	t->spare = false;
	return kicked;
}

static void slower(struct ticks *t)
{
	uint64_t most = tick_most(t);
	t->ns = t->ns * 2 > most ? most : t->ns * 2;
}

/*
 * With the baton in hand: goes under.  If that was worth it the next departure shall be seen soon;
 * if somebody polled again at once, we were too quick.
 */
static void lie_under(struct weft_engine *e, struct ticks *t)
{
	uint64_t begun = weft_clock_ns();
	if (!go_under(e, t))
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
	if (!weft_watcher_sit_beside(&e->baton))
		return false;
	while (word(e) == seen) /* ends: kicked by the leaving holder, a switch or a submission */
		word_sleep(e, seen, WEFT_FOREVER);
	(void)woke(e);
	return true;
}

/* A tick of the right length; true: kicked. */
static bool tick_or_nap(struct weft_engine *e, struct ticks *t)
{
	/* Relaxed: what we miss is seen a tick later. */
	if (t->hold || weft_hold_some(&e->hold)) {
		uint64_t max =
			weft_engine_tasks_waiting(e) ? WEFT_HOLD_NS : weft_hold_max_ns(&e->hold);
		return tick(e, t->ns > max ? max : t->ns, false);
	}
	if (t->calm < CALM_TICKS)
		return t->spare ? tick_spared(e, t) : tick(e, t->ns, false);
	no_lease(e);
	atomic_store_explicit(&e->told.x_napping, true, memory_order_relaxed);
	bool kicked = atomic_load_explicit(&e->x_pending, memory_order_relaxed) ||
		      tick(e, e->timer_ns < NAP_NS ? e->timer_ns : NAP_NS, false);
	atomic_store_explicit(&e->told.x_napping, false, memory_order_relaxed);
	if (kicked)
		t->ns = TICK_MIN_NS;
	return kicked;
}

static void watch(struct weft_engine *e, struct ticks *t)
{
	/* Kicks meanwhile have changed our word. */
	if (t->turns++ % SPEND_EVERY == 0)
		(void)weft_budget_pause();
	bool kicked = tick_or_nap(e, t);
	/* Relaxed: see weft_engine_pending. */
	bool pending = atomic_load_explicit(&e->x_pending, memory_order_relaxed);
	if (pending)
		atomic_store_explicit(&e->x_pending, false, memory_order_relaxed);
	bool still = kicked || rounds_now(e) == t->rounds;
	t->calm = still || pending ? 0 : t->calm + 1;
	if (still)
		t->polled_since_ns = weft_clock_ns();
	atomic_store_explicit(&e->x_call_watcher, false, memory_order_seq_cst);
	if (!wanted(e))
		return;
	if (kicked)
		(void)spare(e, t);
	else
		(void)weft_polls_moved(&t->polls, rounds_now(e), weft_clock_ns());
	if (weft_relay_check(e) || kicked)
		drain(e);
	enum weft_hold_state held = unhold(e, t);
	t->hold = held != WEFT_HOLD_NOTHING;
	/* Not due yet, or there again: to go under would be to look at it. */
	if (t->hold && !kicked && weft_hold_some(&e->hold)) {
		t->rounds = rounds_now(e);
		return;
	}
	uint32_t state = atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst);
	uint32_t rounds = rounds_now(e);
	if (state == WEFT_BATON_ASLEEP && sit_beside(e)) {
		if (!wanted(e))
			return;
		drain(e);
		/* He has gone and left all armed: straight under it. */
		if (weft_baton_try_take(&e->baton))
			lie_under(e, t);
	} else if (rounds != t->rounds) {
		slower(t);
		/* Who polls may not look there: see who does not ring, in task.c. */
		if (weft_engine_tasks_waiting(e))
			drain(e);
		/* Nobody waits at this moment: perhaps somebody has just gone to compute. */
		if (state == WEFT_BATON_VACANT && pending && !kicked) {
			t->rounds = rounds;
			tick(e, TICK_MIN_NS, false);
			if (rounds_now(e) == rounds && wanted(e) && weft_baton_try_take(&e->baton))
				lie_under(e, t);
		}
	} else if (t->spare) {
		; /* they get their core now */
	} else if (weft_baton_try_take(&e->baton)) {
		lie_under(e, t);
	} else {
		drain(e); /* the holder does not get a core: poll in its place */
		slower(t);
	}
	t->rounds = rounds_now(e);
}

static void *run(void *arg)
{
	struct weft_engine *e = arg;
	struct ticks t = {
		.ns = TICK_MIN_NS, .rounds = rounds_now(e), .polled_since_ns = weft_clock_ns()};
	e->slice_honoured = weft_engine_thread_settle("weft-watcher");
	(void)woke(e);
	weft_engine_self.runner = WEFT_RUNNER_WATCHER;
	while (!atomic_load_explicit(&e->x_stop, memory_order_seq_cst)) { /* ends: stop */
		if (wanted(e))
			watch(e, &t);
		else
			off(e);
	}
	weft_watcher_sit(&e->baton, WEFT_WATCHER_OFF);
	return NULL;
}

weft_err weft_watcher_start(struct weft_engine *e)
{
	weft_err err = weft_engine_thread(&e->watcher, run, e);
	e->have_watcher = err == WEFT_OK;
	return err;
}

void weft_watcher_call(struct weft_engine *e)
{
	/* CALL -> redirect.  seq_cst: set before the kick, so whoever the kick wakes sees it. */
	atomic_store_explicit(&e->x_call_watcher, true, memory_order_seq_cst);
	weft_engine_kick(e, WEFT_KICK_WATCHER);
	weft_engine_kick(e, WEFT_KICK_SET);
}

void weft_watcher_stop(struct weft_engine *e)
{
	if (!e->have_watcher)
		return;
	/* STOP -> wanted.  seq_cst: comes before the kick, which the watcher's last look follows.
	 */
	atomic_store_explicit(&e->x_stop, true, memory_order_seq_cst);
	weft_watcher_call(e);
	pthread_join(e->watcher, NULL);
	e->have_watcher = false;
}
