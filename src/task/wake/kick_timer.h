/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kick_timer.h - a kick for the watcher that can wait: a timer of the watch set gives it.
 *
 * A thread that leaves a wait with the doorbells put away owes the watcher a kick, so that it arms
 * them.  The watcher runs on the caller's core: a kick takes that away for some 20 us, and mostly
 * the caller comes back to wait before.  So the kick is left to a timer, and a thread that leaves
 * meanwhile finds that done.  The thread that the timer has woken takes the note back, then looks at
 * the baton: held, its holder will set the timer anew when it leaves; vacant, the bells are armed.
 *
 * A thread that leaves with the bells armed to an unchecked level owes the check (arm_level.h): a
 * last look in some ms, by the same timer.  A kick makes it shorter; a check that comes sooner is no
 * loss.
 *
 * Callers   due: a thread that has just made the baton vacant.  overtaken: the same, which has set
 *           the timer for a check.  fired: the thread that the timer woke, before it looks at the
 *           baton.
 * Progress  an exchange each.
 * Promise   of a leaver and the thread that the timer has woken: the first sets the timer anew, or
 *           the second sees the baton vacant.
 *           of a thread that owes a kick and one that owes a check: the timer is set for the kick
 *           last.
 * Checked   test/task/test_model_kick_timer.c.
 *
 *          due  fired   .  together, no help needed
 *   due     .    .      one of several of a kind sets the timer
 *   fired        .
 */
#ifndef WEFT_TASK_KICK_TIMER_H
#define WEFT_TASK_KICK_TIMER_H

#include "base/assert.h"
#include "base/base.h"

#define WEFT_KICK_TIMER_NS                                                                         \
	50000u                 /* some exchanges of small messages; what background work may lose */
#define WEFT_CHECK_NS 4000000u /* what a message may lose that is overlooked, hardly ever one */
#define WEFT_KICK_TIMER_MAX 4 /* times in a row that a thread had waited meanwhile: then it ticks */

enum weft_task_kick_timer_what {
	WEFT_KICK_TIMER_CHECK = 1, /* in WEFT_CHECK_NS, or sooner */
	WEFT_KICK_TIMER_KICK = 2,  /* in WEFT_KICK_TIMER_NS */
};

struct weft_task_kick_timer {
	/* Of weft_task_kick_timer_what: the timer will fire, or the writer of this sets it now. */
	_Atomic uint32_t x_set;
	_Atomic uint32_t x_rounds; /* its setter: the engine's count of rounds, a hint */
};

/* True: the caller sets the timer; for a check it then asks weft_task_kick_timer_overtaken(). */
static inline bool weft_task_kick_timer_due(struct weft_task_kick_timer *d,
					    enum weft_task_kick_timer_what what)
{
	weft_assert(what == WEFT_KICK_TIMER_CHECK || what == WEFT_KICK_TIMER_KICK);
	/* DUE -> FIRED.  Carries: the vacant baton, to the thread whose timer stands for our kick.
	 * Without it that thread could see it held, and the doorbells would stay away. */
	uint32_t was = atomic_fetch_or_explicit(&d->x_set, what, memory_order_release);
	return !(was & WEFT_KICK_TIMER_KICK) && !(was & what);
}

/* The timer is set for a check.  True: another thread has set it for a kick meanwhile, and we may have
 * put that off: set it so again. */
static inline bool weft_task_kick_timer_overtaken(struct weft_task_kick_timer *d)
{
	/* OVER <- DUE of a kick.  Relaxed: if its call of the kernel came before ours, its note
	 * did, too.  It may have been taken back since: then the timer goes off once in vain. */
	return atomic_load_explicit(&d->x_set, memory_order_relaxed) != WEFT_KICK_TIMER_CHECK;
}

static inline void weft_task_kick_timer_fired(struct weft_task_kick_timer *d)
{
	/* FIRED <- DUE. */
	(void)atomic_exchange_explicit(&d->x_set, 0, memory_order_acquire);
}

#endif
