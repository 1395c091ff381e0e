/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ways.h - which way the data of large messages take from one peer, measured while running.
 *
 * Fetched, the kernel copies out of the sender's memory, a call at a time.  Sent, the sender copies
 * into the ring while the receiver copies out of it.  Which is sooner depends on how far the two
 * cores are from each other, on the size and on the layout, and changes with the machine's moments.
 * So for each kind of layout and each power of two both costs are kept, from the receiver's choice
 * to the last byte; the cheaper way is taken, and one message in TRY goes the dearer way.  A cost
 * falls quickly and rises slowly, since what disturbs a measurement makes it longer.
 *
 * Callers   any thread; what two write at a time may be lost.
 * Owner     the gate: made at the first choice, freed by close.
 */
#ifndef WEFT_COMM_WAYS_H
#define WEFT_COMM_WAYS_H

#include "base/base.h"

#define WEFT_WAYS_TRY 64
#define WEFT_WAYS_FIRST 12 /* sizes below 8 KiB are one class */
#define WEFT_WAYS_SIZES 12 /* from 8 MiB on, too */

enum weft_ways_kind { WEFT_WAYS_FLAT, WEFT_WAYS_FINE, WEFT_WAYS_COARSE, WEFT_WAYS_KINDS };
enum weft_ways_way { WEFT_WAYS_FETCH, WEFT_WAYS_SENT, WEFT_WAYS_NONE };

struct weft_ways {
	struct weft_ways_row {
		_Atomic uint32_t x_cost[2]; /* ns per 64 KiB; 0: unknown */
		_Atomic uint32_t x_turn;    /* messages so far */
	} row[WEFT_WAYS_KINDS][WEFT_WAYS_SIZES];
};

/* A message under way. */
struct weft_ways_trip {
	uint64_t since;
	uint8_t kind, way; /* way NONE: not measured */
};

/* The way that this message is to take, which is measured from now on; FETCH without memory. */
enum weft_ways_way weft_ways_begin(_Atomic(struct weft_ways *) *x_ways, enum weft_ways_kind kind,
				   uint64_t bytes, struct weft_ways_trip *trip);
/* All its bytes are there; nothing if the trip's way is NONE. */
void weft_ways_end(_Atomic(struct weft_ways *) *x_ways, struct weft_ways_trip *trip,
		   uint64_t bytes);
/* Nobody uses it any more. */
void weft_ways_close(_Atomic(struct weft_ways *) *x_ways);

/* The two without clock and memory. */
enum weft_ways_way weft_ways_choose(struct weft_ways_row *row);
void weft_ways_took(struct weft_ways_row *row, enum weft_ways_way way, uint64_t bytes, uint64_t ns);

#endif
