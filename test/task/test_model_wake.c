/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wake protocol as a whole in every order: waiters, a holder, the watcher with its table, a
 * submitter, an idle worker, a sender with its bell, and a switch, on the production headers.  No
 * task, no message and no waiter is left with all threads asleep.  Each row of the watcher's table
 * is reached, and a mutant of each row is noticed.
 */
#include "model/explore.h"
#include "task/wake/kick_filter.h"
#include "task/wake/kick_timer.h"
#include "task/wake/watcher_table.h"

enum { TIMERS_MAX = 1, TURNS_MAX = 40 };

static struct weft_baton baton;
static struct weft_kick_filter pending;
static struct weft_task_kick_timer timer;
static struct weft_relay relay;
static _Atomic int x_work;     /* tasks: a seq_cst exchange, as in the queues */
static _Atomic int x_packets;  /* messages */
static _Atomic int x_bell;     /* the level that the one source is armed to; a ring takes it */
static _Atomic int x_kicks;    /* the watch set: kicks that no sleeper has taken */
static _Atomic int x_rings;    /* rings */
static _Atomic int x_timer;    /* 1: set, it may go off at any moment */
static _Atomic int x_word;     /* the watcher's own */
static _Atomic int x_notified; /* the parked waiter's parker */
static _Atomic int x_progress;
/* The explorer's, without an order of their own. */
static int tasks, messages, waiters, rounds; /* done so far; polls of waiters */
static int want_tasks, want_messages, want_waiters;
static bool held_back, work_due, behind, crowd, granted;

static struct weft_watcher_row table[WEFT_WATCHER_ROWS];
static unsigned long visits[WEFT_WATCHER_ROWS];
static enum weft_watcher_pos begin_at;

static int newest(_Atomic int *p)
{
	int v;
	memcpy(&v, (void *)p, sizeof v); /* as the kernel sees it */
	return v;
}

static bool all_done(void)
{
	return tasks >= want_tasks && messages >= want_messages && waiters >= want_waiters;
}

/* ---- kicks, rings, the watch set --------------------------------------------------------------
 */

static void kick(enum weft_kick k)
{
	if (k == WEFT_KICK_SET)
		atomic_fetch_add_explicit(&x_kicks, 1, memory_order_acq_rel);
	else if (k == WEFT_KICK_WATCHER)
		atomic_fetch_add_explicit(&x_word, 1, memory_order_acq_rel);
	else if (k == WEFT_KICK_PARKED)
		atomic_exchange_explicit(&x_notified, 1, memory_order_acq_rel);
}

static void call_watcher(void)
{
	kick(WEFT_KICK_WATCHER);
	kick(WEFT_KICK_SET);
}

static bool no_edge(void *arg)
{
	(void)arg;
	return !newest(&x_kicks) && !newest(&x_rings) && !newest(&x_timer) && !all_done();
}

/* A sleep in the watch set: any sleeper may get what is there.  bounded: may end by itself. */
static struct weft_watcher_view watch_set(bool bounded)
{
	struct weft_watcher_view v = {.expired = false};
	if (bounded && no_edge(NULL))
		model_relax();
	if (!bounded)
		model_block(no_edge, NULL);
	bool kicked =
		newest(&x_kicks) && atomic_exchange_explicit(&x_kicks, 0, memory_order_acq_rel);
	v.rang = newest(&x_rings) && atomic_exchange_explicit(&x_rings, 0, memory_order_acq_rel);
	bool gone_off =
		newest(&x_timer) && atomic_exchange_explicit(&x_timer, 0, memory_order_acq_rel);
	weft_task_kick_filter_woke(&pending);
	if (gone_off)
		weft_task_kick_timer_fired(&timer);
	if (v.rang)
		weft_task_baton_rang(&baton);
	v.timer = gone_off && !kicked && !v.rang;
	v.expired = !gone_off && !kicked && !v.rang;
	return v;
}

static enum weft_arm_level level(void)
{
	return (enum weft_arm_level)atomic_load_explicit(&baton.x_level, memory_order_relaxed);
}

/* ---- polling and arming ------------------------------------------------------------------------
 */

