/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solo.h - lets the one thread that uses a lock enter without an atomic read-modify-write.
 *
 * A locked operation waits until all earlier stores are done; behind a message in memory that
 * another core has just read, that is the time that the line takes to come.  So a thread that has
 * taken the lock often enough, and nobody else in between, becomes its owner.  It then enters by
 * plain stores.  Anybody else takes the lock as ever, and before he goes on makes the owner leave
 * and be owner no more.  There is no other owner until it has come again: it may be in the middle
 * of looking, and what it then takes back would be the other's word.
 *
 *   owner    inside = 1; compiler barrier; still the owner?  Else inside = 0 and take the lock.
 *            ... inside = 0.
 *   others   take the lock; is there an owner?  Then owner = 0; membarrier; wait for inside == 0;
 *            it has left.
 *
 * Why       After the membarrier the owner has either stored inside = 1 before it, and the other
 *           waits for the end; or it looks at owner after it, and sees that it is none any more.
 *           The barrier that the owner saves each time is paid by who interrupts it.
 *
 * Callers   enter, leave: any thread.  locked: who has just taken the lock, each time.
 * Order     as with the lock alone: what one wrote inside is visible to the next one inside.
 * Progress  enter, leave: wait-free.  locked: seldom a system call, and as long as the owner is
 *           inside: what it does there must be short, and never wait.
 * Fallback  without membarrier there is never an owner; nor again, once one was interrupted that
 *            never takes the lock any more.
 *
 *            enter  lock        .  together, no help needed
 *   enter      .     L          L  locked() makes them exclude each other
 *   lock       L     L
 */
#ifndef WEFT_SOLO_H
#define WEFT_SOLO_H

#include "base/base.h"

#define WEFT_SOLO_NEED 64u /* times in a row that make an owner: one membarrier costs some 2 us */

struct weft_solo {
	_Atomic uint32_t x_owner;  /* L writes; the owner reads: its id, 0 none */
	_Atomic uint32_t x_inside; /* the owner writes */
	uint32_t last;             /* L: who had the lock last */
	uint16_t alone;            /* L: and how often in a row */
	uint16_t need;             /* L: doubled by each interruption, up to some limit */
	uint32_t left;             /* L: was interrupted, and has not come again; 0 none */
};

#define WEFT_SOLO_NOBODY UINT32_MAX         /* id of a thread that has none yet; never an owner */
#define WEFT_SOLO_LAST (UINT32_MAX / 4 - 1) /* the last id: biased.h takes two bits */
extern _Thread_local uint32_t weft_wait_solo_self;

static inline void weft_wait_solo_init(struct weft_solo *s)
{
	atomic_store_explicit(&s->x_owner, 0, memory_order_relaxed);
	atomic_store_explicit(&s->x_inside, 0, memory_order_relaxed);
	s->last = WEFT_SOLO_NOBODY;
	s->alone = 0;
	s->need = WEFT_SOLO_NEED;
	s->left = 0;
}

/* True: inside, alone; then leave() soon.  False: take the lock.  me: weft_wait_solo_self. */
static inline bool weft_wait_solo_enter(struct weft_solo *s, uint32_t me)
{
	/* Relaxed: the second look decides. */
	if (atomic_load_explicit(&s->x_owner, memory_order_relaxed) != me)
		return false;
	/* IN -> ASK (weft_wait_solo_interrupt).  Relaxed, both: the asker's membarrier orders them. */
	atomic_store_explicit(&s->x_inside, 1, memory_order_relaxed);
	weft_compiler_barrier();
	if (weft_likely(atomic_load_explicit(&s->x_owner, memory_order_relaxed) == me))
		return true;
	atomic_store_explicit(&s->x_inside, 0, memory_order_relaxed);
	return false;
}

static inline void weft_wait_solo_leave(struct weft_solo *s)
{
	/* OUT -> ASK (weft_wait_solo_interrupt).  Carries: what we wrote inside.  Without it, who
	 * interrupts could go on with what was there before. */
	atomic_store_explicit(&s->x_inside, 0, memory_order_release);
}

/* The lock is ours, and another thread is the owner: until it is out, and no owner any more. */
void weft_wait_solo_interrupt(struct weft_solo *s);
/* The lock is ours, and has been often enough: may make us its owner. */
void weft_wait_solo_claim(struct weft_solo *s, uint32_t me);

/* The calling thread's id, for owners of other kinds; NOBODY: there is no membarrier. */
uint32_t weft_wait_solo_id(void);
/* A membarrier; somebody has an id. */
void weft_wait_solo_barrier(void);

/* The caller has taken the lock; from here on it is alone.  me: weft_wait_solo_self. */
static inline void weft_wait_solo_locked(struct weft_solo *s, uint32_t me)
{
	/* Relaxed: written under the lock. */
	uint32_t owner = atomic_load_explicit(&s->x_owner, memory_order_relaxed);
	if (owner == me)
		return;
	if (weft_unlikely(owner))
		weft_wait_solo_interrupt(s);
	if (s->last != me) {
		s->last = me;
		s->alone = 0;
		if (s->left == me)
			s->left = 0; /* it is here, so not in enter() */
	} else if (weft_unlikely(++s->alone >= s->need)) {
		weft_wait_solo_claim(s, me);
	}
}

#endif
