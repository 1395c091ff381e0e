/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A user-level thread that waits or tests in the engine for what is not there calls the hook of
 * library entry once; one that finds it there, and a plain thread, do not.
 */
#include <weft/ult.h>
#include "base/settings.h"
#include "check.h"
#include "task/task.h"
#include "ult/ult.h"
#include "wait/completion.h"

#define N 3
#define ROUNDS 20

static _Atomic unsigned x_entries;
static weft_ult *waits;
static struct weft_completion come[N];

static void look(void)
{
	(void)weft_engine_poll();
}

/* Looks for messages, which is no entry of its own. */
static void counts(void)
{
	CHECK(weft_ult_self() == waits);
	atomic_fetch_add(&x_entries, 1);
	look();
}

static const struct weft_ult_hooks hooks = {
	.idle = weft_task_engine_idle, .tick = look, .entry = counts};

static unsigned entries(void)
{
	return atomic_exchange(&x_entries, 0);
}

/* Another thread of the same worker, which runs when the first waits. */
static void *signals(void *arg)
{
	for (int i = 0; i < N; i++)
		weft_wait_completion_signal(&come[i]);
	return arg;
}

static void expect(void)
{
	struct weft_ult_attr attr = WEFT_ULT_ATTR_INIT;
	attr.worker = 0;
	for (int i = 0; i < N; i++)
		weft_wait_completion_init(&come[i]);
	CHECK_EQ(weft_ult_create(NULL, &attr, signals, NULL), WEFT_OK);
	CHECK_EQ(entries(), 0);
}

static void *enters(void *arg)
{
	struct weft_completion *const c[N] = {&come[0], &come[1], &come[2]};
	waits = weft_ult_self();
	for (int i = 0; i < ROUNDS; i++) {
		expect();
		weft_task_engine_wait(c[0]);
		CHECK_EQ(entries(), 1);
		CHECK_EQ(weft_task_engine_wait_all(c, N, WEFT_FOREVER), WEFT_OK);
		weft_task_engine_wait_own(c[1]);
		CHECK_EQ(entries(), 0);
		expect();
		CHECK_EQ(weft_task_engine_wait_all(c, N, WEFT_FOREVER), WEFT_OK);
		CHECK_EQ(entries(), 1);
		expect();
		CHECK_EQ(weft_task_engine_wait_any(c, N, WEFT_FOREVER), WEFT_OK);
		CHECK_EQ(entries(), 1);
		look();
		CHECK_EQ(entries(), 1);
	}
	return arg;
}

int main(void)
{
	weft_ult *t;
	struct weft_ult_attr attr = WEFT_ULT_ATTR_INIT;
	attr.worker = 0;
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	weft_ult_hooks_set(&hooks);
	CHECK_EQ(weft_ult_create(&t, &attr, enters, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	look();
	CHECK_EQ(entries(), 0);
	weft_ult_hooks_set(NULL);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	weft_engine_stop();
	return 0;
}
