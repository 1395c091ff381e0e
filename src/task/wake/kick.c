/* SPDX-License-Identifier: BSD-3-Clause */
/* kick.c - kicks, at once or a moment later, and the sleep in the watch set that they end. */
#include "base/assert.h"
#include "base/cancel.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/trace.h"
#include "task/engine_int.h"
#include "task/waiting/spin.h"
#include "task/wake/arm.h"
#include "task/wake/kick.h"
#include "task/event/late.h"
#include "task/wake/watcher.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define POLL_NAP_NS 20000u /* a nap costs some 5 us of a core: the shortest worth taking */

/* How long after a kick a thread woke from it; all relaxed, a statistic. */
static void note_kick_delay(struct weft_engine *e)
{
	uint64_t then = atomic_load_explicit(&e->x_kicked_ns, memory_order_relaxed);
	if (then && atomic_exchange_explicit(&e->x_kicked_ns, 0, memory_order_relaxed) == then) {
		uint64_t now = weft_clock_ns();
		weft_task_late(now > then ? now - then : 0);
	}
}

void weft_task_engine_kick(struct weft_engine *e, enum weft_kick kick)
{
	weft_assert(kick <= WEFT_KICK_PARKED);
	if (weft_likely(kick == WEFT_KICK_NONE))
		return;
	weft_trace(WEFT_TRACE_KICK, kick, 0, 0, 0);
	if (kick == WEFT_KICK_SET)
		atomic_store_explicit(&e->x_kicked_ns, weft_clock_ns(), memory_order_relaxed);
	if (kick == WEFT_KICK_SET) {
		uint64_t one = 1;
		int was = weft_cancel_off();
		/* Never read: each write is an edge.  The counter would overflow after 2^64. */
		ssize_t n = write(e->kick_fd, &one, sizeof one);
		weft_cancel_back(was);
		(void)n; /* EAGAIN: the counter is full, which is an edge that others made */
	} else if (kick == WEFT_KICK_WATCHER) {
		/* TELL -> watcher's futex.  The word's change, not the order, ends its sleep. */
		atomic_fetch_add_explicit(&e->x_watcher_word, 1, memory_order_release);
		weft_futex_wake(&e->x_watcher_word);
	} else {
		pthread_mutex_lock(&e->park_lock);
		struct weft_link *l = weft_list_pop_front(&e->parked);
		struct weft_parker *p =
			l ? weft_container_of(l, struct weft_parked, link)->parker : NULL;
		pthread_mutex_unlock(&e->park_lock);
		if (p)
			weft_wait_unpark(p);
	}
}

static void set_timer(struct weft_engine *e, uint64_t ns)
{
	weft_assert(ns && ns < 1000000000u);
	struct itimerspec in = {.it_value = {.tv_nsec = (long)ns}};
	if (timerfd_settime(e->kick_timer_fd, 0, &in, NULL))
		weft_debug("no timer for the watcher: %s", strerror(errno));
}

void weft_task_engine_set_kick_timer(struct weft_engine *e, enum weft_task_kick_timer_what what)
{
	/* Relaxed, both: a hint. */
	atomic_store_explicit(&e->kick_timer.x_rounds,
			      atomic_load_explicit(&e->x_rounds, memory_order_relaxed),
			      memory_order_relaxed);
	set_timer(e, what == WEFT_KICK_TIMER_KICK ? WEFT_KICK_TIMER_NS : WEFT_CHECK_NS);
	if (what == WEFT_KICK_TIMER_CHECK && weft_task_kick_timer_overtaken(&e->kick_timer))
		set_timer(e, WEFT_KICK_TIMER_NS);
}

bool weft_task_engine_kick_later(struct weft_engine *e, enum weft_task_kick_timer_what what)
{
	/* Relaxed, both: a loop of others that arms meanwhile looks for itself, and a watcher that
	 * comes out of the set does so, too. */
	if (e->kick_timer_fd < 0 ||
	    atomic_load_explicit(&e->baton.x_watcher, memory_order_relaxed) != WEFT_WATCHER_UNDER ||
	    weft_task_spin_crowded() ||
	    atomic_load_explicit(&e->baton.x_outside, memory_order_relaxed))
		return false;
	if (weft_task_kick_timer_due(&e->kick_timer, what))
		weft_task_engine_set_kick_timer(e, what);
	return true;
}

bool weft_task_engine_check_later(void)
{
	return weft_task_engine_kick_later(&weft_task_engine, WEFT_KICK_TIMER_CHECK);
}

