/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overseer.c - says which task, completion action or source's callback has been running for too
 * long while it still runs, also when the engine's stop waits for it.
 *
 * A thread of its own: the runner of the task, the watcher included, cannot.  It is started by the
 * first task, and ticks while tasks run; after some ticks without any it sleeps until the next.  It
 * counts ticks, not time: a process that was stopped, or a crowded machine, is no slow task.
 */
#include "base/assert.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/membarrier.h"
#include "task/engine_int.h"
#include "task/queue/overseer.h"
#include "task/thread.h"
#include "task/queue/running.h"
#include "task/wake/wake_word.h"

#include <stdio.h>
#include <unistd.h>

#define SLOTS 256     /* threads that run tasks; more are not watched */
#define TICKS_SLOW 10 /* of slow_task_ms: then a line, and again after twice as long */
#define TICKS_QUIET 3 /* without a task: then it sleeps */
#define NAME_BYTES 64

static struct weft_running slot[SLOTS], unwatched;
static _Atomic int x_slots; /* ever used */
static _Atomic uint32_t x_word;
static _Atomic bool x_stop, x_stopping;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static bool started;
static pthread_t thread;

_Atomic bool weft_task_overseer_x_asleep;

/* ---- threads that run tasks ---------------------------------------------------------------------------
 */

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool have_key;

static void thread_ends(void *arg)
{
	/* FREE -> TAKE.  Carries: the last number. */
	atomic_store_explicit(&((struct weft_running *)arg)->x_taken, false, memory_order_release);
}

static void make_key(void)
{
	have_key = pthread_key_create(&key, thread_ends) == 0;
}

struct weft_running *weft_task_overseer_join(void)
{
	pthread_once(&key_once, make_key);
	for (int i = 0; i < SLOTS && have_key; i++) {
		bool no = false;
		/* TAKE <- FREE. */
		if (!atomic_compare_exchange_strong_explicit(&slot[i].x_taken, &no, true,
							     memory_order_acquire,
							     memory_order_relaxed))
			continue;
		if (pthread_setspecific(key, &slot[i])) {
			thread_ends(&slot[i]);
			break;
		}
		int used = atomic_load_explicit(&x_slots, memory_order_relaxed);
		/* Relaxed: one that is overlooked now is seen at the next tick. */
		while (used <= i && /* ends: at least i + 1 */
		       !atomic_compare_exchange_weak_explicit(
			       &x_slots, &used, i + 1, memory_order_relaxed, memory_order_relaxed))
			;
		return &slot[i];
	}
	return &unwatched;
}

uint32_t weft_task_overseer_begin(enum weft_running_what what, const char *name)
{
	struct weft_engine_self *self = &weft_task_engine_self;
	if (weft_unlikely(!self->running))
		self->running = weft_task_overseer_join();
	/* Within a run: that is timed as a whole. */
	if (self->running == &unwatched || weft_task_running_now(self->running) % 2)
		return 0;
	uint32_t run = weft_task_running_begin_what(self->running, what, name);
	weft_task_overseer_begun();
	return run;
}

void weft_task_overseer_end(uint32_t run)
{
	if (run)
		weft_task_running_end_what(weft_task_engine_self.running, run);
}

/* ---- looking ----------------------------------------------------------------------------------
 */

static void report_run(struct weft_running *r)
{
	static const char *const kinds[] = {"task", "the completion action of task",
					    "a callback of source"};
	char text[NAME_BYTES] = "?";
	const char *name;
	uint8_t what = WEFT_RUNNING_TASK;
	if (!weft_task_engine.baton
		     .fence) { /* else the runner could free the name under our eyes */
		if (!weft_task_running_pin(r, r->seen, weft_membarrier_private, &name))
			return;
		if (name)
			snprintf(text, sizeof text, "%s", name);
		/* Relaxed: came with the number. */
		what = atomic_load_explicit(&r->x_what, memory_order_relaxed);
		/* Relaxed: for the runner alone, which finds it after its wait. */
		atomic_store_explicit(&r->x_told, r->seen, memory_order_relaxed);
		weft_task_running_unpin(r);
	}
	unsigned long long ms = (weft_clock_ns() - r->since_ns) / 1000000;
	if (r->next == TICKS_SLOW)
		weft_count(WEFT_CNT_TASKS_SLOW, 1);
	if (atomic_load_explicit(&x_stopping, memory_order_relaxed))
		weft_warn("the progress engine's stop waits for %s %s, which has run for %llu ms",
			  kinds[what], text, ms);
	else
		weft_warn("%s %s has run for %llu ms and goes on", kinds[what], text, ms);
}

