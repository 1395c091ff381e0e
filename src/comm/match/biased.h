/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * biased.h - a lock of eight bytes that whoever takes it alone enters without an exchange.
 *
 * The same as wait/solo.h beside a lock of its own, where there are many locks and each must be
 * small: a thread that has taken it NEED times, and nobody else in between, becomes its owner, and
 * enters by plain stores.  Anybody else takes the lock as ever, and before he goes on makes the
 * owner leave and be owner no more.
 *
 *   owner    inside = 1; compiler barrier; still the owner?  Else inside = 0 and take the lock.
 *            ... inside = 0.
 *   others   take the lock; is there an owner?  Then it has left; membarrier; wait for inside == 0.
 *
 * Why       As in wait/solo.h: who has left must take the lock before anybody becomes the owner.
 * Callers   any thread, task handlers included; not a signal handler.  in, try: what they say goes
 *           to out.
 * Order     what the last one inside wrote is visible to the next one.
 * Progress  as lock.h; who interrupts an owner makes a system call, at most once in NEED times.
 * Fallback  as in wait/solo.h.
 *
 *            in(owner)  in, lock    .  together, no help needed
 *   owner        .         L        L  locked() makes them exclude each other
 *   lock         L         L
 */
#ifndef WEFT_COMM_BIASED_H
#define WEFT_COMM_BIASED_H

#include "base/base.h"
#include "wait/solo.h"

/* Times in a row that make an owner.  Each spares it some 5 ns, an interruption costs some 2 us. */
#ifndef WEFT_BIASED_NEED
#define WEFT_BIASED_NEED 1024u
#endif

struct weft_biased {
	_Atomic uint8_t x_held;
	_Atomic uint8_t x_inside; /* the owner writes */
	uint16_t alone;           /* L: how often the candidate had the lock in a row */
	_Atomic uint32_t x_owner; /* L writes, the owner reads: 4 * its id, and what it is: */
};

/* Else it may become the owner. */
#define WEFT_BIASED_OWNS 1u
#define WEFT_BIASED_LEFT 2u /* was interrupted, and has not come again */

/* It is held. */
void weft_comm_biased_wait(struct weft_biased *s);
/* The lock is ours, and another thread is the owner: until it is out, and no owner any more. */
void weft_comm_biased_interrupt(struct weft_biased *s);
/* The lock is ours, and has been often enough. */
void weft_comm_biased_claim(struct weft_biased *s, uint32_t me);

/* The caller has taken the lock; from here on it is alone. */
static inline void weft_comm_biased_locked(struct weft_biased *s)
{
	uint32_t me = weft_wait_solo_self * 4;
	/* Relaxed: written under the lock. */
	uint32_t owner = atomic_load_explicit(&s->x_owner, memory_order_relaxed);
	if (owner == me) {
		if (weft_unlikely(++s->alone >= WEFT_BIASED_NEED))
			weft_comm_biased_claim(s, me);
	} else if (!(owner & (WEFT_BIASED_OWNS | WEFT_BIASED_LEFT)) ||
		   owner == (me | WEFT_BIASED_LEFT)) {
		/* Who had left is here, so not in enter(). */
		atomic_store_explicit(&s->x_owner, me, memory_order_relaxed);
		s->alone = 0;
	} else if (owner & WEFT_BIASED_OWNS && owner != (me | WEFT_BIASED_OWNS)) {
		weft_comm_biased_interrupt(s);
	}
}

static inline void weft_comm_biased_lock(struct weft_biased *s)
{
	/* TAKE <- GIVE (unlock).  Carries: everything the lock protects. */
	if (weft_unlikely(atomic_exchange_explicit(&s->x_held, 1, memory_order_acquire)))
		weft_comm_biased_wait(s);
	weft_comm_biased_locked(s);
}

static inline void weft_comm_biased_unlock(struct weft_biased *s)
{
	/* GIVE -> TAKE.  Carries: everything the lock protects. */
	atomic_store_explicit(&s->x_held, 0, memory_order_release);
}

/* As the owner: true, if we are it. */
static inline bool weft_comm_biased_enter(struct weft_biased *s)
{
	uint32_t me = weft_wait_solo_self * 4 | WEFT_BIASED_OWNS;
	/* Relaxed: the second look decides. */
	if (atomic_load_explicit(&s->x_owner, memory_order_relaxed) != me)
		return false;
	/* IN -> ASK (interrupt).  Relaxed, both: the asker's membarrier orders them. */
	atomic_store_explicit(&s->x_inside, 1, memory_order_relaxed);
	weft_compiler_barrier();
	if (weft_likely(atomic_load_explicit(&s->x_owner, memory_order_relaxed) == me))
		return true;
	atomic_store_explicit(&s->x_inside, 0, memory_order_relaxed);
	return false;
}

enum weft_biased_how { WEFT_BIASED_BUSY, WEFT_BIASED_LOCKED, WEFT_BIASED_OWNED };

/* Inside, one way or the other. */
static inline enum weft_biased_how weft_comm_biased_in(struct weft_biased *s)
{
	if (weft_likely(weft_comm_biased_enter(s)))
		return WEFT_BIASED_OWNED;
	weft_comm_biased_lock(s);
	return WEFT_BIASED_LOCKED;
}

/* The same, or BUSY: somebody holds the lock. */
static inline enum weft_biased_how weft_comm_biased_try(struct weft_biased *s)
{
	if (weft_likely(weft_comm_biased_enter(s)))
		return WEFT_BIASED_OWNED;
	/* Relaxed: a hint that saves the exchange; TAKE <- GIVE. */
	if (atomic_load_explicit(&s->x_held, memory_order_relaxed) ||
	    atomic_exchange_explicit(&s->x_held, 1, memory_order_acquire))
		return WEFT_BIASED_BUSY;
	weft_comm_biased_locked(s);
	return WEFT_BIASED_LOCKED;
}

static inline void weft_comm_biased_out(struct weft_biased *s, enum weft_biased_how how)
{
	if (weft_unlikely(how == WEFT_BIASED_LOCKED))
		weft_comm_biased_unlock(s);
	else
		/* OUT -> ASK (interrupt).  Carries: what we wrote inside. */
		atomic_store_explicit(&s->x_inside, 0, memory_order_release);
}

#endif