bool weft_task_engine_watch(struct weft_engine *e, uint64_t timeout_ns)
{
	weft_assert(e->watch_fd >= 0 && !weft_task_engine_self.in_handler);
	struct epoll_event ev[8];
	struct timespec ts = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
			      .tv_nsec = (long)(timeout_ns % 1000000000u)};
	int was = weft_cancel_off(); /* the caller may hold the baton */
	weft_trace(WEFT_TRACE_SLEEP, 1, 0, 0, 0);
	int n = epoll_pwait2(e->watch_fd, ev, 8, timeout_ns == WEFT_FOREVER ? NULL : &ts, NULL);
	if (n < 0 && errno == ENOSYS) /* before Linux 5.11 */
		n = epoll_wait(e->watch_fd, ev, 8,
			       timeout_ns == WEFT_FOREVER ? -1
			       : timeout_ns >= 3600000000000ull
				       ? 3600000
				       : (int)((timeout_ns + 999999) / 1000000));
	weft_trace(WEFT_TRACE_AWAKE, 0, 0, 0, 0);
	weft_cancel_back(was);
	bool rang = false;
	weft_task_kick_filter_woke(&e->kick_filter);
	weft_task_engine_self.deferred = false;
	weft_task_engine_self.expired = n == 0;
	for (int i = 0; i < n; i++) {
		if (ev[i].data.u32 == 0) { /* a kick */
			note_kick_delay(e);
			continue;
		}
		if (ev[i].data.u32 == WEFT_EV_KICK_TIMER) {
			weft_task_kick_timer_fired(&e->kick_timer);
			weft_task_engine_self.deferred = n == 1;
			continue;
		}
		rang = true;
		weft_trace(WEFT_TRACE_RANG, 0, ev[i].data.u32, 0, 0);
		weft_assert(ev[i].data.u32 <= WEFT_SLOT_MAX);
		/* RANG -> arm.  Set before the level is taken back: the thread that arms again then
		 * sees which. */
		atomic_store_explicit(&e->slot[ev[i].data.u32 - 1].x_rang, true,
				      memory_order_release);
	}
	if (rang) {
		/* The others are armed still, and the one that rang may arm itself again. */
		atomic_store_explicit(&e->x_some_armed, true, memory_order_relaxed);
		weft_task_baton_rang(&e->baton);
	}
	return rang;
}

uint64_t weft_task_engine_nap_ns(struct weft_engine *e)
{
	/* Relaxed: a holder that polls is relieved when it goes. */
	if (weft_task_repeat_awaited(&e->repeat) &&
	    atomic_load_explicit(&e->baton.x_state, memory_order_relaxed) != WEFT_BATON_HELD)
		return POLL_NAP_NS;
	/* Relaxed: a thread that adds one also kicks. */
	if (atomic_load_explicit(&e->x_unarmable, memory_order_relaxed) ||
	    weft_task_repeat_some(&e->repeat))
		return e->poll_ns && e->poll_ns < e->timer_ns ? e->poll_ns : e->timer_ns;
	return e->poll_ns ? e->poll_ns : WEFT_FOREVER;
}

void weft_task_watcher_call(struct weft_engine *e)
{
	/* CALL -> redirect.  seq_cst: set before the kick, so the thread that the kick wakes sees it. */
	atomic_store_explicit(&e->x_call_watcher, true, memory_order_seq_cst);
	weft_task_engine_kick(e, WEFT_KICK_WATCHER);
	weft_task_engine_kick(e, WEFT_KICK_SET);
}

void weft_task_watcher_redirect(struct weft_engine *e)
{
	/* Acquire: a parker that was named by its sleeper. */
	struct weft_parker *p = atomic_load_explicit(&e->x_sleeper, memory_order_acquire);
	bool other = atomic_load_explicit(&e->baton.x_state, memory_order_seq_cst) ==
			     WEFT_BATON_ASLEEP &&
		     (!weft_task_sources_armed(e) || (p && weft_wait_parker_notified(p)) ||
		      /* Relaxed: the state carries it.  It must sleep for less long. */
		      weft_task_engine_nap_ns(e) <
			      atomic_load_explicit(&e->x_sleep_ns, memory_order_relaxed));
	bool watcher = atomic_load_explicit(&e->x_call_watcher, memory_order_seq_cst) &&
		       atomic_load_explicit(&e->baton.x_watcher, memory_order_seq_cst) ==
			       WEFT_WATCHER_UNDER;
	if (weft_unlikely(other || watcher))
		weft_task_engine_kick(e, WEFT_KICK_SET);
}
