/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_path_cost.c - of the two ways of large messages the cheaper one is taken, by made costs: both are
 * tried, the dearer one seldom, a moment that changes is followed, what was disturbed is forgotten,
 * messages that are under way together are measured together, and kinds and sizes are kept apart.
 */
#include "check.h"
#include "comm/large/path_cost.h"

static uint64_t now = 1;

/* n messages of 64 KiB, one after the other, that cost so much; returns how many were sent. */
static unsigned run(struct weft_comm_path_cost *w, unsigned n, uint64_t fetch, uint64_t sent)
{
	unsigned count = 0;
	for (unsigned i = 0; i < n; i++) {
		struct weft_comm_path_cost_trip trip;
		enum weft_comm_path_cost_way way =
			weft_comm_path_cost_begin_at(w, WEFT_PATH_FLAT, 65536, now, &trip);
		CHECK(way == WEFT_PATH_SENT || way == WEFT_PATH_FETCH);
		count += way == WEFT_PATH_SENT;
		now += way == WEFT_PATH_SENT ? sent : fetch;
		weft_comm_path_cost_end_at(w, &trip, 65536, now);
		CHECK_EQ(trip.way, WEFT_PATH_NONE);
		now += 1000000; /* nothing is under way */
	}
	return count;
}

static void follows(void)
{
	struct weft_comm_path_cost w = {0};
	/* Each once, then the cheaper one but for a few. */
	CHECK_EQ(run(&w, 2, 5000, 2000), 1);
	CHECK(run(&w, 1000, 5000, 2000) >= 970);
	/* The cores drift apart: within a few messages the other one. */
	CHECK(run(&w, 1000, 6000, 9000) <= 40);
	/* And back: no later than the first trials. */
	CHECK(run(&w, 1000, 5000, 2000) >= 1000 - 3 * WEFT_PATH_TRY);
	/* Both cost more, in the same order. */
	CHECK(run(&w, 1000, 50000, 20000) >= 900);
	/* The dearer one is tried one time in TRY. */
	CHECK_EQ(run(&w, 65 * WEFT_PATH_TRY, 5000000, 20000), 64 * WEFT_PATH_TRY);
}

/* A first measurement in which everything stood still does not decide for long. */
static void disturbed(void)
{
	struct weft_comm_path_cost w = {0};
	CHECK_EQ(run(&w, 1, 0, 4000000), 1);
	CHECK_EQ(run(&w, 1, 5000, 0), 0);
	run(&w, 10 * WEFT_PATH_TRY, 5000, 2000);
	CHECK(run(&w, WEFT_PATH_TRY, 5000, 2000) >= WEFT_PATH_TRY - 1);
	/* Nor does one that comes later. */
	run(&w, 1, 5000, 4000000);
	CHECK(run(&w, 8, 5000, 2000) >= 7);
	/* What no clock should say does no harm. */
	run(&w, 1, UINT64_MAX / 4, UINT64_MAX / 4);
	(void)run(&w, 100, 0, 0);
	CHECK(run(&w, 2000, 2000, 9000) <= 200);
}

#define WINDOW 16

/* Windows of messages that are begun together and end one after the other (over: whole pieces in
 * turn, so that all end at the end); returns how many were sent. */
static unsigned windows(struct weft_comm_path_cost *w, unsigned n, uint64_t fetch, uint64_t sent,
			bool over)
{
	struct weft_comm_path_cost_trip trip[WINDOW];
	unsigned count = 0;
	for (unsigned k = 0; k < n; k++) {
		uint64_t took = 0;
		for (unsigned i = 0; i < WINDOW; i++) {
			enum weft_comm_path_cost_way way = weft_comm_path_cost_begin_at(
				w, WEFT_PATH_FLAT, 65536, now, &trip[i]);
			CHECK_EQ(way, trip[0].way);
			count += way == WEFT_PATH_SENT;
			took += way == WEFT_PATH_SENT ? sent : fetch;
		}
		bool at_once = over && trip[0].way == WEFT_PATH_FETCH;
		for (unsigned i = 0; i < WINDOW; i++) {
			now += at_once ? i ? 1 : took : took / WINDOW;
			weft_comm_path_cost_end_at(w, &trip[i], 65536, now);
		}
	}
	return count;
}

