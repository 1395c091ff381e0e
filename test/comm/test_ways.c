/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ways.c - of the two ways of large messages the cheaper one is taken, by made costs: both are
 * tried, the dearer one seldom, a moment that changes is followed, what was disturbed is forgotten,
 * and kinds and sizes are kept apart.
 */
#include "comm/ways.h"
#include "check.h"

/* n messages of 64 KiB that cost so much; returns how many were sent. */
static unsigned run(struct weft_ways_row *row, unsigned n, uint64_t fetch, uint64_t sent)
{
	unsigned count = 0;
	for (unsigned i = 0; i < n; i++) {
		enum weft_ways_way way = weft_ways_choose(row);
		CHECK(way == WEFT_WAYS_SENT || way == WEFT_WAYS_FETCH);
		count += way == WEFT_WAYS_SENT;
		weft_ways_took(row, way, 65536, way == WEFT_WAYS_SENT ? sent : fetch);
	}
	return count;
}

static void follows(void)
{
	struct weft_ways_row row = {0};
	/* Each once, then the cheaper one but for a few. */
	CHECK_EQ(run(&row, 2, 5000, 2000), 1);
	CHECK(run(&row, 1000, 5000, 2000) >= 980);
	/* The cores drift apart: within a few messages the other one. */
	CHECK(run(&row, 1000, 6000, 9000) <= 40);
	/* And back: no later than the first trials. */
	CHECK(run(&row, 1000, 5000, 2000) >= 1000 - 2 * WEFT_WAYS_TRY);
	/* Both cost more, in the same order. */
	CHECK(run(&row, 1000, 50000, 20000) >= 900);
	/* The dearer one is tried one time in TRY. */
	CHECK_EQ(run(&row, 64 * WEFT_WAYS_TRY, 5000000, 20000), 63 * WEFT_WAYS_TRY);
}

/* A first measurement in which everything stood still does not decide for long. */
static void disturbed(void)
{
	struct weft_ways_row row = {0};
	CHECK_EQ(weft_ways_choose(&row), WEFT_WAYS_SENT);
	weft_ways_took(&row, WEFT_WAYS_SENT, 65536, 4000000);
	CHECK_EQ(weft_ways_choose(&row), WEFT_WAYS_FETCH);
	weft_ways_took(&row, WEFT_WAYS_FETCH, 65536, 5000);
	run(&row, 10 * WEFT_WAYS_TRY, 5000, 2000);
	CHECK(run(&row, WEFT_WAYS_TRY, 5000, 2000) >= WEFT_WAYS_TRY - 1);
	/* Nor does one that comes later, by more than a quarter of its double. */
	weft_ways_took(&row, WEFT_WAYS_SENT, 65536, 4000000);
	CHECK_EQ(run(&row, 8, 5000, 2000), 8);
	/* What no clock should say does no harm. */
	weft_ways_took(&row, WEFT_WAYS_SENT, 0, UINT64_MAX / 2);
	weft_ways_took(&row, WEFT_WAYS_FETCH, 1, UINT64_MAX / 2);
	(void)run(&row, 100, 0, 0);
	CHECK(run(&row, 1000, 2000, 9000) <= 100);
}

static void apart(void)
{
	_Atomic(struct weft_ways *) x_ways = NULL;
	static const uint64_t bytes[] = {1, 8192, 65536, 1 << 20, (uint64_t)1 << 40};
	struct weft_ways_trip trip = {.way = WEFT_WAYS_NONE};

	for (unsigned kind = 0; kind < WEFT_WAYS_KINDS; kind++)
		for (unsigned i = 0; i < weft_countof(bytes); i++) {
			/* Nothing is known of this one, whatever is of the others. */
			CHECK_EQ(weft_ways_begin(&x_ways, kind, bytes[i], &trip), WEFT_WAYS_SENT);
			weft_ways_end(&x_ways, &trip, bytes[i]);
			CHECK_EQ(trip.way, WEFT_WAYS_NONE);
			CHECK_EQ(weft_ways_begin(&x_ways, kind, bytes[i], &trip), WEFT_WAYS_FETCH);
			weft_ways_end(&x_ways, &trip, bytes[i]);
			weft_ways_end(&x_ways, &trip, bytes[i]); /* nothing */
		}
	weft_ways_close(&x_ways);
	CHECK(!x_ways);
	CHECK_EQ(weft_ways_begin(&x_ways, WEFT_WAYS_FLAT, 65536, &trip), WEFT_WAYS_SENT);
	weft_ways_close(&x_ways);
}

int main(void)
{
	follows();
	disturbed();
	apart();
	return 0;
}
