/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wake protocol as a whole in every order: waiters, a holder, the watcher with its table, a
 * submitter, an idle worker, a sender with its bell, and a switch.  No task, no message and no
 * waiter is left with all threads asleep.  Each row of the watcher's table is reached, and a mutant
 * of each row is noticed.
 *
 * What gives the baton back, and all that the watcher decides and does, is the production source:
 * release.c, watcher.c and watcher_armed.c.  Ours are the kernel (the watch set, its timer, the word
 * that the watcher sleeps on), one source with its bell, one queue, and the threads around.
 */
#include "wake_world.h"

enum { TURNS_MAX = 40 };

/* ---- the watcher -------------------------------------------------------------------------------
 */

static void watches(void)
{
	enum weft_watcher_pos at = begin_at;
	weft_task_engine_self.runner = WEFT_RUNNER_WATCHER;
	watcher.off_seen = note_wake_up(ENGINE);
	for (int turn = 0; !all_done(); turn++) { /* asleep for ever is the failure */
		MODEL_CHECK(turn < TURNS_MAX);
		enum weft_watcher_finds finds = sleep_at(ENGINE, &watcher, at);
		if (all_done())
			return;
		const struct weft_watcher_row *row = weft_task_watcher_row(table, at, finds);
		visits[row - table]++;
		at = act_on(ENGINE, &watcher, row->does) ? row->then : row->otherwise;
	}
}

/* ---- waiters -----------------------------------------------------------------------------------
 */

static void one_poll(void)
{
	poll();
	atomic_fetch_add_explicit(&ENGINE->x_rounds, 1, memory_order_relaxed);
}

/* Holds the baton, polls, and goes back to the application; bells put away. */
static void leaves(void)
{
	one_poll();
	weft_task_baton_release(ENGINE, WEFT_LEAVER_WAITER, NULL);
	waiters++;
}

/* The same after a rest: arms by itself, and leaves once more. */
static void leaves_and_arms(void)
{
	atomic_store_explicit(&ENGINE->x_rest_arms, 1, memory_order_relaxed);
	leaves();
}

/* Forgets what the second leave has answered. */
static void leaves_and_arms_deaf(void)
{
	one_poll();
	enum weft_kick k = weft_task_baton_leave(&ENGINE->baton);
	if (k == WEFT_KICK_SET && weft_task_baton_try_take(&ENGINE->baton)) {
		if (level() == WEFT_ARM_OFF)
			(void)arm(level_to_leave());
		(void)weft_task_baton_leave(&ENGINE->baton);
	}
	waiters++;
}

/* Does not look at the queues. */
static void leaves_unlooked(void)
{
	one_poll();
	(void)arm(level_to_leave());
	weft_task_engine_kick(ENGINE, weft_task_baton_leave(&ENGINE->baton));
	waiters++;
}

static void leaves_armed(void)
{
	one_poll();
	(void)arm(level_to_leave());
	weft_task_baton_release(ENGINE, WEFT_LEAVER_WAITER, NULL);
	waiters++;
}

/* Comes to wait for what is there already, and goes. */
static void comes_and_goes(void)
{
	if (!weft_task_baton_try_take(&ENGINE->baton))
		return;
	one_poll();
	weft_task_baton_release(ENGINE, WEFT_LEAVER_WAITER, NULL);
}

