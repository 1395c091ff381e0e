/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deferred kicks (task/defer.h) in every order: whoever leaves the baton behind while the timer of
 * an earlier kick goes off, the doorbells are armed in the end.
 */
#include "model/explore.h"
#include "task/defer.h"

enum { VACANT, HELD };

static struct weft_defer defer;
static _Atomic int x_baton;
static _Atomic int x_timer; /* times that it went off, and nobody was woken yet */
static int armed;           /* the explorer's: no order of its own */

static void setup(void)
{
	memset((void *)&defer, 0, sizeof defer);
	/* Set by one who left before, and about to go off. */
	atomic_store_explicit(&defer.x_set, true, memory_order_relaxed);
	atomic_store_explicit(&x_timer, 1, memory_order_relaxed);
	atomic_store_explicit(&x_baton, HELD, memory_order_relaxed);
	armed = 0;
}

static void leaves(void)
{
	/* Relaxed: the kick carries it. */
	atomic_store_explicit(&x_baton, VACANT, memory_order_relaxed);
	if (weft_defer_due(&defer))
		atomic_fetch_add_explicit(&x_timer, 1, memory_order_relaxed);
}

/* Asks before it leaves. */
static void leaves_late(void)
{
	bool due = weft_defer_due(&defer);
	atomic_store_explicit(&x_baton, VACANT, memory_order_relaxed);
	if (due)
		atomic_fetch_add_explicit(&x_timer, 1, memory_order_relaxed);
}

static bool no_timer(void *arg)
{
	int times;
	(void)arg;
	memcpy(&times, (void *)&x_timer, sizeof times); /* as the kernel sees it */
	return times == 0;
}

static void looks(void)
{
	while (!armed) { /* ends: it is vacant; asleep for ever is the failure */
		model_block(no_timer, NULL);
		atomic_exchange_explicit(&x_timer, 0, memory_order_relaxed);
		weft_defer_fired(&defer);
		/* Held: who holds it will defer anew. */
		armed = atomic_load_explicit(&x_baton, memory_order_relaxed) == VACANT;
	}
}

static void looks_first(void)
{
	while (!armed) {
		model_block(no_timer, NULL);
		atomic_exchange_explicit(&x_timer, 0, memory_order_relaxed);
		armed = atomic_load_explicit(&x_baton, memory_order_relaxed) == VACANT;
		weft_defer_fired(&defer);
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
		 .must = {"weft_defer_due x", "weft_defer_fired x"}},
		{"looks before it takes the note back",
		 setup,
		 {looks_first, leaves},
		 NULL,
		 4,
		 .broken = true},
		{"asks before it leaves", setup, {looks, leaves_late}, NULL, 4, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