static void poll(void)
{
	if (newest(&x_packets))
		messages += atomic_exchange_explicit(&x_packets, 0, memory_order_acq_rel);
}

static bool tasks_there(void)
{
	return atomic_load_explicit(&x_work, memory_order_seq_cst) != 0;
}

static void look(void)
{
	if (tasks_there())
		tasks += atomic_exchange_explicit(&x_work, 0, memory_order_acq_rel);
	/* A full look at the source. */
	if (atomic_load_explicit(&x_packets, memory_order_acquire))
		messages += atomic_exchange_explicit(&x_packets, 0, memory_order_acq_rel);
}

/* As weft_task_sources_arm() on one shm source.  False: something is there, and it is off. */
static bool arm(enum weft_arm_level to)
{
	weft_task_baton_arm(&baton, to);
	if (to == WEFT_ARM_OFF) {
		atomic_store_explicit(&x_bell, WEFT_ARM_OFF, memory_order_relaxed);
		return true;
	}
	if (newest(&x_bell) < (int)to) {
		atomic_exchange_explicit(&x_bell, to, memory_order_seq_cst);
		if (to == WEFT_ARM_ALL)
			model_membarrier();
	}
	model_fence();
	if (!atomic_load_explicit(&x_packets, memory_order_acquire))
		return true;
	atomic_store_explicit(&x_bell, WEFT_ARM_OFF, memory_order_relaxed);
	weft_task_baton_arm(&baton, WEFT_ARM_OFF);
	return false;
}

static enum weft_arm_level level_to_leave(void)
{
	return weft_task_baton_heard(&baton) ? WEFT_ARM_ALL_UNCHECKED : WEFT_ARM_REPLIES_UNCHECKED;
}

/* ---- giving the baton back, as release.c -------------------------------------------------------
 */

static bool watcher_is_under(void)
{
	return atomic_load_explicit(&baton.x_watcher, memory_order_relaxed) == WEFT_WATCHER_UNDER;
}

static void set_timer(enum weft_task_kick_timer_what what)
{
	if (weft_task_kick_timer_due(&timer, what))
		atomic_exchange_explicit(&x_timer, 1, memory_order_acq_rel);
}

/* by_timer: a kick into the watch set may wait. */
static void released(enum weft_kick k, bool by_timer)
{
	if (k == WEFT_KICK_SET && by_timer && watcher_is_under()) {
		set_timer(WEFT_KICK_TIMER_KICK);
		if (tasks_there())
			kick(k);
		return;
	}
	kick(k);
	if (k != WEFT_KICK_NONE || level() == WEFT_ARM_OFF)
		return;
	if (weft_arm_is_unchecked(level()) && watcher_is_under())
		set_timer(WEFT_KICK_TIMER_CHECK);
	if (tasks_there())
		kick(weft_task_baton_submit_target(&baton));
}

static void release_to_application(bool by_timer)
{
	released(weft_task_baton_leave(&baton), by_timer);
}

/* The watcher's: a kick would be for itself. */
static void release_and_look(void)
{
	(void)weft_task_baton_leave(&baton);
	look();
}

/* ---- the watcher -------------------------------------------------------------------------------
 */

static int word_seen, off_seen, rounds_seen, timers;

static bool wanted(void)
{
	return atomic_load_explicit(&x_progress, memory_order_seq_cst) != 0;
}

static bool no_word(void *arg)
{
	return newest(&x_word) == *(int *)arg && !all_done();
}

/* Counted before it looks. */
static int woke(void)
{
	int seen = atomic_load_explicit(&x_word, memory_order_acquire);
	weft_task_kick_filter_woke(&pending);
	word_seen = seen;
	return seen;
}

static void redirect(void)
{
	if (atomic_load_explicit(&baton.x_state, memory_order_seq_cst) == WEFT_BATON_ASLEEP &&
	    level() == WEFT_ARM_OFF)
		kick(WEFT_KICK_SET);
}

