/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.c - starts and stops the engine, its switches, and the calls that poll it. */
#include "base/cancel.h"
#include "base/log.h"
#include "base/membarrier.h"
#include "base/settings.h"
#include "base/trace.h"
#include "task/wake/arm.h"
#include "task/wake/ending.h"
#include "task/engine_int.h"
#include "task/queue/overseer.h"
#include "task/queue/worker.h"
#include "task/thread.h"
#include "task/waiting/spin.h"
#include "task/wake/budget.h"
#include "task/wake/idle.h"
#include "task/wake/kick.h"
#include "task/wake/outside.h"
#include "task/wake/relay_hand.h"
#include "task/wake/server.h"
#include "task/wake/source_int.h"
#include "task/wake/watcher.h"
#include "task/queue/tqueue.h"
#include "task/wake/release.h"
#include "topo/topo.h"
#include "wait/single_waiter.h"
#include "wait/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* ---- start, stop, fork ------------------------------------------------------------------------
 */

static void child_of_fork(void)
{
	/* No engine thread lives here, and the descriptors are the parent's. */
	atomic_store_explicit(&weft_task_engine.x_dead, true, memory_order_relaxed);
	atomic_store_explicit(&weft_task_engine.x_running, false, memory_order_relaxed);
}

static void register_fork(void)
{
	if (pthread_atfork(NULL, NULL, child_of_fork))
		weft_warn("no memory to note a fork: do not use weft in child processes");
}

static enum weft_flavour flavour_of(const char *word)
{
	static const char *const words[] = {"threads", "explicit", "hooks", "server"};
	for (unsigned i = 0; i < weft_countof(words); i++)
		if (strcmp(words[i], word) == 0)
			return (enum weft_flavour)i;
	return WEFT_FLAVOUR_THREADS;
}

static weft_err start_background(struct weft_engine *e)
{
	switch (e->flavour) {
	case WEFT_FLAVOUR_THREADS:
		return weft_task_watcher_start(e);
	case WEFT_FLAVOUR_SERVER:
		return weft_task_server_start(e);
	default:
		return WEFT_OK; /* calls and hooks do it */
	}
}

static weft_err open_watch_set(struct weft_engine *e)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.u32 = 0};
	uint64_t old;
	e->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	if (e->watch_fd < 0)
		goto failed;
	/* Kept from start to start: a thread that kicks may be slow. */
	if (e->kick_fd < 0)
		e->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	else if (read(e->kick_fd, &old, sizeof old) < 0 && errno != EAGAIN)
		goto failed_kick;
	if (e->kick_fd < 0)
		goto failed_kick;
	if (epoll_ctl(e->watch_fd, EPOLL_CTL_ADD, e->kick_fd, &ev))
		goto failed_kick;
	/* Without it each kick is made at once. */
	if (e->kick_timer_fd < 0)
		e->kick_timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	ev.data.u32 = WEFT_EV_KICK_TIMER;
	if (e->kick_timer_fd >= 0 && epoll_ctl(e->watch_fd, EPOLL_CTL_ADD, e->kick_timer_fd, &ev)) {
		close(e->kick_timer_fd);
		e->kick_timer_fd = -1;
	}
	weft_task_kick_timer_fired(&e->kick_timer);
	return WEFT_OK;
failed_kick:
	close(e->watch_fd);
failed:
	weft_error("no descriptor for the progress engine: %s", strerror(errno));
	return errno == EMFILE || errno == ENFILE ? WEFT_ERR_LIMIT : WEFT_ERR_SYS;
}

/* A parker that sleeps in the watch set was notified. */
static void wake_sleeper(struct weft_parker *p)
{
	weft_task_engine_kick(&weft_task_engine, WEFT_KICK_SET);
}

static void size_idle(void)
{
	int ranks, cpus;
	weft_task_spin_ranks(&ranks, &cpus);
	weft_task_idle_size(ranks, cpus);
}

void weft_task_engine_set_local_ranks(int ranks, int cpus)
{
	weft_task_spin_set_ranks(ranks, cpus);
	size_idle();
}

