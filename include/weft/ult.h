/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ult.h - user-level threads: cheap to create, cheap to block, a million at a time.
 *
 * A few kernel threads, the workers, run them.  A thread that blocks (here, in an engine wait or in
 * an MPI call) blocks alone: its worker runs others, and polls for messages when there are none.
 *
 * Callers   any thread, user-level or plain, unless a function says otherwise; no signal handler.
 *           Plain threads block as plain threads do.
 * Progress  cooperative: a thread runs until it blocks, yields or ends.
 * Stack     small by default (16 KiB), from 4 KiB to 8 MiB, guarded; an overflow ends the process
 *           with a message that names the thread.
 * Errno     is the thread's own.  A function that reads errno, or another thread-local, both before
 *           and after it blocked may find its compiler to have kept the address, which is the
 *           worker's: read it in a function of its own, or use a thread that is bound to a worker.
 * Build     #include <weft/ult.h>, pkg-config weft-ult.
 */
#ifndef WEFT_ULT_H
#define WEFT_ULT_H

#include <stdio.h>
#include <weft/ult_api.h>
#include <weft/ult_sync.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_ult weft_ult;

#define WEFT_ULT_ANY_WORKER (-1)
#define WEFT_ULT_FOREVER UINT64_MAX

struct weft_ult_attr {
	size_t stack_size; /* bytes, rounded up to a power of two; 0: 16 KiB */
	int worker;        /* runs there only; WEFT_ULT_ANY_WORKER: may be stolen */
	int priority;      /* above 0: runs before its worker's other threads */
	bool detached;     /* it is not joined */
	const char *name;  /* at most 15 characters are kept; NULL: none */
};

/* clang-format off */
#define WEFT_ULT_ATTR_INIT {0, WEFT_ULT_ANY_WORKER, 0, false, NULL}
/* clang-format on */

/* ---- the workers ---------------------------------------------------------------------------- */

/*
 * Starts the workers; 0: as the setting ult_workers says, one per core by default.  The first
 * create does it too.  Running already: WEFT_ERR_STATE.
 */
WEFT_ULT_API weft_err weft_ult_start(int workers);

/* Waits until every thread has ended, then ends the workers; plain threads only. */
WEFT_ULT_API weft_err weft_ult_stop(void);

WEFT_ULT_API int weft_ult_workers(void); /* 0: not started */
WEFT_ULT_API int weft_ult_worker(void);  /* which one runs the caller; -1: a plain thread */

/* Lets workers take ready threads from each other; on at first. */
WEFT_ULT_API void weft_ult_steal_set(bool on);

/* ---- threads --------------------------------------------------------------------------------- */

/*
 * attr NULL: defaults.  *t_p is set before the thread runs; t_p NULL: detached.
 * WEFT_ERR_NOMEM: no memory for a stack; WEFT_ERR_LIMIT: too many threads.
 */
WEFT_ULT_API weft_err weft_ult_create(weft_ult **t_p, const struct weft_ult_attr *attr,
				      void *(*fn)(void *), void *arg);

/*
 * Waits until t has ended; t is no more after it.  Once per thread.
 * WEFT_ERR_DEADLOCK: it is the caller; WEFT_ERR_STATE: detached, or another thread joins it
 * already.
 */
WEFT_ULT_API weft_err weft_ult_join(weft_ult *t, void **result_p);
WEFT_ULT_API weft_err weft_ult_detach(weft_ult *t);

WEFT_ULT_API weft_ult *weft_ult_self(void);                /* NULL: a plain thread */
WEFT_ULT_API const char *weft_ult_name(const weft_ult *t); /* "" without one */
WEFT_ULT_API void weft_ult_yield(void);
WEFT_ULT_API void weft_ult_sleep_ns(uint64_t ns);
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
WEFT_ULT_API void
weft_ult_exit(void *result); /* user-level threads only */

/*
 * park: until a thread unparks the caller; at once when that has happened since its last park.
 * Several unparks before a park are one.  park_for: false: ns have passed.  User-level threads
 * only.  unpark: any thread; of a thread that has ended since: no harm, or one unpark too many for
 * the thread that has its place now: so look again at what you wait for.
 */
WEFT_ULT_API void weft_ult_park(void);
WEFT_ULT_API bool weft_ult_park_for(uint64_t ns);
WEFT_ULT_API void weft_ult_unpark(weft_ult *t);

/*
 * Around calls that block the kernel thread (read, fsync, ...): between the two another kernel
 * thread runs the worker's other threads, and the caller counts as a plain thread: it may wait and
 * lock like one, but a lock from outside is not its own there, and park returns at once.  In a
 * plain thread they do nothing.
 */
WEFT_ULT_API void weft_ult_blocking_begin(void);
WEFT_ULT_API void weft_ult_blocking_end(void);

/* Every thread that is alive, with its state and what it waits for. */
WEFT_ULT_API void weft_ult_report(FILE *out);

#ifdef __cplusplus
}
#endif

#endif
