/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * defer.h - a kick for the watcher that can wait: a timer of the watch set gives it.
 *
 * Who leaves a wait with the doorbells put away owes the watcher a kick, so that it arms them.  It
 * runs on the caller's core: a kick takes that away for some 20 us, and mostly the caller comes
 * back to wait before.  So the kick is deferred, and who leaves meanwhile finds that done.  The one
 * whom the timer has woken takes the note back, then looks at the baton: held, its holder will
 * defer anew when he leaves; vacant, he arms.
 *
 * Callers   due: who has just made the baton vacant.  fired: who was woken by the timer, before it
 *           looks at the baton.
 * Progress  an exchange each.
 * Promise   of a leaver and one whom the timer has woken: the first sets the timer anew, or the
 *           second sees the baton vacant.
 * Checked   test/task/test_model_defer.c.
 *
 *          due  fired   .  together, no help needed
 *   due     .    .      one of several sets the timer
 *   fired        .
 */
#ifndef WEFT_DEFER_H
#define WEFT_DEFER_H

#include "base/base.h"

#define WEFT_DEFER_NS 50000u /* some exchanges of small messages; what background work may lose */
#define WEFT_AWAY_NS                                                                               \
	200000u /* so long since the last wait: the next one will not come soon either */
#define WEFT_SETTLE_NS 4000000u /* what a message may lose that is overlooked, hardly ever one */
#define WEFT_DEFER_MAX 4 /* times in a row that somebody had waited meanwhile: then it ticks */

struct weft_defer {
	_Atomic bool x_set;        /* the timer will fire, or the one who wrote this sets it now */
	_Atomic bool x_long;       /* it is the long one; a hint */
	_Atomic uint32_t x_rounds; /* who sets it: the engine's count of rounds, a hint */
};

/* True: the caller sets the timer. */
static inline bool weft_defer_due(struct weft_defer *d)
{
	/* DUE -> FIRED.  Carries: the vacant baton, to one whose timer stands for our kick. Without
	 * it he could see it held, and the doorbells would stay away. */
	return !atomic_exchange_explicit(&d->x_set, true, memory_order_release);
}

static inline void weft_defer_fired(struct weft_defer *d)
{
	/* FIRED <- DUE. */
	(void)atomic_exchange_explicit(&d->x_set, false, memory_order_acquire);
}

#endif
