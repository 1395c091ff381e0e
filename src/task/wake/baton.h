/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * baton.h - which thread polls, which sleeps, and which must be woken: the words behind the progress
 * contract.
 *
 * One thread at a time holds the baton.  It polls, or sleeps in the watch set (epoll) itself.  The
 * watcher is where x_watcher says (watcher_table.h).  x_level says for what every source rings
 * (base/arm_level.h): the holder sets and clears it, and a thread that a ring has woken clears it,
 * since a bell rings but once.
 *
 * Callers   take, arm, leave, sleep, wake: threads that wait, and the watcher when it arms.
 *           sit_*: the watcher.  submit_target: a thread that has published work.  want: any thread.
 * Owner     `owed` belongs to the holder; x_watcher is written by the watcher only.
 * Promise   vacant and OFF: the watcher ticks, or is kicked by the thread that left it so, perhaps
 *           a moment later (kick_timer.h).
 *           vacant and armed: the watcher is in the watch set, or is kicked by the thread that left
 *           it so.
 *           holder asleep: armed for ALL, and it looked once more after it said so.
 *           watcher off: a thread that leaves passes the baton to a parked waiter.
 *           vacant and armed for replies: nothing more is wanted, or the watcher has been kicked.
 * Checked   test/task/test_model_baton.c, test_model_want.c, test_model_wake.c.
 */
#ifndef WEFT_BATON_H
#define WEFT_BATON_H

#include "base/arm_level.h"
#include "base/assert.h"
#include "base/base.h"

enum weft_baton_state {
	WEFT_BATON_VACANT = 0,
	WEFT_BATON_HELD = 1,   /* its holder polls */
	WEFT_BATON_ASLEEP = 2, /* its holder sleeps in the watch set */
};

enum weft_watcher_pos {
	WEFT_WATCHER_OFF = 0,   /* progress is off, or there is no watcher */
	WEFT_WATCHER_TICKS = 1, /* looks every T whether a thread polls */
	WEFT_WATCHER_UNDER = 2, /* in the watch set, until an arrival or a kick */
	WEFT_WATCHER_BESIDE =
		3, /* asleep on its own word while the holder sleeps in the watch set */
};

enum weft_kick {
	WEFT_KICK_NONE,
	WEFT_KICK_SET,     /* write the kick descriptor of the watch set */
	WEFT_KICK_WATCHER, /* wake the watcher's own word */
	WEFT_KICK_PARKED,  /* wake one parked waiter: no other thread will poll */
};

struct weft_baton {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_state; /* takers, holder */
	_Atomic uint32_t x_watcher;                       /* watcher */
	_Atomic uint32_t x_parked;                        /* waiters: how many are parked */
	_Atomic uint32_t x_level; /* weft_arm_level of all sources; H sets, H and the woken clear */
	_Atomic bool x_ears;      /* a thread waits that x_state and x_parked do not show; stays */
	_Atomic int x_wanted;     /* operations whose end is wanted at once */
	_Atomic bool x_outside;   /* a foreign event loop sleeps on our descriptor, see outside.c */
	bool owed;                /* H: the watcher sits beside and must be moved when we leave */
	bool fence;               /* I: no membarrier here, leave() must fence for itself */
};

static inline bool weft_task_baton_try_take(struct weft_baton *b)
{
	uint32_t seen = atomic_load_explicit(&b->x_state, memory_order_relaxed);
	/* BTAKE <- BGIVE (leave).  Carries: x_level and owed, and what the last holder polled.
	 * Without it a holder could believe the sources armed that are not. */
	return seen == WEFT_BATON_VACANT &&
	       atomic_compare_exchange_strong_explicit(&b->x_state, &seen, WEFT_BATON_HELD,
						       memory_order_acquire, memory_order_relaxed);
}

/*
 * Does a thread wait while the baton is vacant?  Then all that comes must ring; else what needs no
 * answer from us may lie until the next look.  seq_cst, both: of a thread that will park, or has
 * just come to wait otherwise, and a leaver that has armed for replies: the leaver sees the waiter,
 * and kicks, or the waiter sees the baton vacant (weft_task_baton_park), or kicks by itself
 * (weft_task_engine_ears).
 */
static __attribute__((noinline, unused)) bool weft_task_baton_heard(struct weft_baton *b)
{
	return atomic_load_explicit(&b->x_parked, memory_order_seq_cst) ||
	       atomic_load_explicit(&b->x_ears, memory_order_seq_cst) ||
	       atomic_load_explicit(&b->x_wanted, memory_order_seq_cst) > 0;
}

/* The holder is about to bring every source to that level. */
static inline void weft_task_baton_arm(struct weft_baton *b, enum weft_arm_level level)
{
	weft_assert(level <= WEFT_ARM_ALL);
	weft_assert(atomic_load_explicit(&b->x_state, memory_order_relaxed) == WEFT_BATON_HELD);
	/* LEVEL -> WANT.  seq_cst: before our look at x_wanted when we leave.  Said before the
	 * first bell is armed: one that rings from now on takes it back. */
	atomic_store_explicit(&b->x_level, level, memory_order_seq_cst);
}

