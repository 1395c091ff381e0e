/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eager_threshold.h - from how many bytes on it pays to ask before sending to one host, kept true
 * while running.
 *
 * To ask costs a round trip.  Not to ask costs a copy if the message comes before its receive: it is
 * kept aside.  The threshold is where both cost the same.
 *
 * Measured  the time from an RTS to its answer: of 16 the shortest, as the rest waited for a receive
 *           or a core.  The time of a kept message's copy, from 16 KiB on, of one in eight.
 * Bounds    a quarter and four times of the start; it moves when it is off by more than a quarter.
 * Shared    by all peers of a host, on networks whose payloads come as a stream; the peer is taken
 *           to copy as fast as we do.
 * Callers   asked, copied: any thread; a sample is left out while another is being taken in.
 *           point: any thread.
 * Checked   test/comm/large/test_eager_threshold.c.
 */
#ifndef WEFT_COMM_EAGER_THRESHOLD_H
#define WEFT_COMM_EAGER_THRESHOLD_H

#include "comm/lock.h"

#define WEFT_EAGER_THRESHOLD_ASKED 16
#define WEFT_EAGER_THRESHOLD_COPIED 8
#define WEFT_EAGER_THRESHOLD_COPY_MIN ((size_t)16 * 1024)

struct weft_comm_eager_threshold {
	struct weft_comm_eager_threshold *next; /* I: the core's others */
	size_t least, most;                     /* I */
	_Atomic size_t x_point;                 /* L writes */
	_Atomic uint32_t x_kept;                /* counts those of which one in eight is measured */
	struct weft_spin lock;
	unsigned asked;    /* L: in this round */
	uint64_t round_ns; /* L: the shortest of this round */
	uint64_t ask_ns;   /* L: of the last full round; 0: none yet */
	uint64_t copy_ps;  /* L: per byte, smoothed; 0: none yet */
	unsigned moves;    /* L */
};

void weft_comm_eager_threshold_init(struct weft_comm_eager_threshold *l, size_t start,
				    size_t highest);
/* A request to send was answered after so long. */
void weft_comm_eager_threshold_asked(struct weft_comm_eager_threshold *l, uint64_t ns);
/* So many bytes, kept aside, were copied in so long. */
void weft_comm_eager_threshold_copied(struct weft_comm_eager_threshold *l, size_t bytes,
				      uint64_t ns);

struct weft_comm_eager_threshold_state {
	uint64_t ask_ns, copy_ps;
	size_t point;
	unsigned moves;
};
struct weft_comm_eager_threshold_state
weft_comm_eager_threshold_read(struct weft_comm_eager_threshold *l);

/* Is this copy one to measure? */
static inline bool weft_comm_eager_threshold_wants(struct weft_comm_eager_threshold *l,
						   size_t bytes)
{
	/* Relaxed: a count. */
	return bytes >= WEFT_EAGER_THRESHOLD_COPY_MIN &&
	       atomic_fetch_add_explicit(&l->x_kept, 1, memory_order_relaxed) %
			       WEFT_EAGER_THRESHOLD_COPIED ==
		       0;
}

static inline size_t weft_comm_eager_threshold_point(const struct weft_comm_eager_threshold *l)
{
	/* Relaxed: a number by itself; both sides take a message of any length. */
	return atomic_load_explicit(&l->x_point, memory_order_relaxed);
}

#endif
