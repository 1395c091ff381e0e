/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose end is wanted though no thread waits (weft_task_engine_want) in every order: one begins
 * while another thread arms quietly and leaves, while a second one begins, while the last one ends,
 * or in the watcher's own last look: the packet that ends it is found, or rings.
 */
#include "model/explore.h"
#include "task/wake/baton.h"

enum { AWAKE, QUIET, LOUD }; /* the one bell */

static struct weft_baton baton;
static _Atomic int x_packets;
static _Atomic int x_bell;
static _Atomic int x_edges; /* the watch set: events that no sleeper has taken */
static _Atomic int x_begun;
static int handled; /* the explorer's: no order of its own */
static int awaited;

static void setup_with(enum weft_baton_state state, int packets)
{
	memset((void *)&baton, 0, sizeof baton);
	atomic_store_explicit(&baton.x_state, state, memory_order_relaxed);
	atomic_store_explicit(&baton.x_watcher, WEFT_WATCHER_UNDER, memory_order_relaxed);
	atomic_store_explicit(&x_packets, 0, memory_order_relaxed);
	atomic_store_explicit(&x_bell, AWAKE, memory_order_relaxed);
	atomic_store_explicit(&x_edges, 0, memory_order_relaxed);
	atomic_store_explicit(&x_begun, 0, memory_order_relaxed);
	handled = 0;
	awaited = packets;
}

/* Held by a thread that goes away. */
static void held_setup(void)
{
	setup_with(WEFT_BATON_HELD, 1);
}

/* It has gone. */
static void quiet_setup_for(int packets)
{
	setup_with(WEFT_BATON_VACANT, packets);
	atomic_store_explicit(&baton.x_level, WEFT_ARM_REPLIES, memory_order_relaxed);
	atomic_store_explicit(&x_bell, QUIET, memory_order_relaxed);
}

static void two_setup(void)
{
	quiet_setup_for(2);
}

/* One is under way still, for which the bell is loud. */
static void ending_setup(void)
{
	setup_with(WEFT_BATON_HELD, 1);
	atomic_store_explicit(&baton.x_wanted, 1, memory_order_relaxed);
}

static int newest(_Atomic int *p)
{
	int v;
	memcpy(&v, (void *)p, sizeof v); /* as the kernel sees it */
	return v;
}

static bool no_edge(void *arg)
{
	(void)arg;
	return newest(&x_edges) == 0 && handled < awaited;
}

static bool not_handled(void *arg)
{
	(void)arg;
	return handled < awaited;
}

static void poll(void)
{
	handled += atomic_exchange_explicit(&x_packets, 0, memory_order_acq_rel);
}

static void kick(enum weft_kick k)
{
	if (k == WEFT_KICK_SET)
		atomic_fetch_add_explicit(&x_edges, 1, memory_order_acq_rel);
}

/* Baton in hand: as weft_task_sources_arm() to leave; finds what is there. */
static void arm_left(void)
{
	bool quiet = !weft_task_baton_heard(&baton);
	weft_task_baton_arm(&baton, quiet ? WEFT_ARM_REPLIES_UNCHECKED : WEFT_ARM_ALL_UNCHECKED);
	atomic_exchange_explicit(&x_bell, quiet ? QUIET : LOUD, memory_order_seq_cst);
	if (!atomic_load_explicit(&x_packets, memory_order_seq_cst))
		return;
	atomic_store_explicit(&x_bell, AWAKE, memory_order_relaxed);
	atomic_store_explicit(&baton.x_level, WEFT_ARM_OFF, memory_order_relaxed);
	poll();
}

static void leaves(void)
{
	arm_left();
	kick(weft_task_baton_leave(&baton));
}

/* Does not ask what is wanted meanwhile. */
static void leaves_deaf(void)
{
	arm_left();
	atomic_exchange_explicit(&baton.x_state, WEFT_BATON_VACANT, memory_order_seq_cst);
}

/* As arm_for_all() in kick.c. */
static void arm_for_all(bool call)
{
	if (!weft_task_baton_try_take(&baton)) {
		if (call)
			kick(WEFT_KICK_SET);
		return;
	}
	if (atomic_load_explicit(&baton.x_level, memory_order_relaxed))
		arm_left();
	kick(weft_task_baton_leave(&baton));
}