static enum weft_watcher_finds sleep_ticking(void)
{
	int seen = word_seen;
	weft_task_watcher_sit(&baton, WEFT_WATCHER_TICKS);
	if (tasks_there())
		look();
	else if (newest(&x_word) == seen && !all_done())
		model_relax(); /* a tick */
	struct weft_watcher_view v = {.kicked = woke() != seen, .wanted = wanted()};
	if (v.wanted) {
		if (granted && weft_task_kick_filter_look_after(&pending, &relay, true))
			look();
		if (v.kicked)
			look();
		v.held_back = held_back && !v.kicked;
		held_back = held_back && tasks_there() && m_choose(2); /* not due, then due */
		if (!held_back && tasks_there())
			look();
		v.state = (enum weft_baton_state)atomic_load_explicit(&baton.x_state,
								      memory_order_seq_cst);
		v.moved = rounds != rounds_seen;
		v.pending = behind;
		v.spared = crowd && v.kicked;
		behind = false;
		rounds_seen = rounds;
	}
	return weft_task_watcher_finds_ticking(&v);
}

static enum weft_watcher_finds sleep_under(void)
{
	if (!wanted())
		return WEFT_WATCHER_UNWANTED;
	if (weft_task_baton_unheard(&baton))
		return WEFT_WATCHER_UNHEARD;
	if (work_due)
		return WEFT_WATCHER_WORK_DUE;
	int timer_rounds = rounds;
	struct weft_watcher_view v = watch_set(weft_arm_is_unchecked(level()) || granted);
	if (granted && weft_task_kick_filter_look_after(&pending, &relay, true))
		look();
	v.state = (enum weft_baton_state)atomic_load_explicit(&baton.x_state, memory_order_seq_cst);
	v.armed = level() != WEFT_ARM_OFF;
	v.moved = rounds != timer_rounds;
	v.held_back = held_back;
	v.spared = crowd && !v.rang && !v.timer;
	return weft_task_watcher_finds_under(&v);
}

static enum weft_watcher_finds sleep_beside(void)
{
	int seen = word_seen;
	model_block(no_word, &seen);
	(void)woke();
	return wanted() ? WEFT_WATCHER_KICKED : WEFT_WATCHER_UNWANTED;
}

static enum weft_watcher_finds sleep_off(void)
{
	if (!wanted())
		model_block(no_word, &off_seen);
	return wanted() ? WEFT_WATCHER_WANTED : WEFT_WATCHER_UNWANTED;
}

static bool arm_again(void)
{
	if (!weft_task_baton_try_take(&baton))
		return false;
	while (!arm(level_to_leave())) /* ends: nothing comes now */
		look();
	release_and_look();
	return true;
}

static bool check(void)
{
	if (!weft_arm_is_unchecked(level()))
		return true;
	if (!weft_task_baton_try_take(&baton))
		return false;
	bool ok = arm(weft_arm_checked(level()));
	release_and_look();
	return ok || arm_again();
}

static bool timer_again(void)
{
	if (++timers > TIMERS_MAX)
		return false;
	set_timer(WEFT_KICK_TIMER_KICK);
	return true;
}

static bool done_or_timer(bool done)
{
	if (!done)
		return timer_again();
	timers = 0;
	return true;
}

static bool go_under(void)
{
	if (!weft_task_baton_try_take(&baton)) {
		look();
		return false;
	}
	if ((weft_task_baton_unheard(&baton) || level() == WEFT_ARM_OFF) &&
	    !arm(level_to_leave())) {
		look();
		(void)weft_task_baton_leave(&baton);
		return false;
	}
	weft_task_watcher_sit(&baton, WEFT_WATCHER_UNDER);
	timers = 0;
	release_and_look();
	return true;
}

static bool go_off(void)
{
	off_seen = atomic_load_explicit(&x_word, memory_order_acquire);
	weft_task_watcher_sit(&baton, WEFT_WATCHER_OFF);
	model_membarrier();
	if (weft_task_baton_try_take(&baton)) {
		if (level() != WEFT_ARM_OFF)
			(void)arm(WEFT_ARM_OFF);
		kick(weft_task_baton_leave(&baton));
	}
	return true;
}

static bool serve(void)
{
	look();
	redirect();
	timers = 0;
	return level() != WEFT_ARM_OFF;
}

