/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.c - the switch from thread to thread, what is run next, park and unpark. */
#include "ult/ult_int.h"

#include <errno.h>
#include <sched.h>
#include "base/log.h"
#include "ult/place.h"

#define FIRSTS_MAX 8 /* urgent ones in a row before another gets its turn */
#define EXPECTED 6   /* lines of a stack that are brought before its thread runs */
#define TICKS 61     /* switches between looks at messages and clocks, while threads are ready */

_Thread_local struct weft_ult_worker *weft_ult_worker_self;
_Thread_local struct weft_ult_carrier *weft_ult_carrier_self;

#if !defined(__x86_64__) || defined(WEFT_CTX_UCONTEXT)
__attribute__((noinline)) struct weft_ult_worker *weft_ult_worker_here(void)
{
	struct weft_ult_worker *w = weft_ult_worker_self;
	__asm__ volatile("" : "+r"(w)); /* not to be guessed by callers */
	return w;
}
#endif

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
		weft_ult_listed_push(w, &w->first, t);
	}
}

/* An urgent thread, but not too many in a row, or a stolen one; NULL: others' turn. */
static __attribute__((noinline)) struct weft_ult *next_listed(struct weft_ult_worker *w)
{
	if (w->first.first && w->firsts < FIRSTS_MAX) {
		w->firsts++;
		return weft_ult_listed_pop(w, &w->first);
	}
	w->firsts = 0;
	return weft_ult_listed_pop(w, &w->stolen);
}

/* Those behind t in its word will be needed soon: the next one's stack, the descriptor after. */
static inline void foresee(struct weft_ult_worker *w, struct weft_ult *t, uint32_t slot)
{
	uint64_t bits = weft_ready_chunk(&w->ready, slot >> 12)->word[slot >> 6 & 63] &
			(~(uint64_t)1 << (slot & 63));
	uint64_t far = bits & (bits - 1);
	if (weft_likely(!far))
		return;
	struct weft_ult *near = t + (__builtin_ctzll(bits) - (int)(slot & 63));
	__builtin_prefetch(near->sp);
	__builtin_prefetch(t + (__builtin_ctzll(far) - (int)(slot & 63)));
}

static inline struct weft_ult *next_inside(struct weft_ult_worker *w)
{
	struct weft_ult *t;
	/* Relaxed: seen a round later at the latest. */
	if (weft_unlikely(atomic_load_explicit(&w->x_first, memory_order_relaxed) != NULL))
		weft_ult_take_first(w);
	if (weft_unlikely(atomic_load_explicit(&w->x_listed, memory_order_relaxed) != 0) &&
	    (t = next_listed(w)))
		return t;
	uint32_t slot = weft_ready_pick(&w->ready, w->at);
	if (weft_unlikely(slot == WEFT_READY_NONE))
		return weft_ult_listed_pop(w, &w->first);
	w->at = slot;
	t = weft_ult_of(w, slot);
	foresee(w, t, slot);
	return t;
}

struct weft_ult *weft_ult_next(struct weft_ult_worker *w)
{
	return next_inside(w);
}

/* t is about to be called: brings what it left on its stack, see place.h.  Not from a worker that
 * is not its home: that one may have it in use. */
static inline void expect(const struct weft_ult *t)
{
	const struct weft_ult_worker *w = weft_ult_worker_here();
	const char *top = w ? weft_ult_guess(t, w->id) : NULL;
	if (!top)
		return;
	for (int line = 0; line < EXPECTED; line++)
		__builtin_prefetch(top - w->depth + (size_t)line * WEFT_CACHELINE, 1);
}

/* t's home is w, the caller's. */
static inline void make_ready_here(struct weft_ult_worker *w, struct weft_ult *t)
{
	weft_gate_enter(&w->gate);
	if (weft_unlikely(weft_ult_is(t, WEFT_ULT_URGENT)))
		weft_ult_listed_push(w, &w->first, t);
	else
		weft_ready_set(&w->ready, t->slot);
	weft_gate_leave(&w->gate);
	weft_compiler_barrier();
	/* Relaxed: who has just gone idle runs a membarrier and looks at our load. */
	if (weft_unlikely(atomic_load_explicit(&weft_ults.x_idle_count, memory_order_relaxed)) &&
	    !weft_ult_is(t, WEFT_ULT_PINNED))
		weft_ult_wake_thief(w);
}

static __attribute__((noinline)) void make_ready_there(struct weft_ult *t)
{
	struct weft_ult_worker *home = t->home;
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
	weft_ult_wake_worker(home, weft_ult_is(t, WEFT_ULT_PINNED));
}

