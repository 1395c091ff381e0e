/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ult_int.h - threads, workers and carriers, and what the files of ult/ ask of each other.
 *
 * thread.c create, join, end | switch.h, sched.c what runs next | park.c | worker.c idle, stealing
 * | pool.c descriptors with their stacks | stack.c memory of stacks | timer.c deadlines |
 * fault.c overflow | deep.c calls that need more stack | carrier.c calls that block the kernel thread
 * | trace.c records of what happens to threads
 *
 * A thread has a home: the worker in whose vector its bit is.  A worker is a queue; a carrier is
 * the kernel thread that runs it.  Letters: I at init; R the worker that runs the thread; L under
 * the worker's lock; W the worker's carrier.
 *
 * The life of a thread, in the word of its parker (wait/park.h, life.h):
 *
 *   EMPTY         it runs, or is ready
 *   NOTIFIED      the same, and the park of its next wait returns at once
 *   PARKED        in a wait, and not called since
 *   WAITS_TOKEN   in weft_ult_park, and not called since
 *   TOKEN         beside the first three: its next weft_ult_park returns at once
 *
 *   -> PARKED, WAITS_TOKEN        by itself, inside its home's lock, which the next to run leaves
 *                                 after its context is stored; or, when it runs on another worker,
 *                                 by the next to run there (finish)
 *   PARKED -> EMPTY               unpark, which makes it ready: sets its bit
 *   WAITS_TOKEN -> EMPTY          weft_ult_unpark, the same
 *   else | NOTIFIED, | TOKEN      unpark, weft_ult_unpark
 *   & ~NOTIFIED, & ~TOKEN         by itself, when park returns
 *
 * Its bit is set by one at a time, and taken out inside its home's lock: not before its context is
 * stored.  A thread that was taken out may be run anywhere.
 */
#ifndef WEFT_ULT_INT_H
#define WEFT_ULT_INT_H

#include <pthread.h>
#include <sys/uio.h>
#include <weft/ult.h>
#include "base/assert.h"
#include "base/base.h"
#include "base/trace.h"
#include "ult/sched/ctx.h"
#include "wait/owner_lock.h"
#include "ult/sched/life.h"
#include "ult/sched/ready.h"
#include "ult/stack/san.h"
#include "ult/ult.h"
#include "wait/park.h"
#include "wait/stack.h"

#define WEFT_ULT_CLASSES 12 /* of stacks: 4 KiB << class */
#define WEFT_ULT_GUARD 4096u
#define WEFT_ULT_NAME 16
#define WEFT_ULT_WORKERS_MAX 256
#define WEFT_ULT_COLD 64         /* ranges of stacks whose memory is given back at a time */
#define WEFT_ULT_COLD_STACKS 128 /* stacks in them */

enum {
	WEFT_ULT_PINNED = 1,   /* runs at home only */
	WEFT_ULT_URGENT = 2,   /* its priority is above 0 */
	WEFT_ULT_ALIVE = 4,    /* between create and end */
	WEFT_ULT_DETACHED = 8, /* created so */
	WEFT_ULT_CANARY = 16,  /* no guard below its stack, but a word */
};

struct weft_ult {
	alignas(WEFT_CACHELINE) struct weft_parker parker; /* any thread */
	void *sp;                                          /* R: where its context lies */
	struct weft_ult_worker *home;                      /* I */
	uint32_t slot;                                     /* I */
	int err;                                           /* R: its errno while it does not run */
	uint8_t class;                                     /* I */
	bool missed;             /* R: it was called before it was parked */
	_Atomic uint8_t x_flags; /* its creator, then itself; thieves and reports read */

	alignas(WEFT_CACHELINE) void *(*fn)(void *); /* R */
	void *arg;                                   /* R: then the result */
	_Atomic uintptr_t x_join;                    /* life.h */
	struct weft_ult *next;                       /* the owner of the list it is in */
	void **keys;                                 /* R */
	void *cxx[2];                                /* R: the C++ runtime's exceptions in flight */
	char *stack;                                 /* I: lowest byte */