static bool act(enum weft_watcher_does what)
{
	switch (what) {
	case WEFT_WATCHER_GOES_OFF:
		return go_off();
	case WEFT_WATCHER_SITS_BESIDE:
		return weft_task_watcher_sit_beside(&baton);
	case WEFT_WATCHER_TICKS_LONGER:
	case WEFT_WATCHER_TICKS_SHORTER:
		look();
		return true;
	case WEFT_WATCHER_GOES_UNDER:
		return go_under();
	case WEFT_WATCHER_ARMS_AGAIN:
		return arm_again();
	case WEFT_WATCHER_RUNS_WORK:
		work_due = false;
		look();
		return true;
	case WEFT_WATCHER_LOOKS_AND_SETS_TIMER:
		look();
		return timer_again();
	case WEFT_WATCHER_SETS_TIMER:
		return timer_again();
	case WEFT_WATCHER_LOOKS_AND_CHECKS:
		look();
		return done_or_timer(check());
	case WEFT_WATCHER_LOOKS_AND_ARMS:
		look();
		return done_or_timer(arm_again());
	case WEFT_WATCHER_DISARMS:
		if (weft_task_baton_try_take(&baton)) {
			(void)arm(WEFT_ARM_OFF);
			(void)weft_task_baton_leave(&baton);
		}
		redirect();
		return true;
	case WEFT_WATCHER_SERVES:
		return serve();
	case WEFT_WATCHER_SERVES_AND_CHECKS:
		(void)serve();
		return check() && level() != WEFT_ARM_OFF;
	case WEFT_WATCHER_SERVES_AND_ARMS:
		(void)serve();
		return arm_again();
	default:
		return true;
	}
}

static void watches(void)
{
	enum weft_watcher_pos at = begin_at;
	(void)woke();
	off_seen = word_seen;
	for (int turn = 0; !all_done(); turn++) { /* asleep for ever is the failure */
		MODEL_CHECK(turn < TURNS_MAX);
		enum weft_watcher_finds finds = at == WEFT_WATCHER_TICKS    ? sleep_ticking()
						: at == WEFT_WATCHER_UNDER  ? sleep_under()
						: at == WEFT_WATCHER_BESIDE ? sleep_beside()
									    : sleep_off();
		if (all_done())
			return;
		const struct weft_watcher_row *row = weft_task_watcher_row(table, at, finds);
		visits[row - table]++;
		at = act(row->does) ? row->then : row->otherwise;
	}
}

/* ---- waiters -----------------------------------------------------------------------------------
 */

static void one_poll(void)
{
	poll();
	rounds++;
}

/* Holds the baton, polls, and goes back to the application; bells put away. */
static void leaves(void)
{
	one_poll();
	release_to_application(true);
	waiters++;
}

static void leaves_at_once(void)
{
	one_poll();
	release_to_application(false);
	waiters++;
}

/* The same after a rest: arms by itself, and leaves once more. */
static void leaves_and_arms(void)
{
	one_poll();
	enum weft_kick k = weft_task_baton_leave(&baton);
	if (k == WEFT_KICK_SET && !tasks_there() && weft_task_baton_try_take(&baton)) {
		if (level() == WEFT_ARM_OFF)
			(void)arm(level_to_leave());
		k = weft_task_baton_leave(&baton);
	}
	released(k, true);
	waiters++;
}

/* Forgets what the second leave has answered. */
static void leaves_and_arms_deaf(void)
{
	one_poll();
	enum weft_kick k = weft_task_baton_leave(&baton);
	if (k == WEFT_KICK_SET && weft_task_baton_try_take(&baton)) {
		if (level() == WEFT_ARM_OFF)
			(void)arm(level_to_leave());
		(void)weft_task_baton_leave(&baton);
		k = WEFT_KICK_SET;
	}
	released(k, true);
	waiters++;
}

/* Does not look at the queues. */
static void leaves_unlooked(void)
{
	one_poll();
	(void)arm(level_to_leave());
	kick(weft_task_baton_leave(&baton));
	waiters++;
}

static void leaves_armed(void)
{
	one_poll();
	(void)arm(level_to_leave());
	release_to_application(true);
	waiters++;
}