/* Waits for a message, asleep with the baton in hand. */
static void waits_asleep(void)
{
	for (int turn = 0; messages == 0; turn++) {
		MODEL_CHECK(turn < TURNS_MAX);
		one_poll();
		if (messages || (level() != WEFT_ARM_ALL && !arm(WEFT_ARM_ALL)))
			continue;
		weft_task_baton_sleep(&ENGINE->baton);
		look();
		if (!messages)
			(void)weft_task_engine_watch(ENGINE, WEFT_FOREVER);
		weft_task_baton_wake(&ENGINE->baton);
		if (tasks_there())
			look();
	}
	if (level() == WEFT_ARM_OFF)
		(void)arm(level_to_leave());
	weft_task_baton_release(ENGINE, WEFT_LEAVER_SLEEPER, NULL);
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
	while (!weft_task_baton_try_take(&ENGINE->baton)) { /* ends: it is ours */
		if (weft_task_baton_park(&ENGINE->baton))
			model_block(not_notified, NULL);
		atomic_exchange_explicit(&x_notified, 0, memory_order_acq_rel);
		weft_task_baton_unpark(&ENGINE->baton);
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
	if (!weft_task_baton_park(&ENGINE->baton)) {
		weft_task_baton_unpark(&ENGINE->baton);
		messages = want_messages; /* takes the baton, and polls */
		return;
	}
	send_one();
	model_block(no_message, NULL);
	weft_task_baton_unpark(&ENGINE->baton);
}

/* ---- submitters, senders, the switch -----------------------------------------------------------
 */

static bool quick(const struct weft_relay *r)
{
	(void)r;
	return true;
}

static void submits_kick(void)
{
	uint64_t key;
	enum weft_kick k = weft_task_baton_submit_target(&ENGINE->baton);
	if (k == WEFT_KICK_NONE || weft_task_kick_filter_already(&ENGINE->kick_filter, k, &key))
		return;
	if (granted && weft_task_kick_filter_relayed(&ENGINE->kick_filter, &relay, quick))
		return;
	weft_task_engine_kick(ENGINE, k);
	weft_task_kick_filter_note(&ENGINE->kick_filter, key);
}

static void submits(void)
{
	atomic_fetch_add_explicit(&x_work, 1, memory_order_seq_cst);
	submits_kick();
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
	if (atomic_load_explicit(&ENGINE->baton.x_state, memory_order_seq_cst) !=
	    WEFT_BATON_VACANT) {
		weft_task_engine_kick(ENGINE, weft_task_baton_submit_target(&ENGINE->baton));
		return;
	}
	if (weft_task_batch_hold_begin(&ENGINE->batch_hold, &ENGINE->baton, now_ns, WEFT_HOLD_NS,
				       0) == WEFT_HELD_NOT) {
		submits_kick();
		return;
	}
	if (atomic_load_explicit(&ENGINE->baton.x_watcher, memory_order_seq_cst) ==
	    WEFT_WATCHER_UNDER)
		weft_task_engine_kick(ENGINE, WEFT_KICK_SET);
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
	atomic_exchange_explicit(&ENGINE->x_progress, on != 0, memory_order_seq_cst);
	weft_task_watcher_call(ENGINE);
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
		uint32_t seen = weft_task_kick_filter_begin(&ENGINE->kick_filter, &x_hand);
		look();
		model_block(not_rung, &seen);
		model_fresh((void *)&x_hand, sizeof x_hand);
	}
}

/* ---- the beginnings ----------------------------------------------------------------------------
 */

static void begin(enum weft_baton_state state, enum weft_watcher_pos pos, enum weft_arm_level armed)
{
	memset((void *)ENGINE, 0, offsetof(struct weft_engine, park_lock));
	memset((void *)&relay, 0, sizeof relay);
	memset(selves, 0, sizeof selves);
	atomic_store_explicit(&ENGINE->baton.x_state, state, memory_order_relaxed);
	atomic_store_explicit(&ENGINE->baton.x_watcher, pos, memory_order_relaxed);
	atomic_store_explicit(&ENGINE->baton.x_level, armed, memory_order_relaxed);
	atomic_store_explicit(&x_bell, armed, memory_order_relaxed);
	_Atomic int *zero[] = {&x_work, &x_packets, &x_kicks, &x_rings, &x_timer, &x_notified};
	for (size_t i = 0; i < weft_countof(zero); i++)
		atomic_store_explicit(zero[i], 0, memory_order_relaxed);
	atomic_store_explicit(&x_hand, 0, memory_order_relaxed);
	atomic_store_explicit(&ENGINE->x_progress, true, memory_order_relaxed);
	ENGINE->timer_ns = 1000000;
	tasks = messages = waiters = 0;
	want_tasks = want_messages = want_waiters = 0;
	work_due = granted = no_timer = false;
	now_ns = 1000000;
	watcher = (struct weft_watcher){.tick_ns = TICK_MIN_NS, .polled_since_ns = now_ns};
	begin_at = pos;
	weft_task_kick_filter_woke(&ENGINE->kick_filter); /* as at the engine's start */
}

