/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watcher_table.h - the watcher's state table: where it is, what it finds when it wakes there, what
 * it does, and where it is then.  No other place decides.
 *
 *   position  finds          does                                            then      else
 *   OFF       WANTED         -                                               TICKS
 *             UNWANTED       goes off once more, sleeps on its word          OFF
 *   TICKS     UNWANTED       disarms, goes off, passes the baton             OFF
 *             HELD_BACK      - (the next tick sends it)                      TICKS
 *             ASLEEP         says BESIDE, looks whether the holder sleeps    BESIDE    TICKS
 *             POLLED         ticks longer; looks if a task was submitted     TICKS
 *             DEPARTED       the same, but the next tick is a short one      TICKS
 *             SPARED         - (the pollers get the core)                    TICKS
 *             UNPOLLED       arms all, says UNDER, looks                     UNDER     TICKS
 *   UNDER     UNWANTED       as above                                        OFF
 *             UNHEARD        arms for more, looks                            UNDER     TICKS
 *             WORK_DUE       runs what the application has not come for      UNDER
 *             TIMER_HELD     sets the timer again, a few times               UNDER     TICKS
 *             TIMER_POLLED   looks; the same                                 UNDER     TICKS
 *             TIMER_ARMED    looks, arms the checked level                   UNDER     TICKS
 *             TIMER_VACANT   looks, arms                                     UNDER     TICKS
 *             RANG_HELD      sets the timer again, a few times               UNDER     TICKS
 *             BURST          disarms, so that what follows need not ring     TICKS
 *             RANG           looks, passes on a kick, arms again             UNDER     TICKS
 *             EXPIRED        looks, passes on a kick, arms the checked level UNDER     TICKS
 *             KICKED         looks, passes on a kick; stays if all is armed  UNDER     TICKS
 *   BESIDE    UNWANTED       as above                                        OFF
 *             KICKED         arms all, says UNDER, looks                     UNDER     TICKS
 *
 * Callers   the watcher.  The table and the finders are pure: the model runs them, too.
 * Promise   the watcher sleeps for good only at OFF (waiters poll, or none wants progress), UNDER
 *           (armed, and it has looked since it said so) and BESIDE (a holder sleeps in its place,
 *           and kicks it on leaving).
 * Checked   test/task/test_model_wake.c, with a mutant for each row.
 */
#ifndef WEFT_WATCHER_TABLE_H
#define WEFT_WATCHER_TABLE_H

#include "base/assert.h"
#include "task/wake/baton.h"

enum weft_watcher_finds {
	WEFT_WATCHER_WANTED,
	WEFT_WATCHER_UNWANTED,   /* background progress is off, or the engine stops */
	WEFT_WATCHER_HELD_BACK,  /* something is held back (batch_hold.h), and not due yet */
	WEFT_WATCHER_ASLEEP,     /* the holder sleeps in the watch set */
	WEFT_WATCHER_POLLED,     /* waiters have polled since the last look */
	WEFT_WATCHER_DEPARTED,   /* the same, but none does now, and an operation was left behind */
	WEFT_WATCHER_SPARED,     /* threads that poll look at the queues: it need not */
	WEFT_WATCHER_UNPOLLED,   /* no thread has polled since the last look */
	WEFT_WATCHER_UNHEARD,    /* armed for less than is wanted */
	WEFT_WATCHER_WORK_DUE,   /* work left to the application (app_work.c) is overdue */
	WEFT_WATCHER_TIMER_HELD, /* the kick timer alone, and the holder polls */
	WEFT_WATCHER_TIMER_POLLED, /* vacant, not armed; a thread has polled since it was set */
	WEFT_WATCHER_TIMER_ARMED,
	WEFT_WATCHER_TIMER_VACANT,
	WEFT_WATCHER_RANG_HELD, /* a bell, and the holder polls: it has most likely seen it */
	WEFT_WATCHER_BURST,     /* something is held back, or tasks come while threads poll */
	WEFT_WATCHER_RANG,
	WEFT_WATCHER_EXPIRED, /* nothing woke it in time */
	WEFT_WATCHER_KICKED,
};

enum weft_watcher_does {
	WEFT_WATCHER_DOES_NOTHING,
	WEFT_WATCHER_GOES_OFF,
	WEFT_WATCHER_SITS_BESIDE,
	WEFT_WATCHER_TICKS_LONGER,
	WEFT_WATCHER_TICKS_SHORTER,
	WEFT_WATCHER_GOES_UNDER,
	WEFT_WATCHER_ARMS_AGAIN,
	WEFT_WATCHER_RUNS_WORK,
	WEFT_WATCHER_SETS_TIMER,
	WEFT_WATCHER_LOOKS_AND_SETS_TIMER,
	WEFT_WATCHER_LOOKS_AND_CHECKS,
	WEFT_WATCHER_LOOKS_AND_ARMS,
	WEFT_WATCHER_DISARMS,
	WEFT_WATCHER_SERVES,            /* looks, passes on a kick */
	WEFT_WATCHER_SERVES_AND_CHECKS, /* the same, then arms the checked level */
	WEFT_WATCHER_SERVES_AND_ARMS,   /* the same, then arms again */
	WEFT_WATCHER_DOES_COUNT,
};