/* Comes to wait for what is there already, and goes. */
static void comes_and_goes(void)
{
	if (!weft_task_baton_try_take(&baton))
		return;
	one_poll();
	release_to_application(true);
}

/* Waits for a message, asleep with the baton in hand. */
static void waits_asleep(void)
{
	for (int turn = 0; messages == 0; turn++) {
		MODEL_CHECK(turn < TURNS_MAX);
		one_poll();
		if (messages || (level() != WEFT_ARM_ALL && !arm(WEFT_ARM_ALL)))
			continue;
		weft_task_baton_sleep(&baton);
		look();
		if (!messages)
			(void)watch_set(false);
		weft_task_baton_wake(&baton);
		if (tasks_there())
			look();
	}
	if (level() == WEFT_ARM_OFF)
		(void)arm(level_to_leave());
	release_to_application(true);
	waiters++;
}

static bool not_notified(void *arg)
{
	(void)arg;
	return newest(&x_notified) == 0;
}

/* Finds the baton taken; must get it in the end, no other thread polls. */
static void parks(void)
{
	while (!weft_task_baton_try_take(&baton)) { /* ends: it is ours */
		if (weft_task_baton_park(&baton))
			model_block(not_notified, NULL);
		atomic_exchange_explicit(&x_notified, 0, memory_order_acq_rel);
		weft_task_baton_unpark(&baton);
	}
	waiters++;
}

static bool no_message(void *arg)
{
	(void)arg;
	return messages == 0;
}

static void send_one(void)
{
	atomic_fetch_add_explicit(&x_packets, 1, memory_order_release);
	weft_compiler_barrier();
	if (atomic_load_explicit(&x_bell, memory_order_relaxed) >= WEFT_ARM_ALL_UNCHECKED &&
	    atomic_exchange_explicit(&x_bell, WEFT_ARM_OFF, memory_order_relaxed))
		atomic_fetch_add_explicit(&x_rings, 1, memory_order_acq_rel);
}

/* Parks beside a holder; then its message comes, which needs no answer. */
static void parks_for_a_message(void)
{
	if (!weft_task_baton_park(&baton)) {
		weft_task_baton_unpark(&baton);
		messages = want_messages; /* takes the baton, and polls */
		return;
	}
	send_one();
	model_block(no_message, NULL);
	weft_task_baton_unpark(&baton);
}

/* ---- submitters, senders, the switch -----------------------------------------------------------
 */

static bool quick(const struct weft_relay *r)
{
	(void)r;
	return true;
}

static void submits(void)
{
	uint64_t key;
	atomic_fetch_add_explicit(&x_work, 1, memory_order_seq_cst);
	enum weft_kick k = weft_task_baton_submit_target(&baton);
	if (k == WEFT_KICK_NONE || weft_task_kick_filter_already(&pending, k, &key))
		return;
	if (granted && weft_task_kick_filter_relayed(&pending, &relay, quick))
		return;
	kick(k);
	weft_task_kick_filter_note(&pending, key);
}

static void submits_two(void)
{
	submits();
	submits();
}

/* The watcher has it in its care, for a while. */
static void submits_later(void)
{
	atomic_fetch_add_explicit(&x_work, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&baton.x_state, memory_order_seq_cst) != WEFT_BATON_VACANT) {
		kick(weft_task_baton_submit_target(&baton));
		return;
	}
	held_back = true;
	if (atomic_load_explicit(&baton.x_watcher, memory_order_seq_cst) == WEFT_WATCHER_UNDER)
		kick(WEFT_KICK_SET);
}

static void submits_later_and_now(void)
{
	submits_later();
	submits();
}

static void sends(void)
{
	send_one();
}

static void sends_urgently(void)
{
	atomic_fetch_add_explicit(&x_packets, 1, memory_order_release);
	model_fence();
	if (atomic_load_explicit(&x_bell, memory_order_relaxed) != WEFT_ARM_OFF &&
	    atomic_exchange_explicit(&x_bell, WEFT_ARM_OFF, memory_order_relaxed))
		atomic_fetch_add_explicit(&x_rings, 1, memory_order_acq_rel);
}

