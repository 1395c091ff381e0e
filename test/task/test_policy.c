/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a waiter passes its time is the policy's choice, the default's or the program's: asked once
 * per fruitless wait, obeyed (counted in sleeps), a handler, and overruled by a given time.
 */
#include <weft/policy.h>

#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/waiting/spin.h"
#include "task/waiting/wait_site.h"

#define MS UINT64_C(1000000)

static const void *const here = (const void *)0x1000;

static void the_default(void)
{
	struct weft_wait_load load = {.learned_ns = 7000, .ranks = 2, .cores = 2};
	CHECK_EQ(weft_policy_wait(&load).ns, 7000);
	CHECK(!weft_policy_wait(&load).yield);
	load.preempted = true; /* strangers took the core */
	CHECK_EQ(weft_policy_wait(&load).ns, 0);
	load.ranks = 3; /* others of ours: they hand it back */
	CHECK_EQ(weft_policy_wait(&load).ns, 7000);
	CHECK(weft_policy_wait(&load).yield);
	load.quota = 2; /* less than the ranks need: nothing is burnt */
	CHECK_EQ(weft_policy_wait(&load).ns, 0);
	load.quota = 3;
	CHECK(weft_policy_wait(&load).yield);
	load = (struct weft_wait_load){.learned_ns = 7000, .ranks = 2, .cores = 2, .quota = 1};
	CHECK_EQ(weft_policy_wait(&load).ns, 0);
}

static int asked, sleeps;
static struct weft_wait_load seen;
static struct weft_wait_plan answer;

static struct weft_wait_plan ask(void *arg, const struct weft_wait_load *load)
{
	struct weft_completion never, *c = &never;
	weft_wait_completion_init(&never);
	CHECK(arg == &asked);
	if (!asked++ && !seen.site)
		CHECK_EQ(weft_task_engine_wait_all(&c, 1, 1), WEFT_ERR_DEADLOCK); /* a handler */
	seen = *load;
	return answer;
}

static const struct weft_policy program = {.wait = ask, .arg = &asked};

static uint64_t parks(void)
{
	return weft_counter_sum(WEFT_CNT_PARKS);
}

/* Waits in vain; how often it slept meanwhile is in `sleeps`. */
static void wait_for(uint64_t ns)
{
	struct weft_completion never, *c = &never;
	weft_wait_completion_init(&never);
	uint64_t before = parks();
	CHECK_EQ(weft_task_engine_wait_all_at(&c, 1, ns, here), WEFT_ERR_TIMEOUT);
	sleeps = (int)(parks() - before);
}

static void the_programs(void)
{
	weft_policy_set(&program);
	weft_task_engine_set_local_ranks(2, 3);
	answer = (struct weft_wait_plan){.ns = UINT64_C(3600000) * MS};
	do {
		asked = 0;
		wait_for(2 * MS);
		/* ends: once the time is not over before the first look, and the watcher does not
		 * have the baton at that moment */
	} while (asked != 1 || sleeps);
	CHECK(seen.site == here);
	CHECK_EQ(seen.ranks, 2);
	CHECK_EQ(seen.cores, 3);
	CHECK(seen.learned_ns > 0);
	answer.ns = 0;
	do
		wait_for(2 * MS);
	while (!sleeps); /* ends: once the time is not over before the first look */
	weft_task_engine_set_local_ranks(1, 2);
	weft_policy_set(NULL);
	asked = 0;
	wait_for(2 * MS);
	CHECK_EQ(asked, 0);
}

static void a_given_time_rules(void)
{
	weft_policy_set(&program);
	CHECK_EQ(weft_setting_set(WEFT_SET_SPIN_US, "3"), WEFT_OK);
	weft_task_spin_init();
	asked = 0;
	CHECK_EQ(weft_task_spin_plan(here).ns, 3000);
	wait_for(2 * MS);
	CHECK_EQ(asked, 0);
	CHECK_EQ(weft_setting_set(WEFT_SET_SPIN_US, "-1"), WEFT_OK);
	weft_task_spin_init();
	weft_policy_set(NULL);
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "error"), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	the_default();
	the_programs();
	a_given_time_rules();
	weft_engine_stop();
	return 0;
}
