/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of a foreign runtime sleep by its own functions: woken once each, by any thread, in time. */
#include "wait/foreign.h"

#include <sched.h>
#include "tiny.h"
#include "wait/waiter.h"

enum { THREADS = 20, TURNS = 50, WAKERS = 2 };

static struct weft_parker *_Atomic x_sleeper[THREADS];
static _Atomic int x_wake[THREADS]; /* turns that may end */
static _Atomic bool x_stop;
static int turns_done;

/* Each turn: gives its number, and sleeps until it has been woken for that turn. */
static void sleeps(long me)
{
	struct weft_parker *p = weft_wait_parker_self();
	CHECK(p && weft_wait_foreign_is(p) && weft_wait_parker_is_light(p) &&
	      p == weft_wait_parker_self());
	for (int turn = 0; turn < TURNS; turn++) {
		atomic_store(&x_sleeper[me], p);
		while (atomic_load(&x_wake[me]) <= turn)
			CHECK(weft_wait_park(p, WEFT_NEVER));
		turns_done++;
	}
}

static void *wakes(void *arg)
{
	(void)arg;
	while (!atomic_load(&x_stop)) {
		for (int i = 0; i < THREADS; i++) {
			struct weft_parker *p = atomic_exchange(&x_sleeper[i], NULL);
			if (!p)
				continue;
			atomic_fetch_add(&x_wake[i], 1);
			weft_wait_unpark(p);
		}
		sched_yield();
	}
	return NULL;
}

static void everybody_is_woken(void)
{
	pthread_t waker[WAKERS];
	for (int i = 0; i < WAKERS; i++)
		CHECK_EQ(pthread_create(&waker[i], NULL, wakes, NULL), 0);
	for (long i = 0; i < THREADS; i++)
		tiny_start(sleeps, i);
	tiny_run();
	atomic_store(&x_stop, true);
	for (int i = 0; i < WAKERS; i++)
		pthread_join(waker[i], NULL);
	CHECK_EQ(turns_done, THREADS * TURNS);
	CHECK_EQ(tiny_unparks, tiny_parks);
	CHECK(tiny_parks <= THREADS * TURNS);
}

/* A deadline that has passed, and a completion that is signalled by a thread of the same runtime.
 */
static struct weft_completion done;

static void waits(long arg)
{
	struct weft_waiter w = {.parker = weft_wait_parker_self()};
	struct weft_wait_node node;
	(void)arg;
	CHECK(!weft_wait_park(w.parker, 1));
	atomic_store(&w.x_need, 1);
	weft_wait_node_init(&node, &w);
	CHECK(weft_wait_completion_enlist(&done, &node));
	while (!weft_wait_completion_done(&done))
		weft_wait_park(w.parker, WEFT_NEVER);
}

static void signals(long arg)
{
	(void)arg;
	weft_wait_foreign_yield();
	weft_wait_completion_signal(&done);
}

static void among_themselves(void)
{
	weft_wait_completion_init(&done);
	tiny_start(waits, 0);
	tiny_start(signals, 0);
	tiny_run();
	CHECK(weft_wait_completion_done(&done));
}

static void what_is_refused(void)
{
	struct weft_plugin lacks = tiny_plugin;
	lacks.yield = NULL;
	CHECK(weft_wait_foreign_self() == NULL);
	CHECK_EQ(weft_plugin_set(&lacks), WEFT_ERR_ARG);
	CHECK_EQ(weft_plugin_set(&tiny_plugin), WEFT_OK);
	CHECK_EQ(weft_plugin_set(&tiny_plugin), WEFT_ERR_STATE);
	/* This one is none of the runtime's. */
	CHECK(weft_wait_foreign_self() == NULL &&
	      weft_wait_parker_is_thread(weft_wait_parker_self()));
}

int main(void)
{
	what_is_refused();
	everybody_is_woken();
	among_themselves();
	CHECK_EQ(weft_plugin_set(NULL), WEFT_OK);
	CHECK(weft_wait_foreign_self() == NULL);
	return 0;
}
