/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The baton in every order: no submission, message or parked waiter is left behind when the holder
 * falls asleep, wakes, leaves, or the watcher moves or goes off at the same moment.
 */
#include "model/explore.h"
#include "task/wake/baton.h"

static struct weft_baton baton;
static _Atomic int x_work;     /* submissions: a seq_cst exchange, as in the submission queue */
static _Atomic int x_packets;  /* messages */
static _Atomic int x_bell;     /* armed: rings once */
static _Atomic int x_edges;    /* the watch set: events that no sleeper has taken */
static _Atomic int x_word;     /* the watcher's own */
static _Atomic int x_notified; /* the parked waiter's parker */
static int handled;            /* kept by the explorer, not by the program: no order of its own */

static void setup_with(enum weft_baton_state state, enum weft_watcher_pos pos)
{
	memset((void *)&baton, 0, sizeof baton);
	atomic_store_explicit(&baton.x_state, state, memory_order_relaxed);
	atomic_store_explicit(&baton.x_watcher, pos, memory_order_relaxed);
	atomic_store_explicit(&x_work, 0, memory_order_relaxed);
	atomic_store_explicit(&x_packets, 0, memory_order_relaxed);
	atomic_store_explicit(&x_bell, 0, memory_order_relaxed);
	atomic_store_explicit(&x_edges, 0, memory_order_relaxed);
	atomic_store_explicit(&x_word, 0, memory_order_relaxed);
	atomic_store_explicit(&x_notified, 0, memory_order_relaxed);
	handled = 0;
}

/* The newest value, as the kernel sees it. */
static int newest(_Atomic int *p)
{
	int v;
	memcpy(&v, (void *)p, sizeof v);
	return v;
}

static bool no_edge(void *arg)
{
	return newest(&x_edges) == 0 && handled < *(int *)arg;
}

/* epoll_wait: takes what is there; any sleeper may get it. */
static void watch_set(int enough)
{
	model_block(no_edge, &enough);
	atomic_exchange_explicit(&x_edges, 0, memory_order_acq_rel);
}

static bool no_word(void *arg)
{
	return newest(&x_word) == *(int *)arg;
}

static bool not_notified(void *arg)
{
	return newest(&x_notified) == 0;
}

static void kick(enum weft_kick k)
{
	if (k == WEFT_KICK_SET)
		atomic_fetch_add_explicit(&x_edges, 1, memory_order_acq_rel);
	else if (k == WEFT_KICK_WATCHER)
		atomic_fetch_add_explicit(&x_word, 1, memory_order_acq_rel);
	else if (k == WEFT_KICK_PARKED)
		atomic_exchange_explicit(&x_notified, 1, memory_order_acq_rel);
}

/* ---- a submission against a holder that falls asleep
 * ----------------------------------------------- */

static void asleep_setup(void)
{
	setup_with(WEFT_BATON_HELD, WEFT_WATCHER_BESIDE);
	atomic_store_explicit(&baton.x_level, WEFT_ARM_ALL, memory_order_relaxed);
}

static bool take_work(void)
{
	if (!atomic_load_explicit(&x_work, memory_order_seq_cst))
		return false;
	handled++;
	return true;
}

static void sleeps(void)
{
	bool got = false;
	while (!got) { /* ends: the submission is found */
		weft_task_baton_sleep(&baton);
		if (!take_work()) {
			watch_set(1);
			weft_task_baton_wake(&baton);
			got = take_work();
		} else {
			weft_task_baton_wake(&baton);
			got = true;
		}
	}
}

static void sleeps_without_a_look(void)
{
	weft_task_baton_sleep(&baton);
	watch_set(1);
	weft_task_baton_wake(&baton);
	take_work();
}

static void submits(void)
{
	atomic_exchange_explicit(&x_work, 1, memory_order_seq_cst);
	kick(weft_task_baton_submit_target(&baton));
}

/* ---- a submission against a watcher that comes out of the watch set to tick
 * ------------------------- */

static void under_setup(void)
{
	setup_with(WEFT_BATON_VACANT, WEFT_WATCHER_UNDER);
	atomic_store_explicit(&baton.x_level, WEFT_ARM_ALL, memory_order_relaxed);
}

/* Without its look it would sleep a tick, here for ever. */
static void comes_out_how(bool look)
{
	int seen = atomic_load_explicit(&x_word, memory_order_acquire);
	weft_task_watcher_sit(&baton, WEFT_WATCHER_TICKS);
	if (look && take_work())
		return;
	model_block(no_word, &seen);
	MODEL_CHECK(take_work());
}

