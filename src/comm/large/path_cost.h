/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_cost.h - which way the data of large messages take from one peer, measured while running.
 *
 * Fetched, the kernel copies out of the sender's memory, a call at a time.  Sent, the sender copies
 * into the ring while the receiver copies out of it.  Which is sooner depends on how far the two
 * cores are from each other, on the size and on the layout, and changes with the machine's moments.
 *
 * So for each kind of layout and each power of two both costs are kept.  Messages that are under
 * way together slow each other down, or overlap; so a run is measured, which begins with a message
 * while none is under way and ends when none is any more, or after RUN messages: its time by its
 * bytes. All of a run go one way: the cheaper one, or in one message of TRY the dearer one.  A cost
 * falls quickly and rises slowly, since what disturbs a measurement makes it longer.
 *
 * Callers   begin, end: any thread.
 * Owner     the gate: made at the first begin, freed by close.
 */
#ifndef WEFT_COMM_PATH_COST_H
#define WEFT_COMM_PATH_COST_H

#include "comm/lock.h"

#define WEFT_WAYS_TRY 64
#define WEFT_WAYS_RUN 64
#define WEFT_WAYS_FIRST 12 /* sizes below 8 KiB are one class */
#define WEFT_WAYS_SIZES 12 /* from 8 MiB on, too */

/* Without holes, in small pieces, in large ones; and, added, whose receive came after it: its
 * caller may compute next, and then only a fetch goes on. */
enum weft_comm_path_cost_kind {
	WEFT_WAYS_FLAT,
	WEFT_WAYS_FINE,
	WEFT_WAYS_COARSE,
	WEFT_WAYS_LATE,
	WEFT_WAYS_KINDS = 2 * WEFT_WAYS_LATE
};
enum weft_comm_path_cost_way { WEFT_WAYS_FETCH, WEFT_WAYS_SENT, WEFT_WAYS_NONE };

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
	struct weft_comm_path_cost_row rows[WEFT_WAYS_KINDS][WEFT_WAYS_SIZES]; /* L */
};

/* A message under way. */
struct weft_comm_path_cost_trip {
	uint32_t run : 24;
	uint32_t way : 8; /* NONE: not measured */
};

/* The way that this message is to take, which is measured from now on; FETCH without memory. */
enum weft_comm_path_cost_way
weft_comm_path_cost_begin(_Atomic(struct weft_comm_path_cost *) *x_ways, unsigned kind,
			  uint64_t bytes, struct weft_comm_path_cost_trip *trip);
/* All its bytes are there: what this choice cost, also where it was offered and fetched after
 * all.  With 0: it does not count.  Nothing if the trip's way is NONE, which it is afterwards. */
void weft_comm_path_cost_end(_Atomic(struct weft_comm_path_cost *) *x_ways,
			     struct weft_comm_path_cost_trip *trip, uint64_t bytes);
/* Nobody uses it any more. */
void weft_comm_path_cost_close(_Atomic(struct weft_comm_path_cost *) *x_ways);

/* The two without clock and memory. */
enum weft_comm_path_cost_way weft_comm_path_cost_begin_at(struct weft_comm_path_cost *w,
							  unsigned kind, uint64_t bytes,
							  uint64_t now,
							  struct weft_comm_path_cost_trip *trip);
void weft_comm_path_cost_end_at(struct weft_comm_path_cost *w,
				struct weft_comm_path_cost_trip *trip, uint64_t bytes,
				uint64_t now);

#endif
