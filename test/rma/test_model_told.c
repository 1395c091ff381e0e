/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts, completes, fences and notifications in shared memory (src/rma/told.h) in every order: what a teller wrote before is
 * seen, no member goes on too early, and each sleeper is woken.
 */
#include "check.h"
#include "model/explore.h"
#include "rma/told.h"

#define ROUNDS 2

static struct weft_rma_told told;
static struct weft_rma_meet meeting;
static _Atomic uint64_t x_note;
static _Atomic uint32_t x_sleeps[3];
static bool message[3];
static int data[3], n;

static void setup(int members)
{
	memset(&told, 0, sizeof told);
	memset(&meeting, 0, sizeof meeting);
	memset((void *)&x_note, 0, sizeof x_note);
	memset(x_sleeps, 0, sizeof x_sleeps);
	memset(message, 0, sizeof message);
	memset(data, 0, sizeof data);
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

static bool no_message(void *arg)
{
	return !*(bool *)arg;
}

static void wake(int member)
{
	if (weft_rma_sleeper_take(&x_sleeps[member]))
		message[member] = true;
}

/* As sleep_until in wait.c. */
#define WAIT_UNTIL(me, word, ready)                                                                \
	while (!(ready)) {                                                                         \
		weft_rma_sleeper_say(&x_sleeps[me]);                                               \
		if (ready)                                                                         \
			break;                                                                     \
		model_block(no_message, &message[me]);                                             \
		message[me] = false;                                                               \
		model_fresh((void *)&(word), sizeof(word));                                        \
	}

/* ---- post, start, complete, wait ------------------------------------------------------------ */

static void target(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		model_write(&data[0], (int)i + 1);
		weft_rma_told_count(&told.x_posts);
		wake(1);
		WAIT_UNTIL(0, told.x_completes, weft_rma_told_read(&told.x_completes) != i)
		MODEL_CHECK(model_read(&data[0]) == -(int)i - 1);
	}
}

static void origin(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		WAIT_UNTIL(1, told.x_posts, weft_rma_told_read(&told.x_posts) != i)
		MODEL_CHECK(model_read(&data[0]) == (int)i + 1);
		model_write(&data[0], -(int)i - 1);
		weft_rma_told_count(&told.x_completes);
		wake(0);
	}
}

/* Says that it sleeps after its last look. */
static void says_late(void)
{
	if (weft_rma_told_read(&told.x_posts) == 0) {
		weft_rma_sleeper_say(&x_sleeps[1]);
		model_block(no_message, &message[1]);
	}
}

static void posts_once(void)
{
	weft_rma_told_count(&told.x_posts);
	wake(1);
}

/* ---- fence ---------------------------------------------------------------------------------- */

static void fence(int me, uint64_t round)
{
	if (!weft_rma_meet_arrive(&meeting, round, (unsigned)n)) {
		WAIT_UNTIL(me, meeting.x_round, weft_rma_meet_over(&meeting, round))
		return;
	}
	for (int i = 0; i < n; i++)
		if (i != me)
			wake(i);
}

/* Each changes its own, meets, reads all, meets. */
static void member(int me, int rounds)
{
	for (int r = 0; r < rounds; r++) {
		model_write(&data[me], r + 1);
		fence(me, (uint64_t)r * 2 + 1);
		for (int i = 0; i < n; i++)
			MODEL_CHECK(model_read(&data[i]) == r + 1);
		fence(me, (uint64_t)r * 2 + 2);
	}
}

static void member0(void)
{
	member(0, n == 2 ? ROUNDS : 1);
}

static void member1(void)
{
	member(1, n == 2 ? ROUNDS : 1);
}

static void member2(void)
{
	member(2, 1);
}

/* ---- notifications -------------------------------------------------------------------------- */

/* Two origins notify one member, each behind what it has put. */
static void notifies(int me)
{
	model_write(&data[me], me);
	weft_rma_note_count(&x_note);
	wake(0);
}

static void notifies1(void)
{
	notifies(1);
}

static void notifies2(void)
{
	notifies(2);
}

static void takes_each(void)
{
	WAIT_UNTIL(0, x_note, weft_rma_note_take(&x_note, 1))
	WAIT_UNTIL(0, x_note, weft_rma_note_take(&x_note, 1))
	MODEL_CHECK(model_read(&data[1]) == 1 && model_read(&data[2]) == 2);
}

static void takes_both(void)
{
	WAIT_UNTIL(0, x_note, weft_rma_note_take(&x_note, 2))
	MODEL_CHECK(model_read(&data[1]) == 1 && model_read(&data[2]) == 2);
}

int main(void)
{
	static const struct model models[] = {
		{"target and origin",
		 setup_two,
		 {target, origin},
		 NULL,
		 4,
		 .must = {"weft_rma_told_count s", "weft_rma_told_read l", "weft_rma_sleeper_say s",
			  "weft_rma_sleeper_take l"}},
		{"says that it sleeps too late",
		 setup_two,
		 {says_late, posts_once},
		 NULL,
		 3,
		 .broken = true},
		{"two meet",
		 setup_two,
		 {member0, member1},
		 NULL,
		 3,
		 .must = {"weft_rma_meet_arrive x", "weft_rma_meet_arrive s",
			  "weft_rma_meet_over l", "weft_rma_sleeper_say s",
			  "weft_rma_sleeper_take l"}},
		{"two notifications, one by one",
		 setup_three,
		 {takes_each, notifies1, notifies2},
		 NULL,
		 2,
		 .must = {"weft_rma_note_count x", "weft_rma_note_take l", "weft_rma_sleeper_say s",
			  "weft_rma_sleeper_take l"}},
		{"two notifications together",
		 setup_three,
		 {takes_both, notifies1, notifies2},
		 NULL,
		 2},
		{"three meet", setup_three, {member0, member1, member2}, NULL, 2},
	};
	return explore_all(models, weft_countof(models));
}
