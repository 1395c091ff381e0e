/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * park.h - puts the caller to sleep until a thread that knows its parker wakes it.
 *
 * Callers   park, sleep_*: the parker's own thread.  unpark: any thread, task handlers included.
 * Owner     parkers belong to this layer and their memory is never returned: an unpark that comes
 *           after its thread has ended touches a parker, perhaps another thread's, and is then one
 *           wake-up too many, which every caller of park must bear anyway.
 * Order     what was written before unpark() is visible after the park() that it ended.
 * Progress  unpark: one exchange, and a system call when the owner sleeps.  A wake-up is never
 *           lost: one that comes early makes the next park return at once.
 *
 *   EMPTY --park--> PARKED --unpark--> NOTIFIED --park returns--> EMPTY
 *   EMPTY --weft_wait_parker_sleep_begin--> ELSEWHERE --unpark--> NOTIFIED (and the hook is called)
 */
#ifndef WEFT_PARK_H
#define WEFT_PARK_H

#include "base/assert.h"
#include "base/base.h"

enum {
	WEFT_PARKER_EMPTY = 0,
	WEFT_PARKER_NOTIFIED = 1,
	WEFT_PARKER_PARKED = 2, /* asleep in its back-end (futex, or a parked user-level thread) */
	WEFT_PARKER_ELSEWHERE = 3, /* asleep where only the engine's hook can reach it */
};

struct weft_parker;
struct weft_wait_note;

/* How a kind of thread sleeps and is woken; plain threads have the futex table. */
struct weft_parker_ops {
	const char *name;
	/* Sleeps while *word is PARKED, or until deadline_ns of the clock (WEFT_NEVER: no
	 * deadline); may return early. */
	void (*sleep)(struct weft_parker *p, uint64_t deadline_ns);
	void (*wake)(struct weft_parker *p);
	/* Instead of sleep: all of weft_wait_park(), for a thread that may be called PARKED only after
	 * it has left its stack; else NULL. */
	bool (*park)(struct weft_parker *p, uint64_t deadline_ns);
	/* Instead of wake: all of weft_wait_unpark(); the word's other bits are then the back-end's. */
	void (*unpark)(struct weft_parker *p);
	/* Lets other threads of this kind run.  NULL: sched_yield. */
	void (*yield)(void);
};

struct weft_parker {
	_Atomic uint32_t x_word;           /* O: parks; any thread: notifies */
	int cpu;                           /* O: where it last went to sleep */
	const struct weft_parker_ops *ops; /* I */
	void *ops_arg;                     /* I: the back-end's */
	struct weft_wait_note *note;       /* O: what its wait is for; NULL: it does not say */
};

/* The calling thread's parker; NULL when memory is gone (then do not sleep, poll). */
struct weft_parker *weft_wait_parker_self(void);

/* A plain thread's, not one that a back-end has embedded? */
bool weft_wait_parker_is_thread(const struct weft_parker *p);

/* Lets user-level threads answer weft_wait_parker_self(); the hook returns NULL for plain threads. */
void weft_wait_parker_set_self_hook(struct weft_parker *(*hook)(void));

/* What wakes a parker in state ELSEWHERE: set once, by the engine. */
void weft_wait_parker_set_elsewhere_hook(void (*hook)(struct weft_parker *));

/* Is it a thread that blocks beside the kernel's: its waits leave polling to others? */
static inline bool weft_wait_parker_is_light(const struct weft_parker *p)
{
	return p && p->ops->park;
}

/* Prepares a parker that a back-end embeds in its own never-freed memory. */
static inline void weft_wait_parker_init(struct weft_parker *p, const struct weft_parker_ops *ops,
					 void *arg)
{
	/* Relaxed: handed over by other means. */
	atomic_store_explicit(&p->x_word, WEFT_PARKER_EMPTY, memory_order_relaxed);
	p->cpu = -1;
	p->ops = ops;
	p->ops_arg = arg;
	p->note = NULL;
}

/* Sleeps until notified or until deadline_ns.  False: the deadline passed. */
bool weft_wait_park(struct weft_parker *p, uint64_t deadline_ns);

void weft_wait_unpark(struct weft_parker *p);

/* The caller, whose parker it is, lets other threads of its kind run; it stays ready. */
void weft_wait_yield(const struct weft_parker *p);

/*
 * For a thread that will sleep elsewhere: false: it was notified already, do not sleep.  After true
 * an unpark calls the hook; always pair with _end, which consumes the notification.
 */
static inline bool weft_wait_parker_sleep_begin(struct weft_parker *p)
{
	uint32_t empty = WEFT_PARKER_EMPTY;
	/* SLEEP -> CALL (unpark).  Relaxed would do for the word itself; acquire on failure carries
	 * what the notifier wrote. */
	return atomic_compare_exchange_strong_explicit(&p->x_word, &empty, WEFT_PARKER_ELSEWHERE,
						       memory_order_acq_rel, memory_order_acquire);
}

static inline void weft_wait_parker_sleep_end(struct weft_parker *p)
{
	/* Acquire: see what the notifier wrote. */
	uint32_t old =
		atomic_exchange_explicit(&p->x_word, WEFT_PARKER_EMPTY, memory_order_acq_rel);
	weft_assert(old == WEFT_PARKER_ELSEWHERE || old == WEFT_PARKER_NOTIFIED);
	(void)old;
}

/*
 * Before the caller enlists for something new: a notification that is there by now was for a wait
 * that is over: a thread that is woken while it runs does not park.  Kept, it would end the next
 * sleep for nothing.
 */
static inline void weft_wait_parker_forget(struct weft_parker *p)
{
	/* Relaxed: owner's look; most often there is none. */
	if (weft_unlikely(atomic_load_explicit(&p->x_word, memory_order_relaxed) &
			  WEFT_PARKER_NOTIFIED))
		/* Acquire: whatever the notifier published before, the caller sees when it looks
		 * once more before it sleeps. */
		(void)atomic_fetch_and_explicit(&p->x_word, ~(uint32_t)WEFT_PARKER_NOTIFIED,
						memory_order_acq_rel);
}

static inline bool weft_wait_parker_notified(const struct weft_parker *p)
{
	/* PARK <- WAKE (unpark).  Carries: what the notifier wrote. */
	return atomic_load_explicit(&p->x_word, memory_order_acquire) == WEFT_PARKER_NOTIFIED;
}

#endif
