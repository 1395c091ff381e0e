/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eager_threshold.h - from how many bytes on it pays to ask before sending to one host, kept true while
 * running.
 *
 * To ask costs a round trip.  Not to ask costs a copy, if the message comes before its receive: it
 * is kept aside.  Both are measured on what is sent anyway: the time from a request to send to its
 * answer, of 16 of them the shortest (the others waited for a receive, or for a core); and of one
 * kept message in eight, from 16 KiB on, the time of its copy.  The switch point is where the copy
 * costs as much as the round trip, within a quarter and four times of what it was at the start; it
 * moves when it is off by more than a quarter.
 *
 * One for all peers of a host, by the networks whose payloads come as a stream; the peer's side is
 * taken to copy as fast as ours.
 *
 * Callers   asked, copied: any thread; a sample is left out when another is being taken in.
 *           point: any thread.
 */
#ifndef WEFT_COMM_EAGER_THRESHOLD_H
#define WEFT_COMM_EAGER_THRESHOLD_H

#include "comm/lock.h"

#define WEFT_LEARN_ASKED 16
#define WEFT_LEARN_COPIED 8
#define WEFT_LEARN_COPY_MIN ((size_t)16 * 1024)

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
	return bytes >= WEFT_LEARN_COPY_MIN &&
	       atomic_fetch_add_explicit(&l->x_kept, 1, memory_order_relaxed) % WEFT_LEARN_COPIED ==
		       0;
}

static inline size_t weft_comm_eager_threshold_point(const struct weft_comm_eager_threshold *l)
{
	/* Relaxed: a number by itself; both sides take a message of any length. */
	return atomic_load_explicit(&l->x_point, memory_order_relaxed);
}

#endif
