/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - the matching table: a hash table of buckets, each one cache line.
 *
 * Letters as in request.h.
 */
#ifndef WEFT_COMM_TABLE_H
#define WEFT_COMM_TABLE_H

#include <assert.h>
#include "wait/owner_lock.h"
#include "comm/match/keyed.h"

#define WEFT_BUCKET_SLOTS 3

/* One cache line: the lock, the first entries of three keys, and a chain for more keys. */
struct weft_bucket {
	alignas(WEFT_CACHELINE) struct weft_owner_lock lock;
	struct weft_keyed *more; /* L */
	struct {
		uint64_t key; /* L: a hash of it; the node decides */
		struct weft_keyed *first;
	} slot[WEFT_BUCKET_SLOTS];
};
static_assert(sizeof(struct weft_bucket) == WEFT_CACHELINE, "a bucket is a cache line");

#define WEFT_BUCKET_BITS 19
#define WEFT_BUCKETS (1u << WEFT_BUCKET_BITS)
#define WEFT_BUCKET_GROUP 64 /* buckets per page, and per bit of `x_used` */

struct weft_match {
	struct weft_bucket *bucket; /* I: zero pages until touched */
	/* Which pages of buckets were ever used: what a scan must visit. */
	_Atomic uint64_t x_used[WEFT_BUCKETS / WEFT_BUCKET_GROUP / 64];
};

weft_err weft_comm_match_init(struct weft_match *m);
void weft_comm_match_fini(struct weft_match *m);

#endif
