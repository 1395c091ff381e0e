/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bells that are armed for replies, and a waiter that has gone to sleep beside a holder that leaves
 * at once: they are armed for that waiter, also when the watcher learns of it by its timer.
 */
#include <pthread.h>
#include "fake_source.h"
#include "task/engine_int.h"
#include "task/waiting/spin.h"
#include "task/wake/arm.h"

static struct fake_source net;
static _Atomic int x_level, x_checks;
static struct weft_completion mine, other;

static weft_err arms(void *arg, enum weft_arm_level level)
{
	enum weft_arm_level was = (enum weft_arm_level)atomic_load(&x_level);
	weft_err err = fake_arm(arg, level);
	if (!err && weft_arm_is_unchecked(was) && weft_arm_checked(was) == level)
		atomic_fetch_add(&x_checks, 1);
	atomic_store(&x_level, err ? WEFT_ARM_OFF : level);
	return err;
}

/* Lies until a thread looks, unless the bells are for all. */
static void send_quietly(struct fake_msg *m)
{
	if (atomic_load(&x_level) < WEFT_ARM_ALL_UNCHECKED) {
		weft_mpsc_push(&net.inbox, &m->node);
		return;
	}
	fake_send(&net, m);
}

static void until_is(bool (*is)(void), const char *what)
{
	uint64_t begun = weft_clock_ns();
	while (!is()) { /* ends: it is, or the test has failed */
		if (weft_clock_ns() - begun > 20000000000u)
			fprintf(stderr, "not %s: level %d, %d checks, %u parked\n", what,
				atomic_load(&x_level), atomic_load(&x_checks),
				atomic_load(&weft_task_engine.baton.x_parked));
		CHECK(weft_clock_ns() - begun < 20000000000u);
		usleep(1000);
	}
}
#define until(what) until_is(what, #what)

static bool armed_for_nobody(void)
{
	return atomic_load(&x_level) == WEFT_ARM_REPLIES && atomic_load(&x_checks) > 0 &&
	       !weft_task_sources_unchecked(&weft_task_engine);
}

static bool somebody_parked(void)
{
	return atomic_load(&weft_task_engine.baton.x_parked) > 0;
}

static bool armed_for_all(void)
{
	return atomic_load(&x_level) >= WEFT_ARM_ALL_UNCHECKED;
}

static void nothing(void *arg)
{
}

static void signals(void *arg)
{
	weft_wait_completion_signal(arg);
}

static void *waits(void *arg)
{
	weft_task_engine_wait(&other);
	return NULL;
}

/* In the holder's first look: the other comes to wait, and parks; then ours is done. */
static pthread_t sleeper;
static void parks_another(void *arg)
{
	CHECK_EQ(pthread_create(&sleeper, NULL, waits, NULL), 0);
	until(somebody_parked);
	weft_wait_completion_signal(&mine);
}

int main(void)
{
	static struct fake_msg ours = {.fn = parks_another},
			       others = {.fn = signals, .arg = &other}, first = {.fn = nothing};
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	if (weft_task_spin_crowded() || weft_task_engine.kick_timer_fd < 0)
		SKIP("bells are armed for all here");
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
	for (int i = 0; i < 20; i++) {
		weft_wait_completion_init(&mine);
		weft_wait_completion_init(&other);
		atomic_store(&x_checks, 0);
		fake_send(&net, &first); /* a bell that rings is armed anew, as it is now */
		until(armed_for_nobody);
		send_quietly(&ours);
		weft_task_engine_wait(&mine);
		/* We compute; the waiter hears nothing while the bells are armed for replies. */
		until(armed_for_all);
		send_quietly(&others);
		CHECK_EQ(pthread_join(sleeper, NULL), 0);
		weft_task_sources_check(&weft_task_engine);
	}
	fake_remove(&net);
	weft_engine_stop();
	return 0;
}