static weft_err start_engine(struct weft_engine *e)
{
	static pthread_once_t once_only = PTHREAD_ONCE_INIT;
	pthread_once(&once_only, register_fork);
	weft_trace_start();
	weft_err err = weft_topo_load_again(); /* we may run elsewhere now */
	if (err)
		return err;
	err = weft_task_tqueues_create();
	if (err)
		return err;
	err = weft_task_workers_create();
	if (err)
		goto failed_workers;
	err = open_watch_set(e);
	if (err)
		goto failed_watch;
	weft_list_init(&e->parked);
	weft_task_spin_init();
	size_idle();
	weft_task_budget_init();
	weft_task_engine_threads_init();
	e->timer_ns = (uint64_t)weft_setting_int(WEFT_SET_TIMER_MS) * 1000000u;
	e->poll_ns = (uint64_t)weft_setting_int(WEFT_SET_TIMER_POLL_MS) * 1000000u;
	e->flavour = flavour_of(weft_setting_str(WEFT_SET_FLAVOUR));
	atomic_store_explicit(&e->x_kicked_ns, 0, memory_order_relaxed);
	e->slow_ns = (uint64_t)weft_setting_int(WEFT_SET_SLOW_TASK_MS) * 1000000u;
	weft_task_kick_filter_woke(
		&e->kick_filter); /* what was noted before the last stop is no note */
	e->baton.owed = false;
	atomic_store_explicit(&e->baton.x_level, WEFT_ARM_OFF, memory_order_relaxed);
	e->baton.fence = !weft_membarrier_private_register();
	atomic_store_explicit(&e->baton.x_state, WEFT_BATON_VACANT, memory_order_relaxed);
	atomic_store_explicit(&e->baton.x_watcher, WEFT_WATCHER_OFF, memory_order_relaxed);
	atomic_store_explicit(&e->baton.x_parked, 0, memory_order_relaxed);
	atomic_store_explicit(&e->baton.x_outside, false, memory_order_relaxed);
	atomic_store_explicit(&e->x_stop, false, memory_order_relaxed);
	atomic_store_explicit(&e->x_progress, weft_setting_bool(WEFT_SET_PROGRESS),
			      memory_order_relaxed);
	weft_wait_parker_set_elsewhere_hook(wake_sleeper);
	weft_wait_single_begin(); /* no thread can wait yet */
	/* READY -> each thread that asks.  Carries: all of the above. */
	atomic_store_explicit(&e->x_running, true, memory_order_release);
	if (atomic_load_explicit(&e->x_progress, memory_order_relaxed) && start_background(e))
		weft_warn("no thread for background progress: communication advances only inside "
			  "calls");
	if (e->have_watcher)
		weft_task_overseer_allow(e);
	if (weft_setting_int(WEFT_SET_IDLE_PERIOD_US) >= 0 && e->have_watcher)
		weft_task_idle_event(); /* they look from now on */
	return WEFT_OK;
failed_watch:
	weft_task_workers_stop();
failed_workers:
	weft_task_tqueues_close();
	return err;
}

/*
 * Sends all waiters out of their waits: what they waited for is over, or will never be.  Keeps the
 * baton, so that no thread goes to the descriptors again; the queues and the tree stay, for threads
 * on their way out.
 */
static void see_off(struct weft_engine *e)
{
	unsigned turns = 0;
	/* ends: the holder is woken and leaves, or a handler of its own returns first */
	while (!weft_task_baton_try_take(&e->baton)) {
		if (atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) ==
		    WEFT_BATON_ASLEEP)
			weft_task_engine_kick(e, WEFT_KICK_SET);
		weft_backoff(&turns);
	}
	/* ends: each one woken sees that nothing runs any more */
	while (atomic_load_explicit(&e->baton.x_parked, memory_order_seq_cst)) {
		weft_task_engine_kick(e, WEFT_KICK_PARKED);
		weft_backoff(&turns);
	}
}

static void (*stop_hook)(void); /* set before there are users */

void weft_task_engine_retune(void)
{
	weft_task_spin_given();
	weft_task_budget_given();
	weft_task_idle_given();
}

void weft_task_engine_set_stop_hook(void (*fn)(void))
{
	stop_hook = fn;
}

static void stop_engine(struct weft_engine *e)
{
	weft_task_overseer_stop_begins(e);
	weft_task_workers_stop();
	weft_task_watcher_stop(e);
	weft_task_idle_stop();
	weft_task_relay_stop();
	weft_task_outside_stop();
	weft_task_tqueues_close(); /* first: a thread that waits for a task finds it done */
	weft_task_ending_off(&e->x_running);
	see_off(e);
	weft_task_overseer_stop();
	if (stop_hook)
		stop_hook();
	close(e->watch_fd);
	e->watch_fd = -1;
}