/* A bell has rung and woken the caller: that bell is armed no more, the other sources are. */
static inline void weft_task_baton_rang(struct weft_baton *b)
{
	/* Seq_cst: after the caller has marked the slot, see RANG in kick.c. */
	atomic_store_explicit(&b->x_level, WEFT_ARM_OFF, memory_order_seq_cst);
}

/* Armed for less than is wanted. */
static inline bool weft_task_baton_unheard(struct weft_baton *b)
{
	/* Relaxed: the holder's, or set before the kick that has woken us. */
	return weft_arm_is_for_replies((enum weft_arm_level)atomic_load_explicit(
		       &b->x_level, memory_order_relaxed)) &&
	       weft_task_baton_heard(b);
}

/*
 * n more (less) operations whose end is wanted at once, though no thread waits.  Before anything
 * may end them.  True: the bells are armed for less: the caller arms, or calls the watcher.
 */
static inline bool weft_task_baton_want(struct weft_baton *b, int n)
{
	/* WANT -> heard.  seq_cst, both: of us and a thread that arms for replies and leaves: it counts us
	 * then and kicks, or we see it armed.  Without it the end would not ring. */
	int was = atomic_fetch_add_explicit(&b->x_wanted, n, memory_order_seq_cst);
	weft_assert(was + n >= 0); /* none is taken back that was not given */
	if (n <= 0 || was > 0)
		return false;
	/* WANT <- LEVEL. */
	return weft_arm_is_for_replies(
		(enum weft_arm_level)atomic_load_explicit(&b->x_level, memory_order_seq_cst));
}

/*
 * Gives the baton back and says which thread to kick for it.
 *
 * The quick way: a plain release store, then a look at the watcher.  Only a watcher that goes off
 * can be missed by that look, and it runs a membarrier between saying so and trying to take the
 * baton; then either we see it off, or it finds the baton vacant.
 * The careful way, after a sleep (armed) or with the watcher off: an exchange, which comes before
 * our look at x_parked and before the caller's look at the task queues.
 */
static inline enum weft_kick weft_task_baton_leave(struct weft_baton *b)
{
	/* Relaxed: cleared behind our back only by a thread that is awake, and then arms again. */
	enum weft_arm_level level =
		(enum weft_arm_level)atomic_load_explicit(&b->x_level, memory_order_relaxed);
	bool armed = level != WEFT_ARM_OFF, owed = b->owed, careful = false;
	b->owed = false;
	uint32_t watcher = atomic_load_explicit(&b->x_watcher, memory_order_relaxed);
	if (weft_unlikely(armed || watcher == WEFT_WATCHER_OFF || b->fence)) {
		/* BGIVE -> BTAKE; seq_cst: comes before the caller's look at the queues. */
		careful = true;
		uint32_t was = atomic_exchange_explicit(&b->x_state, WEFT_BATON_VACANT,
							memory_order_seq_cst);
		weft_assert(was == WEFT_BATON_HELD);
		(void)was;
	} else {
		/* BGIVE -> BTAKE. */
		atomic_store_explicit(&b->x_state, WEFT_BATON_VACANT, memory_order_release);
		weft_compiler_barrier(); /* the watcher's membarrier does the rest */
	}
	watcher = atomic_load_explicit(&b->x_watcher, memory_order_seq_cst);
	if (weft_unlikely(watcher == WEFT_WATCHER_OFF)) {
		/* GONE -> PARK.  A read-modify-write, not a load: a parker either counted itself
		 * before and we see it, or comes after us here and then sees the baton vacant. With
		 * a load the plain store above could still be on its way; after the exchange a load
		 * will do. */
		if (careful ? atomic_load_explicit(&b->x_parked, memory_order_seq_cst)
			    : atomic_fetch_add_explicit(&b->x_parked, 0, memory_order_seq_cst))
			return WEFT_KICK_PARKED;
		/* GONE -> OUTSIDE (arm): it finds the baton vacant, or we find it armed. */
		if (!armed && atomic_load_explicit(&b->x_outside, memory_order_seq_cst))
			return WEFT_KICK_SET;
		return WEFT_KICK_NONE;
	}
	if (weft_unlikely(owed))
		return WEFT_KICK_WATCHER;
	if (weft_unlikely(watcher == WEFT_WATCHER_UNDER &&
			  (!armed || (weft_arm_is_for_replies(level) && weft_task_baton_heard(b)))))
		return WEFT_KICK_SET;
	return WEFT_KICK_NONE;
}