	/* From here to `go`: what it is first resumed from (ctx.h), with others between. */
	alignas(WEFT_CACHELINE)
#ifdef WEFT_CTX_FIRST
		struct weft_ctx_first first; /* its creator */
#endif
	char name[WEFT_ULT_NAME];        /* I */
	const char *_Atomic x_waits_for; /* R: what kind of thing, for reports */
	const void *_Atomic x_waits_on;  /* R: which one */
	struct weft_ult *deep;           /* R: whose stack a call of its runs on, see deep.c */
#ifdef WEFT_CTX_FIRST
	void (*go)(void); /* its creator */
#endif
#ifdef WEFT_TSAN
	void *fiber; /* R: the sanitizer's */
#endif
};
#ifdef WEFT_CTX_FIRST
_Static_assert(offsetof(struct weft_ult, go) == offsetof(struct weft_ult, first) + 56, "a frame");
#endif

enum {
	WEFT_ULT_IDLE_NOT = 0,
	WEFT_ULT_IDLE_LOOKS = 1,  /* it spins and will see what was made ready */
	WEFT_ULT_IDLE_SLEEPS = 2, /* its carrier's parker must be notified */
};

struct weft_ult_list {
	struct weft_ult *first, *last;
};

/* Stacks that have never been used. */
struct weft_ult_slab {
	char *at;
	unsigned left;
	char *region;                     /* the next slab, not guarded yet */
	size_t region_slabs, region_left; /* of its region: all, not cut yet */
};

/* What happens to the thread that was left, once its context is stored. */
enum weft_ult_after {
	WEFT_ULT_AFTER_NONE,  /* it did that itself, inside the lock */
	WEFT_ULT_AFTER_READY, /* it yielded on a worker that is not its home */
	WEFT_ULT_AFTER_PARK,  /* the same */
	WEFT_ULT_AFTER_TOKEN, /* the same, in weft_ult_park */
	WEFT_ULT_AFTER_END,
	WEFT_ULT_AFTER_END_CALLED, /* its joiner was called already */
};

struct weft_ult_timer {
	uint64_t deadline_ns;
	struct weft_ult *thread;
	bool won; /* under the lock: it was the clock that called the thread */
	struct weft_ult_timer *child, *sibling, *parent; /* under the heap's lock */
	bool in_heap;                                    /* under the lock */
};

/* A kernel thread that runs a worker, or one thread that blocks it, or waits for work. */
struct weft_ult_carrier {
	_Atomic(struct weft_parker *) x_parker;     /* O: once it runs */
	struct weft_parker *parker;                 /* O: the same */
	struct weft_ult_carrier *next_all;          /* under carrier.c's lock */
	_Atomic(struct weft_ult_worker *) x_worker; /* which it runs; set by its caller */
	struct weft_ult *blocking;                  /* O: between blocking_begin and _end */
	struct weft_ult_carrier *next;              /* spare list */
	void *sp;                                   /* O: its own context while that thread runs */
	int *errno_p;                               /* I */
	void **cxx_p;                               /* I: the C++ runtime's, NULL without */
	void *fiber;                                /* I: the sanitizer's */
	void *fake;                                 /* O: the sanitizer's */
	const void *stack;                          /* I */
	size_t stack_size;                          /* I */
	void *signal_stack;                         /* I */
	pthread_t thread;
};

struct weft_ult_worker {
	/* What each switch touches. */
	alignas(WEFT_CACHELINE) struct weft_ult *current; /* W: NULL on the carrier's own stack */
	enum weft_ult_after after;                        /* W */
	uint32_t ticks;                                   /* W: switches until others are polled */
	struct weft_ult *prev;                            /* W: the thread that was left */
	void *home_sp;                    /* W: the carrier's own context while a thread runs */
	int *errno_p;                     /* W: the carrier's */
	void **cxx_p;                     /* W: the same for C++; NULL without */
	struct weft_ult_carrier *carrier; /* W */
	struct weft_owner_lock
		lock;      /* held across each switch: the thread that runs next leaves it */
	bool fence;        /* I: no membarrier: the worker fences when it enters */
	uint32_t at;       /* L: the slot that ran last: the scan goes on behind it */
	uint32_t steal_at; /* L: the word where thieves go on looking */
	_Atomic uint32_t x_listed;   /* L: how many are in these two; others read it as a hint */
	struct weft_ult_list first;  /* L: ready and urgent */
	struct weft_ult_list stolen; /* L: of other homes, taken here for a turn */
	uint32_t firsts;             /* L: urgent ones in a row */
	_Atomic uint64_t x_switches; /* W: read by thieves */
	bool on_own_stack;           /* W: a thread's call runs on the carrier's stack */
	bool tick_due;               /* W: a thread came home to let messages be looked at */
	uint32_t depth;              /* W: how deep on its stack a thread waited not long ago */

	struct weft_ready ready;

