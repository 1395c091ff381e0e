/* SPDX-License-Identifier: BSD-3-Clause */
/* park.c - park and unpark, with and without a deadline; threads as a back-end of wait/. */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <errno.h>
#include "ult/stack/place.h"
#include "ult/sched/switch.h"

#define EXPECTED 6 /* lines of a stack that are brought before its thread runs */

/* t is about to be called: brings what it left on its stack, see place.h.  Not from a worker that
 * is not its home: that one may have it in use. */
static inline void prefetch_stack(const struct weft_ult *t)
{
	const struct weft_ult_worker *w = weft_ult_worker_here();
	const char *top = w ? weft_ult_guess(t, w->id) : NULL;
	if (!top)
		return;
	for (int line = 0; line < EXPECTED; line++)
		__builtin_prefetch(top - w->depth + (size_t)line * WEFT_CACHELINE, 1);
}

/* One that runs on a worker that is not its home. */
static __attribute__((noinline)) bool park_guest(struct weft_ult_worker *w, struct weft_ult *me,
						 enum weft_ult_after after)
{
	bool home = weft_ult_carriers_turn(w);
	me->missed = false;
	if (weft_trace_on())
		weft_ult_trace_block(me, after == WEFT_ULT_AFTER_TOKEN);
	weft_ult_worker_enter(w);
	(void)weft_ult_leave(w, me, after, home ? NULL : weft_ult_next_inside(w));
	return !me->missed;
}

/* How deep the caller's caller, me, will have left things on its stack; see expect. */
static __attribute__((noinline)) void note_depth(struct weft_ult_worker *w,
						 const struct weft_ult *me)
{
	const char *top = me->stack + weft_ult_stack_bytes(me->class);
	if (me->deep)
		return; /* it left things elsewhere */
	w->depth = (uint32_t)(top - (const char *)__builtin_frame_address(0)) + 48;
}

/* Runs other threads until this one is called; false: it was called before. */
static inline __attribute__((always_inline)) bool park_me(struct weft_ult_worker *w, bool token)
{
	struct weft_ult *me = w->current;
	weft_ult_assert_may_block(w);
	if (weft_unlikely(me->home != w))
		return park_guest(w, me, token ? WEFT_ULT_AFTER_TOKEN : WEFT_ULT_AFTER_PARK);
	if (weft_trace_on()) /* before it can be called */
		weft_ult_trace_block(me, token);
	weft_ult_worker_enter(w);
	if (!(token ? weft_ult_token_commit(&me->parker.x_word)
		    : weft_ult_park_commit(&me->parker.x_word))) {
		weft_ult_worker_leave(w);
		weft_ult_trace(WEFT_TRACE_ULT_STAY, me);
		return false;
	}
	struct weft_ult *next = NULL;
	if (weft_unlikely(weft_ult_carriers_turn(w)))
		note_depth(w, me);
	else
		next = weft_ult_next_inside(w);
	if (weft_unlikely(next == me)) { /* called already, its turn: its context is not stored */
		weft_ult_worker_leave(w);
		weft_ult_trace(WEFT_TRACE_ULT_RUN, me);
	} else {
		(void)weft_ult_leave(w, me, WEFT_ULT_AFTER_NONE, next);
	}
	return true;
}

/* The ways with a deadline; apart, so that the others need little stack.  False: it has passed. */
static __attribute__((noinline)) bool park_timed(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	struct weft_ult_timer t = {.deadline_ns = deadline_ns, .thread = w->current};
	struct weft_ult_worker *where = w;
	weft_ult_timer_add(where, &t);
	(void)park_me(w, false);
	weft_ult_timer_remove(where, &t);
	return weft_clock_ns() < deadline_ns;
}

static __attribute__((noinline)) bool token_timed(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	struct weft_ult *me = w->current;
	struct weft_ult_timer t = {.deadline_ns = deadline_ns, .thread = me};
	struct weft_ult_worker *where = w;
	if (weft_ult_token_take(&me->parker.x_word))
		return true;
	weft_wait_entry();
	weft_ult_timer_add(where, &t);
	bool called = park_me(w, true);
	weft_ult_timer_remove(where, &t);
	/* Called, and not by the clock: by the giver of the token. */
	return (called && !t.won) || weft_ult_token_take(&me->parker.x_word);
}

bool weft_ult_park_until(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	struct weft_ult *me = w->current;
	weft_assert(me && !w->on_own_stack);
	bool in_time = true;
	if (weft_ult_park_consume(&me->parker.x_word))
		return true;
	if (weft_unlikely(deadline_ns != WEFT_NEVER))
		in_time = park_timed(w, deadline_ns);
	else if (park_me(w, false))
		return true;
	(void)weft_ult_park_consume(&me->parker.x_word);
	return in_time;
}

static uint64_t deadline_after(uint64_t ns)
{
	uint64_t now = weft_clock_ns();
	return ns > WEFT_NEVER - 1 - now ? WEFT_NEVER - 1 : now + ns;
}

void weft_ult_park(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (weft_unlikely(!w || !w->current))
		return;
	struct weft_ult *me = w->current;
	if (weft_ult_token_take(&me->parker.x_word))
		return;
	weft_wait_entry();
	if (!park_me(w, true))
		(void)weft_ult_token_take(&me->parker.x_word);
}

bool weft_ult_park_for(uint64_t ns)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (ns != WEFT_ULT_FOREVER)
		return !w || !w->current || token_timed(w, deadline_after(ns));
	weft_ult_park();
	return true;
}

void weft_ult_unpark(weft_ult *t)
{
	if (weft_unlikely(!t))
		return;
	prefetch_stack(t);
	if (weft_ult_token_give(&t->parker.x_word)) {
		weft_ult_trace(WEFT_TRACE_ULT_WAKE, t);
		weft_ult_make_ready(t);
	}
}

void weft_ult_timeout(struct weft_ult_timer *t)
{
	t->won = weft_ult_call_late(&t->thread->parker.x_word);
	if (t->won) {
		weft_ult_trace(WEFT_TRACE_ULT_WAKE, t->thread);
		weft_ult_make_ready(t->thread);
	}
}

void weft_ult_sleep_ns(uint64_t ns)
{
	uint64_t deadline = deadline_after(ns);
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (!w || !w->current) {
		struct timespec ts = {.tv_sec = (time_t)(deadline / 1000000000u),
				      .tv_nsec = (long)(deadline % 1000000000u)};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			; /* ends: at the deadline */
		return;
	}
	weft_ult_waits_for("time", NULL);
	weft_wait_entry();
	while (weft_ult_park_until(weft_ult_worker_here(), deadline))
		; /* ends: at the deadline */
	weft_ult_waits_for(NULL, NULL);
}

/* ---- as a back-end of wait/ -------------------------------------------------------------------
 */

static void ult_unpark(struct weft_parker *p)
{
	struct weft_ult *t = weft_container_of(p, struct weft_ult, parker);
	prefetch_stack(t);
	if (weft_ult_call(&p->x_word)) {
		weft_ult_trace(WEFT_TRACE_ULT_WAKE, t);
		weft_ult_make_ready(t);
	}
}

static bool ult_park(struct weft_parker *p, uint64_t deadline_ns)
{
	return weft_ult_park_until(weft_ult_worker_here(), deadline_ns);
}

const struct weft_parker_ops weft_ult_parker_ops = {
	.name = "user-level thread",
	.park = ult_park,
	.unpark = ult_unpark,
	.yield = weft_ult_yield,
};