static void comes_out(void)
{
	comes_out_how(true);
}

static void comes_out_without_a_look(void)
{
	comes_out_how(false);
}

/* ---- messages while holder and watcher change places
 * ------------------------------------------------ */

static void poll(void)
{
	handled += atomic_exchange_explicit(&x_packets, 0, memory_order_acq_rel);
}

static void send_one(void)
{
	atomic_fetch_add_explicit(&x_packets, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&x_bell, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&x_bell, 0, memory_order_acq_rel))
		atomic_fetch_add_explicit(&x_edges, 1, memory_order_acq_rel);
}

static void sends_two(void)
{
	send_one();
	send_one();
}

/* The holder of the baton arms the one source; false: something is there. */
static bool arm(void)
{
	weft_task_baton_arm(&baton, WEFT_ARM_ALL);
	atomic_exchange_explicit(&x_bell, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&x_packets, memory_order_seq_cst) == 0)
		return true;
	atomic_store_explicit(&x_bell, 0, memory_order_relaxed);
	atomic_store_explicit(&baton.x_level, WEFT_ARM_OFF, memory_order_relaxed);
	return false;
}

/* Waits for its message asleep, then goes back to the application for good. */
static void waits_and_leaves(void)
{
	while (handled == 0) { /* ends: a message was found, by us or by the watcher */
		poll();
		if (handled || !arm())
			continue;
		weft_task_baton_sleep(&baton);
		poll();
		if (!handled) {
			watch_set(1);
			weft_task_baton_rang(&baton);
		}
		weft_task_baton_wake(&baton);
	}
	poll();
	if (!atomic_load_explicit(&baton.x_level, memory_order_relaxed))
		arm();
	kick(weft_task_baton_leave(&baton));
}

/* Ticks, sits beside a sleeping holder, goes under when no thread polls; stays until all is there. */
static void watches(void)
{
	while (handled < 2) { /* ends: both messages are there */
		int seen = atomic_load_explicit(&x_word, memory_order_acquire);
		weft_task_watcher_sit(&baton, WEFT_WATCHER_TICKS);
		if (atomic_load_explicit(&baton.x_state, memory_order_seq_cst) ==
			    WEFT_BATON_ASLEEP &&
		    weft_task_watcher_sit_beside(&baton))
			model_block(no_word, &seen);
		if (!weft_task_baton_try_take(&baton)) {
			model_relax();
			continue;
		}
		if (!atomic_load_explicit(&baton.x_level, memory_order_relaxed) && !arm()) {
			poll();
			kick(weft_task_baton_leave(&baton));
			continue;
		}
		weft_task_watcher_sit(&baton, WEFT_WATCHER_UNDER);
		kick(weft_task_baton_leave(&baton));
		poll();
		if (handled < 2) {
			watch_set(2);
			weft_task_baton_rang(&baton);
			poll();
		}
	}
}

static void waits_and_leaves_unseen(void)
{
	while (handled == 0) {
		poll();
		if (handled || !arm())
			continue;
		weft_task_baton_sleep(&baton);
		poll();
		if (!handled) {
			watch_set(1);
			weft_task_baton_rang(&baton);
		}
		/* Wakes without asking where the watcher is. */
		atomic_store_explicit(&baton.x_state, WEFT_BATON_HELD, memory_order_release);
	}
	poll();
	if (!atomic_load_explicit(&baton.x_level, memory_order_relaxed))
		arm();
	kick(weft_task_baton_leave(&baton));
}

static void two_there(void)
{
	MODEL_CHECK(handled == 2);
}

static void message_setup(void)
{
	setup_with(WEFT_BATON_HELD, WEFT_WATCHER_TICKS);
}

/* ---- the watcher goes off while one leaves and one parks
 * -------------------------------------------- */

static void goes_off(void)
{
	weft_task_watcher_sit(&baton, WEFT_WATCHER_OFF);
	model_membarrier();
	if (weft_task_baton_try_take(&baton))
		kick(weft_task_baton_leave(&baton));
}

static void goes_off_without_barrier(void)
{
	weft_task_watcher_sit(&baton, WEFT_WATCHER_OFF);
	if (weft_task_baton_try_take(&baton))
		kick(weft_task_baton_leave(&baton));
}

static void leaves(void)
{
	kick(weft_task_baton_leave(&baton));
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
}

