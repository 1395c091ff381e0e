/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate.h - a lock that costs its owner two plain stores, and a thief a membarrier.
 *
 * Each worker has one around its ready threads, and around each switch: the thread that is left
 * enters, the one that runs next leaves.  Its owner passes thousands of times before somebody wants
 * to steal.
 *
 * Callers   enter, leave: the worker, on any stack.  steal_begin, steal_end: other threads.
 * Order     what one side wrote inside is visible to whoever comes inside next.
 * Progress  enter: waits for a thief's few instructions.  steal_begin: never waits long; false when
 *           another thief is there or the owner is inside, perhaps preempted.
 *
 * Owner: says "inside" by a plain store, then looks for a thief.  Thief: says so, runs a
 * membarrier, then looks for the owner.  The membarrier puts a fence between the owner's store and
 * its look: either the owner sees the thief or the thief sees the owner.
 */
#ifndef WEFT_ULT_GATE_H
#define WEFT_ULT_GATE_H

#include "base/backoff.h"

#ifndef WEFT_GATE_MEMBARRIER
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#define WEFT_GATE_MEMBARRIER()                                                                     \
	((void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
#endif

#ifndef WEFT_GATE_LOOKS
#define WEFT_GATE_LOOKS 200 /* at an owner inside, before a thief gives up */
#endif

struct weft_gate {
	_Atomic uint32_t x_inside; /* owner */
	_Atomic uint32_t x_thief;  /* thieves */
	bool fence;                /* I: no membarrier here, the owner fences for itself */
};

static inline void weft_ult_gate_wait(struct weft_gate *g)
{
	unsigned turns = 0;
	/* FREE <- BACK.  Ends: a thief stays for a few dozen instructions. */
	while (atomic_load_explicit(&g->x_thief, memory_order_acquire))
		weft_backoff(&turns);
}

static inline void weft_ult_gate_enter(struct weft_gate *g)
{
	for (;;) { /* ends: no thief */
		if (weft_unlikely(g->fence)) {
			atomic_exchange_explicit(&g->x_inside, 1, memory_order_seq_cst);
		} else {
			/* Relaxed: the thief's membarrier orders it before our look. */
			atomic_store_explicit(&g->x_inside, 1, memory_order_relaxed);
			weft_compiler_barrier();
		}
		/* FREE <- BACK (steal_end).  Carries: what the thief took out.
		 * Without it, we could run a thread that it has taken. */
		if (weft_likely(!atomic_load_explicit(&g->x_thief, memory_order_seq_cst)))
			return;
		atomic_store_explicit(&g->x_inside, 0, memory_order_release);
		weft_ult_gate_wait(g);
	}
}

static inline void weft_comm_gate_leave(struct weft_gate *g)
{
	/* OUT -> EMPTY (steal_begin).  Carries: all that the owner wrote inside.
	 * Without it, a thief could take a thread that the owner has just begun to run. */
	atomic_store_explicit(&g->x_inside, 0, memory_order_release);
}

static inline void weft_ult_gate_steal_end(struct weft_gate *g)
{
	/* BACK -> FREE (enter) and NEXT (steal_begin).  Carries: what the thief took out. */
	atomic_store_explicit(&g->x_thief, 0, memory_order_release);
}

static inline bool weft_ult_gate_steal_begin(struct weft_gate *g)
{
	uint32_t none = 0;
	/* NEXT <- BACK of another thief.  Carries: what that one took. */
	if (!atomic_compare_exchange_strong_explicit(&g->x_thief, &none, 1, memory_order_seq_cst,
						     memory_order_relaxed))
		return false;
	if (!g->fence)
		WEFT_GATE_MEMBARRIER();
	for (int i = 0; i < WEFT_GATE_LOOKS; i++) { /* ends: as counted */
		/* EMPTY <- OUT. */
		if (!atomic_load_explicit(&g->x_inside, memory_order_seq_cst))
			return true;
		weft_cpu_relax();
	}
	weft_ult_gate_steal_end(g);
	return false;
}

#endif
