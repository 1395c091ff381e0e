/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a wait spins is learned for each place that waits: what one learns the others keep out
 * of; a given time rules; with more ranks than cores a waiter yields.
 */
#include <string.h>
#include <unistd.h>
#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/waiting/spin.h"
#include "task/waiting/wait_site.h"
#include "task/event/load.h"
#include "task/waiting/patience.h"

#define LONGEST_NS 200000u
#define SHORTEST_NS 4000u

/* They differ in their slot, in every run. */
static const void *const here = (const void *)0x1000, *const there = (const void *)0x2000;

static void places_learn_apart(void)
{
	CHECK_EQ(weft_task_spin_site_ns(here), LONGEST_NS);
	for (int i = 0; i < 100; i++)
		weft_task_spin_slept(here, 10 * LONGEST_NS);
	CHECK_EQ(weft_task_spin_site_ns(here), SHORTEST_NS);
	CHECK_EQ(weft_task_spin_site_ns(there), LONGEST_NS);
	weft_task_spin_slept(here, LONGEST_NS / 2); /* spinning would have caught it */
	CHECK_EQ(weft_task_spin_site_ns(here), 2 * SHORTEST_NS);
	weft_task_spin_paid(here);
	CHECK_EQ(weft_task_spin_site_ns(here), 2 * SHORTEST_NS + 2 * SHORTEST_NS / 16 + 1);
	for (int i = 0; i < 10; i++)
		weft_task_spin_slept(here, 0);
	CHECK_EQ(weft_task_spin_site_ns(here), LONGEST_NS);
	CHECK_EQ(weft_task_spin_plan(there).ns, LONGEST_NS);
}

static void a_given_time_rules(void)
{
	CHECK(weft_task_spin_wanted());
	CHECK_EQ(weft_setting_set(WEFT_SET_SPIN_US, "0"), WEFT_OK);
	weft_task_spin_init();
	CHECK(!weft_task_spin_wanted());
	CHECK_EQ(weft_task_spin_plan(here).ns, 0);
	CHECK_EQ(weft_setting_set(WEFT_SET_SPIN_US, "7"), WEFT_OK);
	weft_task_spin_init();
	weft_task_spin_slept(here, 10 * LONGEST_NS);
	CHECK_EQ(weft_task_spin_plan(here).ns, 7000);
	CHECK_EQ(weft_task_spin_plan(there).ns, 7000);
	CHECK_EQ(weft_setting_set(WEFT_SET_SPIN_US, "-1"), WEFT_OK);
	weft_task_spin_init();
}

static void crowds_yield(void)
{
	weft_task_engine_set_local_ranks(3, 2);
	CHECK(weft_task_spin_plan(here).yield);
	weft_task_engine_set_local_ranks(1, 2);
	CHECK(!weft_task_spin_plan(here).yield);
}

/* ---- in waits ----------------------------------------------------------------------------------
 */

static void waits_learn(void)
{
	struct weft_completion never, *c = &never;
	weft_wait_completion_init(&never);
	/* Ends: each lasts ten spins, so nearly all sleep for longer than one. */
	while (weft_task_spin_site_ns(here) > LONGEST_NS / 2)
		CHECK_EQ(weft_task_engine_wait_all_at(&c, 1, UINT64_C(10) * LONGEST_NS, here),
			 WEFT_ERR_TIMEOUT);
	CHECK_EQ(weft_task_spin_site_ns(there), LONGEST_NS);
}

/* A wait for what does not come, with more ranks than cores. */
static uint64_t yields_of_a_wait(void)
{
	struct weft_completion never, *c = &never;
	uint64_t before = weft_counter_sum(WEFT_CNT_YIELDS);
	weft_wait_completion_init(&never);
	weft_task_engine_set_local_ranks(3, 2);
	CHECK_EQ(weft_task_engine_wait_all_at(&c, 1, UINT64_C(10) * LONGEST_NS, there),
		 WEFT_ERR_TIMEOUT);
	weft_task_engine_set_local_ranks(1, 2);
	return weft_counter_sum(WEFT_CNT_YIELDS) - before;
}

static void yields_are_bounded(void)
{
	/* Ends: a wait that is interrupted for as long as it lasts does not yield; most are not. */
	while (!yields_of_a_wait())
		continue;
	CHECK_EQ(weft_setting_set(WEFT_SET_YIELD_MAX, "0"), WEFT_OK);
	weft_task_spin_init();
	CHECK_EQ(yields_of_a_wait(), 0);
	CHECK_EQ(weft_setting_set(WEFT_SET_YIELD_MAX, "64"), WEFT_OK);
	weft_task_spin_init();
}

/* In a row that no thread took: by made-up cycles, all of them short. */
static void untaken_yields_end(void)
{
	struct weft_patience p = {.started = true, .yields = true, .budget = UINT64_MAX / 2};
	unsigned n = 0;
	p.untaken_cycles = UINT64_MAX;
	p.untaken_max = 5;
	p.begun = p.last = weft_cycles();
	while (weft_task_patience_next(&p, there, n) == WEFT_PATIENCE_WHILE) /* ends: as said */
		n++;
	CHECK_EQ(n, 5);
}

static int places(void)
{
	char said[256] = "";
	FILE *f = fmemopen(said, sizeof said, "w");
	int n = 0;
	CHECK(f != NULL);
	weft_task_spin_describe(f);
	fclose(f);
	const char *at = strstr(said, "learned at ");
	if (!at) {
		CHECK(strstr(said, "to be learned") != NULL);
		return 0;
	}
	CHECK_EQ(sscanf(at, "learned at %d place", &n), 1);
	return n;
}

static enum weft_task_verdict nothing(struct weft_task *t, void *arg)
{
	return WEFT_TASK_DONE;
}

/* Ends: when a place more has learned, or it shares the slot of one that had. */
#define HERE_LEARNS(t, before)                                                                     \
	for (int i = 0; i < 50 && places() == (before); i++)                                       \
	CHECK_EQ(weft_task_wait_for((t), UINT64_C(10) * LONGEST_NS), WEFT_ERR_TIMEOUT)

/* Each call in the program is a place; two may meet in one slot of 64, five do not. */
static void callers_are_places(void)
{
	struct weft_task t;
	weft_task_init(&t, "masked", nothing, NULL, 0);
	CHECK_EQ(weft_task_mask_wait(&t), WEFT_OK);
	weft_task_submit(&t);
	int before = places();
	HERE_LEARNS(&t, before);
	HERE_LEARNS(&t, before);
	HERE_LEARNS(&t, before);
	HERE_LEARNS(&t, before);
	CHECK(places() > before);
	weft_task_unmask(&t);
	CHECK_EQ(weft_task_wait(&t), WEFT_OK);
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "error"), WEFT_OK);
	weft_task_load_set_root(
		"/nowhere"); /* else a busy machine would be suspected of strangers */
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	places_learn_apart();
	a_given_time_rules();
	crowds_yield();
	yields_are_bounded();
	untaken_yields_end();
	waits_learn();
	callers_are_places();
	weft_engine_stop();
	return 0;
}
