/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that was back soon some times in a row, from one place, is expected to be back soon
 * (task/wake/gap_predict.h); not once it had left something behind and stayed away.  Times are made up.
 */
#include "check.h"
#include "task/wake/gap_predict.h"

enum { SHORT = 1000 };

static char here[1], there[1];
static uint64_t now = 1;

/* Leaves, and is back after so long.  Was that expected to be soon? */
static bool away(struct weft_task_gap *a, const void *site, uint64_t cycles, bool behind)
{
	bool soon = weft_task_gap_leave(a, site, now);
	CHECK(a->since);
	now += cycles;
	weft_task_gap_back(a, now, behind, SHORT);
	CHECK(!a->since);
	return soon;
}

static void proven(struct weft_task_gap *a, const void *site)
{
	for (int i = 0; i < WEFT_GAP_SURE; i++)
		CHECK(!away(a, site, SHORT - 1, i % 2));
	CHECK(away(a, site, SHORT - 1, true));
}

static void some_in_a_row(void)
{
	struct weft_task_gap a = {0};
	proven(&a, here);
	for (int i = 0; i < 1000; i++) /* the count does not run over */
		CHECK(away(&a, here, 0, true));
	CHECK(away(&a, here, SHORT, true));
	proven(&a, here); /* from the beginning */
}

/* Nothing was under way: a ring would have helped no thread. */
static void long_with_nothing_behind(void)
{
	struct weft_task_gap a = {0};
	proven(&a, here);
	CHECK(away(&a, here, 100 * SHORT, false));
	CHECK(away(&a, here, 0, true));
}

/* Exchanges, each followed by a short wait elsewhere: what is long there stays so. */
static void each_place_for_itself(void)
{
	struct weft_task_gap a = {0};
	proven(&a, here);
	for (int i = 0; i < 20; i++) {
		CHECK(!away(&a, there, 50 * SHORT, true));
		CHECK(away(&a, here, 1, false));
	}
}

static void two_short_ones_between(void)
{
	struct weft_task_gap a = {0};
	for (int i = 0; i < 20; i++) {
		CHECK(!away(&a, here, 1, true));
		CHECK(!away(&a, here, 1, true));
		CHECK(!away(&a, here, SHORT, true));
	}
}

int main(void)
{
	some_in_a_row();
	long_with_nothing_behind();
	each_place_for_itself();
	two_short_ones_between();
	return 0;
}