/* Neither that they wait for each other nor that they end together makes a way look dear or cheap.
 */
static void together(void)
{
	for (int over = 0; over < 2; over++) {
		struct weft_comm_path_cost w = {0};
		windows(&w, 10, 5000, 2000, over);
		CHECK(windows(&w, 1000, 5000, 2000, over) >= 960 * WINDOW);
		windows(&w, 3 * WEFT_PATH_TRY, 5000, 9000, over);
		CHECK(windows(&w, 1000, 5000, 9000, over) <= 40 * WINDOW);
	}
}

/* A run that never comes to its end is measured all the same; one of two kinds is not. */
static void endless(void)
{
	struct weft_comm_path_cost w = {0};
	struct weft_comm_path_cost_trip trip[2];
	unsigned sent = 0;
	for (unsigned i = 0; i < 10000; i++) { /* one is always under way */
		enum weft_comm_path_cost_way way =
			weft_comm_path_cost_begin_at(&w, WEFT_PATH_FLAT, 65536, now, &trip[i % 2]);
		sent += way == WEFT_PATH_SENT;
		now += way == WEFT_PATH_SENT ? 2000 : 5000;
		if (i)
			weft_comm_path_cost_end_at(&w, &trip[(i + 1) % 2], 65536, now);
	}
	CHECK(sent > 9000);
	struct weft_comm_path_cost two = {0};
	for (unsigned i = 0; i < 100; i++) {
		CHECK_EQ(weft_comm_path_cost_begin_at(&two, WEFT_PATH_FLAT, 65536, now, &trip[0]),
			 WEFT_PATH_SENT);
		CHECK_EQ(weft_comm_path_cost_begin_at(&two, WEFT_PATH_COARSE, 65536, now, &trip[1]),
			 WEFT_PATH_SENT);
		weft_comm_path_cost_end_at(&two, &trip[i % 2], 65536, now += 1000);
		weft_comm_path_cost_end_at(&two, &trip[(i + 1) % 2], i % 3 ? 65536 : 0,
					   now += 1000);
	}
}

static void apart(void)
{
	_Atomic(struct weft_comm_path_cost *) x_path_cost = NULL;
	static const uint64_t bytes[] = {1, 8192, 65536, 1 << 20, (uint64_t)1 << 40};
	struct weft_comm_path_cost_trip trip = {.way = WEFT_PATH_NONE};

	for (unsigned kind = 0; kind < WEFT_PATH_KINDS; kind++)
		for (unsigned i = 0; i < weft_countof(bytes); i++) {
			/* Nothing is known of this one, whatever is of the others. */
			CHECK_EQ(weft_comm_path_cost_begin(&x_path_cost, kind, bytes[i], &trip),
				 WEFT_PATH_SENT);
			weft_comm_path_cost_end(&x_path_cost, &trip, bytes[i]);
			CHECK_EQ(trip.way, WEFT_PATH_NONE);
			CHECK_EQ(weft_comm_path_cost_begin(&x_path_cost, kind, bytes[i], &trip),
				 WEFT_PATH_FETCH);
			weft_comm_path_cost_end(&x_path_cost, &trip, bytes[i]);
			weft_comm_path_cost_end(&x_path_cost, &trip, bytes[i]); /* nothing */
		}
	weft_comm_path_cost_close(&x_path_cost);
	CHECK(!x_path_cost);
	CHECK_EQ(weft_comm_path_cost_begin(&x_path_cost, WEFT_PATH_FLAT, 65536, &trip),
		 WEFT_PATH_SENT);
	weft_comm_path_cost_close(&x_path_cost);
}

int main(void)
{
	follows();
	disturbed();
	together();
	endless();
	apart();
	return 0;
}
