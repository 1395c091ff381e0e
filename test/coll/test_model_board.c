/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board in every order: nobody leaves before all have come, everybody reads what the last one
 * wrote and what each of the others shows, which nobody writes over meanwhile, a sleeper is woken,
 * and a turn that somebody gives up ends in the same way for all.
 */
#include "check.h"
#include "model/explore.h"
#include "coll/shm/board.h"

#define TURNS 2
#define SHOWS 3

static struct weft_board_slot slot;
static int cell[3], result, n, shown[2][3];
static bool woken[3][TURNS];
static int failed[3];

static void setup(int members)
{
	memset(&slot, 0, sizeof slot);
	memset(cell, 0, sizeof cell);
	memset(shown, 0, sizeof shown);
	memset(woken, 0, sizeof woken);
	memset(failed, 0, sizeof failed);
	result = 0;
	n = members;
}

static void setup_two(void)
{
	setup(2);
}

static void setup_three(void)
{
	setup(3);
}

static bool asleep(void *arg)
{
	return !*(bool *)arg;
}

static void wake(uint32_t turn, uint32_t mask)
{
	for (int i = 0; i < n; i++)
		if (mask & 1u << i)
			woken[i][turn] = true;
}

static void finish(uint32_t turn)
{
	uint32_t sleepers = 0;
	MODEL_CHECK(weft_coll_board_finish(&slot, turn, &sleepers));
	wake(turn, sleepers);
}

/* As board_wait.c waits, without its patience. */
static void wait_over(unsigned me, uint32_t turn, bool sleeps)
{
	while (!weft_coll_shared_word_over(&slot.x_turn, weft_coll_board_next(turn))) {
		if (!sleeps) {
			model_relax();
			continue;
		}
		if (weft_coll_shared_word_doze(&slot.x_turn, me, weft_coll_board_next(turn)) ||
		    weft_coll_shared_word_undoze(&slot.x_turn, me))
			model_block(asleep, &woken[me][turn]);
		/* The wake-up is a message: it carries what its sender knew. */
		model_fresh((void *)&slot.x_turn, sizeof slot.x_turn);
	}
}

static void meet(unsigned me, uint32_t turn, bool sleeps)
{
	model_write(&cell[me], (int)turn + 1);
	if (weft_coll_board_arrive(&slot, (unsigned)n)) {
		int sum = 0;
		for (int i = 0; i < n; i++)
			sum += model_read(&cell[i]);
		model_write(&result, sum);
		finish(turn);
	} else {
		wait_over(me, turn, sleeps);
	}
	MODEL_CHECK(!weft_coll_board_failed(&slot, turn));
	MODEL_CHECK(model_read(&result) == n * ((int)turn + 1));
}

static void polls0(void)
{
	for (uint32_t t = 0; t < TURNS; t++)
		meet(0, t, false);
}

static void polls1(void)
{
	for (uint32_t t = 0; t < TURNS; t++)
		meet(1, t, false);
}

static void sleeps0(void)
{
	for (uint32_t t = 0; t < TURNS; t++)
		meet(0, t, true);
}

static void sleeps1(void)
{
	for (uint32_t t = 0; t < TURNS; t++)
		meet(1, t, true);
}

static void once0(void)
{
	meet(0, 0, true);
}

static void once1(void)
{
	meet(1, 0, true);
}

static void once2(void)
{
	meet(2, 0, false);
}

/* Each shows something to the others, in one of `areas` areas. */
static void show(unsigned me, uint32_t turn, uint32_t areas)
{
	model_write(&shown[turn % areas][me], (int)turn + 1);
	if (weft_coll_board_arrive(&slot, (unsigned)n)) {
		finish(turn);
	} else {
		wait_over(me, turn, false);
	}
	for (int i = 0; i < n; i++)
		MODEL_CHECK(model_read(&shown[turn % areas][i]) == (int)turn + 1);
}

static void shows0(void)
{
	for (uint32_t t = 0; t < SHOWS; t++)
		show(0, t, 2);
}

static void shows1(void)
{
	for (uint32_t t = 0; t < SHOWS; t++)
		show(1, t, 2);
}

static void shows_over0(void)
{
	for (uint32_t t = 0; t < SHOWS; t++)
		show(0, t, 1);
}

static void shows_over1(void)
{
	for (uint32_t t = 0; t < SHOWS; t++)
		show(1, t, 1);
}

/* Believes that a member is lost, at once. */
static void gives_up0(void)
{
	uint32_t sleepers = 0;
	if (weft_coll_board_arrive(&slot, (unsigned)n)) {
		failed[0] = !weft_coll_board_finish(&slot, 0, &sleepers);
		if (!failed[0])
			wake(0, sleepers);
	} else if (weft_coll_board_fail(&slot, 0, &sleepers)) {
		failed[0] = 1;
		wake(0, sleepers);
	} else {
		wait_over(0, 0, false);
	}
	MODEL_CHECK(failed[0] == weft_coll_board_failed(&slot, 0));
}

static void loses1(void)
{
	uint32_t sleepers = 0;
	if (weft_coll_board_arrive(&slot, (unsigned)n)) {
		failed[1] = !weft_coll_board_finish(&slot, 0, &sleepers);
		if (!failed[1])
			wake(0, sleepers);
	} else {
		wait_over(1, 0, true);
		failed[1] = weft_coll_board_failed(&slot, 0);
	}
	MODEL_CHECK(failed[1] == weft_coll_board_failed(&slot, 0));
}

/* Looks for sleepers before it ends the turn, with a plain store. */
static void wakes_early(void)
{
	model_write(&cell[1], 1);
	if (weft_coll_board_arrive(&slot, (unsigned)n)) {
		wake(0, (uint32_t)atomic_load_explicit(&slot.x_turn, memory_order_relaxed));
		atomic_store_explicit(&slot.x_turn, weft_coll_shared_word_of(1),
				      memory_order_release);
	} else {
		wait_over(1, 0, true);
	}
}

/* A member that writes there what it likes: no turn goes on as if it were another. */
static void lies(void)
{
	static const uint32_t wrong[] = {0, 2, 7, 0x7fffffff, 0x80000000, WEFT_BOARD_FAILED};
	setup(2);
	for (unsigned i = 0; i < weft_countof(wrong); i++) {
		atomic_store(&slot.x_turn, weft_coll_shared_word_of(wrong[i]));
		CHECK(weft_coll_board_failed(&slot, 0));
	}
	atomic_store(&slot.x_turn, weft_coll_shared_word_of(1));
	CHECK(!weft_coll_board_failed(&slot, 0));
}

int main(void)
{
	lies();
	static const struct model models[] = {
		{"two sleep", setup_two, {sleeps0, sleeps1}, NULL, 3},
		{"three", setup_three, {once0, once1, once2}, NULL, 2},
		{"one gives up", setup_two, {gives_up0, loses1}, NULL, 5},
		{"two poll",
		 setup_two,
		 {polls0, polls1},
		 NULL,
		 4,
		 .must = {"weft_coll_board_arrive x", "weft_coll_shared_word_post c",
			  "weft_coll_shared_word_over l"}},
		{"two sleep once",
		 setup_two,
		 {once0, once1},
		 NULL,
		 5,
		 .must = {"weft_coll_shared_word_post c", "weft_coll_shared_word_over l"}},
		{"two show",
		 setup_two,
		 {shows0, shows1},
		 NULL,
		 3,
		 .must = {"weft_coll_board_arrive x", "weft_coll_shared_word_post c",
			  "weft_coll_shared_word_over l"}},
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
