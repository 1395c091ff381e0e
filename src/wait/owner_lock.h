/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * owner_lock.h - a lock of eight bytes that its owner enters by plain stores.
 *
 * A locked operation waits until all earlier stores are done; behind a message in memory that
 * another core has just read, that is the time that the line takes to come.  So a thread that has
 * taken the lock NEED times, with no other thread in between, becomes its owner, and enters without
 * a locked operation.  Any other thread takes the lock by an exchange, and ends the ownership
 * before it goes on.
 *
 *   owner    inside = 1; compiler barrier; still the owner?  Else inside = 0, and take the lock.
 *            ... inside = 0.
 *   other    exchange held; is there an owner?  Then it is interrupted: membarrier; wait until
 *            inside == 0.  ... held = 0.
 *
 * Why       After the membarrier either the owner's inside = 1 is visible, and the other thread
 *           waits; or the owner looks after the membarrier, and sees that it is interrupted.
 *
 *   x_owner:   CANDIDATE    -- NEED sections in a row, by it alone --> OWNS
 *                           -- a section of another thread --> CANDIDATE, the other thread
 *              OWNS         -- a section of another thread --> INTERRUPTED
 *              INTERRUPTED  -- a section of its own --> CANDIDATE
 *
 * An interrupted owner may be between its store of inside and its second look, and will then clear
 * inside; so there is no other owner before it has come again.  If it never comes, the lock stays
 * one without an owner.
 *
 * A fixed owner is one by its role: a user-level worker, run by whichever kernel thread carries it.
 * A thief keeps it out for some instructions and gives the ownership back.
 *
 * Callers   any thread, task handlers included; not a signal handler.  try, in: their answer goes
 *           to out.  taken: a thread that has just taken a lock of its own in place of held.
 *           enter_fixed: the fixed owner.  steal_begin, steal_end: other threads.
 * Order     what was written inside is visible to the next thread inside.
 * Progress  enter, leave: wait-free.  lock, taken: as long as a section, which must be short and
 *           never wait; a system call for an interruption, at most once in NEED sections.
 *           enter_fixed: as long as a thief's section.  steal_begin never waits long: false when
 *           another thief is there, or the owner stays inside, perhaps preempted.
 * Fallback  without membarrier no thread becomes an owner; a fixed one fences for itself.
 *
 *            enter  lock  steal    .  together, no help needed
 *   enter      .     L      L      L  interruption or theft makes them exclude each other
 *   lock       L     L      -      -  a lock has a fixed owner or none
 *   steal      L     -      L
 */
#ifndef WEFT_OWNER_LOCK_H
#define WEFT_OWNER_LOCK_H

#include "base/assert.h"
#include "base/backoff.h"
#include "base/base.h"
#include "base/membarrier.h"

struct weft_owner_lock {
	_Atomic uint32_t x_owner; /* L writes, the owner reads: 4 * its id, and its state */
	_Atomic uint8_t x_held;   /* any thread */
	_Atomic uint8_t x_inside; /* the owner writes */
	uint16_t alone;           /* L: sections of the candidate in a row */
};
_Static_assert(sizeof(struct weft_owner_lock) == 8,
	       "a bucket of the matching table has room for it");

enum {
	WEFT_OWNER_CANDIDATE = 0,
	WEFT_OWNER_OWNS = 1,
	WEFT_OWNER_INTERRUPTED = 2,
	WEFT_OWNER_STATES = 3,
};

/* Each section as the owner saves some 5 ns, an interruption costs some 2 us. */
#define WEFT_OWNER_NEED 1024u
extern uint16_t weft_wait_owner_need; /* tests lower it, before they start threads */

/* The caller's word in x_owner when it owns a lock; NO_ID until it has one. */
extern _Thread_local uint32_t weft_wait_owner_self;
#define WEFT_OWNER_NOBODY (UINT32_MAX - 2) /* as OWNS it is in no lock */
#define WEFT_OWNER_FIXED (UINT32_MAX - 6)  /* the same for every fixed owner */

#ifndef WEFT_OWNER_SELF /* a model's threads are coroutines of one */
#define WEFT_OWNER_SELF weft_wait_owner_self
#endif

/* Gives the caller an id, if it has none.  False: without membarrier there is none. */
bool weft_wait_owner_identify(void);

