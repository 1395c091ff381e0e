/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_int.h - the engine's one object and what the files of task/ ask of each other.
 *
 * engine.c start, stop, switches | kick.c waking, sleep in the watch set | source.c sources,
 * polling | arm.c arming | waiting.c waits of one, any, all (holder.c polls, wait_ult.c does not) | watcher.c the thread behind, watcher_armed.c in the watch set | app_work.c what it may not do | spin.c
 * how long to spin | tqueue.c queues of tasks | task.c tasks, life.h their word | task_wait.c waits
 * for tasks, tally.h counts
 */
#ifndef WEFT_ENGINE_INT_H
#define WEFT_ENGINE_INT_H

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <weft/policy.h>
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
	struct weft_streak streak; /* of submissions between which a thread polled */
	uint64_t unrung;           /* before this look others poll anyway: see tell() in task.c */
	int place;                 /* a worker's leaf */
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

/* waiting.c: the public waits of this layer, for whose caller the time is learned. */
#define WEFT_WAIT_SITE __builtin_return_address(0)
weft_err weft_task_engine_wait_all_at(struct weft_completion *const *c, size_t n,
				      uint64_t timeout_ns, const void *site);
weft_err weft_task_engine_wait_any_at(struct weft_completion *const *c, size_t n,
				      uint64_t timeout_ns, const void *site);

/* source.c */
int weft_task_sources_round(struct weft_engine *e, enum weft_round_kind kind);
void weft_task_sources_describe(FILE *out);
/* arm.c; the caller holds the baton */
weft_err weft_task_sources_arm(struct weft_engine *e, enum weft_arm_level level);
/* For stress tests: asserts what is always so of the baton and each slot.  Any thread. */
void weft_task_sources_check(struct weft_engine *e);
/* The level for a thread that goes away: for all only if another thread waits, or an operation's
 * end is wanted.  soon: the thread is likely to be back before a wake-up could pay. */
enum weft_arm_level weft_task_sources_level_to_leave(struct weft_engine *e, bool soon);
static inline enum weft_arm_level weft_task_sources_level(const struct weft_engine *e)
{
	/* Relaxed: the holder's own word, or taken back by a woken thread, which arms again. */
	return (enum weft_arm_level)atomic_load_explicit(&e->baton.x_level, memory_order_relaxed);
}
static inline bool weft_task_sources_armed(const struct weft_engine *e)
{
	return weft_task_sources_level(e) != WEFT_ARM_OFF;
}
static inline bool weft_task_sources_unchecked(const struct weft_engine *e)
{
	return weft_arm_is_unchecked(weft_task_sources_level(e));
}

/*
 * source.c, for sources that have requests of their own (event.c).  enter waits until the source's
 * mask is ours, a few us, and makes the caller a handler of it; within a callback of that source it
 * nests, within one of another source it is not allowed: two could wait for each other.
 */
void weft_task_source_enter(struct weft_source *src, struct weft_source_inside *inside);
void weft_task_source_exit(struct weft_source *src, struct weft_source_inside *inside);
/* Looks at it now, or makes the holder of its mask look once more. */
void weft_task_source_look(struct weft_source *src);
/* Mask held: does the engine rely on its bell?  Must the timer look after it?  Is anything wanted?
 */
bool weft_task_source_armed_locked(const struct weft_source *src);
void weft_task_source_timed_locked(struct weft_source *src, bool timed);
void weft_task_source_idle_locked(struct weft_source *src, bool idle);
void weft_task_source_rare_locked(struct weft_source *src, bool rare);

/* engine.c: one round of everything for the calling thread. */
int weft_task_engine_round(struct weft_engine *e, enum weft_round_kind kind);
/* Is there a task that no thread has looked at? */
bool weft_task_engine_tasks_waiting(struct weft_engine *e);
/* Or one that a poller has left to others, or that a waiter has to poll?  Asked by a thread that
 * leaves the baton or falls asleep with it, after it has said so: whatever submitted or left it
 * meanwhile has kicked none. */
bool weft_task_engine_tasks_left(struct weft_engine *e);
/* kick.c */
#define WEFT_EV_KICK_TIMER                                                                         \
	UINT32_MAX /* in the watch set, beside 0, the kick, and slots' numbers + 1 */