/* True: tasks run, or have run since the last look. */
static bool look_at_runs(bool stop_begins)
{
	bool active = false;
	int n = atomic_load_explicit(&x_slots, memory_order_relaxed);
	for (int i = 0; i < n; i++) {
		struct weft_running *r = &slot[i];
		uint32_t runs = weft_task_running_now(r);
		active |= runs != r->seen || runs % 2;
		if (runs != r->seen || runs % 2 == 0) {
			r->seen = runs;
			r->ticks = 0;
			r->next = TICKS_SLOW;
			r->since_ns = weft_clock_ns();
			continue;
		}
		if (stop_begins && r->next > TICKS_SLOW) /* said already, but not that */
			r->next = r->ticks + 1;
		if (++r->ticks < r->next)
			continue;
		report_run(r);
		r->next = r->ticks * 2;
	}
	return active;
}

static void sleep_for(uint32_t seen, uint64_t ns)
{
	weft_futex_wait(&x_word, seen, ns == WEFT_FOREVER ? WEFT_NEVER : weft_clock_ns() + ns);
}

/* Until a task runs. */
static void sleep_long(uint32_t seen)
{
	/* Relaxed: the barrier orders it before the look.  A runner that does not see it has said
	 * before that it runs, and the look finds that. */
	atomic_store_explicit(&weft_task_overseer_x_asleep, true, memory_order_relaxed);
	if (!weft_task_engine.baton.fence)
		weft_membarrier_private();
	if (!look_at_runs(false))
		sleep_for(seen, WEFT_FOREVER);
	atomic_store_explicit(&weft_task_overseer_x_asleep, false, memory_order_relaxed);
}

static void *run_overseer(void *arg)
{
	struct weft_engine *e = arg;
	unsigned quiet = 0;
	bool stopping = false;
	(void)weft_task_engine_thread_settle("weft-overseer");
	for (;;) { /* ends: stop */
		uint32_t seen = weft_task_wake_word_seen(&x_word);
		/* Relaxed, both: the word carries them. */
		if (atomic_load_explicit(&x_stop, memory_order_relaxed))
			return NULL;
		bool stop_begins =
			!stopping && atomic_load_explicit(&x_stopping, memory_order_relaxed);
		stopping |= stop_begins;
		quiet = look_at_runs(stop_begins) ? 0 : quiet + 1;
		if (quiet < TICKS_QUIET || stopping)
			sleep_for(seen, e->slow_ns);
		else
			sleep_long(seen);
	}
}

/* ---- waking, starting, stopping ---------------------------------------------------------------
 */

static void wake_overseer(void)
{
	weft_task_wake_word_ring(&x_word);
	weft_futex_wake(&x_word);
}

static void start_locked(struct weft_engine *e)
{
	weft_assert_held(weft_mutex, &lock);
	if (started)
		return;
	started = weft_task_engine_thread(&thread, run_overseer, e) == WEFT_OK;
	if (!started)
		weft_debug("no thread that watches how long tasks run");
}

void weft_task_overseer_wake(void)
{
	/* One of the runners that find it asleep. */
	if (!atomic_exchange_explicit(&weft_task_overseer_x_asleep, false, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	if (started)
		wake_overseer();
	else
		start_locked(&weft_task_engine);
	pthread_mutex_unlock(&lock);
}

void weft_task_overseer_allow(struct weft_engine *e)
{
	pthread_mutex_lock(&lock);
	if (!started && e->slow_ns)
		atomic_store_explicit(&weft_task_overseer_x_asleep, true, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

void weft_task_overseer_stop_begins(struct weft_engine *e)
{
	bool runs = false;
	atomic_store_explicit(&weft_task_overseer_x_asleep, false, memory_order_relaxed);
	atomic_store_explicit(&x_stopping, true, memory_order_relaxed);
	for (int i = 0; i < SLOTS; i++)
		runs |= weft_task_running_now(&slot[i]) % 2;
	pthread_mutex_lock(&lock);
	if (runs && e->slow_ns)
		start_locked(e);
	if (started)
		wake_overseer();
	pthread_mutex_unlock(&lock);
}

void weft_task_overseer_stop(void)
{
	pthread_mutex_lock(&lock);
	bool join = started;
	started = false;
	atomic_store_explicit(&x_stop, true, memory_order_relaxed);
	wake_overseer();
	pthread_mutex_unlock(&lock);
	if (join)
		pthread_join(thread, NULL);
	atomic_store_explicit(&weft_task_overseer_x_asleep, false, memory_order_relaxed);
	atomic_store_explicit(&x_stop, false, memory_order_relaxed);
	atomic_store_explicit(&x_stopping, false, memory_order_relaxed);
}