/* Gives the baton away together with another thread's message, and parks. */
static void hands_over(void)
{
	weft_task_baton_park(&baton);
	kick(weft_task_baton_leave(&baton));
	model_block(not_notified, NULL);
}

/* ---- one leaves and arms quietly while another parks ------------------------------------------
 */

static void quiet_setup(void)
{
	setup_with(WEFT_BATON_HELD, WEFT_WATCHER_UNDER);
}

/* Arms for what may be wanted; false: something is there. */
static bool arm_left(void)
{
	bool quiet = !weft_task_baton_heard(&baton);
	weft_task_baton_arm(&baton, quiet ? WEFT_ARM_REPLIES : WEFT_ARM_ALL);
	atomic_exchange_explicit(&x_bell, quiet ? 1 : 2, memory_order_seq_cst);
	return atomic_load_explicit(&x_packets, memory_order_seq_cst) == 0;
}

static void leaves_quietly(void)
{
	if (!arm_left())
		poll();
	kick(weft_task_baton_leave(&baton));
}

/* Does not ask whether a thread has parked meanwhile. */
static void leaves_deaf(void)
{
	if (!arm_left())
		poll();
	atomic_exchange_explicit(&baton.x_state, WEFT_BATON_VACANT, memory_order_seq_cst);
}

static bool not_handled(void *arg)
{
	(void)arg;
	return handled == 0;
}

/* Parks; then its message comes, which rings only a bell that is armed for all. */
static void parks_for_a_message(void)
{
	if (!weft_task_baton_park(&baton)) {
		weft_task_baton_unpark(&baton);
		handled = 1; /* takes the baton, and polls */
		return;
	}
	atomic_fetch_add_explicit(&x_packets, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&x_bell, memory_order_seq_cst) == 2)
		atomic_fetch_add_explicit(&x_edges, 1, memory_order_acq_rel);
	model_block(not_handled, NULL);
	weft_task_baton_unpark(&baton);
}

/* In the watch set: a kick or a ring wakes it. */
static void lies_under(void)
{
	if (handled)
		return;
	watch_set(1);
	poll();
	if (handled || !weft_task_baton_try_take(&baton))
		return; /* it ticks: see the other models */
	if (!arm_left())
		poll();
	kick(weft_task_baton_leave(&baton));
	poll();
	if (!handled)
		watch_set(1);
	poll();
}

int main(void)
{
	static const struct model models[] = {
		{"submission, holder falls asleep",
		 asleep_setup,
		 {sleeps, submits},
		 NULL,
		 8,
		 .must = {"weft_task_baton_sleep x", "weft_task_baton_submit_target l"}},
		{"no look before the sleep",
		 asleep_setup,
		 {sleeps_without_a_look, submits},
		 NULL,
		 8,
		 .broken = true},
		{"submission, watcher begins to tick",
		 under_setup,
		 {comes_out, submits},
		 NULL,
		 8,
		 .must = {"weft_task_watcher_sit x", "weft_task_baton_submit_target l"}},
		{"no look before the tick",
		 under_setup,
		 {comes_out_without_a_look, submits},
		 NULL,
		 8,
		 .broken = true},
		{"one leaves, one parks, watcher goes off",
		 message_setup,
		 {leaves, parks, goes_off},
		 NULL,
		 3,
		 .must = {"weft_task_baton_park x", "weft_task_baton_leave x"}},
		{"hand-over, watcher goes off", message_setup, {hands_over, goes_off}, NULL, 8},
		{"watcher goes off without membarrier",
		 message_setup,
		 {hands_over, goes_off_without_barrier},
		 NULL,
		 8,
		 .broken = true},
		{"one leaves quietly, one parks",
		 quiet_setup,
		 {leaves_quietly, parks_for_a_message, lies_under},
		 NULL,
		 3},
		{"one leaves deaf, one parks",
		 quiet_setup,
		 {leaves_deaf, parks_for_a_message, lies_under},
		 NULL,
		 3,
		 .broken = true},
		{"messages, holder leaves, watcher moves",
		 message_setup,
		 {waits_and_leaves, watches, sends_two},
		 two_there,
		 2,
		 .must = {"weft_task_baton_wake x", "weft_task_watcher_sit_beside x"}},
		{"holder wakes without asking for the watcher",
		 message_setup,
		 {waits_and_leaves_unseen, watches, sends_two},
		 two_there,
		 2,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