static void held_under(void)
{
	begin(WEFT_BATON_HELD, WEFT_WATCHER_UNDER, WEFT_ARM_OFF);
	want_tasks = 1;
}

static void held_under_all(void)
{
	begin(WEFT_BATON_HELD, WEFT_WATCHER_UNDER, WEFT_ARM_ALL);
	want_tasks = 1;
}

static void held_under_no_timer(void)
{
	held_under();
	no_timer = true;
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
	atomic_store_explicit(&ENGINE->baton.x_wanted, 1, memory_order_relaxed);
}

static void held_ticks_both(void)
{
	held_ticks();
	want_messages = want_waiters = 1;
}

static void held_ticks_departs(void)
{
	held_ticks();
	atomic_store_explicit(&ENGINE->x_pending, WEFT_LEFT_ALL, memory_order_relaxed);
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
	atomic_store_explicit(&ENGINE->x_progress, false, memory_order_relaxed);
	want_tasks = 1;
}

static void vacant_ticks_off(void)
{
	begin(WEFT_BATON_VACANT, WEFT_WATCHER_TICKS, WEFT_ARM_OFF);
	atomic_store_explicit(&ENGINE->x_progress, false, memory_order_relaxed);
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
	watcher.polls.kicks = WEFT_KICKS_MAX; /* the next one is one too many */
	watcher.polls.since_ns = watcher.polls.moved_ns = now_ns;
}

static void vacant_ticks_crowd(void)
{
	begin(WEFT_BATON_VACANT, WEFT_WATCHER_TICKS, WEFT_ARM_OFF);
	want_tasks = 2;
	watcher.polls.kicks = WEFT_KICKS_MAX; /* the next one is one too many */
	watcher.polls.since_ns = watcher.polls.moved_ns = now_ns;
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
	{"the same, kicked at once", held_under_no_timer, {watches, leaves, submits}, NULL, 2},
	{"the same, it arms", held_under, {watches, leaves_armed, submits}, NULL, 2},
	{"the same, it arms and leaves again",
	 held_under,
	 {watches, leaves_and_arms, submits},
	 NULL,
	 2},
	{"a waiter leaves all armed, a task comes",
	 held_under_all,
	 {watches, leaves, submits},
	 NULL,
	 2},
	{"a waiter leaves, another comes and goes, a task comes",
	 held_under,
	 {watches, leaves, comes_and_goes, submits},
	 NULL,
	 1},
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

/* Words that decide nothing alone, by the production's own account: no step of their own. */
static void take_hints(void)
{
#define HINT(field) model_hint(&ENGINE->field, sizeof ENGINE->field)
	HINT(x_rounds);
	HINT(x_pending);
	HINT(x_some_armed);
	HINT(x_last_release);
	HINT(x_rest_arms);
	HINT(x_call_watcher);
	HINT(x_stop);
	HINT(kick_timer.x_rounds);
	HINT(batch_hold.x_ns);
	HINT(batch_hold.x_rounds);
	HINT(batch_hold.x_max_ns);
	HINT(batch_hold.x_tick_end_ns);
	HINT(batch_hold.x_kick);
	HINT(kick_filter.x_napping);
	HINT(kick_filter.x_spared);
	HINT(repeat);
#undef HINT
}

int main(void)
{
	unsigned long reached[WEFT_WATCHER_ROWS] = {0};
	int missed = 0;
	take_hints();
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