static void sends_two(void)
{
	send_one();
	sends_urgently();
}

static void progress(int on)
{
	atomic_exchange_explicit(&x_progress, on, memory_order_seq_cst);
	call_watcher();
}

static void switches_off(void)
{
	progress(0);
}

static void switches_off_and_sends(void)
{
	progress(0);
	send_one();
}

/* A task that lies there when progress is off belongs to the watcher that comes on. */
static void submits_and_switches_on(void)
{
	submits();
	progress(1);
}

/* ---- the idle worker, and the hand on its core -------------------------------------------------
 */

static _Atomic uint32_t x_hand;

static void relays(void)
{
	if (weft_task_relay_answer(&relay, WEFT_WORD_MARKED)) {
		weft_task_wake_word_ring(&x_hand);
		weft_task_relay_answered(&relay);
	}
	if (weft_task_relay_close(&relay))
		weft_task_wake_word_ring(&x_hand);
}

static bool not_rung(void *arg)
{
	uint32_t word;
	memcpy(&word, (void *)&x_hand, sizeof word); /* as the kernel sees it */
	return word == *(uint32_t *)arg && !all_done();
}

static void hand(void)
{
	while (!all_done()) { /* ends: all is found */
		uint32_t seen = weft_task_kick_filter_begin(&pending, &x_hand);
		look();
		model_block(not_rung, &seen);
		model_fresh((void *)&x_hand, sizeof x_hand);
	}
}

/* ---- the beginnings ----------------------------------------------------------------------------
 */

static void begin(enum weft_baton_state state, enum weft_watcher_pos pos, enum weft_arm_level armed)
{
	memset((void *)&baton, 0, sizeof baton);
	memset((void *)&pending, 0, sizeof pending);
	memset((void *)&timer, 0, sizeof timer);
	memset((void *)&relay, 0, sizeof relay);
	atomic_store_explicit(&baton.x_state, state, memory_order_relaxed);
	atomic_store_explicit(&baton.x_watcher, pos, memory_order_relaxed);
	atomic_store_explicit(&baton.x_level, armed, memory_order_relaxed);
	atomic_store_explicit(&x_bell, armed, memory_order_relaxed);
	_Atomic int *zero[] = {&x_work,  &x_packets, &x_kicks,   &x_rings,
			       &x_timer, &x_word,    &x_notified};
	for (size_t i = 0; i < weft_countof(zero); i++)
		atomic_store_explicit(zero[i], 0, memory_order_relaxed);
	atomic_store_explicit(&x_hand, 0, memory_order_relaxed);
	atomic_store_explicit(&x_progress, 1, memory_order_relaxed);
	tasks = messages = waiters = rounds = 0;
	want_tasks = want_messages = want_waiters = 0;
	word_seen = off_seen = rounds_seen = timers = 0;
	held_back = work_due = behind = crowd = granted = false;
	begin_at = pos;
	weft_task_kick_filter_woke(&pending); /* as at the engine's start */
}

static void held_under(void)
{
	begin(WEFT_BATON_HELD, WEFT_WATCHER_UNDER, WEFT_ARM_OFF);
	want_tasks = 1;
}

static void held_ticks(void)
{
	begin(WEFT_BATON_HELD, WEFT_WATCHER_TICKS, WEFT_ARM_OFF);
	want_tasks = 1;
}

static void held_under_message(void)
{
	begin(WEFT_BATON_HELD, WEFT_WATCHER_UNDER, WEFT_ARM_OFF);
	want_messages = 1;
}

/* Its end is wanted at once. */
static void held_under_wanted(void)
{
	held_under_message();
	atomic_store_explicit(&baton.x_wanted, 1, memory_order_relaxed);
}

static void held_ticks_both(void)
{
	held_ticks();
	want_messages = want_waiters = 1;
}

static void held_ticks_departs(void)
{
	held_ticks();
	behind = true;
}

static void held_under_waiters(void)
{
	begin(WEFT_BATON_HELD, WEFT_WATCHER_UNDER, WEFT_ARM_OFF);
	want_waiters = 2;
}

