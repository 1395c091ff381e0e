/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A context's turn to lists in every order: a message that stays loose in its bucket is found by
 * the turn, or its putter sees the turn; and no two threads are in a bucket at once.
 */
#include "model/explore.h"
/* The production sources, compiled against the explorer's atomics. */
#include "comm/lock.c"
#include "comm/match/phase.h"

static struct weft_phase phase;
static struct weft_spin bucket;
static _Atomic uint64_t x_page;
static int lying, found, linked; /* plain: under the bucket's lock; the turner's; the putter's */

static void setup(void)
{
	memset((void *)&phase, 0, sizeof phase);
	memset((void *)&bucket, 0, sizeof bucket);
	memset((void *)&x_page, 0, sizeof x_page);
	lying = found = linked = 0;
}

/* An earlier message stayed loose, in another page. */
static void setup_later(void)
{
	setup();
	atomic_init(&phase.x_loose, true);
}

static void arrive(void)
{
	weft_comm_spin_lock(&bucket);
	weft_comm_phase_mark(&x_page, 1);
	if (weft_comm_phase_may_stay(&phase))
		model_write(&lying, 1);
	else
		model_write(&linked, 1);
	weft_comm_spin_unlock(&bucket);
}

static void turn(void)
{
	if (!weft_comm_phase_turn(&phase) || !weft_comm_phase_marked(&x_page))
		return;
	weft_comm_spin_lock(&bucket);
	model_write(&found, model_read(&lying));
	weft_comm_spin_unlock(&bucket);
}

/* Looks at the page before it says so. */
static void hasty(void)
{
	uint64_t marked = weft_comm_phase_marked(&x_page);
	if (!weft_comm_phase_turn(&phase) || !marked)
		return;
	turn();
}

static void none_lost(void)
{
	MODEL_CHECK(lying + linked == 1);
	MODEL_CHECK(!lying || found);
}

int main(void)
{
	static const struct model models[] = {
		{"phase, a message and a turn",
		 setup,
		 {arrive, turn},
		 none_lost,
		 6,
		 .must = {"weft_comm_phase_may_stay s", "weft_comm_phase_may_stay l",
			  "weft_comm_phase_turn s", "weft_comm_phase_turn l",
			  "weft_comm_spin_lock x", "weft_comm_spin_unlock s"}},
		{"phase, not the first message",
		 setup_later,
		 {arrive, turn},
		 none_lost,
		 6,
		 .must = {"weft_comm_phase_mark x", "weft_comm_phase_marked l",
			  "weft_comm_phase_turn s", "weft_comm_phase_may_stay l",
			  "weft_comm_spin_lock x", "weft_comm_spin_unlock s"}},
		{"phase, looked at before the turn",
		 setup_later,
		 {arrive, hasty},
		 none_lost,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