static inline void weft_wait_owner_init(struct weft_owner_lock *l, uint32_t owner)
{
	atomic_store_explicit(&l->x_owner, owner, memory_order_relaxed);
	atomic_store_explicit(&l->x_held, 0, memory_order_relaxed);
	atomic_store_explicit(&l->x_inside, 0, memory_order_relaxed);
	l->alone = 0;
}

/* For weft_assert_held: a thread is inside. */
static inline bool weft_wait_owner_held(const struct weft_owner_lock *l)
{
	/* Relaxed, both: asked by the thread that is inside. */
	return atomic_load_explicit(&l->x_held, memory_order_relaxed) ||
	       atomic_load_explicit(&l->x_inside, memory_order_relaxed);
}

/* ---- the owner ------------------------------------------------------------------------------- */

/* True: the caller is inside as the owner, until leave. */
static inline bool weft_wait_owner_enter(struct weft_owner_lock *l)
{
	uint32_t me = WEFT_OWNER_SELF;
	/* Relaxed: the second look decides. */
	if (atomic_load_explicit(&l->x_owner, memory_order_relaxed) != me)
		return false;
	/* IN -> ASK (interrupt).  Relaxed, both: the asker's membarrier orders them. */
	atomic_store_explicit(&l->x_inside, 1, memory_order_relaxed);
	weft_compiler_barrier();
	if (weft_likely(atomic_load_explicit(&l->x_owner, memory_order_relaxed) == me))
		return true;
	atomic_store_explicit(&l->x_inside, 0, memory_order_relaxed);
	return false;
}

static inline void weft_wait_owner_leave(struct weft_owner_lock *l)
{
	weft_assert(atomic_load_explicit(&l->x_inside, memory_order_relaxed));
	/* OUT -> ASK (interrupt, steal_begin).  Carries: what was written inside.  Without it, the
	 * next thread inside could go on with what was there before. */
	atomic_store_explicit(&l->x_inside, 0, memory_order_release);
}

/* ---- any thread ------------------------------------------------------------------------------ */

/* Another thread is the owner: until it is outside, and no owner any more.  The lock is held. */
void weft_wait_owner_interrupt(struct weft_owner_lock *l);
/* The caller has been alone often enough: makes it the owner, if there can be one. */
void weft_wait_owner_claim(struct weft_owner_lock *l, uint32_t me);
/* Waits until it has taken held. */
void weft_wait_owner_lock_slow(struct weft_owner_lock *l);

/* The caller holds the lock; from here on it is alone. */
static inline void weft_wait_owner_taken(struct weft_owner_lock *l)
{
	uint32_t me = WEFT_OWNER_SELF, candidate = me - WEFT_OWNER_OWNS;
	/* Relaxed: written under the lock. */
	uint32_t owner = atomic_load_explicit(&l->x_owner, memory_order_relaxed);
	weft_assert(owner != WEFT_OWNER_FIXED); /* that one has thieves, no other holders */
	if (owner == candidate) {
		if (weft_unlikely(++l->alone >= weft_wait_owner_need))
			weft_wait_owner_claim(l, me);
	} else if (!(owner & WEFT_OWNER_STATES) || owner == candidate + WEFT_OWNER_INTERRUPTED) {
		/* Relaxed: compared under the lock only.  An interrupted owner is here, so it is
		 * not in enter(). */
		atomic_store_explicit(&l->x_owner, candidate, memory_order_relaxed);
		l->alone = 0;
	} else if (owner & WEFT_OWNER_OWNS && owner != me) {
		weft_wait_owner_interrupt(l);
	}
}

static inline void weft_wait_owner_lock(struct weft_owner_lock *l)
{
	/* TAKE <- GIVE (unlock).  Carries: everything the lock protects. */
	if (weft_unlikely(atomic_exchange_explicit(&l->x_held, 1, memory_order_acquire)))
		weft_wait_owner_lock_slow(l);
	weft_wait_owner_taken(l);
}

static inline void weft_wait_owner_unlock(struct weft_owner_lock *l)
{
	weft_assert(atomic_load_explicit(&l->x_held, memory_order_relaxed));
	/* GIVE -> TAKE.  Carries: everything the lock protects. */
	atomic_store_explicit(&l->x_held, 0, memory_order_release);
}

enum weft_owner_how { WEFT_OWNER_BUSY, WEFT_OWNER_BY_LOCK, WEFT_OWNER_BY_STORES };

