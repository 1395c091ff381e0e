/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch.h - the switch from thread to thread: which is next, what is kept of the one that is left.
 *
 * Callers   the worker's own code, inside the worker's lock; carriers_turn before it.
 * Order     the next thread to run leaves the lock (weft_ult_arrive): a thread that is seen ready
 *           has stored its context.
 * Progress  never waits.
 *
 * Inline: threads that stop in one and the same function are predicted to return where they do.
 */
#ifndef WEFT_ULT_SWITCH_H
#define WEFT_ULT_SWITCH_H

#include "base/assert.h"
#include "base/log.h"
#include "ult/ult_int.h"

/* An urgent thread, but not too many in a row, or a stolen one; NULL: another's turn. */
struct weft_ult *weft_ult_next_listed(struct weft_ult_worker *w);

/* Those behind t in its word will be needed soon: the next one's stack, the descriptor after. */
static inline void weft_ult_foresee(struct weft_ult_worker *w, struct weft_ult *t, uint32_t slot)
{
	uint64_t bits = weft_ult_ready_chunk(&w->ready, slot >> 12)->word[slot >> 6 & 63] &
			(~(uint64_t)1 << (slot & 63));
	uint64_t far = bits & (bits - 1);
	if (weft_likely(!far))
		return;
	struct weft_ult *near = t + (__builtin_ctzll(bits) - (int)(slot & 63));
	__builtin_prefetch(near->sp);
	__builtin_prefetch(t + (__builtin_ctzll(far) - (int)(slot & 63)));
}

static inline struct weft_ult *weft_ult_next_inside(struct weft_ult_worker *w)
{
	struct weft_ult *t;
	weft_assert_held(weft_wait_owner, &w->lock);
	/* Relaxed: seen a round later at the latest. */
	if (weft_unlikely(atomic_load_explicit(&w->x_first, memory_order_relaxed) != NULL))
		weft_ult_take_first(w);
	if (weft_unlikely(atomic_load_explicit(&w->x_listed, memory_order_relaxed) != 0) &&
	    (t = weft_ult_next_listed(w)))
		return t;
	uint32_t slot = weft_ult_ready_pick(&w->ready, w->at);
	if (weft_unlikely(slot == WEFT_READY_NONE))
		return weft_ult_listed_pop(w, &w->first);
	w->at = slot;
	t = weft_ult_of(w, slot);
	weft_ult_foresee(w, t, slot);
	return t;
}

static inline void weft_ult_keep(struct weft_ult_worker *w, struct weft_ult *me)
{
	me->err = *w->errno_p;
	if (w->cxx_p) {
		me->cxx[0] = w->cxx_p[0];
		me->cxx[1] = w->cxx_p[1];
	}
	if (weft_unlikely(weft_ult_is(me, WEFT_ULT_CANARY)) && !weft_ult_stack_intact(me))
		weft_ult_overflow(me, "found at a switch");
}

static inline void weft_ult_restore(struct weft_ult_worker *w, const struct weft_ult *me)
{
	*w->errno_p = me->err;
	if (w->cxx_p) {
		w->cxx_p[0] = me->cxx[0];
		w->cxx_p[1] = me->cxx[1];
	}
}

/*
 * Leaves the running thread, goes to `next`, NULL: to the carrier; inside the lock.  Returns
 * outside of it when the thread runs again, on the worker that it returns.
 */
static inline __attribute__((always_inline)) struct weft_ult_worker *
weft_ult_leave(struct weft_ult_worker *w, struct weft_ult *me, enum weft_ult_after after,
	       struct weft_ult *next)
{
	weft_assert_held(weft_wait_owner, &w->lock);
	weft_assert(w->current == me && next != me);
	weft_ult_keep(w, me);
	w->prev = me;
	w->after = after;
	w->current = next;
	void *to = next ? next->sp : w->home_sp;
	weft_ult_trace(WEFT_TRACE_ULT_RUN, next);
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
	w = weft_ult_ctx_swap(&me->sp, to, w);
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
	weft_ult_arrive(w);
	weft_ult_restore(w, me);
	return w;
}

/* Is it the carrier's turn to look at messages and clocks?  Counts the switch that follows. */
static inline bool weft_ult_carriers_turn(struct weft_ult_worker *w)
{
	/* Relaxed: a count with one writer. */
	atomic_store_explicit(&w->x_switches,
			      atomic_load_explicit(&w->x_switches, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (weft_likely(w->ticks != 0)) {
		w->ticks--;
		return false;
	}
	/* Relaxed: in force from the next tick on. */
	w->ticks = atomic_load_explicit(&weft_ult_all.x_ticks, memory_order_relaxed);
	w->tick_due = true;
	return true;
}

static inline void weft_ult_assert_may_block(const struct weft_ult_worker *w)
{
	if (weft_unlikely(w->on_own_stack))
		weft_panic("a call that may not block tried to");
}

#endif