	alignas(WEFT_CACHELINE) _Atomic uint32_t x_idle; /* W sets; wakers clear: WEFT_ULT_IDLE_ */
	_Atomic(struct weft_ult *) x_first;              /* any thread: urgent ones, a stack */
	_Atomic(struct weft_parker *) x_parker;          /* its carrier's */

	/* Threads that have ended, and slots; pool.c */
	alignas(WEFT_CACHELINE) struct weft_ult *spare[WEFT_ULT_CLASSES]; /* W */
	uint32_t spares[WEFT_ULT_CLASSES];                                /* W */
	pthread_mutex_t pool_lock;
	struct weft_ult *pool[WEFT_ULT_CLASSES]; /* pool_lock */
	uint64_t pooled;                         /* pool_lock: bytes of stacks */
	struct iovec cold[WEFT_ULT_COLD];        /* pool_lock: put there last, to be given back */
	unsigned colds, cold_stacks;             /* pool_lock: ranges, stacks in them */
	uint32_t slots;                          /* pool_lock: ever used */
	char *arena;                             /* pool_lock: memory for descriptors */
	size_t arena_left;                       /* pool_lock */
	struct weft_ult_slab slab[WEFT_ULT_CLASSES];             /* pool_lock */
	_Atomic(struct weft_ult *) x_threads[WEFT_READY_CHUNKS]; /* once, under pool_lock */

	_Atomic uint64_t x_created, x_ended; /* W writes, and outsiders under pool_lock: _out */
	_Atomic uint64_t x_created_out;
	_Atomic uint64_t x_stolen;

	pthread_mutex_t timer_lock;
	struct weft_ult_timer *timers; /* timer_lock: the heap */
	_Atomic uint64_t x_next_timer; /* timer_lock; W reads as a hint */

	/* As a thief. */
	struct weft_ult_seen {
		uint64_t switches, cycles;
	} * seen;               /* W: of each other worker, when it was seen to move last */
	uint64_t steal_after;   /* W: cycles; no attempt before that */
	uint64_t steal_backoff; /* W: cycles */
	uint64_t loot_at;   /* W: cycles; when it last stole something, 0: seen to be worth it */
	uint64_t loot_cost; /* W: cycles that it took */
	unsigned naps;      /* W: fruitless ones in a row */
	unsigned calls;     /* W: makings-ready since a thief was woken */

	int id;         /* I */
	int cpu;        /* I: -1: not bound */
	uint16_t *near; /* I: the other workers, nearest first */
};

struct weft_ult_all {
	_Atomic int x_count; /* of workers; 0: not started */
	struct weft_ult_worker *worker[WEFT_ULT_WORKERS_MAX];
	_Atomic bool x_stop;
	_Atomic bool x_steal;
	_Atomic int x_idle_count; /* workers without work */
	_Atomic int x_carriers;   /* kernel threads that have begun and are in no blocking call */
	_Atomic int x_nappers;    /* of these, those that look for work now and then */
	_Atomic uint32_t x_turn;  /* the worker that the next free thread from outside goes to */
	_Atomic uint32_t x_ticks; /* switches between two ticks, less one */
};

extern struct weft_ult_all weft_ult_all;

/* For a reader from outside (base/live.h): does it know these structures? */
#define WEFT_ULT_LIVE "ult"
#define WEFT_ULT_LAYOUT                                                                            \
	((uint64_t)sizeof(struct weft_ult) | (uint64_t)sizeof(struct weft_ult_worker) << 16 |      \
	 (uint64_t)offsetof(struct weft_ult, x_waits_for) << 40 |                                  \
	 (uint64_t)offsetof(struct weft_ult_all, worker) << 52)
extern _Thread_local struct weft_ult_worker *weft_ult_worker_self;

extern _Thread_local struct weft_ult_carrier *weft_ult_carrier_self;

/*
 * The caller's worker, NULL in a plain thread.  By assembly or a call, so that no compiler keeps
 * the address of a thread-local of the carrier on which a thread ran before.
 */
#if defined(__x86_64__) && !defined(WEFT_CTX_UCONTEXT)
static inline struct weft_ult_worker *weft_ult_worker_here(void)
{
	struct weft_ult_worker *w;
	__asm__ volatile("movq weft_ult_worker_self@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0"
			 : "=r"(w)
			 :
			 : "memory");
	return w;
}
#else
struct weft_ult_worker *weft_ult_worker_here(void);
#endif