void weft_ult_make_ready(struct weft_ult *t)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (weft_likely(w == t->home))
		make_ready_here(w, t);
	else
		make_ready_there(t);
}

/* ---- the switch ------------------------------------------------------------------------------ */

static void end_of(struct weft_ult_worker *w, struct weft_ult *t, bool call)
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
	else if (joiner && call)
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
	case WEFT_ULT_AFTER_TOKEN:
		if (w->after == WEFT_ULT_AFTER_PARK ? weft_ult_park_commit(&t->parker.x_word)
						    : weft_ult_token_commit(&t->parker.x_word))
			break;
		t->missed = true;
		weft_ult_make_ready(t);
		break;
	case WEFT_ULT_AFTER_END:
	case WEFT_ULT_AFTER_END_CALLED:
		end_of(w, t, w->after == WEFT_ULT_AFTER_END);
		break;
	}
}

static inline void keep(struct weft_ult_worker *w, struct weft_ult *me)
{
	me->err = *w->errno_p;
	if (w->cxx_p) {
		me->cxx[0] = w->cxx_p[0];
		me->cxx[1] = w->cxx_p[1];
	}
	if (weft_unlikely(weft_ult_is(me, WEFT_ULT_CANARY)) && !weft_ult_stack_intact(me))
		weft_ult_overflow(me, "found at a switch");
}

static inline void restore(struct weft_ult_worker *w, const struct weft_ult *me)
{
	*w->errno_p = me->err;
	if (w->cxx_p) {
		w->cxx_p[0] = me->cxx[0];
		w->cxx_p[1] = me->cxx[1];
	}
}

/*
 * Leaves the running thread, goes to `next`, NULL: to the carrier; inside the gate.  Returns
 * outside of it when the thread runs again, on the worker that it returns.
 */
static inline __attribute__((always_inline)) struct weft_ult_worker *
leave(struct weft_ult_worker *w, struct weft_ult *me, enum weft_ult_after after,
      struct weft_ult *next)
{
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
	bool ends = after == WEFT_ULT_AFTER_END || after == WEFT_ULT_AFTER_END_CALLED;
	__sanitizer_start_switch_fiber(ends ? NULL : &fake, next ? next->stack : w->carrier->stack,
				       next ? weft_ult_stack_bytes(next->class)
					    : w->carrier->stack_size);
#endif
	w = weft_ctx_swap(&me->sp, to, w);
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
	weft_ult_arrive(w);
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
	w = weft_ctx_swap(&w->home_sp, t->sp, w);
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(c->fake, NULL, NULL);
#endif
	if (w)
		weft_ult_arrive(w);
	else
		(void)c;
	return w != NULL;
}

