/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine stops in every order (task/wake/ending.h): what an idle worker looks at is freed after its
 * look or not seen by it, also beside others that look and into the next generation; a waiter that
 * parks at that moment is woken or does not sleep, whichever thread has the baton.
 */
#include "model/explore.h"
#include "task/wake/baton.h"
#include "task/wake/ending.h"

static struct weft_looks looks;
static int memory; /* the queues: plain data */
static struct weft_baton baton;
static _Atomic bool x_running;
static _Atomic int x_listed, x_notified; /* the list's lock and the parker are not in question */

static void setup(void)
{
	memset((void *)&looks, 0, sizeof looks);
	memset((void *)&baton, 0, sizeof baton);
	memory = 0;
	atomic_store_explicit(&x_running, true, memory_order_relaxed);
	atomic_store_explicit(&x_listed, 0, memory_order_relaxed);
	atomic_store_explicit(&x_notified, 0, memory_order_relaxed);
}

static void held_setup(void)
{
	setup();
	atomic_store_explicit(&baton.x_state, WEFT_BATON_HELD, memory_order_relaxed);
}

/* ---- looks ------------------------------------------------------------------------------------
 */

static void look_of(unsigned generation)
{
	if (weft_task_ending_look_begin(&looks, generation))
		MODEL_CHECK(model_read(&memory) == (int)generation);
	weft_task_ending_look_end(&looks);
}

static void looks_twice(void)
{
	for (int i = 0; i < 2 && !weft_task_ending_over(&looks, 0); i++)
		look_of(0);
}

static void looks_once(void)
{
	look_of(0);
}

static void looks_uncounted(void)
{
	if (!weft_task_ending_over(&looks, 0))
		MODEL_CHECK(model_read(&memory) == 0);
}

static void stops(void)
{
	weft_task_ending_end(&looks);
	while (weft_task_ending_inside(&looks)) /* ends: a look does */
		model_relax();
	model_write(&memory, 1); /* freed, and made anew by the next start */
}

static void stops_at_once(void)
{
	weft_task_ending_end(&looks);
	model_write(&memory, 1);
}

/* ---- waiters ----------------------------------------------------------------------------------
 */

static int newest(_Atomic int *p)
{
	int v;
	memcpy(&v, (void *)p, sizeof v);
	return v;
}

static bool not_notified(void *arg)
{
	(void)arg;
	return newest(&x_notified) == 0;
}

static void wake_parked(void)
{
	if (atomic_exchange_explicit(&x_listed, 0, memory_order_acq_rel))
		atomic_exchange_explicit(&x_notified, 1, memory_order_acq_rel);
}

/* As wait_loop() and park_beside(). */
static void waits_how(bool asks)
{
	while (weft_task_ending_parks(
		&x_running)) { /* ends: stopped; asleep for ever is the failure */
		if (weft_task_baton_try_take(&baton)) {
			if (weft_task_baton_leave(&baton) == WEFT_KICK_PARKED)
				wake_parked();
			model_relax(); /* polls, in vain */
			continue;
		}
		atomic_exchange_explicit(&x_listed, 1, memory_order_acq_rel);
		if (weft_task_baton_park(&baton) && (!asks || weft_task_ending_parks(&x_running)))
			model_block(not_notified, NULL);
		atomic_exchange_explicit(&x_listed, 0, memory_order_acq_rel);
		atomic_exchange_explicit(&x_notified, 0, memory_order_acq_rel);
		weft_task_baton_unpark(&baton);
	}
}

static void waits(void)
{
	waits_how(true);
}

static void parks_unasked(void)
{
	waits_how(false);
}

static void leaves(void)
{
	if (weft_task_baton_leave(&baton) == WEFT_KICK_PARKED)
		wake_parked();
}

/* As stop() and see_off(). */
static void sees_off(void)
{
	weft_task_ending_off(&x_running);
	while (!weft_task_baton_try_take(&baton)) /* ends: its holder leaves */
		model_relax();
	while (atomic_load_explicit(&baton.x_parked, memory_order_seq_cst)) { /* ends: they go */
		wake_parked();
		model_relax();
	}
}

/* Asks which thread to wake before it says that it stops. */
static void sees_off_first(void)
{
	while (!weft_task_baton_try_take(&baton))
		model_relax();
	while (atomic_load_explicit(&baton.x_parked, memory_order_seq_cst)) {
		wake_parked();
		model_relax();
	}
	weft_task_ending_off(&x_running);
}

int main(void)
{
	static const struct model models[] = {
		{"look",
		 setup,
		 {looks_twice, stops},
		 NULL,
		 8,
		 .must = {"weft_task_ending_look_end x", "weft_task_ending_inside l"}},
		{"two look",
		 setup,
		 {looks_once, looks_once, stops},
		 NULL,
		 4,
		 .must = {"weft_task_ending_look_end x", "weft_task_ending_inside l"}},
		{"looks uncounted", setup, {looks_uncounted, stops}, NULL, 4, .broken = true},
		{"stops at once", setup, {looks_once, stops_at_once}, NULL, 4, .broken = true},
		{"a waiter parks",
		 setup,
		 {waits, sees_off},
		 NULL,
		 4,
		 .must = {"weft_task_ending_parks l", "weft_task_ending_off s"}},
		{"a waiter parks, another leaves", held_setup, {waits, sees_off, leaves}, NULL, 2},
		{"parks unasked", setup, {parks_unasked, sees_off}, NULL, 4, .broken = true},
		{"wakes before it stops",
		 held_setup,
		 {waits, sees_off_first, leaves},
		 NULL,
		 2,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
