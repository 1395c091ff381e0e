/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deep.c - calls that need more stack than their thread has: on the worker's, or on a borrowed one.
 *
 * The worker's stack (big) serves calls that do not block: one at a time, no price.  A call that
 * may block (deep), a collective or the making of a communicator, gets the stack of a spare thread
 * from the pool for as long as it takes: some ten ns.  The thread stays the same, with its
 * descriptor and its worker; only its stack pointer is elsewhere, and so it may block, wake and be
 * stolen as ever.
 */
#include "base/assert.h"
#include "ult/ult_int.h"

#define DEEP_CLASS 4 /* 64 KiB: also for user's functions that such a call runs */

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
	weft_ult_ctx_call(w->home_sp, fn, arg);
#endif
	w->on_own_stack = false;
}

/* Never under sanitizers: stacks are of that size at least. */
static bool on_small_stack(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	struct weft_ult *me = w && !w->on_own_stack ? w->current : NULL;
	return me && !me->deep && me->class < DEEP_CLASS;
}

static void run_deep(struct weft_ult *me, struct weft_ult *lender, void (*fn)(void *arg), void *arg)
{
	/* Relaxed: set before the lender's stack was made, or not at all. */
	bool canary = atomic_load_explicit(&weft_ult_x_canaries, memory_order_relaxed);
	weft_assert(!me->deep && lender->class == DEEP_CLASS && lender != me);
	if (canary)
		weft_ult_stack_mark(lender);
	me->deep = lender;
	weft_ult_ctx_call(lender->stack + weft_ult_stack_bytes(DEEP_CLASS), fn, arg);
	if (canary && !weft_ult_stack_intact(lender))
		weft_ult_overflow(me, "found when the call was over");
	me->deep = NULL;
}

static void on_deep_stack(void (*fn)(void *arg), void *arg)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	struct weft_ult *lender;
	if (!on_small_stack() || weft_ult_take(w, w, DEEP_CLASS, &lender)) {
		fn(arg);
		return;
	}
	run_deep(w->current, lender, fn, arg);
	weft_ult_give(lender, weft_ult_worker_here());
}

const struct weft_stacks weft_ult_stacks = {weft_ult_on_big_stack, on_small_stack, on_deep_stack};
