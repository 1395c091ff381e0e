/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.c - the switch from thread to thread, what is run next, park and unpark. */
#include "ult/ult_int.h"

#include <errno.h>
#include <sched.h>
#include "base/log.h"

#define FIRSTS_MAX 8 /* urgent ones in a row before another gets its turn */
#define TICKS 61     /* switches between looks at messages and clocks, while threads are ready */

_Thread_local struct weft_ult_worker *weft_ult_worker_self;
_Thread_local struct weft_ult_carrier *weft_ult_carrier_self;

__attribute__((noinline)) struct weft_ult_worker *weft_ult_worker_here(void)
{
	struct weft_ult_worker *w = weft_ult_worker_self;
	__asm__ volatile("" : "+r"(w)); /* not to be guessed by callers */
	return w;
}

/* ---- what is run next ------------------------------------------------------------------------ */

void weft_ult_take_first(struct weft_ult_worker *w)
{
	/* FIRST <- make_ready.  Carries: contexts. */
	struct weft_ult *t = atomic_exchange_explicit(&w->x_first, NULL, memory_order_acq_rel);
	struct weft_ult *head = NULL;
	while (t) { /* ends: the stack is ours */
		struct weft_ult *next = t->next;
		t->next = head;
		head = t;
		t = next;
	}
	while (head) { /* ends: as above */
		t = head;
		head = head->next;
		weft_ult_list_push(&w->first, t);
	}
}

/* Says how much there is to steal: 0, 1, 2 or more. */
static void say_load(struct weft_ult_worker *w)
{
	uint64_t run = w->run;
	uint32_t load = run ? ((run & (run - 1)) || w->ready.top ? 2 : 1) : w->ready.top != 0;
	if (weft_unlikely(w->first.first || w->stolen.first))
		load++;
	/* Relaxed: a hint for thieves. */
	atomic_store_explicit(&w->x_load, load, memory_order_relaxed);
}

struct weft_ult *weft_ult_next(struct weft_ult_worker *w)
{
	struct weft_ult *t = NULL;
	weft_gate_enter(&w->gate);
	/* Relaxed: seen a round later at the latest. */
	if (weft_unlikely(atomic_load_explicit(&w->x_first, memory_order_relaxed) != NULL))
		weft_ult_take_first(w);
	if (weft_unlikely(w->first.first != NULL) && w->firsts < FIRSTS_MAX) {
		w->firsts++;
		t = weft_ult_list_pop(&w->first);
	} else if (weft_unlikely(w->stolen.first != NULL)) {
		t = weft_ult_list_pop(&w->stolen);
	} else {
		w->firsts = 0;
		if (!w->run)
			w->run = weft_ready_take(&w->ready, w->at, &w->run_word);
		if (w->run) {
			uint32_t slot = w->run_word << 6 | (uint32_t)__builtin_ctzll(w->run);
			t = weft_ult_of(w, slot);
			w->run &= w->run - 1;
			w->at = slot + 1;
			if (w->run)
				__builtin_prefetch(t + __builtin_ctzll(w->run) + 1);
		} else {
			t = weft_ult_list_pop(&w->first);
		}
	}
	say_load(w);
	weft_gate_leave(&w->gate);
	return t;
}

void weft_ult_make_ready(struct weft_ult *t)
{
	struct weft_ult_worker *w = weft_ult_worker_here(), *home = t->home;
	bool pinned = weft_ult_is(t, WEFT_ULT_PINNED);
	if (weft_likely(w == home)) {
		weft_gate_enter(&w->gate);
		if (weft_unlikely(weft_ult_is(t, WEFT_ULT_URGENT)))
			weft_ult_list_push(&w->first, t);
		else
			weft_ready_set(&w->ready, t->slot);
		uint32_t load = atomic_load_explicit(&w->x_load, memory_order_relaxed) + 1;
		atomic_store_explicit(&w->x_load, load, memory_order_relaxed);
		weft_gate_leave(&w->gate);
		weft_compiler_barrier();
		/* Relaxed: who has just gone idle runs a membarrier and looks at our load. */
		if (weft_unlikely(
			    atomic_load_explicit(&weft_ults.x_idle_count, memory_order_relaxed)) &&
		    !pinned)
			weft_ult_wake_thief(w);
		return;
	}
	if (weft_unlikely(weft_ult_is(t, WEFT_ULT_URGENT))) {
		struct weft_ult *head = atomic_load_explicit(&home->x_first, memory_order_relaxed);
		do
			t->next = head;
		/* FIRST -> take_first; seq_cst: before the look whether home sleeps. */
		while (!atomic_compare_exchange_weak_explicit(
			&home->x_first, &head, t, memory_order_seq_cst, memory_order_relaxed));
	} else {
		weft_ready_signal(&home->ready, t->slot);
	}
	weft_ult_wake_worker(home, pinned);
}

