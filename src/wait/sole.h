/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sole.h - lets a thread make completions done by a plain store, as long as no other ever slept on
 * any.
 *
 * A signal is an exchange, because another thread may put itself into the completion's list at that
 * moment.  In most programs none ever does: the thread that started the engine is the only one that
 * waits.  So it is the sole one until another thread is about to enlist for the first time, who
 * ends that for good.
 *
 *   sole     inside = 1; compiler barrier; still the sole one, and nobody in the list?  Store DONE.
 *            inside = 0.
 *   others   before the first enlist: owner = ENDING; membarrier; wait for inside == 0; owner =
 * NONE.
 *
 * Why       After the membarrier the sole thread has either stored inside = 1 before it, and the
 *           other waits for the end; or it looks at the owner after it, and takes the exchange.
 * What it lists itself it finds in the word.
 *
 * Callers   begin: before anybody can wait.  signal, enlisting: any thread.
 * Order     as completion.h.
 * Progress  signal: wait-free.  enlisting: once in a process a system call, and as long as a
 * signal. Fallback  without membarrier there is no sole thread.
 *
 *             signal enlist    .  together, no help needed
 *   signal      .      L       L  end() makes them exclude each other
 *   enlist      L      .
 */
#ifndef WEFT_SOLE_H
#define WEFT_SOLE_H

#include "wait/completion.h"
#include "wait/solo.h"

#define WEFT_SOLE_NONE 0u
#define WEFT_SOLE_ENDING (UINT32_MAX - 1)

struct weft_sole {
	_Atomic uint32_t x_owner;  /* id of the sole thread, NONE, or ENDING */
	_Atomic uint32_t x_inside; /* the owner writes */
};

extern struct weft_sole weft_wait_sole;

/* The calling thread is the sole one; the first call counts. */
void weft_wait_sole_begin(void);
/* No thread is from now on. */
void weft_wait_sole_end(void);

/* The caller, whose id is me, is about to enlist. */
static inline void weft_wait_sole_enlisting(uint32_t me)
{
	/* ENDED <- END (weft_wait_sole_end).  Carries: what the sole thread has signalled.  Without it
	 * our list could be put where its DONE is. */
	uint32_t owner = atomic_load_explicit(&weft_wait_sole.x_owner, memory_order_acquire);
	if (weft_unlikely(owner != WEFT_SOLE_NONE && owner != me))
		weft_wait_sole_end();
}

/* False: by an exchange, please.  me: weft_wait_solo_self. */
static inline bool weft_wait_sole_signal(struct weft_completion *c, uint32_t me)
{
	/* Relaxed: the second look decides. */
	if (atomic_load_explicit(&weft_wait_sole.x_owner, memory_order_relaxed) != me)
		return false;
	/* IN -> ASK (weft_wait_sole_end).  Relaxed, both: the asker's membarrier orders them. */
	atomic_store_explicit(&weft_wait_sole.x_inside, 1, memory_order_relaxed);
	weft_compiler_barrier();
	/* Relaxed: if there is a list, we have made it. */
	bool mine =
		atomic_load_explicit(&weft_wait_sole.x_owner, memory_order_relaxed) == me &&
		atomic_load_explicit(&c->x_state, memory_order_relaxed) == WEFT_COMPLETION_PENDING;
	if (weft_likely(mine))
		/* PUB -> SEE (done).  Carries: the result. */
		atomic_store_explicit(&c->x_state, WEFT_COMPLETION_DONE, memory_order_release);
	/* OUT -> ASK (weft_wait_sole_end).  Carries: DONE. */
	atomic_store_explicit(&weft_wait_sole.x_inside, 0, memory_order_release);
	return mine;
}

#endif