/* Is it the carrier's turn to look at messages and clocks?  Counts the switch that follows. */
static inline bool carriers_turn(struct weft_ult_worker *w)
{
	/* Relaxed: a count with one writer. */
	atomic_store_explicit(&w->x_switches,
			      atomic_load_explicit(&w->x_switches, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (weft_likely(w->ticks != 0)) {
		w->ticks--;
		return false;
	}
	w->ticks = TICKS;
	w->tick_due = true;
	return true;
}

static inline void assert_may_block(const struct weft_ult_worker *w)
{
	if (weft_unlikely(w->on_own_stack))
		weft_panic("a call that may not block tried to");
}

/* One that runs on a worker that is not its home, or is urgent. */
static __attribute__((noinline)) void yield_guest(struct weft_ult_worker *w, struct weft_ult *me)
{
	bool home = carriers_turn(w);
	weft_gate_enter(&w->gate);
	struct weft_ult *next = home ? NULL : next_inside(w);
	if (next || home)
		(void)leave(w, me, WEFT_ULT_AFTER_READY, next);
	else
		weft_gate_leave(&w->gate);
}

void weft_ult_yield(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (weft_unlikely(!w || !w->current || w->on_own_stack)) {
		sched_yield();
		return;
	}
	struct weft_ult *me = w->current;
	if (weft_unlikely(me->home != w || weft_ult_is(me, WEFT_ULT_URGENT))) {
		yield_guest(w, me);
		return;
	}
	bool home = carriers_turn(w);
	weft_gate_enter(&w->gate);
	struct weft_ult *next = home ? NULL : next_inside(w);
	if (weft_unlikely(!next && !home)) {
		weft_gate_leave(&w->gate);
		return;
	}
	weft_ready_set(&w->ready, me->slot);
	(void)leave(w, me, WEFT_ULT_AFTER_NONE, next);
}

/* Who joins t, when it waits for that here: the end of t can go straight there. */
static struct weft_ult *joiner_here(struct weft_ult_worker *w, struct weft_ult *t)
{
	/* SEEN <- JOIN.  Carries: the parker.  Its context was stored on this worker. */
	uintptr_t join = atomic_load_explicit(&t->x_join, memory_order_acquire);
	struct weft_parker *p = (struct weft_parker *)join;
	if (join <= WEFT_ULT_IS_DETACHED || p->ops != &weft_ult_parker_ops)
		return NULL;
	struct weft_ult *j = weft_container_of(p, struct weft_ult, parker);
	return j->home == w &&
			       (atomic_load_explicit(&p->x_word, memory_order_relaxed) &
				WEFT_ULT_PARKED) &&
			       weft_ult_call(&p->x_word)
		       ? j
		       : NULL;
}

_Noreturn void weft_ult_leave_for_good(struct weft_ult_worker *w, struct weft_ult *t)
{
	enum weft_ult_after after = WEFT_ULT_AFTER_END;
	struct weft_ult *next = NULL;
	assert_may_block(w);
	bool home = carriers_turn(w);
	weft_gate_enter(&w->gate);
	if (!home && (next = joiner_here(w, t)))
		after = WEFT_ULT_AFTER_END_CALLED;
	else if (!home)
		next = next_inside(w);
	(void)leave(w, t, after, next);
	__builtin_unreachable();
}

/* ---- park and unpark ------------------------------------------------------------------------- */

/* One that runs on a worker that is not its home. */
static __attribute__((noinline)) bool park_guest(struct weft_ult_worker *w, struct weft_ult *me,
						 enum weft_ult_after after)
{
	bool home = carriers_turn(w);
	me->missed = false;
	weft_gate_enter(&w->gate);
	(void)leave(w, me, after, home ? NULL : next_inside(w));
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

/* Lets others run until the running thread is called; false: it was called before. */
static inline __attribute__((always_inline)) bool park_me(struct weft_ult_worker *w, bool token)
{
	struct weft_ult *me = w->current;
	assert_may_block(w);
	if (weft_unlikely(me->home != w))
		return park_guest(w, me, token ? WEFT_ULT_AFTER_TOKEN : WEFT_ULT_AFTER_PARK);
	weft_gate_enter(&w->gate);
	if (!(token ? weft_ult_token_commit(&me->parker.x_word)
		    : weft_ult_park_commit(&me->parker.x_word))) {
		weft_gate_leave(&w->gate);
		return false;
	}
	struct weft_ult *next = NULL;
	if (weft_unlikely(carriers_turn(w)))
		note_depth(w, me);
	else
		next = next_inside(w);
	if (weft_unlikely(next == me)) /* called already, and its turn: its context is not stored */
		weft_gate_leave(&w->gate);
	else
		(void)leave(w, me, WEFT_ULT_AFTER_NONE, next);
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
	weft_ult_timer_add(where, &t);
	bool called = park_me(w, true);
	weft_ult_timer_remove(where, &t);
	/* Called, and not by the clock: by who gave the token. */
	return (called && !t.won) || weft_ult_token_take(&me->parker.x_word);
}

bool weft_ult_park_until(struct weft_ult_worker *w, uint64_t deadline_ns)
{
	struct weft_ult *me = w->current;
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
	if (!weft_ult_token_take(&me->parker.x_word) && !park_me(w, true))
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
	expect(t);
	if (weft_ult_token_give(&t->parker.x_word))
		weft_ult_make_ready(t);
}

void weft_ult_timeout(struct weft_ult_timer *t)
{
	t->won = weft_ult_call_late(&t->thread->parker.x_word);
	if (t->won)
		weft_ult_make_ready(t->thread);
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

static void ult_unpark(struct weft_parker *p)
{
	struct weft_ult *t = weft_container_of(p, struct weft_ult, parker);
	expect(t);
	if (weft_ult_call(&p->x_word))
		weft_ult_make_ready(t);
}

static bool ult_park(struct weft_parker *p, uint64_t deadline_ns)
{
	return weft_ult_park_until(weft_ult_worker_here(), deadline_ns);
}

const struct weft_parker_ops weft_ult_parker_ops = {
	.name = "user-level thread",
	.park = ult_park,
	.unpark = ult_unpark,
};