static pthread_mutex_t user_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users; /* under user_lock: starts that were not stopped */

weft_err weft_engine_start(void)
{
	struct weft_engine *e = &weft_task_engine;
	if (atomic_load_explicit(&e->x_dead, memory_order_relaxed))
		return WEFT_ERR_STATE;
	int was = weft_cancel_off();
	pthread_mutex_lock(&user_lock);
	weft_err err = users ? WEFT_OK : start_engine(e);
	users += err == WEFT_OK;
	pthread_mutex_unlock(&user_lock);
	weft_cancel_back(was);
	return err;
}

void weft_engine_stop(void)
{
	struct weft_engine *e = &weft_task_engine;
	if (atomic_load_explicit(&e->x_dead, memory_order_relaxed))
		return;
	if (weft_task_engine_self.in_handler) {
		weft_error("a handler tried to stop the progress engine: it would wait for itself");
		return;
	}
	int was = weft_cancel_off();
	pthread_mutex_lock(&user_lock);
	if (users && --users == 0)
		stop_engine(e);
	pthread_mutex_unlock(&user_lock);
	weft_cancel_back(was);
}

/* ---- switches ---------------------------------------------------------------------------------
 */

void weft_progress_set(bool on)
{
	struct weft_engine *e = &weft_task_engine;
	bool was = atomic_exchange_explicit(&e->x_progress, on, memory_order_seq_cst);
	/* READY (start_engine): then slot_lock and the threads are there. */
	if (!atomic_load_explicit(&e->x_running, memory_order_acquire)) {
		/* Before the start the setting says what the engine will begin with. */
		if (weft_setting_set(WEFT_SET_PROGRESS, on ? "on" : "off"))
			weft_warn("no memory to note a setting");
		return;
	}
	if (was == on)
		return;
	pthread_mutex_lock(&e->slot_lock); /* two may switch at once */
	if (on && !e->have_watcher && start_background(e))
		weft_warn("no thread for background progress: communication advances only inside "
			  "calls");
	if (on && e->have_watcher)
		weft_task_overseer_allow(e);
	pthread_mutex_unlock(&e->slot_lock);
	weft_task_watcher_call(e);
}

bool weft_progress_get(void)
{
	/* READY (start_engine). */
	if (!atomic_load_explicit(&weft_task_engine.x_running, memory_order_acquire))
		return weft_setting_bool(WEFT_SET_PROGRESS);
	return atomic_load_explicit(&weft_task_engine.x_progress, memory_order_relaxed);
}

void weft_progress_thread_set(bool on)
{
	weft_task_progress_off_here = !on;
}

bool weft_progress_thread_get(void)
{
	return !weft_task_progress_off_here;
}

void weft_engine_describe(FILE *out)
{
	struct weft_engine *e = &weft_task_engine;
	/* READY (start_engine). */
	if (!atomic_load_explicit(&e->x_running, memory_order_acquire)) {
		fprintf(out, "engine: not started\n");
		return;
	}
	fprintf(out, "engine:\n  background progress %s\n", weft_progress_get() ? "on" : "off");
	fprintf(out, "  flavour: %s\n", weft_setting_str(WEFT_SET_FLAVOUR));
	if (*weft_setting_str(WEFT_SET_PROGRESS_CPUS))
		fprintf(out, "  the engine's threads run on cores %s\n",
			weft_setting_str(WEFT_SET_PROGRESS_CPUS));
	if (weft_setting_int(WEFT_SET_PROGRESS_BUDGET))
		fprintf(out, "  background budget: %lld %% of one core\n",
			(long long)weft_setting_int(WEFT_SET_PROGRESS_BUDGET));
	if (!e->have_watcher)
		fprintf(out, "  watcher: none\n");
	else if (e->flavour == WEFT_FLAVOUR_SERVER)
		fprintf(out, "  server: one thread that polls all the time\n");
	else if (e->slice_honoured)
		fprintf(out, "  watcher: one thread, slice 100 us\n");
	else
		fprintf(out,
			"  watcher: one thread; this kernel keeps the default slice, so on busy "
			"cores it may wait for one (up to some ms)\n");
	weft_task_idle_describe(out);
	weft_task_workers_describe(out);
	weft_task_spin_describe(out);
	weft_task_tqueues_describe(out);
	weft_task_sources_describe(out);
}
