/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks are called at each idle moment, every so many switches, and when a thread calls what
 * blocks; on the worker's own stack, and not any more once they are taken away. */
#include <sched.h>
#include <stdatomic.h>
#include <weft/ult.h>
#include <weft/ult_sync.h>
#include "base/settings.h"
#include "check.h"
#include "ult/ult_int.h"

#define YIELDS (WEFT_ULT_SANITIZED ? 100 : 1000)
#define ROUNDS 50

static _Atomic unsigned x_idles, x_ticks;

static void counts_idle(bool (*ready)(void *arg), void *arg, uint64_t deadline_ns)
{
	CHECK(!weft_ult_self());
	atomic_fetch_add(&x_idles, 1);
	while (!ready(arg)) /* ends: something is made ready, or the workers end */
		sched_yield();
}

static void counts_tick(void)
{
	CHECK(!weft_ult_self());
	atomic_fetch_add(&x_ticks, 1);
}

static void *yields(void *arg)
{
	for (int i = 0; i < YIELDS; i++)
		weft_ult_yield();
	return arg;
}

/* Two threads take turns: how many ticks? */
static unsigned ticks_of_turns(void)
{
	weft_ult *t[2];
	unsigned before = atomic_load(&x_ticks);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, yields, NULL), WEFT_OK);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	return atomic_load(&x_ticks) - before;
}

static void tick_every(uint32_t switches)
{
	struct weft_ult_hooks hooks = {
		.idle = counts_idle, .tick = counts_tick, .switches = switches};
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	weft_ult_hooks_set(&hooks);
	(void)ticks_of_turns(); /* the tick that was due when the period was another */
	unsigned ticks = ticks_of_turns(), want = 2 * YIELDS / (switches ? switches : 61);
	/* Each yield is a switch, and the ends are two more. */
	if (ticks + 2 < want || ticks > want + 3)
		fprintf(stderr, "%u ticks, want %u\n", ticks, want);
	CHECK(ticks + 2 >= want && ticks <= want + 3);
	weft_ult_hooks_set(NULL);
	CHECK_EQ(ticks_of_turns(), 0);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

static _Atomic unsigned x_ran;

static void *parks(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		weft_ult_park();
		atomic_fetch_add(&x_ran, 1);
	}
	return arg;
}

/* Whenever its only thread waits, the worker is idle: once more each time. */
static void idle_each_time(void)
{
	struct weft_ult_hooks hooks = {.idle = counts_idle, .tick = counts_tick};
	weft_ult *t;
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	weft_ult_hooks_set(&hooks);
	CHECK_EQ(weft_ult_create(&t, NULL, parks, NULL), WEFT_OK);
	unsigned seen = atomic_load(&x_idles);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		unsigned before = atomic_load(&x_idles);
		weft_ult_unpark(t);
		while (atomic_load(&x_ran) < i) /* ends: it runs */
			sched_yield();
		while (i < ROUNDS && atomic_load(&x_idles) == before && i > 1)
			sched_yield(); /* ends: it waits again, and no other thread is there */
	}
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	CHECK(atomic_load(&x_idles) - seen >= ROUNDS - 2);
	weft_ult_hooks_set(NULL);
	unsigned idles = atomic_load(&x_idles);
	CHECK_EQ(ticks_of_turns(), 0);
	CHECK_EQ(atomic_load(&x_idles), idles);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

static _Atomic unsigned x_entries;
static weft_ult *enters;
static weft_ult_sem sem;
static weft_ult_mutex mutex;

static void counts_entry(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	CHECK(w && w->on_own_stack && weft_ult_self() == enters);
	atomic_fetch_add(&x_entries, 1);
}

/* Of a thread that never blocks itself. */
static void *gives(void *arg)
{
	(void)arg;
	weft_ult_unpark(enters);
	weft_ult_sem_post(&sem);
	return NULL;
}

/* Entries since it was asked last. */
static unsigned entries(void)
{
	return atomic_exchange(&x_entries, 0);
}

/* One for each call that finds nothing, none for one that need not wait. */
static void *calls(void *arg)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	unsigned one = *(unsigned *)arg;
	weft_ult *t;
	enters = weft_ult_self();
	a.worker = 0;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(weft_ult_create(&t, &a, gives, NULL), WEFT_OK);
		CHECK_EQ(entries(), 0);
		weft_ult_park();
		CHECK_EQ(entries(), one);
		CHECK_EQ(weft_ult_sem_wait(&sem), WEFT_OK); /* was given meanwhile */
		CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);  /* has ended */
		CHECK_EQ(entries(), 0);
		CHECK_EQ(weft_ult_create(&t, &a, gives, NULL), WEFT_OK);
		CHECK_EQ(weft_ult_sem_wait(&sem), WEFT_OK);
		CHECK_EQ(entries(), one);
		weft_ult_park();
		CHECK(!weft_ult_park_for(1));
		CHECK_EQ(entries(), one);
		CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
		CHECK_EQ(weft_ult_create(&t, &a, yields, NULL), WEFT_OK);
		CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
		weft_ult_sleep_ns(1);
		CHECK_EQ(entries(), 2 * one);
		CHECK_EQ(weft_ult_mutex_lock(&mutex), WEFT_OK);
		CHECK_EQ(weft_ult_mutex_unlock(&mutex), WEFT_OK);
		weft_ult_yield();
		CHECK_EQ(entries(), 0);
	}
	return arg;
}

static void entry_of_each_wait(void)
{
	struct weft_ult_hooks hooks = {
		.idle = counts_idle, .tick = counts_tick, .entry = counts_entry};
	weft_ult *t;
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	for (unsigned one = 0; one < 2; one++) {
		weft_ult_hooks_set(one ? &hooks : NULL);
		CHECK_EQ(weft_ult_create(&t, NULL, calls, &one), WEFT_OK);
		CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK); /* a plain thread's: no entry */
	}
	CHECK_EQ(entries(), 0);
	weft_ult_hooks_set(NULL);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

int main(void)
{
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	tick_every(1);
	tick_every(10);
	tick_every(0);
	idle_each_time();
	entry_of_each_wait();
	return 0;
}