/* A packet that needs no answer. */
static void packet_comes(void)
{
	atomic_fetch_add_explicit(&x_packets, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&x_bell, memory_order_seq_cst) != LOUD ||
	    !atomic_exchange_explicit(&x_bell, AWAKE, memory_order_seq_cst))
		return;
	/* The thread that it wakes takes it back: weft_task_engine_watch(). */
	weft_task_baton_rang(&baton);
	atomic_fetch_add_explicit(&x_edges, 1, memory_order_acq_rel);
}

static void begins(void)
{
	if (weft_task_baton_want(&baton, 1))
		arm_for_all(true);
	packet_comes();
	model_block(not_handled, NULL);
}

/* Looks at the bells before it counts. */
static void begins_late(void)
{
	bool arm = weft_arm_is_for_replies(
		(enum weft_arm_level)atomic_load_explicit(&baton.x_level, memory_order_seq_cst));
	(void)weft_task_baton_want(&baton, 1);
	if (arm)
		arm_for_all(true);
	packet_comes();
	model_block(not_handled, NULL);
}

static void begins_without_a_call(void)
{
	if (weft_task_baton_want(&baton, 1))
		arm_for_all(false);
	packet_comes();
	model_block(not_handled, NULL);
}

/* The packet came after the count alone. */
static void begins_unarmed(void)
{
	(void)weft_task_baton_want(&baton, 1);
	packet_comes();
	model_block(not_handled, NULL);
}

static void ends_and_begins(void)
{
	(void)weft_task_baton_want(&baton, -1);
	begins();
}

/* The watcher in the watch set; ticks when another thread holds the baton. */
static void lies_under_how(bool heeds)
{
	while (handled < awaited) { /* ends: all is there; asleep for ever is the failure */
		model_block(no_edge, NULL);
		atomic_exchange_explicit(&x_edges, 0, memory_order_acq_rel);
		poll();
		if (handled == awaited ||
		    (atomic_load_explicit(&baton.x_level, memory_order_relaxed) &&
		     !(heeds && weft_task_baton_unheard(&baton))))
			continue;
		while (!weft_task_baton_try_take(&baton)) /* ends: its holder leaves */
			model_relax();
		arm_left();
		kick(weft_task_baton_leave(&baton));
		poll();
	}
}

static void lies_under(void)
{
	lies_under_how(true);
}

static void lies_under_deaf(void)
{
	lies_under_how(false);
}

/* What its last look runs begins an operation: the watcher has to look after that itself. */
static void begins_itself(bool heeds)
{
	arm_left();
	weft_task_watcher_sit(&baton, WEFT_WATCHER_UNDER);
	kick(weft_task_baton_leave(&baton));
	(void)weft_task_baton_want(&baton, 1);
	atomic_store_explicit(&x_begun, 1, memory_order_release);
	if (heeds && weft_task_baton_unheard(&baton))
		arm_for_all(false);
	lies_under_how(false);
}

static void begins_and_heeds(void)
{
	begins_itself(true);
}

static void begins_heedless(void)
{
	begins_itself(false);
}

static void answers(void)
{
	while (!atomic_load_explicit(&x_begun, memory_order_acquire)) /* ends: the watcher's look */
		model_relax();
	packet_comes();
}

int main(void)
{
	static const struct model models[] = {
		{"one leaves quietly, one wants",
		 held_setup,
		 {leaves, begins, lies_under},
		 NULL,
		 2,
		 .must = {"weft_task_baton_want x", "weft_task_baton_want l",
			  "weft_task_baton_arm s"}},
		{"two want", two_setup, {begins, begins, lies_under}, NULL, 2},
		{"one ends, the next begins",
		 ending_setup,
		 {leaves, ends_and_begins, lies_under},
		 NULL,
		 3},
		{"the watcher begins one", held_setup, {begins_and_heeds, answers}, NULL, 3},
		{"the watcher begins one and sleeps",
		 held_setup,
		 {begins_heedless, answers},
		 NULL,
		 3,
		 .broken = true},
		{"one leaves deaf",
		 held_setup,
		 {leaves_deaf, begins, lies_under},
		 NULL,
		 3,
		 .broken = true},
		{"looks before it counts",
		 held_setup,
		 {leaves, begins_late, lies_under},
		 NULL,
		 2,
		 .broken = true},
		{"counts, but does not arm",
		 held_setup,
		 {leaves, begins_unarmed, lies_under},
		 NULL,
		 3,
		 .broken = true},
		{"does not call the watcher",
		 held_setup,
		 {leaves, begins_without_a_call, lies_under},
		 NULL,
		 3,
		 .broken = true},
		{"the watcher does not heed it",
		 held_setup,
		 {leaves, begins, lies_under_deaf},
		 NULL,
		 3,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
