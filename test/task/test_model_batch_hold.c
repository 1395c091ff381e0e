/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is held back (task/wake/batch_hold.h) in every order: a task, which a thread that falls asleep finds in its
 * last look, and a message, which goes at once where its source is armed.  Neither lies there with
 * all threads asleep, whether the watcher sits down beside a sleeper, goes under or goes off at that
 * moment.
 */
#include "model/explore.h"
#include "task/wake/batch_hold.h"

static struct weft_baton baton;
static struct weft_task_batch_hold hold;
static _Atomic int x_work;  /* a seq_cst exchange, as in the queues */
static _Atomic int x_armed; /* the source of a message */
static _Atomic int x_edges; /* kicks into the watch set that no sleeper has taken */
static _Atomic int x_word;  /* the watcher's own */
static int found, early;    /* the explorer's: no order of their own */

enum { FIRST_NS = 1, ROUNDS = 7 };

static void setup_at(enum weft_baton_state state, enum weft_watcher_pos pos)
{
	memset((void *)&baton, 0, sizeof baton);
	memset((void *)&hold, 0, sizeof hold);
	atomic_store_explicit(&baton.x_state, state, memory_order_relaxed);
	atomic_store_explicit(&baton.x_watcher, pos, memory_order_relaxed);
	atomic_store_explicit(&baton.x_level, WEFT_ARM_ALL, memory_order_relaxed);
	atomic_store_explicit(&x_work, 0, memory_order_relaxed);
	atomic_store_explicit(&x_armed, state == WEFT_BATON_ASLEEP, memory_order_relaxed);
	atomic_store_explicit(&x_edges, 0, memory_order_relaxed);
	atomic_store_explicit(&x_word, 0, memory_order_relaxed);
	found = early = 0;
}

static void setup_ticks(void)
{
	setup_at(WEFT_BATON_VACANT, WEFT_WATCHER_TICKS);
}

static void setup_asleep(void)
{
	setup_at(WEFT_BATON_ASLEEP, WEFT_WATCHER_TICKS);
}

/* By now it is due, or not yet: a tick, no more. */
static uint64_t clock_ns(void)
{
	return FIRST_NS + (early++ || m_choose(2) ? WEFT_HOLD_MOST_NS : 0);
}

static void kick(enum weft_kick k)
{
	if (k == WEFT_KICK_SET)
		atomic_fetch_add_explicit(&x_edges, 1, memory_order_acq_rel);
	else if (k == WEFT_KICK_WATCHER)
		atomic_fetch_add_explicit(&x_word, 1, memory_order_acq_rel);
}

static void look(void)
{
	found += atomic_load_explicit(&x_work, memory_order_seq_cst) &&
		 atomic_exchange_explicit(&x_work, 0, memory_order_acq_rel);
}

/* ---- holding back -----------------------------------------------------------------------------
 */

static enum weft_held begin(void)
{
	enum weft_held held =
		weft_task_batch_hold_begin(&hold, &baton, FIRST_NS, WEFT_HOLD_NS, ROUNDS);
	if (held == WEFT_HELD_KICK)
		kick(WEFT_KICK_WATCHER);
	return held;
}

/* As a pack (comm/send/pack.c). */
static void message_how(bool asks)
{
	bool held = begin() != WEFT_HELD_NOT;
	atomic_exchange_explicit(&x_work, 1, memory_order_seq_cst);
	if (!held || (asks && atomic_load_explicit(&x_armed, memory_order_seq_cst)))
		look();
}

static void message(void)
{
	message_how(true);
}

static void message_unasked(void)
{
	message_how(false);
}

/* As tell_later(). */
static void task(void)
{
	atomic_exchange_explicit(&x_work, 1, memory_order_seq_cst);
	if (!weft_task_batch_hold_vacant(&baton) || begin() == WEFT_HELD_NOT)
		kick(weft_task_baton_submit_target(&baton));
	else if (atomic_load_explicit(&baton.x_watcher, memory_order_seq_cst) == WEFT_WATCHER_UNDER)
		kick(WEFT_KICK_SET);
}

/* The same; off, it must look itself. */
static void task_at_tick(void)
{
	atomic_exchange_explicit(&x_work, 1, memory_order_seq_cst);
	if (begin() == WEFT_HELD_NOT)
		look();
}