void weft_task_engine_kick(struct weft_engine *e, enum weft_kick kick);
/* KICK_SET in a while, for the watcher in the watch set; false: not possible. */
bool weft_task_engine_kick_later(struct weft_engine *e, enum weft_task_kick_timer_what what);
/* Was an operation left behind since the last call for that one? */
enum { WEFT_LEFT_WATCHER = 1, WEFT_LEFT_AWAY = 2, WEFT_LEFT_ALL = 3 };
static inline bool weft_task_engine_behind_since(struct weft_engine *e, unsigned reader)
{
	/* Relaxed, both: see weft_task_engine_pending. */
	return (atomic_load_explicit(&e->x_pending, memory_order_relaxed) & reader) != 0 &&
	       (atomic_fetch_and_explicit(&e->x_pending, (uint8_t)~reader, memory_order_relaxed) &
		reader) != 0;
}
void weft_task_engine_set_kick_timer(struct weft_engine *e,
				     enum weft_task_kick_timer_what what); /* sets the timer */
/* A thread waits, or will, beside those that sleep in the watch set or are parked: from now on all
 * that comes rings.  Before it looks for the last time. */
void weft_task_engine_ears(struct weft_engine *e);
static inline void weft_task_engine_hears(struct weft_engine *e)
{
	/* Relaxed: set once, and a thread that finds it set comes after the kick that follows. */
	if (weft_unlikely(!atomic_load_explicit(&e->baton.x_ears, memory_order_relaxed)))
		weft_task_engine_ears(e);
}
/* Sleeps in the watch set; timeout_ns WEFT_FOREVER: until something happens.  True: a source rang,
 * and is no longer armed. */
bool weft_task_engine_watch(struct weft_engine *e, uint64_t timeout_ns);
/* How long one may sleep when some source or task needs looking at. */
uint64_t weft_task_engine_nap_ns(struct weft_engine *e);

/* outside.c: something was found while an event loop of others is armed. */
void weft_task_outside_ring(struct weft_engine *e);
static inline void weft_task_outside_tell(struct weft_engine *e)
{
	/* Relaxed: the loop that arms looks for itself afterwards. */
	if (weft_unlikely(atomic_load_explicit(&e->baton.x_outside, memory_order_relaxed)))
		weft_task_outside_ring(e);
}
void weft_task_outside_stop(void);

/* app_work.c: what only application threads may do.  Called outside every mask; returns how much. */
int weft_task_app_work_run(void);
bool weft_task_app_work_waiting(void);
/* The watcher: in what time it must run what was left for a while. */
uint64_t weft_task_app_work_due_ns(void);
void weft_task_app_work_run_due(void);

/* watcher.c */
weft_err weft_task_watcher_start(struct weft_engine *e);
void weft_task_watcher_stop(struct weft_engine *e);
/* Makes the watcher look up wherever it is. */
void weft_task_watcher_call(struct weft_engine *e);
/* batch_hold.c: as weft_task_engine_hold, for a task: looked at within WEFT_HOLD_NS whatever was learned. */
bool weft_task_engine_hold_task(void) weft_must_use;
/* watcher_armed.c: wakes again the thread that was meant when a kick has woken us instead.  Not asleep in the set
 * ourselves. */
void weft_task_watcher_redirect(struct weft_engine *e);

/* server.c: in the watcher's place, with the flavour of that name. */
weft_err weft_task_server_start(struct weft_engine *e);

/* budget.c: called by each thread of the engine for itself, before it sleeps. */
void weft_task_budget_init(void);
int64_t weft_task_budget_spend(void); /* how many ns it should pause */
bool weft_task_budget_pause(void);    /* spends, and pauses if it must; then true */
uint64_t weft_task_budget_used_ns(void);

/* worker.c: parked threads bound to one place each, for tasks that must run there and now. */
weft_err weft_task_workers_create(void);
void weft_task_workers_stop(void);
/* Makes it look; starts it if need be.  True: there is no such thread. */
bool weft_task_worker_ring(int leaf);
void weft_task_workers_describe(FILE *out);

/* idle_place.c: the places of idle workers: `given` of them, or (-1) one per place of the level, at
 * most `spare`; returns how many. */
int weft_task_idle_spread(const char *level, int given, int spare, int *place_p, int room);
bool weft_task_idle_bind(int place); /* the calling thread; false: it may go anywhere */

