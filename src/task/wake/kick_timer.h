/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kick_timer.h - a kick for the watcher that can wait: a timer of the watch set gives it.
 *
 * Who leaves a wait with the doorbells put away owes the watcher a kick, so that it arms them.  It
 * runs on the caller's core: a kick takes that away for some 20 us, and mostly the caller comes
 * back to wait before.  So the kick is deferred, and who leaves meanwhile finds that done.  The one
 * whom the timer has woken takes the note back, then looks at the baton: held, its holder will
 * defer anew when he leaves; vacant, he arms.
 *
 * Who leaves with the bells armed, but without a membarrier, owes the check (bell.h): a last look
 * in some ms, by the same timer.  A kick makes it shorter; a check that comes sooner is no loss.
 *
 * Callers   due: who has just made the baton vacant.  overtaken: who has set the timer for a
 *           check.  fired: who was woken by the timer, before it looks at the baton.
 * Progress  an exchange each.
 * Promise   of a leaver and one whom the timer has woken: the first sets the timer anew, or the
 *           second sees the baton vacant.
 *           of one who owes a kick and one who owes a check: the timer is set for the kick last.
 * Checked   test/task/test_model_kick_timer.c.
 *
 *          due  fired   .  together, no help needed
 *   due     .    .      one of several of a kind sets the timer
 *   fired        .
 */
#ifndef WEFT_TASK_KICK_TIMER_H
#define WEFT_TASK_KICK_TIMER_H

#include "base/base.h"

#define WEFT_KICK_TIMER_NS                                                                         \
	50000u                 /* some exchanges of small messages; what background work may lose */
#define WEFT_CHECK_NS 4000000u /* what a message may lose that is overlooked, hardly ever one */
#define WEFT_KICK_TIMER_MAX 4 /* times in a row that somebody had waited meanwhile: then it ticks */

enum weft_task_kick_timer_what {
	WEFT_KICK_TIMER_CHECK = 1, /* in WEFT_CHECK_NS, or sooner */
	WEFT_KICK_TIMER_KICK = 2,  /* in WEFT_KICK_TIMER_NS */
};

struct weft_task_kick_timer {
	/* Of weft_defer_what: the timer will fire, or the one who wrote this sets it now. */
	_Atomic uint32_t x_set;
	_Atomic uint32_t x_rounds; /* who sets it: the engine's count of rounds, a hint */
};

/* True: the caller sets the timer; for a check he then asks weft_task_kick_timer_overtaken(). */
static inline bool weft_task_kick_timer_due(struct weft_task_kick_timer *d,
					    enum weft_task_kick_timer_what what)
{
	/* DUE -> FIRED.  Carries: the vacant baton, to one whose timer stands for our kick. Without
	 * it he could see it held, and the doorbells would stay away. */
	uint32_t was = atomic_fetch_or_explicit(&d->x_set, what, memory_order_release);
	return !(was & WEFT_KICK_TIMER_KICK) && !(was & what);
}

/* The timer is set for a check.  True: somebody has set it for a kick meanwhile, and we may have
 * put that off: set it so again. */
static inline bool weft_task_kick_timer_overtaken(struct weft_task_kick_timer *d)
{
	/* OVER <- DUE of a kick.  Relaxed: if his call of the kernel came before ours, his note
	 * did, too.  It may have been taken back since: then the timer goes off once in vain. */
	return atomic_load_explicit(&d->x_set, memory_order_relaxed) != WEFT_KICK_TIMER_CHECK;
}

static inline void weft_task_kick_timer_fired(struct weft_task_kick_timer *d)
{
	/* FIRED <- DUE. */
	(void)atomic_exchange_explicit(&d->x_set, 0, memory_order_acquire);
}

#endif
