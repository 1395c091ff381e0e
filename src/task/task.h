/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.h - the progress engine as the layers above see it: tasks, sources, completions, waiting.
 *
 * One engine per process.  The progress contract (ARCHITECTURE.md) says which thread runs it and when.
 */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include <stdio.h>
#include <weft/progress.h> /* the switches, for the process and per thread */
#include <weft/task.h>
#include "base/arm_level.h"
#include "base/base.h"
#include "wait/completion.h"

/* ---- engine ------------------------------------------------------------------------------- */

/* Starting, stopping, one round, describing: weft/task.h. */

/*
 * Waits until any / all of c[0..n) are complete (NULL entries count as complete).
 * May block: polls as holder of the baton, then parks.  timeout_ns: WEFT_FOREVER or relative.
 * WEFT_OK, WEFT_ERR_TIMEOUT, or WEFT_ERR_DEADLOCK when called from a task handler or an upcall.
 */
weft_err weft_task_engine_wait_all(struct weft_completion *const *c, size_t n, uint64_t timeout_ns);
weft_err weft_task_engine_wait_any(struct weft_completion *const *c, size_t n, uint64_t timeout_ns);
/* The common case, one completion, no timeout. */
void weft_task_engine_wait(struct weft_completion *c);
/* The same for a completion that no other thread waits for or will: it comes cheaper. */
void weft_task_engine_wait_own(struct weft_completion *c);

/*
 * A worker of user-level threads has nothing to run: polls and sleeps like a waiter until
 * ready(arg), or until deadline_ns of the clock (WEFT_NEVER: none).  A thread that makes something ready
 * unparks the caller's parker.  Returns at once when the engine is not running.
 */
void weft_task_engine_idle(bool (*ready)(void *arg), void *arg, uint64_t deadline_ns);

/*
 * For a thread that waits for a word in memory that no completion stands for: how many cycles to look at it
 * before sleeping by other means, and whether others need the core meanwhile: then yield between
 * looks, and poll now and then.  0: sleep at once.
 */
uint64_t weft_task_engine_patience(bool *yield_p);
/* How that ended, unless the first look did: it has seen its word, or goes to sleep. */
void weft_task_engine_looked(bool seen);

/*
 * Such a thread has seen its word, and goes back to the application: what the end of a wait does.  One
 * look, so that messages of others go on; and the watcher is not woken for what comes next if, as learned
 * for the caller, the thread will be back soon.
 */
void weft_task_engine_waited(void);

/*
 * How many ranks share how many cores here; cpus 0: ask the system.  More ranks than cores: waiters
 * yield instead of spinning.  Called by rt/ once it knows; any time.
 */
void weft_task_engine_set_local_ranks(int ranks, int cpus);

/*
 * For the start of a wait: one look, as holder of the baton, as if what is waited for were about to
 * come.  How much it found; 0 also when another thread polls, or one is needed that may sleep.
 */
int weft_task_engine_look(void);

/*
 * One poll (as weft_engine_poll, how much it found) for a thread that asks instead of waiting: a
 * test, a probe.  *pause_p: it has asked in vain for some time, and cores are short: it looks whether
 * what it asks for is there, and if not, pauses for a moment (waiting/poller.h), until one of
 * c[0..n) is complete, or something arrives; then it looks again.  n 0: until something arrives.
 */
int weft_task_poll(bool *pause_p);
int weft_task_poll_pause(struct weft_completion *const *c, size_t n);
/* One poll of a caller that does something else between: never a pause. */
int weft_task_engine_poll(void);

/* The settings spin_us, yield_max, progress_budget and idle_period_us have changed. */
void weft_task_engine_retune(void);

/* On whose time the calling thread polls and runs tasks. */
enum weft_runner {
	WEFT_RUNNER_APPLICATION, /* a thread of the application, inside a call */
	WEFT_RUNNER_WATCHER,     /* while no thread of the application polls */
	WEFT_RUNNER_WORKER,      /* a thread of the engine that is bound to one place */
};
enum weft_runner weft_task_engine_runner(void);

/* The caller is the watcher, and no thread of the application waits at this moment, as far as a
 * load can tell: what it does now may take a core from a thread that computes. */
bool weft_task_engine_behind(void);

/* Will what the caller, in a poll, begins for c go on until c is done?  Not if only calls make
 * progress, and the one that it is in may be over before. */
bool weft_task_engine_stays(const struct weft_completion *c);

/* Are there as many ranks here as cores?  Then what is done behind takes a core from a rank. */
bool weft_task_engine_cores_taken(void);

/* As weft_task_submit; unless a thread waits by then, the watcher runs it only in some 50 us. */
struct weft_task;
bool weft_task_submit_later(struct weft_task *t);