/* A waiter will park.  False: the baton is vacant, take it instead; then call _unpark. */
static inline bool weft_task_baton_park(struct weft_baton *b)
{
	/* PARK -> GONE (leave).  seq_cst, both: either the leaver counts us or we see it gone.
	 * Without it both could miss, and with the watcher off no thread would poll for us. */
	atomic_fetch_add_explicit(&b->x_parked, 1, memory_order_seq_cst);
	return atomic_load_explicit(&b->x_state, memory_order_seq_cst) != WEFT_BATON_VACANT;
}

static inline void weft_task_baton_unpark(struct weft_baton *b)
{
	/* Relaxed: too high a count for a moment costs a superfluous wake-up. */
	uint32_t was = atomic_fetch_sub_explicit(&b->x_parked, 1, memory_order_relaxed);
	weft_assert(was > 0);
	(void)was;
}

/* The holder goes to sleep in the watch set; after this it must look at everything once more. */
static inline void weft_task_baton_sleep(struct weft_baton *b)
{
	b->owed = false;
	/* DOZE -> SUBMIT (submit_target) and -> BESIDE.  seq_cst: comes before the last look, so a
	 * submitter either is seen by that look or sees us asleep and kicks. */
	uint32_t was =
		atomic_exchange_explicit(&b->x_state, WEFT_BATON_ASLEEP, memory_order_seq_cst);
	weft_assert(was == WEFT_BATON_HELD);
	(void)was;
}

/* It woke up and polls again. */
static inline void weft_task_baton_wake(struct weft_baton *b)
{
	/* WOKE -> BESIDE (sit_beside).  seq_cst: either the watcher sees us awake and does not sit
	 * down, or we see it sitting and move it when we leave.  Without it: armed, vacant, and
	 * no thread in the watch set. */
	uint32_t was = atomic_exchange_explicit(&b->x_state, WEFT_BATON_HELD, memory_order_seq_cst);
	weft_assert(was == WEFT_BATON_ASLEEP);
	(void)was;
	b->owed = atomic_load_explicit(&b->x_watcher, memory_order_seq_cst) == WEFT_WATCHER_BESIDE;
}

/* The watcher says where it is. */
static inline void weft_task_watcher_sit(struct weft_baton *b, enum weft_watcher_pos pos)
{
	weft_assert(pos <= WEFT_WATCHER_UNDER); /* BESIDE is asked for, not said */
	/* SIT -> SUBMIT, GONE.  seq_cst: comes before the watcher's last look. */
	atomic_exchange_explicit(&b->x_watcher, pos, memory_order_seq_cst);
}

/* True: the watcher may sleep on its own word until it is kicked. */
static inline bool weft_task_watcher_sit_beside(struct weft_baton *b)
{
	/* BESIDE <- WOKE, see there. */
	atomic_exchange_explicit(&b->x_watcher, WEFT_WATCHER_BESIDE, memory_order_seq_cst);
	return atomic_load_explicit(&b->x_state, memory_order_seq_cst) == WEFT_BATON_ASLEEP;
}

/* Work was published with a seq_cst exchange: which thread must be told? */
static inline enum weft_kick weft_task_baton_submit_target(struct weft_baton *b)
{
	/* SUBMIT <- DOZE, SIT. */
	uint32_t state = atomic_load_explicit(&b->x_state, memory_order_seq_cst);
	if (weft_likely(state == WEFT_BATON_HELD))
		return WEFT_KICK_NONE;
	if (state == WEFT_BATON_ASLEEP)
		return WEFT_KICK_SET;
	switch (atomic_load_explicit(&b->x_watcher, memory_order_seq_cst)) {
	case WEFT_WATCHER_UNDER:
		return WEFT_KICK_SET;
	case WEFT_WATCHER_TICKS:
	case WEFT_WATCHER_BESIDE:
		return WEFT_KICK_WATCHER;
	default:
		/* Off: the next call into the library runs it.  SUBMIT <- OUTSIDE. */
		return atomic_load_explicit(&b->x_outside, memory_order_seq_cst) ? WEFT_KICK_SET
										 : WEFT_KICK_NONE;
	}
}

/* Any thread, at any moment: what is always so. */
static inline void weft_task_baton_check(const struct weft_baton *b)
{
	/* Relaxed, all: each word by itself. */
	weft_assert(atomic_load_explicit(&b->x_state, memory_order_relaxed) <= WEFT_BATON_ASLEEP);
	weft_assert(atomic_load_explicit(&b->x_watcher, memory_order_relaxed) <=
		    WEFT_WATCHER_BESIDE);
	weft_assert(atomic_load_explicit(&b->x_level, memory_order_relaxed) <= WEFT_ARM_ALL);
	weft_assert(atomic_load_explicit(&b->x_parked, memory_order_relaxed) < UINT32_MAX / 2);
}

/* The caller holds it, and polls. */
static inline void weft_task_baton_check_held(const struct weft_baton *b)
{
	/* Relaxed: the caller's own word. */
	weft_assert(atomic_load_explicit(&b->x_state, memory_order_relaxed) == WEFT_BATON_HELD);
}

#endif
