/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deferred kicks (task/wake/kick_timer.h) in every order: if a thread leaves the baton behind while the timer of
 * an earlier kick goes off, the doorbells are armed in the end; a thread that owes a check at that moment is
 * seen, too, and does not put off a kick.
 */
#include "model/explore.h"
#include "task/wake/kick_timer.h"

enum { VACANT, HELD };
enum { OFF, FAR, NEAR }; /* the timer: FAR goes off after all else here */

static struct weft_task_kick_timer defer;
static _Atomic int x_baton;
static _Atomic int x_timer;
static int armed; /* the explorer's: no order of its own */

static void setup_with(unsigned set, int timer)
{
	memset((void *)&defer, 0, sizeof defer);
	atomic_store_explicit(&defer.x_set, set, memory_order_relaxed);
	atomic_store_explicit(&x_timer, timer, memory_order_relaxed);
	atomic_store_explicit(&x_baton, HELD, memory_order_relaxed);
	armed = 0;
}

/* Set by a thread that left before, and about to go off. */
static void setup(void)
{
	setup_with(WEFT_KICK_TIMER_KICK, NEAR);
}

static void check_setup(void)
{
	setup_with(WEFT_KICK_TIMER_CHECK, NEAR); /* its time has come */
}

static void unset_setup(void)
{
	setup_with(0, OFF);
}

/* As weft_task_engine_set_kick_timer(); the kernel does one after the other. */
static void set_timer(int to)
{
	atomic_exchange_explicit(&x_timer, to, memory_order_acq_rel);
}

static void leaves(void)
{
	/* Relaxed: the kick carries it. */
	atomic_store_explicit(&x_baton, VACANT, memory_order_relaxed);
	if (weft_task_kick_timer_due(&defer, WEFT_KICK_TIMER_KICK))
		set_timer(NEAR);
}

/* Asks before it leaves. */
static void leaves_late(void)
{
	bool due = weft_task_kick_timer_due(&defer, WEFT_KICK_TIMER_KICK);
	atomic_store_explicit(&x_baton, VACANT, memory_order_relaxed);
	if (due)
		set_timer(NEAR);
}

/* Has left with all armed, for another thread to check. */
static void checks_how(bool ask)
{
	if (!weft_task_kick_timer_due(&defer, WEFT_KICK_TIMER_CHECK))
		return;
	set_timer(FAR);
	if (ask && weft_task_kick_timer_overtaken(&defer))
		set_timer(NEAR);
}

static void checks(void)
{
	checks_how(true);
}

static void checks_deaf(void)
{
	checks_how(false);
}

/* The last of all, which owes a check: the timer may go off late, but not without it. */
static void leaves_unchecked(void)
{
	atomic_store_explicit(&x_baton, VACANT, memory_order_relaxed);
	if (weft_task_kick_timer_due(&defer, WEFT_KICK_TIMER_CHECK))
		set_timer(NEAR); /* as it is in the end */
}

/* Relies on whatever is set. */
static void leaves_with_a_kick_set(void)
{
	atomic_store_explicit(&x_baton, VACANT, memory_order_relaxed);
	if (!atomic_load_explicit(&defer.x_set, memory_order_relaxed) &&
	    weft_task_kick_timer_due(&defer, WEFT_KICK_TIMER_KICK))
		set_timer(NEAR);
}

static bool not_near(void *arg)
{
	int timer;
	(void)arg;
	memcpy(&timer, (void *)&x_timer, sizeof timer); /* as the kernel sees it */
	return timer != NEAR;
}

static void looks(void)
{
	while (!armed) { /* ends: it is vacant; asleep for ever is the failure */
		model_block(not_near, NULL);
		atomic_exchange_explicit(&x_timer, OFF, memory_order_acq_rel);
		weft_task_kick_timer_fired(&defer);
		/* Held: its holder will set the timer anew. */
		armed = atomic_load_explicit(&x_baton, memory_order_relaxed) == VACANT;
	}
}

static void looks_first(void)
{
	while (!armed) {
		model_block(not_near, NULL);
		atomic_exchange_explicit(&x_timer, OFF, memory_order_acq_rel);
		armed = atomic_load_explicit(&x_baton, memory_order_relaxed) == VACANT;
		weft_task_kick_timer_fired(&defer);
	}
}

int main(void)
{
	static const struct model models[] = {
		{"one leaves",
		 setup,
		 {looks, leaves},
		 NULL,
		 4,
		 .must = {"weft_task_kick_timer_due x", "weft_task_kick_timer_fired x"}},
		{"looks before it takes the note back",
		 setup,
		 {looks_first, leaves},
		 NULL,
		 4,
		 .broken = true},
		{"asks before it leaves", setup, {looks, leaves_late}, NULL, 4, .broken = true},
		{"one leaves armed while a kick's timer goes off",
		 setup,
		 {looks, leaves_unchecked},
		 NULL,
		 4,
		 .must = {"weft_task_kick_timer_due x", "weft_task_kick_timer_fired x"}},
		{"one leaves armed while a check's timer goes off",
		 check_setup,
		 {looks, leaves_unchecked},
		 NULL,
		 4,
		 .must = {"weft_task_kick_timer_due x", "weft_task_kick_timer_fired x"}},
		{"one owes a check, one a kick", unset_setup, {looks, checks, leaves}, NULL, 4},
		{"a check puts off a kick",
		 unset_setup,
		 {looks, checks_deaf, leaves},
		 NULL,
		 4,
		 .broken = true},
		{"a kick relies on a check's timer",
		 unset_setup,
		 {looks, checks, leaves_with_a_kick_set},
		 NULL,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