/* ---- looking ---------------------------------------------------------------------------------
 */

/* With the baton in hand.  False: something is there. */
static bool arm(void)
{
	atomic_exchange_explicit(&x_armed, 1, memory_order_seq_cst);
	if (!atomic_load_explicit(&x_work, memory_order_seq_cst))
		return true;
	atomic_store_explicit(&x_armed, 0, memory_order_relaxed);
	return false;
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
	return newest(&x_edges) == 0 && !found;
}

static void watch_set(void)
{
	model_block(no_edge, NULL);
	atomic_exchange_explicit(&x_edges, 0, memory_order_acq_rel);
}

static bool no_word(void *arg)
{
	return newest(&x_word) == *(int *)arg && !found;
}

/* A waiter: takes the baton and falls asleep with it, until there is something. */
static void dozes(void)
{
	if (!weft_task_baton_try_take(&baton))
		return;
	while (!found) { /* ends: woken */
		if (!arm()) {
			look();
			continue;
		}
		weft_task_baton_sleep(&baton);
		look();
		watch_set();
		weft_task_baton_wake(&baton);
		look();
	}
	kick(weft_task_baton_leave(&baton));
}

/* With the baton in hand, which it gives back. */
static void goes_under(void)
{
	if (!arm()) {
		look();
		kick(weft_task_baton_leave(&baton));
		return;
	}
	weft_task_watcher_sit(&baton, WEFT_WATCHER_UNDER);
	kick(weft_task_baton_leave(&baton));
	look();
	while (!found) { /* ends: kicked; asleep for ever is the failure */
		watch_set();
		look();
	}
}

/* One tick that has ended; true: sat beside a sleeper until kicked. */
static bool ticked(void)
{
	int seen = atomic_load_explicit(&x_word, memory_order_acquire);
	switch (weft_task_batch_hold_look(&hold, ROUNDS, clock_ns, WEFT_HOLD_MOST_NS)) {
	case WEFT_HOLD_NOT_DUE:
		return true;
	case WEFT_HOLD_DUE:
		look();
		break;
	default:
		break;
	}
	if (atomic_load_explicit(&baton.x_state, memory_order_seq_cst) != WEFT_BATON_ASLEEP ||
	    !weft_task_watcher_sit_beside(&baton))
		return false;
	model_block(no_word, &seen);
	model_fresh((void *)&x_word, sizeof x_word);
	look();
	return true;
}

static void watches(void)
{
	while (!found) { /* ends: asleep for ever, or ticking with nothing held, is the failure */
		weft_task_watcher_sit(&baton, WEFT_WATCHER_TICKS);
		if (ticked())
			continue;
		if (weft_task_baton_try_take(&baton))
			goes_under();
		else
			model_relax();
	}
}

/* A call into the library comes later, and finds what was published when it was off. */
static void goes_off(void)
{
	weft_task_watcher_sit(&baton, WEFT_WATCHER_OFF);
	if (weft_task_batch_hold_over(&hold))
		look();
}

static void goes_off_unasked(void)
{
	weft_task_watcher_sit(&baton, WEFT_WATCHER_OFF);
}

static void sent(void)
{
	MODEL_CHECK(found == 1);
}

int main(void)
{
	static const struct model models[] = {
		{"task, a holder falls asleep",
		 setup_ticks,
		 {task, watches, dozes},
		 sent,
		 2,
		 .must = {"weft_task_batch_hold_vacant l"}},
		{"task, watcher goes off",
		 setup_ticks,
		 {task_at_tick, goes_off},
		 sent,
		 8,
		 .must = {"weft_task_batch_hold_begin x", "weft_task_batch_hold_over x"}},
		{"task, watcher goes off and does not ask",
		 setup_ticks,
		 {task_at_tick, goes_off_unasked},
		 sent,
		 8,
		 .broken = true},
		{"message, a holder falls asleep", setup_ticks, {message, watches, dozes}, sent, 1},
		{"message, a holder sleeps", setup_asleep, {message, watches}, sent, 2},
		{"message that does not ask whether its source is armed",
		 setup_asleep,
		 {message_unasked, watches},
		 sent,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
