/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When other threads poll the watcher is not rung for them (task/wake/kick_filter.h), also while it has taken their
 * core; and no longer once they are gone.  Times are made up.
 */
#include "check.h"
#include "task/wake/kick_filter.h"

static uint64_t now = 1000000000;
static int clocks;

static uint64_t clock_ns(void)
{
	clocks++;
	return now;
}

static void a_streak_is_eight(void)
{
	struct weft_streak s = {.rounds = 5};
	uint32_t rounds = 5;
	CHECK(!weft_task_streak_polled(&s, rounds, clock_ns));
	for (int i = 1; i < WEFT_POLLED_STREAK; i++)
		CHECK(!weft_task_streak_polled(&s, ++rounds, clock_ns));
	CHECK_EQ(clocks, 0); /* no look at the clock for a submitter that rings */
	CHECK(weft_task_streak_polled(&s, ++rounds, clock_ns));
	CHECK(weft_task_streak_polled(&s, ++rounds, clock_ns));
	/* They do not poll at this moment: the watcher has their core. */
	now += WEFT_POLLED_NS - 1;
	CHECK(weft_task_streak_polled(&s, rounds, clock_ns));
	CHECK(weft_task_streak_polled(&s, ++rounds, clock_ns));
	/* They are gone. */
	now += WEFT_POLLED_NS;
	CHECK(!weft_task_streak_polled(&s, rounds, clock_ns));
	CHECK(!weft_task_streak_polled(&s, ++rounds, clock_ns)); /* from the beginning */
}

static void a_break_ends_a_short_streak(void)
{
	struct weft_streak s = {.rounds = 0};
	uint32_t rounds = 0;
	for (int i = 0; i < 100; i++)
		CHECK(!weft_task_streak_polled(&s, rounds += i % 4 != 0, clock_ns));
}

static void kicks_while_they_poll(void)
{
	struct weft_task_poll_activity p = {.rounds = 0};
	now += 2 * WEFT_MOVED_NS;
	CHECK(!weft_task_poll_activity_kicked(&p, 0, now));
	CHECK(!weft_task_poll_activity_kicked(&p, WEFT_POLLS_MAX - 1, now)); /* they may be late */
	CHECK(weft_task_poll_activity_kicked(&p, 2 * WEFT_POLLS_MAX - 1, now));
}

/* Each task rings, and no round comes between: they lack their core. */
static void kicks_without_a_round(void)
{
	struct weft_task_poll_activity p = {.rounds = 0};
	now += 2 * WEFT_MOVED_NS;
	CHECK_EQ(weft_task_poll_activity_moved(&p, 3, now), 3);
	for (int i = 1; i < WEFT_KICKS_MAX; i++)
		CHECK(!weft_task_poll_activity_kicked(&p, 3, now + 1));
	CHECK(weft_task_poll_activity_kicked(&p, 3, now + 2));
	/* So many, but over a long time: that is no storm. */
	for (int i = 0; i < 10; i++) {
		now += WEFT_KICKS_NS;
		CHECK(!weft_task_poll_activity_kicked(&p, 3, now + 2));
	}
}

/* No thread has polled for long: each kick is for us. */
static void kicks_of_who_computes(void)
{
	struct weft_task_poll_activity p = {.rounds = 0};
	now += 2 * WEFT_MOVED_NS;
	CHECK_EQ(weft_task_poll_activity_moved(&p, 3, now), 3);
	now += WEFT_MOVED_NS;
	for (int i = 0; i < 10 * WEFT_KICKS_MAX; i++)
		CHECK(!weft_task_poll_activity_kicked(&p, 3, now));
}

int main(void)
{
	a_streak_is_eight();
	a_break_ends_a_short_streak();
	kicks_while_they_poll();
	kicks_without_a_round();
	kicks_of_who_computes();
	return 0;
}
