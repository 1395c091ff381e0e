/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_cost.h - what large messages from one peer cost by either path, measured while running.
 *
 * FETCH: the kernel copies out of the sender's memory, a call at a time.  SENT: the sender copies into
 * the ring while the receiver copies out of it.  FETCH stands for the routes FETCH and BOTH of route.h, SENT for REST.  Which
 * takes less time depends on how far the two cores are from each other, on size and layout, and
 * changes within seconds.
 *
 * Kept       both costs, for each kind of layout and each power of two.
 * Measured   a run: it begins with a message while none is under way, and ends when none is any more,
 *            or after RUN messages; its time by its bytes.  Messages that are under way together
 *            slow each other down, or overlap, so one alone would say little.
 * Chosen     all of a run take the cheaper path, or, in one message of TRY, the dearer one.
 * Smoothed   a cost falls quickly and rises slowly: disturbances make a measurement longer.
 * Callers    begin, end: any thread.
 * Owner      the gate: made at the first begin, freed by close.
 * Checked    test/comm/large/test_path_cost.c, with a clock of its own.
 */
#ifndef WEFT_COMM_PATH_COST_H
#define WEFT_COMM_PATH_COST_H

#include "comm/lock.h"

#define WEFT_PATH_TRY 64
#define WEFT_PATH_RUN 64
#define WEFT_PATH_FIRST 12 /* sizes below 8 KiB are one class */
#define WEFT_PATH_SIZES 12 /* from 8 MiB on, too */

/* Without holes; in pieces; LATE is added where the message came before its receive, whose caller may
 * compute next: then only a fetch goes on. */
enum weft_comm_path_cost_kind {
	WEFT_PATH_FLAT,
	WEFT_PATH_COARSE,
	WEFT_PATH_LATE,
	WEFT_PATH_KINDS = 2 * WEFT_PATH_LATE
};
enum weft_comm_path_cost_way { WEFT_PATH_FETCH, WEFT_PATH_SENT, WEFT_PATH_NONE };

struct weft_comm_path_cost_row {
	uint32_t cost[2]; /* L: ns per 64 KiB; 0: unknown */
	uint32_t until;   /* L: messages before the dearer way is tried again */
	uint8_t tried;    /* L: how often it was, the first few times */
};

struct weft_comm_path_cost {
	struct weft_spin lock;
	/* The run: */
	uint32_t id;                         /* L */
	unsigned begun, under;               /* L: messages that began, and that have not ended */
	struct weft_comm_path_cost_row *row; /* L: whose; NULL: of several */
	enum weft_comm_path_cost_way way;    /* L */
	uint64_t since, bytes;               /* L: its start; bytes of those that ended */
	struct weft_comm_path_cost_row rows[WEFT_PATH_KINDS][WEFT_PATH_SIZES]; /* L */
};

/* A message under way. */
struct weft_comm_path_cost_trip {
	uint32_t run : 24;
	uint32_t way : 8; /* NONE: not measured */
};

/* The path that this message shall take, which is measured from now on; FETCH without memory. */
enum weft_comm_path_cost_way
weft_comm_path_cost_begin(_Atomic(struct weft_comm_path_cost *) *x_path_cost, unsigned kind,
			  uint64_t bytes, struct weft_comm_path_cost_trip *trip);
/* All its bytes are there: what this choice cost, also where it was offered and fetched after
 * all.  bytes 0: it does not count.  Does nothing if the trip's way is NONE; afterwards it is. */
void weft_comm_path_cost_end(_Atomic(struct weft_comm_path_cost *) *x_path_cost,
			     struct weft_comm_path_cost_trip *trip, uint64_t bytes);
/* No message uses it any more. */
void weft_comm_path_cost_close(_Atomic(struct weft_comm_path_cost *) *x_path_cost);

/* The two without clock and memory. */
enum weft_comm_path_cost_way weft_comm_path_cost_begin_at(struct weft_comm_path_cost *w,
							  unsigned kind, uint64_t bytes,
							  uint64_t now,
							  struct weft_comm_path_cost_trip *trip);
void weft_comm_path_cost_end_at(struct weft_comm_path_cost *w,
				struct weft_comm_path_cost_trip *trip, uint64_t bytes,
				uint64_t now);

#endif