/* How many workers; 0: not started. */
static inline int weft_ult_count(void)
{
	/* KNOWN <- COUNT (start_locked).  Carries: the workers.  Without it, a plain thread could
	 * hand a thread to a worker whose vector is not made. */
	return atomic_load_explicit(&weft_ult_all.x_count, memory_order_acquire);
}

static inline bool weft_ult_is(const struct weft_ult *t, uint8_t flag)
{
	/* Relaxed: written before t was made ready, or by t itself. */
	return atomic_load_explicit(&t->x_flags, memory_order_relaxed) & flag;
}

/* What t, which runs, is about to wait for; NULL: nothing any more. */
static inline void weft_ult_waits(struct weft_ult *t, const char *what, const void *which)
{
	/* Relaxed: read by reports only. */
	atomic_store_explicit(&t->x_waits_on, which, memory_order_relaxed);
	atomic_store_explicit(&t->x_waits_for, what, memory_order_relaxed);
}

/* thread.c */
void weft_ult_begin(void *worker);

/* trace.c: out of line, only where a trace is written (base/trace_table.h has the events). */
__attribute__((cold)) void weft_ult_trace_created(struct weft_ult *t,
						  const struct weft_ult_worker *self);
__attribute__((cold)) void weft_ult_trace_block(struct weft_ult *t, bool token);
/* An event of t, NULL: of no thread; with the running thread in it where that caused it. */
__attribute__((cold)) void weft_ult_trace_put(enum weft_trace_kind kind, const struct weft_ult *t);
static inline void weft_ult_trace(enum weft_trace_kind kind, const struct weft_ult *t)
{
	if (weft_trace_on())
		weft_ult_trace_put(kind, t);
}

/* Inside w's lock, as its worker. */
static inline void weft_ult_worker_enter(struct weft_ult_worker *w)
{
	weft_wait_owner_enter_fixed(&w->lock, w->fence);
}

static inline void weft_ult_worker_leave(struct weft_ult_worker *w)
{
	weft_wait_owner_leave(&w->lock);
}

/* sched.c */
/* Leaves t, which has ended, for the next one. */
_Noreturn void weft_ult_leave_for_good(struct weft_ult_worker *w, struct weft_ult *t);
/* The carrier runs t until a thread switches back; called inside the lock, returns outside.  False:
 * t took the carrier away from its worker. */
bool weft_ult_run(struct weft_ult_worker *w, struct weft_ult *t);
void weft_ult_finish(struct weft_ult_worker *w);
/* Inside the lock: the thread to run next, or NULL. */
struct weft_ult *weft_ult_next(struct weft_ult_worker *w);
/* Moves urgent threads that were called from outside into w's list, in the order of the calls; in
 * its lock. */
void weft_ult_take_first(struct weft_ult_worker *w);
/* The first code after each switch, on the stack that is now ours. */
static inline void weft_ult_arrive(struct weft_ult_worker *w)
{
	weft_assert_held(weft_wait_owner, &w->lock);
	weft_ult_worker_leave(w);
	if (weft_unlikely(w->after != WEFT_ULT_AFTER_NONE))
		weft_ult_finish(w);
}
void weft_ult_make_ready(struct weft_ult *t);
/* How many are ready on w, as far as w knows; others read it as a hint. */
static inline uint32_t weft_ult_load(struct weft_ult_worker *w)
{
	return atomic_load_explicit(&w->ready.x_count, memory_order_relaxed) +
	       atomic_load_explicit(&w->x_listed, memory_order_relaxed);
}

/* park.c */
bool weft_ult_park_until(struct weft_ult_worker *w, uint64_t deadline_ns);
extern const struct weft_parker_ops weft_ult_parker_ops;

/* carrier.c: carriers.  call: one that waits, or a new one, runs w. */
weft_err weft_ult_carrier_call(struct weft_ult_worker *w);
uint64_t weft_ult_alive(void);

/* worker.c */
bool weft_ult_hooked(void);
void weft_ult_work(struct weft_ult_worker *w);
void weft_ult_bind(struct weft_ult_worker *w);
void weft_ult_wake_worker(struct weft_ult_worker *home, bool pinned);
void weft_ult_wake_thief(struct weft_ult_worker *w);

/* near.c */
/* The n - 1 others of n workers that run on cpu[] (-1: anywhere), in the order of worker id's
 * looks. */
void weft_ult_near(const int *cpu, int n, int id, uint16_t *order);

