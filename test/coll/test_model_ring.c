/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Phases down and up of the ring in every order, with a ring of two places: each member reads what
 * the root wrote in that phase, the root what each member gave, no member writes a place that
 * another still reads, each sleeper is woken, and a phase that a member gives up ends in the same
 * way for all.
 */
#include "ring_model.h"

#define TURNS 4

static int failed[2];

/* After very many phases that went up. */
static void setup_far(void)
{
	setup(2);
	first = 1u << 30;
	atomic_store_explicit(&ring.x_floor, weft_coll_ec_of(first), memory_order_relaxed);
}

static void setup_far_by_turn(void)
{
	setup_far();
	mutant.by_turn = true;
}

static void setup_greedy(void)
{
	setup(2);
	mutant.greedy = true;
}

static void setup_hasty(void)
{
	setup(2);
	mutant.hasty = true;
}

static void setup_deaf(void)
{
	setup(2);
	mutant.deaf = true;
}

static void down(unsigned me, uint32_t t, unsigned root, bool sleeps)
{
	int *place = data[t % WEFT_COLL_RING_PLACES];
	uint32_t next = weft_coll_ec_next(mutant.by_turn ? t : heads[me]);
	if (me == root) {
		begin(me, t, sleeps);
		model_write(place, (int)t + 1);
		post(&ring.x_head, next);
	} else {
		wait_for(me, &ring.x_head, next, sleeps);
		MODEL_CHECK(model_read(place) == (int)t + 1);
	}
	heads[me] = next;
	pass(t);
}

static void up(unsigned me, uint32_t t, unsigned root, bool sleeps)
{
	int *place = data[t % WEFT_COLL_RING_PLACES];
	struct weft_coll_ring_place *at = weft_coll_ring_at(&ring, t);
	if (me != root) {
		begin(me, t, sleeps);
		model_write(&place[me], (int)t + 1);
		wake(&at->x_came, weft_coll_ring_come(at, (unsigned)n - 1));
	} else {
		if (!mutant.hasty)
			begin(me, t, sleeps);
		wait_for(me, &at->x_came, (uint32_t)n - 1, sleeps);
		for (int r = 0; r < n; r++)
			MODEL_CHECK(r == (int)root || model_read(&place[r]) == (int)t + 1);
		weft_coll_ring_clear(at);
	}
	pass(t);
}

THREAD(down0, down, 0, 0, TURNS, false)
THREAD(down1, down, 1, 0, TURNS, false)
THREAD(down_slept0, down, 0, 0, 3, true)
THREAD(down_slept1, down, 1, 0, 3, true)
THREAD(turns0, down, 0, t & 1, 3, true)
THREAD(turns1, down, 1, t & 1, 3, true)
THREAD(up0, up, 0, 0, TURNS, false)
THREAD(up1, up, 1, 0, TURNS, false)
THREAD(up_slept0, up, 0, 0, 3, true)
THREAD(up_slept1, up, 1, 0, 3, true)
THREAD(three0, down, 0, 0, 1, true)
THREAD(three1, down, 1, 0, 1, true)
THREAD(three2, down, 2, 0, 1, true)
THREAD(give0, up, 0, 0, 1, true)
THREAD(give1, up, 1, 0, 1, true)
THREAD(give2, up, 2, 0, 1, false)
THREAD(once0, down, 0, 0, 1, true)
THREAD(once1, down, 1, 0, 1, true)

/* Down, then up, and so on. */
static void mixed(unsigned me)
{
	for (uint32_t t = first; t - first < TURNS; t++)
		(t & 1 ? up : down)(me, t, 0, false);
}

static void mixed0(void)
{
	mixed(0);
}

static void mixed1(void)
{
	mixed(1);
}

/* 1 gives, hands out, and collects where 0 has still to. */
static void collects(unsigned me, bool sleeps)
{
	up(me, 0, 0, sleeps);
	down(me, 1, 1, sleeps);
	up(me, 2, 1, sleeps);
}

static void collects0(void)
{
	collects(0, false);
}

static void collects1(void)
{
	collects(1, false);
}

static void collects_slept0(void)
{
	collects(0, true);
}

static void collects_slept1(void)
{
	collects(1, true);
}

/* Believes that a member is lost, at once; the root posts meanwhile. */
static void gives_up1(void)
{
	uint32_t sleepers;
	failed[1] = weft_coll_ec_fail(&ring.x_head, 1, WEFT_COLL_EC_LOST, &sleepers);
	if (failed[1])
		wake(&ring.x_head, sleepers);
	MODEL_CHECK(failed[1] == (weft_coll_ec_failed(&ring.x_head) == WEFT_ERR_PEER));
}