static void held_ticks_waiters(void)
{
	begin(WEFT_BATON_HELD, WEFT_WATCHER_TICKS, WEFT_ARM_OFF);
	want_waiters = 2;
}

static void asleep_beside(void)
{
	begin(WEFT_BATON_HELD, WEFT_WATCHER_TICKS, WEFT_ARM_OFF);
	want_messages = want_waiters = 1;
}

static void asleep_beside_two(void)
{
	asleep_beside();
	want_messages = 2;
}

static void asleep_beside_parked(void)
{
	asleep_beside();
	want_waiters = 2;
}

static void vacant_off(void)
{
	begin(WEFT_BATON_VACANT, WEFT_WATCHER_OFF, WEFT_ARM_OFF);
	atomic_store_explicit(&x_progress, 0, memory_order_relaxed);
	want_tasks = 1;
}

static void vacant_ticks_off(void)
{
	begin(WEFT_BATON_VACANT, WEFT_WATCHER_TICKS, WEFT_ARM_OFF);
	atomic_store_explicit(&x_progress, 0, memory_order_relaxed);
	want_tasks = 2;
}

static void vacant_under(void)
{
	begin(WEFT_BATON_VACANT, WEFT_WATCHER_UNDER, WEFT_ARM_ALL);
	want_tasks = 2;
}

static void vacant_under_crowd(void)
{
	vacant_under();
	crowd = true;
}

static void vacant_ticks_crowd(void)
{
	begin(WEFT_BATON_VACANT, WEFT_WATCHER_TICKS, WEFT_ARM_OFF);
	want_tasks = 2;
	crowd = true;
}

static void vacant_under_work(void)
{
	vacant_under();
	work_due = true;
	want_tasks = 1;
}

static void vacant_under_message(void)
{
	begin(WEFT_BATON_VACANT, WEFT_WATCHER_UNDER, WEFT_ARM_ALL);
	want_messages = want_tasks = 1;
}

static void vacant_ticks_relay(void)
{
	begin(WEFT_BATON_VACANT, WEFT_WATCHER_TICKS, WEFT_ARM_OFF);
	want_tasks = 2;
	granted = true;
	weft_task_relay_offer(&relay);
	weft_task_relay_accept(&relay);
}

static const struct model scenario[] = {
	{"a waiter leaves, a task comes, watcher under",
	 held_under,
	 {watches, leaves, submits},
	 NULL,
	 2},
	{"the same, kicked at once", held_under, {watches, leaves_at_once, submits}, NULL, 2},
	{"the same, it arms", held_under, {watches, leaves_armed, submits}, NULL, 2},
	{"the same, it arms and leaves again",
	 held_under,
	 {watches, leaves_and_arms, submits},
	 NULL,
	 2},
	{"a waiter leaves, a task comes, watcher ticks",
	 held_ticks,
	 {watches, leaves, submits},
	 NULL,
	 2},
	{"a waiter leaves an operation behind",
	 held_ticks_departs,
	 {watches, leaves, submits},
	 NULL,
	 2},
	{"a waiter leaves, a message needs an answer",
	 held_under_message,
	 {watches, leaves, sends_urgently},
	 NULL,
	 2},
	{"a waiter leaves armed, an operation's end is wanted",
	 held_under_wanted,
	 {watches, leaves_armed, sends},
	 NULL,
	 2},
	{"a waiter leaves armed for replies, another parks",
	 held_under_message,
	 {watches, leaves_armed, parks_for_a_message},
	 NULL,
	 2},
	{"a waiter sleeps and leaves, a task and a message come",
	 held_ticks_both,
	 {watches, waits_asleep, submits, sends},
	 NULL,
	 1},
	{"a waiter comes and goes under a ring, a task comes",
	 vacant_under_message,
	 {watches, comes_and_goes, submits, sends},
	 NULL,
	 1},
	{"one leaves, one parks, progress goes off",
	 held_under_waiters,
	 {watches, leaves_and_arms, parks, switches_off},
	 NULL,
	 1},
	{"the same, watcher ticks",
	 held_ticks_waiters,
	 {watches, leaves, parks, switches_off},
	 NULL,
	 1},
	{"a waiter sleeps, progress goes off",
	 asleep_beside,
	 {watches, waits_asleep, switches_off, sends},
	 NULL,
	 1},
	{"a waiter sleeps, one parks, progress goes off",
	 asleep_beside_parked,
	 {watches, waits_asleep, parks, switches_off_and_sends},
	 NULL,
	 1},
	{"a waiter sleeps and leaves, a second message needs an answer",
	 asleep_beside_two,
	 {watches, waits_asleep, sends_two},
	 NULL,
	 1},
	{"progress comes on", vacant_off, {watches, submits_and_switches_on}, NULL, 3},
	{"progress is off for a moment",
	 vacant_ticks_off,
	 {watches, submits, submits_and_switches_on},
	 NULL,
	 2},
	{"two tasks while pollers want the core",
	 vacant_under_crowd,
	 {watches, submits, submits},
	 NULL,
	 2},
	{"the same, watcher ticks", vacant_ticks_crowd, {watches, submits, submits}, NULL, 2},
	{"a task is held back, one is not",
	 vacant_under,
	 {watches, submits_later_and_now},
	 NULL,
	 3},
	{"tasks are held back", vacant_under, {watches, submits_later, submits_later}, NULL, 2},
	{"work of the application is due", vacant_under_work, {watches, submits}, NULL, 3},
	{"an idle worker relays",
	 vacant_ticks_relay,
	 {watches, submits_two, relays, hand},
	 NULL,
	 1},
};

