/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.c - the communication server: one thread that holds the baton and polls on a core of its
 * own.
 *
 * A waiter parks at once and is woken by the completion.  After 64 rounds in vain it yields, for servers of other
 * processes on the same core.  Switched off, it gives the baton
 * back and sleeps on the watcher's word, whose place it takes: the watcher is off.
 */
#include "base/assert.h"
#include "base/counters.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/settings.h"
#include "task/engine_int.h"
#include "task/thread.h"
#include "task/wake/arm.h"
#include "task/wake/server.h"
#include "task/wake/release.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define FULL_EVERY 64 /* rounds: sources with long periods, and queues of other cores */

static bool server_wanted(struct weft_engine *e)
{
	return atomic_load_explicit(&e->x_progress, memory_order_seq_cst) &&
	       !atomic_load_explicit(&e->x_stop, memory_order_seq_cst);
}

static void go_there(void)
{
	cpu_set_t set;
	int cpu = (int)weft_setting_int(WEFT_SET_SERVER_CPU);
	if (cpu < 0 && sched_getaffinity(0, sizeof set, &set) == 0)
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &set))
				cpu = i;
	CPU_ZERO(&set);
	if (cpu >= 0 && cpu < CPU_SETSIZE)
		CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		weft_warn("the communication server cannot run on core %d: %s", cpu,
			  strerror(errno));
}

/* Until switched off. */
static void serve_sources(struct weft_engine *e)
{
	weft_task_baton_check_held(&e->baton);
	weft_assert(weft_task_engine_self.runner == WEFT_RUNNER_WATCHER);
	unsigned rounds = 0;
	int found = 0;
	if (weft_task_sources_armed(e))
		(void)weft_task_sources_arm(e, WEFT_ARM_OFF);
	while (server_wanted(e)) { /* ends: as said */
		bool full = ++rounds % FULL_EVERY == 0;
		found += weft_task_engine_round(e, full ? WEFT_ROUND_FULL : WEFT_ROUND_QUICK);
		if (full) {
			/* The servers of other processes may be on this core, and what these wait for comes from them: without a yield
			 * each message waits for the end of a time slice. */
			if (!found)
				sched_yield();
			found = 0;
			weft_count(WEFT_CNT_POLL_SERVER, FULL_EVERY);
			uint32_t seen = atomic_load_explicit(&e->x_rounds, memory_order_relaxed);
			atomic_store_explicit(&e->x_rounds, seen + 1, memory_order_relaxed);
		}
		weft_cpu_relax();
	}
	weft_task_baton_release(e, WEFT_LEAVER_POLLER, NULL);
}

static void *run_server(void *arg)
{
	struct weft_engine *e = arg;
	(void)weft_task_engine_thread_settle("weft-server");
	weft_task_engine_self.runner = WEFT_RUNNER_WATCHER;
	go_there();
	while (!atomic_load_explicit(&e->x_stop, memory_order_seq_cst)) { /* ends: stop */
		uint32_t seen = atomic_load_explicit(&e->x_watcher_word, memory_order_acquire);
		if (server_wanted(e)) {
			if (weft_task_baton_try_take(&e->baton))
				serve_sources(e);
			else /* a waiter has it, perhaps asleep: what it waits for wakes it */
				(void)weft_task_engine_round(e, WEFT_ROUND_FULL);
		} else if (!atomic_load_explicit(&e->x_stop, memory_order_seq_cst)) {
			weft_futex_wait(&e->x_watcher_word, seen, WEFT_NEVER);
		}
	}
	return NULL;
}

weft_err weft_task_server_start(struct weft_engine *e)
{
	weft_err err = weft_task_engine_thread(&e->watcher, run_server, e);
	e->have_watcher = err == WEFT_OK;
	return err;
}