/* pool.c */
weft_err weft_ult_take(struct weft_ult_worker *home, struct weft_ult_worker *self, int class,
		       struct weft_ult **t_p);
void weft_ult_give(struct weft_ult *t, struct weft_ult_worker *self);
/* The thread of a slot that has been used. */
static inline struct weft_ult *weft_ult_of(struct weft_ult_worker *w, uint32_t slot)
{
	weft_assert(slot < WEFT_READY_SLOTS);
	/* HAVE: the setter of the slot's bit has seen it made. */
	return atomic_load_explicit(&w->x_threads[slot / WEFT_READY_CHUNK], memory_order_relaxed) +
	       slot % WEFT_READY_CHUNK;
}

/* stack.c */
int weft_ult_stack_class(size_t size); /* -1: too large */
/* n stacks of a class, out of the caller's slab of that class; lowest bytes in stack[].  Needs a
 * few KiB of stack itself.  On an error those handed out already are lost. */
weft_err weft_ult_stacks_get(struct weft_ult_slab *slab, int class, unsigned n, char **stack);
static inline size_t weft_ult_stack_bytes(int class)
{
	return (size_t)4096 << class;
}
/* From one stack of a class to the next in a slab: a guard lies below each. */
static inline size_t weft_ult_stack_step(int class)
{
	return weft_ult_stack_bytes(class) + WEFT_ULT_GUARD;
}
/* Lets the kernel take back what lies in there, when it needs memory. */
void weft_ult_stacks_cold(const struct iovec *v, unsigned n, unsigned stacks);
void weft_ult_stack_mark(struct weft_ult *t);
bool weft_ult_stack_intact(const struct weft_ult *t); /* false: its canary is gone */
/* The name of p's thread in messages: "user-level thread 0.17 plato", "a plain thread".  A guess
 * when it is not the caller. */
#define WEFT_ULT_WHO 56
const char *weft_ult_who(const struct weft_parker *p, char out[WEFT_ULT_WHO]);

void weft_ult_stack_describe(FILE *out);
extern _Atomic bool
	weft_ult_x_canaries; /* some stacks have no guard: look at them at each switch */

/* deep.c */
extern const struct weft_stacks weft_ult_stacks;

/* timer.c */
void weft_ult_timer_add(struct weft_ult_worker *w, struct weft_ult_timer *t);
void weft_ult_timer_remove(struct weft_ult_worker *w, struct weft_ult_timer *t);
/* Under the heap's lock, t out of it. */
void weft_ult_timeout(struct weft_ult_timer *t);
void weft_ult_timers_run(struct weft_ult_worker *w);

/* fault.c */
void weft_ult_fault_install(void);
void weft_ult_fault_stack(bool on);
_Noreturn void weft_ult_overflow(const struct weft_ult *t, const char *how);

/* check.c: asserts the invariants of all workers that can be had without waiting long; plain threads,
 * in tests.  Nothing without WEFT_CHECKED. */
void weft_ult_check(void);

/* key.c */
void weft_ult_keys_end(struct weft_ult *t);

static inline void weft_ult_list_push(struct weft_ult_list *l, struct weft_ult *t)
{
	t->next = NULL;
	if (l->first)
		l->last->next = t;
	else
		l->first = t;
	l->last = t;
}

static inline struct weft_ult *weft_ult_list_pop(struct weft_ult_list *l)
{
	struct weft_ult *t = l->first;
	if (t)
		l->first = t->next;
	return t;
}

/* The same for a list of w's, inside its lock. */
static inline void weft_ult_listed_push(struct weft_ult_worker *w, struct weft_ult_list *l,
					struct weft_ult *t)
{
	weft_assert_held(weft_wait_owner, &w->lock);
	weft_ult_list_push(l, t);
	/* Relaxed: one writer at a time, and the lock orders them. */
	atomic_store_explicit(&w->x_listed,
			      atomic_load_explicit(&w->x_listed, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static inline struct weft_ult *weft_ult_listed_pop(struct weft_ult_worker *w,
						   struct weft_ult_list *l)
{
	weft_assert_held(weft_wait_owner, &w->lock);
	struct weft_ult *t = weft_ult_list_pop(l);
	weft_assert(!t || atomic_load_explicit(&w->x_listed, memory_order_relaxed));
	if (t)
		atomic_store_explicit(&w->x_listed,
				      atomic_load_explicit(&w->x_listed, memory_order_relaxed) - 1,
				      memory_order_relaxed);
	return t;
}

#endif
