/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - what happened when: a ring of records per kernel thread, in a file that is mapped, and
 * a listener, which hears of each event as it happens.
 *
 * `weft trace` makes a timeline of the files (doc/trace.md); MPI_T's events are the listener.
 *
 * Callers   weft_trace, text, code: any thread; not a signal handler.  start, rank: any time; the
 *           second start does nothing.
 * Cost      off: a load and a branch that is never taken.  On: some 20 ns, no lock and no system
 *           call; the first record of a thread makes its ring, and the first of a text writes it
 *           down, under a lock.  A thread's first record wants a stack of some KiB.
 * Full      the oldest records of that thread are overwritten.
 * Listener  runs wherever events happen, under any lock, on a stack that may be small: it takes no
 *           lock and waits for nothing.  It stays for the process's life; which kinds it hears of
 *           may change at any time.
 * Fork      the child writes nothing, and no listener hears of it.
 * Failure   one line, and there is no trace.
 */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include "base/base.h"

enum weft_trace_kind {
	WEFT_TRACE_NONE, /* never written */
#define WEFT_TRACE_EVENT(id, name, group, fields, help) WEFT_TRACE_##id,
#include "base/trace_table.h"
#undef WEFT_TRACE_EVENT
	WEFT_TRACE_KIND_COUNT
};

#define WEFT_TRACE_NOBODY (~0u)

#define WEFT_TRACE_TO_FILE 1u
#define WEFT_TRACE_TO_LISTENER 2u

/* Which of these two there are.  Read-mostly: changes at start, in the child of a fork, and when
 * the first kind is listened to and the last one no longer is. */
extern __attribute__((visibility("hidden"))) _Atomic unsigned weft_trace_x_on;

/* time: of weft_clock_ns(). */
typedef void weft_trace_listener(enum weft_trace_kind kind, uint64_t time, unsigned small,
				 uint32_t id, uint64_t a, uint64_t b);
/* From now on these kinds (a bit each) are listened to; 0: none. */
void weft_trace_listen(weft_trace_listener *fn, uint64_t kinds);
/* What text number n is; it stays as it is. */
const char *weft_trace_text_at(unsigned n);

/* Reads the settings `trace` and `trace_events`, and begins if there is a file to be written. */
void weft_trace_start(void);

/* Which rank of how many we are: part of the file's name. */
void weft_trace_rank(int rank, int size);

/* The process ends in order: the file says so.  Called by itself at exit; tests call it before. */
void weft_trace_stop(void);

__attribute__((cold, noinline)) void weft_trace_put(enum weft_trace_kind kind, unsigned small,
						    uint32_t id, uint64_t a, uint64_t b);

/* Relaxed: a thread that sees it late begins late. */
static inline bool weft_trace_on(void)
{
	return weft_unlikely(atomic_load_explicit(&weft_trace_x_on, memory_order_relaxed) != 0);
}

static inline void weft_trace(enum weft_trace_kind kind, unsigned small, uint32_t id, uint64_t a,
			      uint64_t b)
{
	if (weft_trace_on())
		weft_trace_put(kind, small, id, a, b);
}

/* For what is recorded when it ends: the time, and the text of a name, NULL: of a function. */
uint64_t weft_trace_begin(const char *name, const void *fn, unsigned *text_p);

/* The same with 16 letters of a name. */
void weft_trace_put_name(enum weft_trace_kind kind, uint32_t id, const char *name);

/* The number of a text; 0: NULL, or the file has no room.  What it points to may change later. */
unsigned weft_trace_text(const char *text);
/* The same for one that stays as long as the process, found by its address. */
unsigned weft_trace_static(const char *text);
/* The same for a function: its name, where it can be found, else file and offset.  Wants a stack of
 * some KiB unless `known`. */
unsigned weft_trace_code(const void *fn);
bool weft_trace_code_known(const void *fn);

#endif
