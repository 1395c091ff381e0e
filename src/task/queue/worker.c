/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c - one thread per leaf at most, bound to it and parked: runs urgent tasks on a core that
 * is busy with the application, and strict tasks that no other thread may run.
 *
 * Started at the first ring; most programs never need one.
 */
#include "base/assert.h"
#include "base/futex.h"
#include "base/log.h"
#include "task/engine_int.h"
#include "task/queue/worker.h"
#include "task/thread.h"
#include "task/wake/outside.h"
#include "task/queue/tqueue.h"
#include "task/wake/wake_word.h"
#include "topo/topo.h"

#include <stdlib.h>
#include <unistd.h>

struct worker {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_word; /* ringers add; the worker sleeps on it */
	_Atomic int x_state;                             /* under lock: written */
	int place;                                       /* I */
	struct worker *older; /* I, of the first: those of another tree */
	pthread_t thread;
};

enum { ABSENT, PRESENT, FAILED };

/* Per place; leaves are used.  They stay from start to start, those of another tree, too: a
 * submitter that is stalled may ring them at any time. */
static struct worker *workers;
static int worker_count;
static _Atomic bool x_stop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* starting one */

weft_err weft_task_workers_create(void)
{
	int n = weft_topo_count();
	if (n != worker_count) {
		struct worker *all = aligned_alloc(WEFT_CACHELINE, (size_t)n * sizeof *all);
		if (!all)
			return WEFT_ERR_NOMEM;
		for (int i = 0; i < n; i++)
			all[i] = (struct worker){.place = i};
		all->older = workers;
		workers = all;
		worker_count = n;
	}
	atomic_store_explicit(&x_stop, false, memory_order_relaxed);
	return WEFT_OK;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	(void)weft_task_engine_thread_settle("weft-worker");
	weft_task_engine_self.runner = WEFT_RUNNER_WORKER;
	weft_task_engine_self.place = w->place;
	/* On a made-up machine, too: a core of that number may be there. */
	weft_task_engine_self.unbound = !weft_topo_bind_self(w->place);
	if (weft_task_engine_self.unbound)
		weft_debug("a worker could not be bound to %s", weft_topo_node(w->place)->name);
	for (;;) { /* ends: stop */
		bool half;
		uint32_t seen = weft_task_wake_word_seen(&w->x_word);
		if (atomic_load_explicit(&x_stop, memory_order_acquire))
			return NULL;
		while (weft_task_tqueues_branch(weft_task_tqueue_of_place(w->place), &half))
			weft_task_outside_tell(
				&weft_task_engine); /* ends: nothing is left that we may run */
		/* Ours may lie behind it, and its submitter does not ring us; or ours is a repeat task
		 * that a thread waits for, and no other may poll it. */
		if (half || weft_task_repeat_awaited(&weft_task_engine.repeat)) {
			sched_yield();
			continue;
		}
		weft_futex_wait(&w->x_word, seen,
				weft_task_repeat_some(&weft_task_engine.repeat)
					? weft_clock_ns() + weft_task_engine.timer_ns
					: WEFT_NEVER);
	}
}

static void wake_worker(struct worker *w)
{
	weft_task_wake_word_ring(&w->x_word);
	weft_futex_wake(&w->x_word);
}

bool weft_task_worker_ring(int leaf)
{
	weft_assert(leaf >= 0 && leaf < worker_count);
	struct worker *w = &workers[leaf];
	/* STATE.  Carries: the thread, for the join. */
	int state = atomic_load_explicit(&w->x_state, memory_order_acquire);
	if (weft_unlikely(state == ABSENT)) {
		pthread_mutex_lock(&lock);
		state = atomic_load_explicit(&w->x_state, memory_order_relaxed);
		/* Relaxed: under lock.  At a stop the task ends with the rest of its queue. */
		if (state == ABSENT && !atomic_load_explicit(&x_stop, memory_order_relaxed)) {
			state = weft_task_engine_thread(&w->thread, run_worker, w) ? FAILED
										   : PRESENT;
			if (state == FAILED)
				weft_warn("no thread for urgent tasks on %s",
					  weft_topo_node(leaf)->name);
			/* STATE -> ring, stop. */
			atomic_store_explicit(&w->x_state, state, memory_order_release);
		}
		pthread_mutex_unlock(&lock);
	}
	if (state == PRESENT)
		wake_worker(w);
	return state != PRESENT;
}

void weft_task_workers_stop(void)
{
	pthread_mutex_lock(&lock); /* none is started after this */
	/* STOP -> run.  The word rung after it ends the sleep. */
	atomic_store_explicit(&x_stop, true, memory_order_release);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < worker_count; i++) {
		int state = atomic_load_explicit(&workers[i].x_state, memory_order_acquire);
		if (state == PRESENT) {
			wake_worker(&workers[i]);
			pthread_join(workers[i].thread, NULL);
		}
		atomic_store_explicit(&workers[i].x_state, ABSENT, memory_order_relaxed);
	}
}

void weft_task_workers_describe(FILE *out)
{
	int n = 0;
	for (int i = 0; i < worker_count; i++)
		/* STATE. */
		n += atomic_load_explicit(&workers[i].x_state, memory_order_acquire) == PRESENT;
	fprintf(out, "  workers for urgent and strict tasks: %d, started when needed\n", n);
}