/* Is a core of ours idle and awake, so that a task that is submitted now begins there at once,
 * without a system call of ours?  A hint; next to nothing where it is false for long. */
bool weft_task_engine_spare(void);
/* As weft_task_submit, for such a core: the submitter does not wait for it soon. */
struct weft_task;
bool weft_task_submit_spare(struct weft_task *t);
/* A caller would have used one.  Said again within a millisecond, an idle core is woken as after an
 * event, and stays for twice as long as lay between; at most every 2 ms.  Any thread. */
void weft_task_engine_spare_wish(void);

/*
 * Something small is ready to go but would rather travel in company: will a thread poll soon, and
 * not at once?  True: the next poller sends it, or the watcher within about 50 us; within 200 us
 * where threads that held back have polled by themselves lately, within 1 ms at most where they have
 * for 16 ms.  False: none will, do not hold it back.  Never blocks; cheap, at most one wake-up of
 * the watcher per burst.
 */
bool weft_task_engine_hold(void);

/* Some ms from now a thread shall look at all sources, though none waits by then.  False: none will.
 * Cheap: a system call in some ms at most. */
bool weft_task_engine_check_later(void);

/*
 * The caller leaves an operation behind that is not complete, and may go off to compute.  While
 * no thread says so and waiters poll all the time, the watcher looks only every 10 ms whether they
 * still do.  Any thread; a load, rarely a store, and one wake-up when the watcher naps.
 */
void weft_task_engine_pending(void);

/*
 * n more (less) operations are under way whose end is wanted at once, though no thread
 * waits: as long as there are any, whatever comes wakes the watcher.  Any thread.
 */
void weft_task_engine_want(int n);

/* weft_progress_thread_set(false): what this thread starts is not progressed in the background. */
extern _Thread_local bool weft_task_progress_off_here;

/*
 * Work for the application's own calls: fn runs once, in the next poll or wait of an application
 * thread, never in the background.  It must be short, may not wait, may leave its work again, and
 * may free it.  weft_task_engine_leave: any thread, handlers included; never blocks.
 */
struct weft_task_app_work {
	struct weft_task_app_work *next;
	void (*fn)(struct weft_task_app_work *l);
};
void weft_task_engine_leave(struct weft_task_app_work *l);
/* Runs what is left there, if anything; not from a handler.  An application thread that has just completed
 * something itself, with room on its stack for what others left. */
void weft_task_engine_run_left(void);
/* The same, called by the watcher: when no thread has polled or waited for WEFT_AWHILE_NS, fn runs
 * there after all. */
void weft_task_engine_leave_awhile(struct weft_task_app_work *l);
#define WEFT_AWHILE_NS 1000000u /* what it may lose; waking for it is a few percent of a core */

/* ---- sources ------------------------------------------------------------------------------ */

/*
 * Something that events come from.  All callbacks run under the source's mask: never two at once.
 *
 * Armed means: from arm on, until arm(OFF), EVERY arrival of that level rings the descriptor, also while it is
 * still readable from an earlier one (the engine waits for edges: an eventfd written again, a
 * socket that got more).  poll works, armed or not; after a wake-up the engine polls without
 * disarming, so that a thread may go back to its work and leave the source armed.
 */
struct weft_source {
	const char *name;
	int (*poll)(void *arg); /* events handled; 0: nothing there */
	/* May be NULL: as poll, looking up to `turns` times, a few cycles apart. */
	int (*spin)(void *arg, unsigned turns);
	/* As base/arm_level.h says; OFF disarms.  NULL: cannot be armed. */
	weft_err (*arm)(void *arg, enum weft_arm_level level);
	bool arms_levels;   /* else it is asked for OFF and ALL alone */
	int fd;             /* becomes readable after arm; -1: cannot be armed */
	const int *more_fd; /* others that do, n_more of them, until remove */
	unsigned n_more;
	void *arg;
	bool self_armed;          /* with fd -1: arm takes care by itself that a thread will look */
	bool rare;                /* not worth a look of its own in quick rounds */
	int priority;             /* quick rounds look at the highest first */
	void *engine_private[16]; /* the engine's; zero at registration */
};

weft_err weft_task_source_add(struct weft_source *s) weft_must_use;
/*
 * After it returns no callback runs or will run.  From the source's own poll it may be called too:
 * then that poll is the last callback, and the source is not disarmed.
 */
void weft_task_source_remove(struct weft_source *s);

/* Called by each stop, when tasks are done and plain threads have come out of their waits.  Set
 * before the start; NULL: none. */
void weft_task_engine_set_stop_hook(void (*fn)(void));

#endif
