/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meetings by signs in every order: no member leaves before all have come, two places are enough for
 * what members show and for a sign's number, each sleeper is woken, and a failure that a poster
 * meets in its sign stays there.
 */
#include "ring_model.h"

static int shown[2][3];
static bool one_place, rounds_less;

static unsigned rounds(void)
{
	return n == 2 || rounds_less ? 1 : 2;
}

/* Meeting t; what all have shown before lies there after it. */
static void by_signs(unsigned me, uint32_t t, unsigned root, bool sleeps)
{
	uint32_t number = t + 1, which = one_place ? 0 : number;
	(void)root;
	model_write(&shown[which & 1][me], (int)number);
	for (unsigned k = 0; k < rounds(); k++) {
		struct weft_coll_ring_sign *out =
			weft_coll_ring_sign_at(&ring, (me + (1u << k)) % (unsigned)n, k, which);
		struct weft_coll_ring_sign *in = weft_coll_ring_sign_at(&ring, me, k, which);
		uint32_t sleepers = 0;
		model_write((int *)&out->number, (int)number);
		if (mutant.deaf)
			post(&out->x_sign, number);
		else
			MODEL_CHECK(weft_coll_ec_post_once(&out->x_sign, number, &sleepers));
		wake(&out->x_sign, sleepers);
		wait_for(me, &in->x_sign, number, sleeps);
		MODEL_CHECK(model_read((int *)&in->number) == (int)number);
	}
	for (int i = 0; i < n; i++)
		MODEL_CHECK(model_read(&shown[which & 1][i]) == (int)number);
}

THREAD(polls0, by_signs, 0, 0, 3, false)
THREAD(polls1, by_signs, 1, 0, 3, false)
THREAD(sleeps0, by_signs, 0, 0, 2, true)
THREAD(sleeps1, by_signs, 1, 0, 2, true)
THREAD(once0, by_signs, 0, 0, 1, true)
THREAD(once1, by_signs, 1, 0, 1, false)
THREAD(once2, by_signs, 2, 0, 1, true)

static void signs_two(void)
{
	setup(2);
	one_place = rounds_less = false;
}

static void signs_three(void)
{
	signs_two();
	n = 3;
}

static void signs_deaf(void)
{
	signs_two();
	mutant.deaf = true;
}

static void signs_one_place(void)
{
	signs_two();
	one_place = true;
}

static void signs_one_round(void)
{
	signs_three();
	rounds_less = true;
}

/* Signs for member 1, which believes that a member is lost. */
static void signs_late(void)
{
	struct weft_coll_ring_sign *s = weft_coll_ring_sign_at(&ring, 1, 0, 1);
	uint32_t sleepers = 0;
	bool well = weft_coll_ec_post_once(&s->x_sign, 1, &sleepers);
	wake(&s->x_sign, sleepers);
	MODEL_CHECK(well || weft_coll_ec_failed(&s->x_sign) == WEFT_ERR_PEER);
}

static void gives_up1(void)
{
	struct weft_coll_ring_sign *s = weft_coll_ring_sign_at(&ring, 1, 0, 1);
	uint32_t sleepers = 0;
	if (weft_coll_ec_fail(&s->x_sign, 1, WEFT_COLL_EC_LOST, &sleepers))
		wake(&s->x_sign, sleepers);
	else
		wait_for(1, &s->x_sign, 1, true);
}

/* A third one gives up for all, in its own time. */
static void aborts(void)
{
	uint32_t sleepers = weft_coll_ring_abort_signs(&ring, (unsigned)n, WEFT_COLL_EC_LOST);
	wake(&weft_coll_ring_sign_at(&ring, 1, 0, 1)->x_sign, sleepers);
}

static void waits1(void)
{
	wait_for(1, &weft_coll_ring_sign_at(&ring, 1, 0, 1)->x_sign, 1, true);
}

static void failed_for_good(void)
{
	MODEL_CHECK(weft_coll_ec_failed(&weft_coll_ring_sign_at(&ring, 1, 0, 1)->x_sign) ==
		    WEFT_ERR_PEER);
}

static const struct model models[] = {
	{"two poll",
	 signs_two,
	 {polls0, polls1},
	 NULL,
	 4,
	 .must = {"weft_coll_ec_post_once x", "weft_coll_ec_reached l"}},
	{"two sleep", signs_two, {sleeps0, sleeps1}, NULL, 3},
	{"three", signs_three, {once0, once1, once2}, NULL, 2},
	{"one gives up", signs_two, {signs_late, gives_up1}, NULL, 5},
	{"all give up", signs_two, {signs_late, waits1, aborts}, failed_for_good, 2},
	{"signs in one place", signs_one_place, {polls0, polls1}, NULL, 4, .broken = true},
	{"a round is missing", signs_one_round, {once0, once1, once2}, NULL, 2, .broken = true},
	{"signs without a look for sleepers",
	 signs_deaf,
	 {sleeps0, sleeps1},
	 NULL,
	 4,
	 .broken = true},
};

int main(void)
{
	return explore_all(models, weft_countof(models));
}