/* These are wrong: the scenarios see what they claim to see. */
static const struct model broken[] = {
	{"a waiter leaves armed and does not look",
	 held_under,
	 {watches, leaves_unlooked, submits},
	 NULL,
	 2,
	 .broken = true},
	{"the second leave's answer is forgotten",
	 held_under_waiters,
	 {watches, leaves_and_arms_deaf, parks, switches_off},
	 NULL,
	 2,
	 .broken = true},
};

/* ---- mutants of the table ----------------------------------------------------------------------
 */

/* Does nothing and falls asleep: OFF where a kick would mend it elsewhere. */
static struct weft_watcher_row mutant_of(struct weft_watcher_row row)
{
	bool off = row.at != WEFT_WATCHER_BESIDE &&
		   (row.at == WEFT_WATCHER_OFF || row.then == WEFT_WATCHER_OFF);
	row.does = WEFT_WATCHER_DOES_NOTHING;
	row.then = off ? WEFT_WATCHER_OFF : WEFT_WATCHER_BESIDE;
	return row;
}

static bool reaches[weft_countof(scenario)][WEFT_WATCHER_ROWS];

static bool is_noticed(int i)
{
	memcpy(table, weft_watcher_table, sizeof table);
	table[i] = mutant_of(table[i]);
	for (size_t k = 0; k < weft_countof(scenario); k++) {
		if (!reaches[k][i])
			continue;
		const char *why = m_explore(&scenario[k], scenario[k].preemptions, 400000);
		if (why) {
			printf("  row %d: \"%s\": %s\n", i, scenario[k].name, why);
			return true;
		}
	}
	return false;
}

int main(void)
{
	unsigned long reached[WEFT_WATCHER_ROWS] = {0};
	int missed = 0;
	memcpy(table, weft_watcher_table, sizeof table);
	for (size_t k = 0; k < weft_countof(scenario); k++) {
		memset(visits, 0, sizeof visits);
		(void)explore_all(&scenario[k], 1);
		for (int i = 0; i < WEFT_WATCHER_ROWS; i++) {
			reaches[k][i] = visits[i];
			reached[i] += visits[i];
		}
	}
	for (int i = 0; i < WEFT_WATCHER_ROWS; i++)
		if (!reached[i]) {
			printf("row %d is reached by no scenario\n", i);
			missed++;
		}
	(void)explore_all(broken, weft_countof(broken));
	mx.mutant = -1;
	for (int i = 0; i < WEFT_WATCHER_ROWS; i++)
		if (!is_noticed(i)) {
			printf("row %d: its mutant is NOT noticed\n", i);
			missed++;
		}
	return missed ? 1 : 0;
}
