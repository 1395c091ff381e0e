/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The feed in every order, with a ring of two places: each reads what the root wrote in that turn,
 * the root what each gave, nobody writes a place that another still reads, whoever sleeps is woken,
 * and a turn that somebody gives up ends in the same way for all.
 */
#define WEFT_FEED_TURNS 2u

#include "check.h"
#include "model/explore.h"
#include "coll/shm/feed.h"

#define TURNS 4

static struct weft_feed feed;
static int data[WEFT_FEED_TURNS][3], n, failed[2];
static uint32_t first, went_down[3]; /* the first turn; what each has counted */
static bool woken[3][3];             /* by word: head, floor, came */
static bool greedy;                  /* does not ask whether the place is free */
static bool hasty;                   /* nor does the root that collects */
static bool by_turn;                 /* x_head is the number of a turn */
static bool deaf;                    /* posts without looking who sleeps at that moment */

static void setup(int members)
{
	memset(&feed, 0, sizeof feed);
	memset(data, 0, sizeof data);
	memset(woken, 0, sizeof woken);
	memset(failed, 0, sizeof failed);
	memset(went_down, 0, sizeof went_down);
	n = members;
	first = 0;
	greedy = hasty = by_turn = deaf = false;
}

static void setup_two(void)
{
	setup(2);
}

static void setup_three(void)
{
	setup(3);
}

/* After very many turns that went up. */
static void setup_far(void)
{
	setup(2);
	first = 1u << 30;
	atomic_store_explicit(&feed.x_floor, weft_coll_shared_word_of(first), memory_order_relaxed);
}

static void setup_far_by_turn(void)
{
	setup_far();
	by_turn = true;
}

static void setup_greedy(void)
{
	setup(2);
	greedy = true;
}

static void setup_hasty(void)
{
	setup(2);
	hasty = true;
}

static void setup_deaf(void)
{
	setup(2);
	deaf = true;
}

static bool asleep(void *arg)
{
	return !*(bool *)arg;
}

static int index_of(_Atomic uint64_t *x_word)
{
	return x_word == &feed.x_head ? 0 : x_word == &feed.x_floor ? 1 : 2;
}

static void wake(_Atomic uint64_t *x_word, uint32_t sleepers)
{
	for (int i = 0; i < n; i++)
		if (sleepers & 1u << i)
			woken[i][index_of(x_word)] = true;
}

/* As board_wait.c waits, without its patience. */
static void wait_for(unsigned me, _Atomic uint64_t *x_word, uint32_t number, bool sleeps)
{
	bool *up = &woken[me][index_of(x_word)];
	while (!weft_coll_shared_word_over(x_word, number)) {
		if (!sleeps) {
			model_relax();
			continue;
		}
		if (weft_coll_shared_word_doze(x_word, me, number) ||
		    weft_coll_shared_word_undoze(x_word, me)) {
			model_block(asleep, up);
			*up = false;
		}
		/* The wake-up is a message: it carries what its sender knew. */
		model_fresh((void *)x_word, sizeof *x_word);
	}
}

static void post(_Atomic uint64_t *x_word, uint32_t number)
{
	uint32_t sleepers = 0;
	if (deaf) {
		sleepers = (uint32_t)atomic_load_explicit(x_word, memory_order_relaxed);
		atomic_store_explicit(x_word, weft_coll_shared_word_of(number),
				      memory_order_release);
	} else {
		MODEL_CHECK(weft_coll_shared_word_post(x_word, number, &sleepers));
	}
	wake(x_word, sleepers);
}

static void pass(uint32_t t)
{
	if (weft_coll_feed_pass(&feed, t, (unsigned)n))
		post(&feed.x_floor, weft_coll_feed_next(t));
}

static void down(unsigned me, uint32_t t, unsigned root, bool sleeps)
{
	int *place = data[t % WEFT_FEED_TURNS];
	uint32_t next = weft_coll_feed_next(by_turn ? t : went_down[me]);
	if (me == root) {
		if (!greedy)
			wait_for(me, &feed.x_floor, weft_coll_feed_floor(t), sleeps);
		model_write(place, (int)t + 1);
		post(&feed.x_head, next);
	} else {
		wait_for(me, &feed.x_head, next, sleeps);
		MODEL_CHECK(model_read(place) == (int)t + 1);
	}
	went_down[me] = next;
	pass(t);
}