static void posts0(void)
{
	uint32_t sleepers;
	failed[0] = !weft_coll_ec_post(&ring.x_head, 1, &sleepers);
	if (!failed[0])
		wake(&ring.x_head, sleepers);
}

static void reads2(void)
{
	wait_for(2, &ring.x_head, 1, true);
	(void)weft_coll_ec_failed(&ring.x_head);
}

static void same_end(void)
{
	MODEL_CHECK(failed[0] == failed[1]);
	MODEL_CHECK(failed[0] == (weft_coll_ec_failed(&ring.x_head) == WEFT_ERR_PEER));
}

/* Numbers wrap; a failure stays over whatever else is posted or counted there. */
static void numbers(void)
{
	uint32_t last = WEFT_COLL_EC_NUMBERS, sleepers;
	CHECK(weft_coll_ec_has(weft_coll_ec_of(0), last) &&
	      !weft_coll_ec_has(weft_coll_ec_of(last), 0));
	CHECK(weft_coll_ec_next(last) == 0 && weft_coll_ring_floor(0) == last);
	CHECK(weft_coll_ec_has(0, weft_coll_ring_floor(0)) &&
	      weft_coll_ec_has(0, weft_coll_ring_floor(1)) &&
	      !weft_coll_ec_has(0, weft_coll_ring_floor(2)));
	setup(3);
	CHECK(weft_coll_ec_prepare_sleep(&ring.x_head, 2, 1));
	CHECK(weft_coll_ec_abort(&ring.x_head, WEFT_COLL_EC_LOST) == 4);
	CHECK(!weft_coll_ec_post(&ring.x_head, 1, &sleepers));
	CHECK(weft_coll_ec_failed(&ring.x_head) == WEFT_ERR_PEER);
	CHECK(!weft_coll_ec_prepare_sleep(&ring.x_head, 2, 1));
	static const uint32_t why[] = {WEFT_COLL_EC_LOST, WEFT_COLL_EC_MISMATCH};
	static const weft_err err[] = {WEFT_ERR_PEER, WEFT_ERR_TRUNC};
	for (int k = 0; k < 2; k++) {
		_Atomic uint64_t *x_came = &ring.place[k].x_came;
		CHECK(weft_coll_ec_abort(x_came, why[k]) == 0);
		for (int i = 0; i < 2 * WEFT_COLL_EC_SLEEPERS; i++)
			CHECK(weft_coll_ring_come(&ring.place[k], 2) == 0);
		CHECK(weft_coll_ec_failed(x_came) == err[k]);
	}
}

int main(void)
{
	numbers();
	static const struct model models[] = {
		{"down",
		 setup_two,
		 {down0, down1},
		 consistent,
		 3,
		 .must = {"weft_coll_ec_post c", "weft_coll_ec_reached l",
			  "weft_coll_ring_pass x"}},
		{"up",
		 setup_two,
		 {up0, up1},
		 consistent,
		 3,
		 .must = {"weft_coll_ring_come x", "weft_coll_ec_reached l",
			  "weft_coll_ring_pass x"}},
		{"down and up", setup_two, {mixed0, mixed1}, consistent, 3},
		{"down and up, far", setup_far, {mixed0, mixed1}, NULL, 3},
		{"down, asleep", setup_two, {down_slept0, down_slept1}, consistent, 3},
		{"up, asleep", setup_two, {up_slept0, up_slept1}, consistent, 3},
		{"roots change", setup_two, {turns0, turns1}, consistent, 3},
		{"collectors change", setup_two, {collects0, collects1}, consistent, 3},
		{"collectors change, asleep",
		 setup_two,
		 {collects_slept0, collects_slept1},
		 consistent,
		 3},
		{"three, down", setup_three, {three0, three1, three2}, consistent, 2},
		{"three, up", setup_three, {give0, give1, give2}, consistent, 2},
		{"one gives up", setup_three, {posts0, gives_up1, reads2}, same_end, 3},
		{"written before it is free, down",
		 setup_greedy,
		 {down0, down1},
		 NULL,
		 3,
		 .broken = true},
		{"written before it is free, up",
		 setup_greedy,
		 {up0, up1},
		 NULL,
		 3,
		 .broken = true},
		{"collected before it is free",
		 setup_hasty,
		 {collects0, collects1},
		 NULL,
		 3,
		 .broken = true},
		{"far, by turn", setup_far_by_turn, {mixed0, mixed1}, NULL, 3, .broken = true},
		{"posted past a sleeper", setup_deaf, {once0, once1}, NULL, 4, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