struct weft_watcher_row {
	enum weft_watcher_pos at;
	enum weft_watcher_finds finds;
	enum weft_watcher_does does;
	enum weft_watcher_pos then, otherwise; /* done, or not possible */
};

#define WEFT_WATCHER_ROWS 23

static const struct weft_watcher_row weft_watcher_table[WEFT_WATCHER_ROWS] = {
#define R(at, finds, does, then, otherwise)                                                        \
	{                                                                                          \
		WEFT_WATCHER_##at, WEFT_WATCHER_##finds, WEFT_WATCHER_##does, WEFT_WATCHER_##then, \
			WEFT_WATCHER_##otherwise                                                   \
	}
	R(OFF, WANTED, DOES_NOTHING, TICKS, TICKS),
	R(OFF, UNWANTED, GOES_OFF, OFF, OFF),
	R(TICKS, UNWANTED, GOES_OFF, OFF, OFF),
	R(TICKS, HELD_BACK, DOES_NOTHING, TICKS, TICKS),
	R(TICKS, ASLEEP, SITS_BESIDE, BESIDE, TICKS),
	R(TICKS, POLLED, TICKS_LONGER, TICKS, TICKS),
	R(TICKS, DEPARTED, TICKS_SHORTER, TICKS, TICKS),
	R(TICKS, SPARED, DOES_NOTHING, TICKS, TICKS),
	R(TICKS, UNPOLLED, GOES_UNDER, UNDER, TICKS),
	R(UNDER, UNWANTED, GOES_OFF, OFF, OFF),
	R(UNDER, UNHEARD, ARMS_AGAIN, UNDER, TICKS),
	R(UNDER, WORK_DUE, RUNS_WORK, UNDER, UNDER),
	R(UNDER, TIMER_HELD, SETS_TIMER, UNDER, TICKS),
	R(UNDER, TIMER_POLLED, LOOKS_AND_SETS_TIMER, UNDER, TICKS),
	R(UNDER, TIMER_ARMED, LOOKS_AND_CHECKS, UNDER, TICKS),
	R(UNDER, TIMER_VACANT, LOOKS_AND_ARMS, UNDER, TICKS),
	R(UNDER, RANG_HELD, SETS_TIMER, UNDER, TICKS),
	R(UNDER, BURST, DISARMS, TICKS, TICKS),
	R(UNDER, RANG, SERVES_AND_ARMS, UNDER, TICKS),
	R(UNDER, EXPIRED, SERVES_AND_CHECKS, UNDER, TICKS),
	R(UNDER, KICKED, SERVES, UNDER, TICKS),
	R(BESIDE, UNWANTED, GOES_OFF, OFF, OFF),
	R(BESIDE, KICKED, GOES_UNDER, UNDER, TICKS),
#undef R
};

static inline const struct weft_watcher_row *
weft_task_watcher_row(const struct weft_watcher_row *table, enum weft_watcher_pos at,
		      enum weft_watcher_finds finds)
{
	int i = 0;
	while (i < WEFT_WATCHER_ROWS - 1 && (table[i].at != at || table[i].finds != finds))
		i++; /* ends: each pair that the finders below name has its row */
	weft_assert(table[i].at == at && table[i].finds == finds);
	return &table[i];
}

/* What a watcher that has slept sees. */
struct weft_watcher_view {
	enum weft_baton_state state;
	bool wanted;
	bool armed;
	bool held_back; /* TICKS: and the tick was no kick for more */
	bool moved;   /* waiters have polled: since the last look; UNDER: since the timer was set */
	bool pending; /* an operation was left behind */
	bool kicked;
	bool spared; /* threads poll, or would if the watcher were off their core */
	bool timer, rang,
		expired; /* what ended a sleep in the watch set: the timer alone, a bell */
};

static inline enum weft_watcher_finds
weft_task_watcher_finds_ticking(const struct weft_watcher_view *v)
{
	if (!v->wanted)
		return WEFT_WATCHER_UNWANTED;
	if (v->held_back)
		return WEFT_WATCHER_HELD_BACK;
	if (v->state == WEFT_BATON_ASLEEP)
		return WEFT_WATCHER_ASLEEP;
	if (v->moved)
		return v->state == WEFT_BATON_VACANT && v->pending && !v->kicked
			       ? WEFT_WATCHER_DEPARTED
			       : WEFT_WATCHER_POLLED;
	return v->spared ? WEFT_WATCHER_SPARED : WEFT_WATCHER_UNPOLLED;
}

static inline enum weft_watcher_finds
weft_task_watcher_finds_under(const struct weft_watcher_view *v)
{
	weft_assert(!(v->timer && v->rang) && !(v->rang && v->expired));
	bool held = v->state == WEFT_BATON_HELD;
	if (v->timer && !v->held_back)
		return held       ? WEFT_WATCHER_TIMER_HELD
		       : v->armed ? WEFT_WATCHER_TIMER_ARMED
		       : v->moved ? WEFT_WATCHER_TIMER_POLLED
				  : WEFT_WATCHER_TIMER_VACANT;
	if (v->rang && held && !v->held_back)
		return WEFT_WATCHER_RANG_HELD;
	if (v->held_back || v->spared)
		return WEFT_WATCHER_BURST;
	return v->rang      ? WEFT_WATCHER_RANG
	       : v->expired ? WEFT_WATCHER_EXPIRED
			    : WEFT_WATCHER_KICKED;
}

#endif
