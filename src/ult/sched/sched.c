/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.c - what is run next; how a thread is made ready, yields and ends. */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <sched.h>
#include "ult/sched/switch.h"

#define FIRSTS_MAX 8 /* urgent ones in a row before another gets its turn */

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
	weft_assert_held(weft_wait_owner, &w->lock);
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

__attribute__((noinline)) struct weft_ult *weft_ult_next_listed(struct weft_ult_worker *w)
{
	weft_assert_held(weft_wait_owner, &w->lock);
	if (w->first.first && w->firsts < FIRSTS_MAX) {
		w->firsts++;
		return weft_ult_listed_pop(w, &w->first);
	}
	w->firsts = 0;
	return weft_ult_listed_pop(w, &w->stolen);
}

struct weft_ult *weft_ult_next(struct weft_ult_worker *w)
{
	return weft_ult_next_inside(w);
}

/* t's home is w, the caller's. */
static inline void make_ready_here(struct weft_ult_worker *w, struct weft_ult *t)
{
	weft_ult_worker_enter(w);
	if (weft_unlikely(weft_ult_is(t, WEFT_ULT_URGENT)))
		weft_ult_listed_push(w, &w->first, t);
	else
		weft_ult_ready_set(&w->ready, t->slot);
	weft_ult_worker_leave(w);
	weft_compiler_barrier();
	/* Relaxed: a worker that has just gone idle runs a membarrier and looks at our load. */
	if (weft_unlikely(atomic_load_explicit(&weft_ult_all.x_idle_count, memory_order_relaxed)) &&
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
		weft_ult_ready_signal(&home->ready, t->slot);
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
		weft_wait_unpark(joiner);
}

void weft_ult_finish(struct weft_ult_worker *w)
{
	struct weft_ult *t = w->prev;
	weft_assert(t && t != w->current);
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
		weft_ult_trace(WEFT_TRACE_ULT_WAKE, t);
		weft_ult_make_ready(t);
		break;
	case WEFT_ULT_AFTER_END:
	case WEFT_ULT_AFTER_END_CALLED:
		end_of(w, t, w->after == WEFT_ULT_AFTER_END);
		break;
	}
}

bool weft_ult_run(struct weft_ult_worker *w, struct weft_ult *t)
{
	struct weft_ult_carrier *c = w->carrier;
	weft_assert_held(weft_wait_owner, &w->lock);
	weft_assert(!w->current && t->sp && weft_ult_is(t, WEFT_ULT_ALIVE));
	w->current = t;
	w->prev = NULL;
	w->after = WEFT_ULT_AFTER_NONE;
	weft_ult_trace(WEFT_TRACE_ULT_RUN, t);
#ifdef WEFT_TSAN
	__tsan_switch_to_fiber(t->fiber, 0);
#endif
#ifdef WEFT_ASAN
	__sanitizer_start_switch_fiber(&c->fake, t->stack, weft_ult_stack_bytes(t->class));
#endif
	w = weft_ult_ctx_swap(&w->home_sp, t->sp, w);
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(c->fake, NULL, NULL);
#endif
	if (w)
		weft_ult_arrive(w);
	else
		(void)c;
	return w != NULL;
}

/* One that runs on a worker that is not its home, or is urgent. */
static __attribute__((noinline)) void yield_guest(struct weft_ult_worker *w, struct weft_ult *me)
{
	bool home = weft_ult_carriers_turn(w);
	weft_ult_worker_enter(w);
	struct weft_ult *next = home ? NULL : weft_ult_next_inside(w);
	if (next || home) {
		weft_ult_trace(WEFT_TRACE_ULT_YIELD, me);
		(void)weft_ult_leave(w, me, WEFT_ULT_AFTER_READY, next);
	} else {
		weft_ult_worker_leave(w);
	}
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
	bool home = weft_ult_carriers_turn(w);
	weft_ult_worker_enter(w);
	struct weft_ult *next = home ? NULL : weft_ult_next_inside(w);
	if (weft_unlikely(!next && !home)) {
		weft_ult_worker_leave(w);
		return;
	}
	weft_ult_trace(WEFT_TRACE_ULT_YIELD, me);
	weft_ult_ready_set(&w->ready, me->slot);
	(void)weft_ult_leave(w, me, WEFT_ULT_AFTER_NONE, next);
}

/* The joiner of t, when it waits for that here: the end of t can switch to it at once. */
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
	weft_ult_assert_may_block(w);
	bool home = weft_ult_carriers_turn(w);
	weft_ult_worker_enter(w);
	weft_ult_trace(WEFT_TRACE_ULT_END, t);
	if (!home && (next = joiner_here(w, t))) {
		after = WEFT_ULT_AFTER_END_CALLED;
		weft_ult_trace(WEFT_TRACE_ULT_WAKE, next);
	} else if (!home) {
		next = weft_ult_next_inside(w);
	}
	(void)weft_ult_leave(w, t, after, next);
	__builtin_unreachable();
}