/* Inside, as the owner or by the lock. */
static inline enum weft_owner_how weft_wait_owner_in(struct weft_owner_lock *l)
{
	if (weft_likely(weft_wait_owner_enter(l)))
		return WEFT_OWNER_BY_STORES;
	weft_wait_owner_lock(l);
	return WEFT_OWNER_BY_LOCK;
}

/* The same, or BUSY: a thread holds the lock. */
static inline enum weft_owner_how weft_wait_owner_try(struct weft_owner_lock *l)
{
	if (weft_likely(weft_wait_owner_enter(l)))
		return WEFT_OWNER_BY_STORES;
	/* Relaxed: a hint that saves the exchange; TAKE <- GIVE. */
	if (atomic_load_explicit(&l->x_held, memory_order_relaxed) ||
	    atomic_exchange_explicit(&l->x_held, 1, memory_order_acquire))
		return WEFT_OWNER_BUSY;
	weft_wait_owner_taken(l);
	return WEFT_OWNER_BY_LOCK;
}

static inline void weft_wait_owner_out(struct weft_owner_lock *l, enum weft_owner_how how)
{
	if (weft_unlikely(how == WEFT_OWNER_BY_LOCK))
		weft_wait_owner_unlock(l);
	else
		weft_wait_owner_leave(l);
}

/* ---- a fixed owner and its thieves ----------------------------------------------------------- */

#ifndef WEFT_OWNER_LOOKS
#define WEFT_OWNER_LOOKS 200 /* at an owner inside, before a thief gives up */
#endif

/* Until a thief has given the ownership back. */
void weft_wait_owner_enter_slow(struct weft_owner_lock *l);

/* The owner is inside until leave.  fence: there is no membarrier. */
static inline void weft_wait_owner_enter_fixed(struct weft_owner_lock *l, bool fence)
{
	for (;;) { /* ends: no thief */
		if (weft_unlikely(fence)) {
			/* IN -> ASK (steal_begin).  seq_cst: comes before the look below. */
			atomic_exchange_explicit(&l->x_inside, 1, memory_order_seq_cst);
		} else {
			/* IN -> ASK.  Relaxed: the thief's membarrier orders it before the look. */
			atomic_store_explicit(&l->x_inside, 1, memory_order_relaxed);
			weft_compiler_barrier();
		}
		/* MINE <- BACK (steal_end).  Carries: what the thief took out.  Without it, the
		 * owner could run a thread that the thief has taken. */
		if (weft_likely(atomic_load_explicit(&l->x_owner, memory_order_seq_cst) ==
				WEFT_OWNER_FIXED))
			return;
		atomic_store_explicit(&l->x_inside, 0, memory_order_release);
		weft_wait_owner_enter_slow(l);
	}
}

static inline void weft_wait_owner_steal_end(struct weft_owner_lock *l)
{
	weft_assert(atomic_load_explicit(&l->x_held, memory_order_relaxed));
	/* BACK -> MINE (enter_fixed).  Carries: what the thief took out. */
	atomic_store_explicit(&l->x_owner, WEFT_OWNER_FIXED, memory_order_release);
	weft_wait_owner_unlock(l);
}

/* True: the caller is inside until steal_end. */
static inline bool weft_wait_owner_steal_begin(struct weft_owner_lock *l, bool fence)
{
	/* Relaxed: a hint; TAKE <- GIVE of another thief. */
	if (atomic_load_explicit(&l->x_held, memory_order_relaxed) ||
	    atomic_exchange_explicit(&l->x_held, 1, memory_order_acquire))
		return false;
	/* ASK <- IN (enter_fixed), by the membarrier.  seq_cst: for an owner that fences. */
	atomic_store_explicit(&l->x_owner,
			      WEFT_OWNER_FIXED - WEFT_OWNER_OWNS + WEFT_OWNER_INTERRUPTED,
			      memory_order_seq_cst);
	if (!fence)
		weft_membarrier_private();
	for (int i = 0; i < WEFT_OWNER_LOOKS; i++) { /* ends: as counted */
		/* ASK <- OUT (leave). */
		if (!atomic_load_explicit(&l->x_inside, memory_order_seq_cst))
			return true;
		weft_cpu_relax();
	}
	weft_wait_owner_steal_end(l);
	return false;
}

#endif