static void up(unsigned me, uint32_t t, unsigned root, bool sleeps)
{
	int *place = data[t % WEFT_FEED_TURNS];
	struct weft_feed_turn *at = weft_coll_feed_at(&feed, t);
	if (me != root) {
		if (!greedy)
			wait_for(me, &feed.x_floor, weft_coll_feed_floor(t), sleeps);
		model_write(&place[me], (int)t + 1);
		wake(&at->x_came, weft_coll_feed_come(at, (unsigned)n - 1));
	} else {
		if (!hasty)
			wait_for(me, &feed.x_floor, weft_coll_feed_floor(t), sleeps);
		wait_for(me, &at->x_came, (uint32_t)n - 1, sleeps);
		for (int r = 0; r < n; r++)
			MODEL_CHECK(r == (int)root || model_read(&place[r]) == (int)t + 1);
		weft_coll_feed_clear(at);
	}
	pass(t);
}

#define THREAD(name, kind, me, root, turns, sleeps)                                                \
	static void name(void)                                                                     \
	{                                                                                          \
		for (uint32_t t = first; t - first < (turns); t++)                                 \
			kind(me, t, root, sleeps);                                                 \
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
	failed[1] = weft_coll_shared_word_fail(&feed.x_head, 1, &sleepers);
	if (failed[1])
		wake(&feed.x_head, sleepers);
	MODEL_CHECK(failed[1] == weft_coll_shared_word_failed(&feed.x_head));
}

static void posts0(void)
{
	uint32_t sleepers;
	failed[0] = !weft_coll_shared_word_post(&feed.x_head, 1, &sleepers);
	if (!failed[0])
		wake(&feed.x_head, sleepers);
}

static void reads2(void)
{
	wait_for(2, &feed.x_head, 1, true);
	(void)weft_coll_shared_word_failed(&feed.x_head);
}

static void same_end(void)
{
	MODEL_CHECK(failed[0] == failed[1]);
	MODEL_CHECK(failed[0] == weft_coll_shared_word_failed(&feed.x_head));
}

/* Numbers wrap; FAILED stays over whatever else is posted or counted there. */
static void numbers(void)
{
	uint32_t last = WEFT_WORD_NUMBERS, sleepers;
	CHECK(weft_coll_shared_word_has(weft_coll_shared_word_of(0), last) &&
	      !weft_coll_shared_word_has(weft_coll_shared_word_of(last), 0));
	CHECK(weft_coll_feed_next(last) == 0 && weft_coll_feed_floor(0) == last);
	CHECK(weft_coll_shared_word_has(0, weft_coll_feed_floor(0)) &&
	      weft_coll_shared_word_has(0, weft_coll_feed_floor(1)) &&
	      !weft_coll_shared_word_has(0, weft_coll_feed_floor(2)));
	setup(3);
	CHECK(weft_coll_shared_word_doze(&feed.x_head, 2, 1));
	CHECK(weft_coll_shared_word_break(&feed.x_head) == 4);
	CHECK(!weft_coll_shared_word_post(&feed.x_head, 1, &sleepers) &&
	      weft_coll_shared_word_failed(&feed.x_head));
	CHECK(!weft_coll_shared_word_doze(&feed.x_head, 2, 1));
	CHECK(weft_coll_shared_word_break(&feed.turn[0].x_came) == 0);
	for (int i = 0; i < 2 * WEFT_WORD_SLEEPERS; i++)
		CHECK(weft_coll_feed_come(&feed.turn[0], 2) == 0);
	CHECK(weft_coll_shared_word_failed(&feed.turn[0].x_came));
}

int main(void)
{
	numbers();
	static const struct model models[] = {
		{"down",
		 setup_two,
		 {down0, down1},
		 NULL,
		 3,
		 .must = {"weft_coll_shared_word_post c", "weft_coll_shared_word_over l",
			  "weft_coll_feed_pass x"}},
		{"up",
		 setup_two,
		 {up0, up1},
		 NULL,
		 3,
		 .must = {"weft_coll_feed_come x", "weft_coll_shared_word_over l",
			  "weft_coll_feed_pass x"}},
		{"down and up", setup_two, {mixed0, mixed1}, NULL, 3},
		{"down and up, far", setup_far, {mixed0, mixed1}, NULL, 3},
		{"down, asleep", setup_two, {down_slept0, down_slept1}, NULL, 3},
		{"up, asleep", setup_two, {up_slept0, up_slept1}, NULL, 3},
		{"roots change", setup_two, {turns0, turns1}, NULL, 3},
		{"collectors change", setup_two, {collects0, collects1}, NULL, 3},
		{"collectors change, asleep",
		 setup_two,
		 {collects_slept0, collects_slept1},
		 NULL,
		 3},
		{"three, down", setup_three, {three0, three1, three2}, NULL, 2},
		{"three, up", setup_three, {give0, give1, give2}, NULL, 2},
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
