/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outside.c - the engine's descriptor for foreign event loops.
 *
 * An epoll set of three: `note`, an eventfd that a thread which finds something writes while the loop is
 * armed; and, while no thread of ours sleeps there, the watch set itself, whose bells then mean
 * that polling would make progress, and an alarm for what cannot ring.  Armed is a word in the
 * baton (x_outside): a thread that leaves the baton, or submits a task, while the watcher is off looks at it.
 */
#include <weft/pollable.h>
#include "base/assert.h"
#include "base/cancel.h"
#include "base/log.h"
#include "task/engine_int.h"
#include "task/waiting/app_work.h"
#include "task/wake/arm.h"
#include "task/wake/kick.h"
#include "task/wake/outside.h"
#include "task/wake/release.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;      /* arming, opening */
	int fd, note_fd, alarm_fd; /* -1: not open */
	bool watching;             /* the watch set is in it */
	bool alarmed;              /* the alarm is set */
} out = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .note_fd = -1, .alarm_fd = -1};

static weft_err open_locked(void)
{
	weft_assert_held(weft_mutex, &out.lock);
	struct epoll_event ev = {.events = EPOLLIN};
	if (out.fd >= 0)
		return WEFT_OK;
	int fd = epoll_create1(EPOLL_CLOEXEC), note = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0 || note < 0 || alarm < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, note, &ev) ||
	    epoll_ctl(fd, EPOLL_CTL_ADD, alarm, &ev)) {
		weft_error("no descriptor for other event loops: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		if (note >= 0)
			close(note);
		if (alarm >= 0)
			close(alarm);
		return WEFT_ERR_LIMIT;
	}
	out.fd = fd;
	out.note_fd = note;
	weft_task_outside_note(note);
	out.alarm_fd = alarm;
	out.watching = out.alarmed = false;
	return WEFT_OK;
}

int weft_engine_fd(void)
{
	/* READY (engine.c). */
	if (!atomic_load_explicit(&weft_task_engine.x_running, memory_order_acquire))
		return -1;
	pthread_mutex_lock(&out.lock);
	int fd = open_locked() ? -1 : out.fd;
	pthread_mutex_unlock(&out.lock);
	return fd;
}

/* What made it readable is seen. */
static void drain_locked(struct weft_engine *e)
{
	weft_assert_held(weft_mutex, &out.lock);
	uint64_t count;
	int was = weft_cancel_off();
	ssize_t n = read(out.note_fd, &count, sizeof count);
	weft_cancel_back(was);
	(void)n; /* EAGAIN: not written */
	if (!out.watching)
		return;
	weft_task_engine_watch(e, 0);
	if (weft_task_engine_self.deferred) /* it was the watcher's */
		weft_task_engine_kick(e, WEFT_KICK_SET);
}

static void watch_locked(struct weft_engine *e, bool on)
{
	weft_assert_held(weft_mutex, &out.lock);
	struct epoll_event ev = {.events = EPOLLIN};
	if (out.watching == on)
		return;
	if (epoll_ctl(out.fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, e->watch_fd, &ev))
		weft_debug("the watch set cannot be watched: %s", strerror(errno));
	else
		out.watching = on;
}

/* Once, in ns from now; WEFT_FOREVER: not at all.  What it rang before is forgotten. */
static void alarm_locked(uint64_t ns)
{
	weft_assert_held(weft_mutex, &out.lock);
	struct itimerspec at = {.it_value = {0, 0}};
	if (ns == WEFT_FOREVER && !out.alarmed)
		return;
	if (ns != WEFT_FOREVER)
		at.it_value = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	out.alarmed = ns != WEFT_FOREVER;
	if (timerfd_settime(out.alarm_fd, 0, &at, NULL))
		weft_debug("no alarm for other event loops: %s", strerror(errno));
}

/* No thread of ours lies in wait: the bells must ring for the loop. */
static weft_err arm_alone(struct weft_engine *e)
{
	weft_assert_held(weft_mutex, &out.lock);
	weft_err err = WEFT_OK;
	if (weft_task_baton_try_take(&e->baton)) {
		if (weft_task_sources_level(e) != WEFT_ARM_ALL ||
		    atomic_load_explicit(&e->x_some_armed, memory_order_relaxed))
			err = weft_task_sources_arm(e, WEFT_ARM_ALL);
		weft_task_baton_release(e, WEFT_LEAVER_POLLER, NULL);
	} /* else its holder polls, and rings when it finds something or leaves */
	if (!err && (weft_task_engine_round(e, WEFT_ROUND_FULL) || weft_task_app_work_waiting()))
		err = WEFT_AGAIN;
	/* Repeat tasks and what cannot be armed: the loop looks as often as the watcher would. */
	alarm_locked(err ? WEFT_FOREVER : weft_task_engine_nap_ns(e));
	return err;
}

weft_err weft_engine_fd_arm(void)
{
	struct weft_engine *e = &weft_task_engine;
	/* READY (engine.c). */
	if (!atomic_load_explicit(&e->x_running, memory_order_acquire))
		return WEFT_ERR_STATE;
	if (weft_task_engine_self.in_handler)
		return WEFT_ERR_DEADLOCK;
	weft_task_engine_hears(e);
	pthread_mutex_lock(&out.lock);
	weft_err err = open_locked();
	if (!err) {
		/* SIT -> SEE (weft_task_watcher_sit). */
		bool alone = atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) ==
			     WEFT_WATCHER_OFF;
		watch_locked(e, alone);
		drain_locked(e);
		/* OUTSIDE -> leave, submit.  seq_cst: comes before our look at everything. */
		atomic_exchange_explicit(&e->baton.x_outside, true, memory_order_seq_cst);
		if (alone)
			err = arm_alone(e);
		else
			alarm_locked(WEFT_FOREVER);
		if (!alone && weft_task_engine_round(e, WEFT_ROUND_QUICK))
			err = WEFT_AGAIN;
		/* The watcher went off or came on meanwhile: once more. */
		if (!err &&
		    alone != (atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) ==
			      WEFT_WATCHER_OFF))
			err = WEFT_AGAIN;
	}
	pthread_mutex_unlock(&out.lock);
	return err;
}

void weft_task_outside_stop(void)
{
	pthread_mutex_lock(&out.lock);
	if (out.fd >= 0) {
		weft_task_outside_note(-1);
		close(out.fd);
		close(out.note_fd);
		close(out.alarm_fd);
	}
	out.fd = out.note_fd = out.alarm_fd = -1;
	out.watching = out.alarmed = false;
	pthread_mutex_unlock(&out.lock);
}
