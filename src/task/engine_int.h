/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_int.h - the engine's one object, what it keeps of a thread, and one round of everything.
 */
#ifndef WEFT_ENGINE_INT_H
#define WEFT_ENGINE_INT_H

#include <pthread.h>
#include "base/base.h"
#include "base/counters.h"
#include "queue/list.h"
#include "queue/mask.h"
#include "task/wake/gap_predict.h"
#include "task/wake/baton.h"
#include "task/wake/kick_timer.h"
#include "task/wake/batch_hold.h"
#include "task/queue/repeat.h"
#include "task/wake/kick_filter.h"
#include "task/queue/running.h"
#include "task/task.h"
#include "wait/waiter.h"

#define WEFT_SLOT_MAX 1024 /* untouched slots cost address space only */

/* A source's place.  Slots are never freed, so a poller may read one whose source has just left. */
struct weft_slot {
	alignas(WEFT_CACHELINE) struct weft_mask mask;
	_Atomic(struct weft_source *) x_source; /* under mask; read without it as a hint */
	/* Rounds between looks, and until the next; hints, written relaxed by pollers. */
	_Atomic uint32_t x_period, x_wait;
	uint32_t looks;                /* M */
	_Atomic uint32_t x_period_max; /* M: what its measured cost allows; read as a hint */
	uint32_t cost;                 /* M: cycles of an empty look, averaged */
	_Atomic uint32_t x_level;      /* M: weft_arm_level; read as a hint */
	_Atomic bool x_rang;           /* the woken: its bell rang, it must be armed again */
	bool unarmable;                /* M: has no arm, or its arm failed */
	bool timed;                    /* M: the timer must look after it for now */
	_Atomic bool x_idle;           /* M: nothing is wanted from it; read as a hint */
};

/* As in the setting's choices. */
enum weft_flavour {
	WEFT_FLAVOUR_THREADS,
	WEFT_FLAVOUR_EXPLICIT,
	WEFT_FLAVOUR_HOOKS,
	WEFT_FLAVOUR_SERVER,
};

struct weft_engine {
	struct weft_baton baton;

	/* Grows with every round of a waiter: what the watcher compares ("last poll"). */
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_rounds;
	_Atomic uint8_t
		x_pending; /* operations were left behind: WEFT_LEFT_, since which reader's last look */

	struct weft_kick_filter kick_filter; /* beside what submitters read of the baton */

	alignas(WEFT_CACHELINE) _Atomic uint32_t x_slots; /* slots ever used */
	_Atomic uint32_t x_unarmable;                     /* sources that need the timer */
	struct weft_repeat repeat;
	_Atomic bool x_some_armed; /* the level is OFF, but some source may be armed still */
	_Atomic bool x_stop, x_progress, x_dead, x_running;
	_Atomic uint64_t x_wish_ns;  /* an idle core is to be woken for so long; W clears it */
	_Atomic bool x_call_watcher; /* the watcher must look up; a kick may have woken another */
	_Atomic(struct weft_parker *) x_sleeper; /* the holder asleep in the watch set */
	_Atomic uint64_t x_sleep_ns;             /* H: its nap; WEFT_FOREVER until it is chosen */
	int watch_fd, kick_fd, kick_timer_fd;    /* I; the last one -1: no timer */
	struct weft_task_kick_timer kick_timer;
	struct weft_task_gap gap;        /* H */
	_Atomic uint64_t x_last_release; /* cycles: of the last that owed a kick; a hint */
	_Atomic unsigned x_rest_arms;    /* H: leaving threads that may still arm by themselves */
	uint64_t timer_ns;               /* I */
	uint64_t poll_ns;                /* I: the watcher polls so often; 0: it need not */
	enum weft_flavour flavour;       /* I */
	_Atomic uint64_t x_kicked_ns;    /* kicker: when, of the first kick not yet noticed */
	uint64_t slow_ns; /* I: a repeat task that runs longer is reported; 0: none */

	alignas(WEFT_CACHELINE) _Atomic uint32_t x_watcher_word; /* the watcher sleeps on it */
	uint32_t word_seen; /* W: its word when it last woke: kicks since then count */
	struct weft_task_batch_hold batch_hold;
	pthread_t watcher;
	bool have_watcher;
	bool slice_honoured;

	_Atomic bool
		x_woken; /* a message was handed over; cleared by the waiter that comes back with one: a hint */

	pthread_mutex_t park_lock; /* of parked; a few instructions */
	struct weft_list parked;   /* waiters asleep on their parkers */

	pthread_mutex_t slot_lock; /* add and remove */
	/* Slots by priority, for quick rounds: a hint, which may miss one while it changes. */
	_Atomic uint16_t x_order[WEFT_SLOT_MAX];
	struct weft_slot slot[WEFT_SLOT_MAX];
};

extern struct weft_engine weft_task_engine;

/* A waiter in the list of the parked. */
struct weft_parked {
	struct weft_link link;
	struct weft_parker *parker;
};

/* A source whose mask the thread holds while it runs callbacks; on its stack. */
struct weft_source_inside {
	struct weft_slot *slot;
	struct weft_source_inside *outer;
	bool nested; /* entered again: the mask belongs to an outer one */
};

/* What the engine knows of a thread. */
struct weft_engine_self {
	unsigned in_handler;               /* depth of callbacks */
	struct weft_source_inside *inside; /* the innermost source whose callback we are in */
	enum weft_runner runner;           /* on whose time it polls */
	const struct wait_call *wait;      /* that polls with the baton in hand */
	unsigned tests;                    /* weft_engine_poll calls in a row that came quickly */
	uint64_t test_cycles;
	struct weft_streak streak;    /* of submissions between which a thread polled */
	uint64_t unrung;              /* before this look others poll anyway: see submit_kick.c */
	int place;                    /* a worker's leaf */
	struct weft_running *running; /* what it says of the task that it runs */
	bool unbound;                 /* a worker: the system does not let it have its core */
	bool holds;                   /* the watcher: the baton, while it looks round */
	bool deferred;                /* the timer of deferred kicks was all that woke it */
	bool drains, submitted; /* the watcher: looks again if a task was submitted meanwhile */
	bool expired;           /* it slept in the watch set to the end */
};
extern _Thread_local struct weft_engine_self weft_task_engine_self;

enum weft_round_kind {
	WEFT_ROUND_QUICK, /* respects periods; leaves no bit at masks that are taken */
	WEFT_ROUND_SPIN,  /* quick, and stays a moment with sources that can spin */
	WEFT_ROUND_WAIT,  /* the same for longer: what we wait for should come at any moment */
	WEFT_ROUND_FULL,  /* every source, every queue; a taken mask will be looked at again */
};

/* round.c: one round of everything for the calling thread. */
int weft_task_engine_round(struct weft_engine *e, enum weft_round_kind kind);
/* Is there a task that no thread has looked at? */
bool weft_task_engine_tasks_waiting(struct weft_engine *e);
/* Or one that a poller has left to others, or that a waiter has to poll?  Asked by a thread that
 * leaves the baton or falls asleep with it, after it has said so: whatever submitted or left it
 * meanwhile has kicked none. */
bool weft_task_engine_tasks_left(struct weft_engine *e);
#endif