/* ---- the switch ------------------------------------------------------------------------------ */

static void end_of(struct weft_ult_worker *w, struct weft_ult *t)
{
	struct weft_parker *joiner;
#ifdef WEFT_TSAN
	__tsan_destroy_fiber(t->fiber);
#endif
	atomic_store_explicit(&w->x_ended,
			      atomic_load_explicit(&w->x_ended, memory_order_relaxed) + 1,
			      memory_order_relaxed); /* a count with one writer */
	if (weft_ult_over(&t->x_join, &joiner))
		weft_ult_give(t, w);
	else if (joiner)
		weft_unpark(joiner);
}

void weft_ult_finish(struct weft_ult_worker *w)
{
	struct weft_ult *t = w->prev;
	switch (w->after) {
	case WEFT_ULT_AFTER_NONE:
		break;
	case WEFT_ULT_AFTER_READY:
		weft_ult_make_ready(t);
		break;
	case WEFT_ULT_AFTER_PARK:
		if (!weft_ult_park_commit(&t->parker.x_word))
			weft_ult_make_ready(t);
		break;
	case WEFT_ULT_AFTER_END:
		end_of(w, t);
		break;
	}
}

static void keep(struct weft_ult_worker *w, struct weft_ult *me)
{
	me->err = *w->errno_p;
	if (w->cxx_p) {
		me->cxx[0] = w->cxx_p[0];
		me->cxx[1] = w->cxx_p[1];
	}
	if (weft_unlikely(weft_ult_is(me, WEFT_ULT_CANARY)) && !weft_ult_stack_intact(me))
		weft_ult_overflow(me, "found at a switch");
}

static void restore(struct weft_ult_worker *w, const struct weft_ult *me)
{
	*w->errno_p = me->err;
	if (w->cxx_p) {
		w->cxx_p[0] = me->cxx[0];
		w->cxx_p[1] = me->cxx[1];
	}
}

struct weft_ult_worker *weft_ult_leave(struct weft_ult_worker *w, struct weft_ult *me,
				       enum weft_ult_after after, struct weft_ult *next)
{
	if (weft_unlikely(w->on_own_stack))
		weft_panic("a call that may not block tried to");
	keep(w, me);
	w->prev = me;
	w->after = after;
	w->current = next;
	void *to = next ? next->sp : w->home_sp;
#ifdef WEFT_TSAN
	__tsan_switch_to_fiber(next ? next->fiber : w->carrier->fiber, 0);
#endif
#ifdef WEFT_ASAN
	void *fake = NULL;
	__sanitizer_start_switch_fiber(
		after == WEFT_ULT_AFTER_END ? NULL : &fake, next ? next->stack : w->carrier->stack,
		next ? weft_ult_stack_bytes(next->class) : w->carrier->stack_size);
#endif
	w = weft_ctx_switch(&me->sp, to, w);
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
	weft_ult_finish(w);
	restore(w, me);
	return w;
}

bool weft_ult_run(struct weft_ult_worker *w, struct weft_ult *t)
{
	struct weft_ult_carrier *c = w->carrier;
	w->current = t;
	w->prev = NULL;
	w->after = WEFT_ULT_AFTER_NONE;
#ifdef WEFT_TSAN
	__tsan_switch_to_fiber(t->fiber, 0);
#endif
#ifdef WEFT_ASAN
	__sanitizer_start_switch_fiber(&c->fake, t->stack, weft_ult_stack_bytes(t->class));
#endif
	w = weft_ctx_switch(&w->home_sp, t->sp, w);
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(c->fake, NULL, NULL);
#endif
	if (w)
		weft_ult_finish(w);
	else
		(void)c;
	return w != NULL;
}