/* idle.c: called by the watcher alone, after it found something, and at the end. */
void weft_task_idle_size(int ranks, int cpus);
void weft_task_idle_event(void);
void weft_task_idle_stay(uint64_t ns); /* for that long, at least, after the next event */
bool weft_task_idle_wanted(void);      /* are there to be any? */
void weft_task_idle_stop(void);
/* How long the next spin lasts, after one that something came into, or nothing. */
uint64_t weft_task_idle_next_ns(uint64_t ns, uint64_t cost_ns, bool paid);
void weft_task_idle_describe(FILE *out);

/* relay.c: tasks are told to an idle worker that is awake, which wakes the hand on its core. */
bool weft_task_relay_tell(
	struct weft_engine *e); /* the submitter of a task: true: a thread looks, do not kick */
/* The idle worker's: true: it is the relay, until the end. */
bool weft_task_relay_begin(uint64_t now);
bool weft_task_relay_beat(uint64_t now); /* true: it still is */
bool weft_task_relay_serve(void);        /* true: there was a word, and the hand was told */
void weft_task_relay_end(void);
/* The watcher's, and at the end. */
void weft_task_relay_grant(struct weft_engine *e); /* an idle worker is called: it may relay */
uint64_t weft_task_relay_nap_ns(void); /* how long the watcher may sleep because of that */
bool weft_task_relay_check(struct weft_engine *e);     /* true: a word lay there, look */
bool weft_task_relay_take_back(struct weft_engine *e); /* the same, and there is no lease now */
void weft_task_relay_stop(void);

/* overseer.c: tasks that run for too long are reported while they do. */
extern _Atomic bool weft_task_overseer_x_asleep;
struct weft_running *weft_task_overseer_join(void); /* the calling thread's place; never NULL */
void weft_task_overseer_wake(void);
static inline void weft_task_overseer_begun(void)
{
	weft_compiler_barrier(); /* its membarrier does the rest */
	/* Relaxed: either we see it asleep, or its last look sees us. */
	if (weft_unlikely(atomic_load_explicit(&weft_task_overseer_x_asleep, memory_order_relaxed)))
		weft_task_overseer_wake();
}
/* Something else than a task's function begins and ends in the calling thread. */
uint32_t weft_task_overseer_begin(enum weft_running_what what, const char *name);
void weft_task_overseer_end(uint32_t run);
void weft_task_overseer_allow(struct weft_engine *e); /* the next task starts it */
void weft_task_overseer_stop_begins(struct weft_engine *e);
void weft_task_overseer_stop(void);

/* thread.c: before the first thread: on which cores. */
void weft_task_engine_threads_init(void);
/* A thread of the engine: no signals, its name, timer slack. */
weft_err weft_task_engine_thread(pthread_t *thread_p, void *(*run)(void *), void *arg);
bool weft_task_engine_thread_settle(const char *name); /* true: the slice is honoured */
/* The kernel's structure; of a normal thread `runtime` is its slice. */
struct weft_sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
#define WEFT_SLICE_NS 100000u /* the kernel's smallest: wakes us before others' slices end */
bool weft_task_sched_get(struct weft_sched_attr *a); /* the calling thread's */
bool weft_task_sched_set(struct weft_sched_attr *a);

/* policy.c: what the program or the default says. */
struct weft_wait_plan weft_task_policy_ask_wait(const struct weft_wait_load *load);
bool weft_task_policy_has_source(void);
enum weft_events_method weft_task_policy_ask_source(const char *name,
						    const struct weft_events_load *load);

/* spin.c; site: where in the code the wait is, any address that stays the same */
struct weft_wait_plan
weft_task_spin_plan(const void *site);             /* how this wait polls before it sleeps */
uint64_t weft_task_spin_site_ns(const void *site); /* what was learned there */
uint64_t weft_task_spin_cycles(uint64_t ns);
unsigned weft_task_spin_yield_max(void); /* so many in a row that no thread took */
bool weft_task_spin_wanted(void);        /* waiters do poll before they sleep */
bool weft_task_spin_preempted(void);     /* strangers took our core, lately */
bool weft_task_spin_crowded(void); /* fewer cores than ranks: no look lasts longer than it must */
void weft_task_spin_slept(const void *site, uint64_t ns); /* it spun in vain, then slept for ns */
void weft_task_spin_paid(const void *site);               /* it ended while spinning */
void weft_task_spin_gap(uint64_t cycles); /* a round took that long: were we preempted? */
void weft_task_spin_init(void);
void weft_task_spin_describe(FILE *out);

#endif
