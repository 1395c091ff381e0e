/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meetings in the ring in every order, with a ring of two places: no member leaves before all have
 * come, each reads what the last one wrote and what each other one shows, which no member
 * writes over meanwhile, also with phases down between them, each sleeper is woken, and a meeting
 * that a member gives up ends in the same way for all.
 */
#include "ring_model.h"

#define TURNS 2
#define SHOWS 3

static int result[WEFT_COLL_RING_PLACES], shown[2][3], failed[3];

static void setup_greedy(void)
{
	setup(2);
	mutant.greedy = true;
}

static void finish(uint32_t t, unsigned me)
{
	weft_coll_ring_clear(weft_coll_ring_at(&ring, t));
	post(&ring.x_head, weft_coll_ec_next(heads[me]));
}

static void meet(unsigned me, uint32_t t, unsigned root, bool sleeps)
{
	int *place = data[t % WEFT_COLL_RING_PLACES], *sum = &result[t % WEFT_COLL_RING_PLACES];
	uint32_t next = weft_coll_ec_next(heads[me]);
	(void)root;
	begin(me, t, sleeps);
	model_write(&place[me], (int)t + 1);
	if (weft_coll_ring_arrive(weft_coll_ring_at(&ring, t), (unsigned)n)) {
		int all = 0;
		for (int i = 0; i < n; i++)
			all += model_read(&place[i]);
		model_write(sum, all);
		finish(t, me);
	} else {
		wait_for(me, &ring.x_head, next, sleeps);
	}
	MODEL_CHECK(!weft_coll_ec_failed(&ring.x_head));
	MODEL_CHECK(model_read(sum) == n * ((int)t + 1));
	heads[me] = next;
	pass(t);
}

THREAD(polls0, meet, 0, 0, TURNS, false)
THREAD(polls1, meet, 1, 0, TURNS, false)
THREAD(sleeps0, meet, 0, 0, TURNS, true)
THREAD(sleeps1, meet, 1, 0, TURNS, true)
THREAD(once0, meet, 0, 0, 1, true)
THREAD(once1, meet, 1, 0, 1, true)
THREAD(once2, meet, 2, 0, 1, false)

/* Each shows something to all, in one of `areas` areas. */
static void show(unsigned me, uint32_t t, unsigned areas, bool sleeps)
{
	uint32_t next = weft_coll_ec_next(heads[me]);
	begin(me, t, sleeps);
	model_write(&shown[t % areas][me], (int)t + 1);
	if (weft_coll_ring_arrive(weft_coll_ring_at(&ring, t), (unsigned)n))
		finish(t, me);
	else
		wait_for(me, &ring.x_head, next, sleeps);
	for (int i = 0; i < n; i++)
		MODEL_CHECK(model_read(&shown[t % areas][i]) == (int)t + 1);
	heads[me] = next;
	pass(t);
}

THREAD(shows0, show, 0, 2, SHOWS, false)
THREAD(shows1, show, 1, 2, SHOWS, false)
THREAD(shows_over0, show, 0, 1, SHOWS, false)
THREAD(shows_over1, show, 1, 1, SHOWS, false)

/* 0 hands out, and meets before its readers have read all of it. */
static void down(unsigned me, uint32_t t)
{
	int *place = data[t % WEFT_COLL_RING_PLACES];
	uint32_t next = weft_coll_ec_next(heads[me]);
	if (!me) {
		begin(me, t, false);
		model_write(place, -(int)t - 1);
		post(&ring.x_head, next);
	} else {
		wait_for(me, &ring.x_head, next, false);
		MODEL_CHECK(model_read(place) == -(int)t - 1);
	}
	heads[me] = next;
	pass(t);
}

static void mixed(unsigned me)
{
	down(me, 0);
	down(me, 1);
	meet(me, 2, 0, false);
	down(me, 3);
}

static void mixed0(void)
{
	mixed(0);
}

static void mixed1(void)
{
	mixed(1);
}

static bool arrive(unsigned me)
{
	uint32_t sleepers = 0;
	if (!weft_coll_ring_arrive(weft_coll_ring_at(&ring, 0), (unsigned)n))
		return false;
	failed[me] = !weft_coll_ec_post(&ring.x_head, 1, &sleepers);
	if (!failed[me])
		wake(&ring.x_head, sleepers);
	return true;
}

