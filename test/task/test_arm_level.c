/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The levels of arming as the engine uses them, on a source that counts: a waiter that leaves arms
 * for replies, and a check follows; the next waiter finds what has come without a ring; an
 * operation whose end is wanted raises the level.  Where cores are short the source is armed as for
 * a waiter, and there is nothing to check.
 */
#include "base/settings.h"
#include "fake_source.h"
#include "task/engine_int.h"
#include "task/wake/arm.h"

enum { AWAKE = 0, LOUD = 1, QUIET = 2 }; /* of net.x_armed; fake_send rings for both */

static struct fake_source net;
static _Atomic long x_left, x_checks;
static struct weft_source source;

static weft_err arm(void *arg, enum weft_arm_level level)
{
	static enum weft_arm_level was; /* under the mask */
	weft_err err = fake_arm(arg, level);
	bool quiet = weft_arm_is_for_replies(level);
	x_left += weft_arm_is_unchecked(level);
	x_checks += weft_arm_is_unchecked(was) && level == weft_arm_checked(was);
	if (!err && quiet)
		atomic_exchange(&net.x_armed, QUIET);
	/* Between the two: it rang, as if it needed an answer. */
	if (!err && quiet && !weft_mpsc_empty(&net.inbox)) {
		atomic_store(&net.x_armed, AWAKE);
		err = WEFT_AGAIN;
	}
	was = err ? WEFT_ARM_OFF : level;
	return err;
}

/* Needs no answer; true: rang. */
static bool send_quietly(struct fake_msg *m)
{
	int loud = LOUD;
	uint64_t one = 1;
	weft_mpsc_push(&net.inbox, &m->node);
	if (!atomic_compare_exchange_strong(&net.x_armed, &loud, AWAKE))
		return false;
	CHECK_EQ(write(net.fd, &one, 8), 8);
	return true;
}

static void signals(void *arg)
{
	weft_wait_completion_signal(arg);
}

/* A message for a waiter, which then goes to compute. */
static void waits_and_leaves(void)
{
	struct weft_completion done;
	struct fake_msg m = {.fn = signals, .arg = &done};
	weft_wait_completion_init(&done);
	fake_send(&net, &m);
	weft_task_engine_wait(&done);
}

static _Atomic int x_seen;

static void counts(void *arg)
{
	(void)arg;
	atomic_fetch_add(&x_seen, 1);
}

static uint64_t begun;

static bool goes_on(void)
{
	CHECK(weft_clock_ns() - begun < 60000000000u);
	return true;
}

static void until_armed(int how)
{
	begun = weft_clock_ns();
	while (atomic_load(&net.x_armed) != how && goes_on()) { /* ends: the watcher arms */
		waits_and_leaves();
		for (int i = 0; i < 100 && atomic_load(&net.x_armed) != how; i++)
			usleep(100);
	}
}

static void until_seen(int n)
{
	begun = weft_clock_ns();
	while (atomic_load(&x_seen) != n && goes_on()) /* ends: the watcher finds it */
		usleep(50);
}

/* Armed for replies: checked in a moment.  What comes then does not ring; the next waiter finds it. */
static void quiet_lies(void)
{
	struct fake_msg m[20];
	atomic_store(&x_seen, 0);
	for (int i = 0; i < 20; i++) {
		long before = atomic_load(&x_checks);
		begun = weft_clock_ns();
		while (atomic_load(&x_checks) == before && goes_on()) { /* ends: by the timer */
			waits_and_leaves();
			for (int k = 0; k < 200 && atomic_load(&x_checks) == before; k++)
				usleep(100);
		}
		m[i] = (struct fake_msg){.fn = counts};
		(void)send_quietly(&m[i]);
		waits_and_leaves();
		until_seen(i + 1);
		weft_task_sources_check(&weft_task_engine);
	}
}

/* Urgent ones ring at either level. */
static void urgent_rings(void)
{
	struct fake_msg m[20];
	atomic_store(&x_seen, 0);
	for (int i = 0; i < 20; i++) {
		until_armed(QUIET);
		m[i] = (struct fake_msg){.fn = counts};
		fake_send(&net, &m[i]);
		until_seen(i + 1);
		weft_task_sources_check(&weft_task_engine);
	}
	CHECK(atomic_load(&net.x_rings) > 0);
}

/* No thread waits, and no further message comes: the call raises the level, or the watcher that it calls. */
static void wanted_is_loud(void)
{
	struct fake_msg m[20];
	int rang = 0;
	atomic_store(&x_seen, 0);
	for (int i = 0; i < 20; i++) {
		until_armed(QUIET);
		weft_task_engine_want(1);
		begun = weft_clock_ns();
		while (atomic_load(&net.x_armed) != LOUD && goes_on()) /* ends: as above */
			usleep(50);
		m[i] = (struct fake_msg){.fn = counts};
		rang += send_quietly(&m[i]);
		until_seen(i + 1);
		weft_task_engine_want(-1);
	}
	CHECK(rang > 0);
}

/* Before anything was ever armed in another way. */
static void crowded(void)
{
	for (int i = 0; i < 100; i++) {
		waits_and_leaves();
		begun = weft_clock_ns();
		while (atomic_load(&net.x_armed) == AWAKE && goes_on()) /* ends: as above */
			usleep(50);
		CHECK_EQ(atomic_load(&x_left), 0);
	}
	CHECK_EQ(atomic_load(&x_checks), 0);
}

int main(void)
{
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_task_engine_set_local_ranks(64, 1);
	fake_add(&net, "two levels", true);
	weft_task_source_remove(&net.source);
	source = net.source;
	source.arm = arm;
	source.arms_levels = true;
	CHECK_EQ(weft_task_source_add(&source), WEFT_OK);
	crowded();
	weft_task_engine_set_local_ranks(1, 2);
	quiet_lies();
	urgent_rings();
	wanted_is_loud();
	weft_task_source_remove(&source);
	close(net.fd);
	weft_engine_stop();
	return 0;
}
