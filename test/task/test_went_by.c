/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks that come while a thread holds the baton cause no kick: the holder looks.  It leaves without
 * having looked, with the bells armed and the watcher asleep under them: a thread is told after all.
 */
#include "fake_source.h"
#include "base/settings.h"
#include "task/engine_int.h"
#include "task/wake/arm.h"
#include "task/wake/kick.h"
#include "task/queue/tqueue.h"
#include "task/queue/weft_task.h"

enum { TASKS = 3, RUNS = 100 };

static struct fake_source net;
static _Atomic int x_checks, x_over, x_runs;
static struct weft_completion mine;
static struct weft_task task[TASKS];
static int submits, until_mine; /* so many tasks; mine is done in such a run of theirs */

static weft_err arms(void *arg, enum weft_arm_level level)
{
	static enum weft_arm_level was; /* under the mask */
	weft_err err = fake_arm(&net, level);
	if (!err && was == WEFT_ARM_ALL_UNCHECKED && level == WEFT_ARM_ALL)
		atomic_fetch_add(&x_checks, 1);
	was = err ? WEFT_ARM_OFF : level;
	return err;
}

static void until_is(bool (*is)(void), const char *what)
{
	uint64_t begun = weft_clock_ns();
	while (!is()) { /* ends: it is, or the test has failed */
		if (weft_clock_ns() - begun > 20000000000u)
			fprintf(stderr, "not %s: %d checks, %d runs, %d over\n", what,
				atomic_load(&x_checks), atomic_load(&x_runs), atomic_load(&x_over));
		CHECK(weft_clock_ns() - begun < 20000000000u);
		usleep(1000);
	}
}
#define until(what) until_is(what, #what)

static bool armed_for_all(void)
{
	return atomic_load(&net.x_armed) && atomic_load(&x_checks) > 0 &&
	       weft_task_sources_level(&weft_task_engine) == WEFT_ARM_ALL &&
	       atomic_load(&weft_task_engine.baton.x_watcher) == WEFT_WATCHER_UNDER;
}

static bool all_over(void)
{
	return atomic_load(&x_over) == submits;
}

static void nothing(void *arg)
{
}

static enum weft_task_verdict runs(struct weft_task *t, void *arg)
{
	int *left = arg;
	if (atomic_fetch_add(&x_runs, 1) + 1 == until_mine)
		weft_wait_completion_signal(&mine);
	if (--*left)
		return WEFT_TASK_AGAIN;
	atomic_fetch_add(&x_over, 1);
	return WEFT_TASK_DONE;
}

/* In the holder's look. */
static int left[TASKS];
static void comes(void *arg)
{
	for (int i = 0; i < submits; i++) {
		left[i] = RUNS;
		weft_task_init(&task[i], "piece", runs, &left[i], 0);
		CHECK(weft_task_submit(&task[i]));
	}
	if (!until_mine)
		weft_wait_completion_signal(&mine);
}

/* As if a sibling polled till now: the next round does not go up from our leaf, the one after does.
 */
static void round_goes_by(void)
{
	struct weft_tqueue *q = weft_task_tqueue_here();
	if (!q->parent)
		return;
	atomic_store(&q->x_parent_visits, atomic_load(&q->parent->x_visits));
	atomic_store(&q->x_skip, 1);
}

static void goes_by(void)
{
	static struct fake_msg first, message;
	first.fn = nothing;
	message.fn = comes;
	weft_wait_completion_init(&mine);
	atomic_store(&x_checks, 0);
	atomic_store(&x_runs, 0);
	atomic_store(&x_over, 0);
	fake_send(&net, &first); /* a bell that rings is armed anew, for all */
	until(armed_for_all);
	round_goes_by();
	weft_mpsc_push(&net.inbox, &message.node); /* does not ring */
	weft_task_engine_wait(&mine);
	/* We compute. */
	until(all_over);
	for (int i = 0; i < submits; i++)
		CHECK_EQ(weft_task_wait(&task[i]), WEFT_OK);
}

/* spin_us: 0: no thread puts the bells away to poll. */
static void with_spin(const char *spin_us)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_SPIN_US, spin_us), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_mpsc_init(&net.inbox);
	net.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(net.fd >= 0);
	net.source = (struct weft_source){.name = "fake",
					  .poll = fake_poll,
					  .arm = arms,
					  .arms_levels = true,
					  .fd = net.fd,
					  .arg = &net};
	CHECK_EQ(weft_task_source_add(&net.source), WEFT_OK);
	weft_task_engine_hears(&weft_task_engine); /* from now on bells are armed for all */
	for (int i = 0; i < 20; i++) {
		submits = 1 + i % TASKS;
		until_mine = 0; /* done in the look that brought them */
		goes_by();
		until_mine = 2; /* in a visit that leaves some to others */
		goes_by();
	}
	fake_remove(&net);
	weft_engine_stop();
}

int main(void)
{
	with_spin("-1");
	with_spin("0");
	return 0;
}