/* The next thread, or NULL when it is the carrier's turn: nothing ready, or time to poll. */
static struct weft_ult *next_or_home(struct weft_ult_worker *w)
{
	atomic_store_explicit(&w->x_switches,
			      atomic_load_explicit(&w->x_switches, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (weft_unlikely(w->ticks == 0)) {
		w->ticks = TICKS;
		w->tick_due = true;
		return NULL;
	}
	w->ticks--;
	return weft_ult_next(w);
}

void weft_ult_yield(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (!w || !w->current || w->on_own_stack) {
		sched_yield();
		return;
	}
	bool home = w->ticks == 0;
	struct weft_ult *next = next_or_home(w);
	if (next || home)
		(void)weft_ult_leave(w, w->current, WEFT_ULT_AFTER_READY, next);
}

/* ---- park and unpark ------------------------------------------------------------------------- */

/* The way with a deadline; apart, so that the other one needs little stack. */
static __attribute__((noinline)) bool park_timed(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	struct weft_ult *me = w->current;
	struct weft_ult_timer t = {.deadline_ns = deadline_ns, .parker = &me->parker};
	struct weft_ult_worker *where = w;
	weft_ult_timer_add(where, &t);
	(void)weft_ult_leave(w, me, WEFT_ULT_AFTER_PARK, next_or_home(w));
	weft_ult_timer_remove(where, &t);
	(void)weft_ult_park_consume(&me->parker.x_word);
	return weft_clock_ns() < deadline_ns;
}

bool weft_ult_park_until(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	struct weft_ult *me = w->current;
	if (weft_ult_park_consume(&me->parker.x_word))
		return true;
	if (weft_unlikely(deadline_ns != WEFT_NEVER))
		return park_timed(w, deadline_ns);
	(void)weft_ult_leave(w, me, WEFT_ULT_AFTER_PARK, next_or_home(w));
	(void)weft_ult_park_consume(&me->parker.x_word);
	return true;
}

static uint64_t deadline_after(uint64_t ns)
{
	uint64_t now = weft_clock_ns();
	return ns > WEFT_NEVER - 1 - now ? WEFT_NEVER - 1 : now + ns;
}

/* A token that is there, or comes while we are parked.  An inner wait (a mutex, a message) may use
 * up the parker's notification, never the token. */
static bool take_token(struct weft_ult *me)
{
	/* Relaxed: a hint.  TOKEN: an exchange, or an unpark between look and store were lost. */
	return atomic_load_explicit(&me->x_token, memory_order_relaxed) &&
	       atomic_exchange_explicit(&me->x_token, 0, memory_order_acq_rel);
}

static bool park_for_token(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	struct weft_ult *me = w->current;
	bool in_time = true;
	while (!take_token(me)) { /* ends: a token, or the deadline */
		if (!in_time)
			return false;
		in_time = weft_ult_park_until(weft_ult_worker_here(), deadline_ns);
	}
	return true;
}

void weft_ult_park(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (w && w->current)
		(void)park_for_token(w, WEFT_NEVER);
}

bool weft_ult_park_for(uint64_t ns)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	return !w || !w->current ||
	       park_for_token(w, ns == WEFT_ULT_FOREVER ? WEFT_NEVER : deadline_after(ns));
}

void weft_ult_unpark(weft_ult *t)
{
	/* TOKEN -> take_token.  Carries: what the caller wrote.  The parker's exchange comes after
	 * it: whoever consumes that sees the token. */
	atomic_store_explicit(&t->x_token, 1, memory_order_release);
	weft_unpark(&t->parker);
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
	while (weft_ult_park_until(weft_ult_worker_here(), deadline))
		; /* ends: at the deadline */
	weft_ult_waits_for(NULL, NULL);
}

/* ---- as a back-end of wait/ -------------------------------------------------------------------
 */

static void ult_wake(struct weft_parker *p)
{
	weft_ult_make_ready(weft_container_of(p, struct weft_ult, parker));
}

static bool ult_park(struct weft_parker *p, uint64_t deadline_ns)
{
	return weft_ult_park_until(weft_ult_worker_here(), deadline_ns);
}

const struct weft_parker_ops weft_ult_parker_ops = {
	.name = "user-level thread",
	.park = ult_park,
	.wake = ult_wake,
};

bool weft_ult_here(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	return w && w->current && !w->on_own_stack;
}

void weft_ult_on_big_stack(void (*fn)(void *arg), void *arg)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (!w || !w->current || w->on_own_stack) {
		fn(arg);
		return;
	}
	w->on_own_stack = true;
#if WEFT_ULT_SANITIZED
	fn(arg); /* stacks are larger there, and the tools would have to be told */
#else
	weft_ctx_call(w->home_sp, fn, arg);
#endif
	w->on_own_stack = false;
}
