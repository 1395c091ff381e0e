/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_int.h - what the files of the trace ask of each other.
 *
 * Callers   open: once.  ring: under a lock.  end: one at a time.
 */
#ifndef WEFT_TRACE_INT_H
#define WEFT_TRACE_INT_H

#include "base/trace.h"
#include "base/trace_ring.h"

#define WEFT_TRACE_RINGS_MAX 512u

struct weft_trace_file {
	struct weft_trace_head *head; /* mapped; NULL: there is none */
	uint64_t mask;                /* records of a ring, less one */
	bool by_cycles;               /* the cycle counter is as good as a clock */
};

extern struct weft_trace_file weft_trace_file;

/* False: nothing is wanted, or it went wrong and one line has been said. */
bool weft_trace_file_open(void);
/* Ring number n, zeroed; NULL, after one line: no room. */
struct weft_trace_ring *weft_trace_file_ring(unsigned n);
void weft_trace_file_end(void);

/* Not before what was read earlier: records of different threads keep the order of what they say.
 */
static inline uint64_t weft_trace_now(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lfence" : : : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("isb" : : : "memory");
#endif
	return weft_likely(weft_trace_file.by_cycles) ? weft_cycles() : weft_clock_ns();
}

struct weft_trace_pair weft_trace_pair_now(void);

#endif