static void same_for(unsigned me)
{
	MODEL_CHECK(failed[me] == (weft_coll_ec_failed(&ring.x_head) == WEFT_ERR_PEER));
}

/* Believes that a member is lost, at once. */
static void gives_up0(void)
{
	uint32_t sleepers = 0;
	failed[0] = 0;
	if (!arrive(0)) {
		if (weft_coll_ec_fail(&ring.x_head, 1, WEFT_COLL_EC_LOST, &sleepers)) {
			failed[0] = 1;
			wake(&ring.x_head, sleepers);
		} else {
			wait_for(0, &ring.x_head, 1, false);
		}
	}
	same_for(0);
}

static void loses1(void)
{
	failed[1] = 0;
	if (!arrive(1)) {
		wait_for(1, &ring.x_head, 1, true);
		failed[1] = weft_coll_ec_failed(&ring.x_head) != WEFT_OK;
	}
	same_for(1);
}

/* Looks for sleepers before it posts, with a plain store. */
static void wakes_early(void)
{
	model_write(&data[0][1], 1);
	if (weft_coll_ring_arrive(weft_coll_ring_at(&ring, 0), (unsigned)n)) {
		model_write(&result[0], 2);
		wake(&ring.x_head,
		     (uint32_t)atomic_load_explicit(&ring.x_head, memory_order_relaxed));
		atomic_store_explicit(&ring.x_head, weft_coll_ec_of(1), memory_order_release);
	} else {
		wait_for(1, &ring.x_head, 1, true);
	}
}

/* A member that writes there what it likes: no number that fails counts as posted, whatever is
 * counted on top of it. */
static void lies(void)
{
	static const uint32_t wrong[] = {WEFT_COLL_EC_LOST, WEFT_COLL_EC_LOST + 7,
					 WEFT_COLL_EC_MISMATCH, WEFT_COLL_EC_MISMATCH + 7,
					 0xffffffff};
	uint32_t sleepers;
	setup(2);
	for (unsigned i = 0; i < weft_countof(wrong); i++) {
		atomic_store(&ring.x_head, weft_coll_ec_of(wrong[i]));
		CHECK(weft_coll_ec_reached(&ring.x_head, 1) && weft_coll_ec_failed(&ring.x_head));
		CHECK(!weft_coll_ec_post(&ring.x_head, 1, &sleepers));
	}
	static const uint32_t behind[] = {0, WEFT_COLL_EC_NUMBERS, 0x40000002};
	for (unsigned i = 0; i < weft_countof(behind); i++) {
		atomic_store(&ring.x_head, weft_coll_ec_of(behind[i]));
		CHECK(!weft_coll_ec_reached(&ring.x_head, 1) && !weft_coll_ec_failed(&ring.x_head));
	}
}

int main(void)
{
	lies();
	static const struct model models[] = {
		{"two sleep", setup_two, {sleeps0, sleeps1}, consistent, 3},
		{"three", setup_three, {once0, once1, once2}, consistent, 2},
		{"one gives up", setup_two, {gives_up0, loses1}, NULL, 5},
		{"two poll",
		 setup_two,
		 {polls0, polls1},
		 consistent,
		 4,
		 .must = {"weft_coll_ring_arrive x", "weft_coll_ec_post c",
			  "weft_coll_ec_reached l"}},
		{"two sleep once",
		 setup_two,
		 {once0, once1},
		 consistent,
		 5,
		 .must = {"weft_coll_ec_post c", "weft_coll_ec_reached l"}},
		{"two show",
		 setup_two,
		 {shows0, shows1},
		 consistent,
		 3,
		 .must = {"weft_coll_ring_arrive x", "weft_coll_ec_post c",
			  "weft_coll_ec_reached l"}},
		{"down before a meeting", setup_two, {mixed0, mixed1}, consistent, 2},
		{"met before the place is free",
		 setup_greedy,
		 {mixed0, mixed1},
		 NULL,
		 2,
		 .broken = true},
		{"shown in one area",
		 setup_two,
		 {shows_over0, shows_over1},
		 NULL,
		 4,
		 .broken = true},
		{"sleepers woken too early",
		 setup_two,
		 {once0, wakes_early},
		 NULL,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
