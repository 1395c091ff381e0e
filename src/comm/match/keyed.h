/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keyed.h - what hangs in the matching table, and the table: match.c fills it, match_int.h walks
 * it.
 *
 *   node     under a key (context, peer, tag); entry: a posted receive (in the request)
 *   bucket   one cache line of nodes
 *
 * Letters as in comm_int.h.
 */
#ifndef WEFT_COMM_KEYED_H
#define WEFT_COMM_KEYED_H

#include <assert.h>
#include "base/base.h"
#include "comm/match/biased.h"

struct weft_ctx;

enum weft_keyed_kind {
	WEFT_KEYED_RECV,  /* posted: peer and tag are exact */
	WEFT_KEYED_WILD,  /* posted: a wildcard */
	WEFT_KEYED_MSG,   /* unexpected, under its exact key */
	WEFT_KEYED_INDEX, /* the same message once more, under a wildcard's key; see match_int.h */
};

/* What hangs in the table under a key (ctx, peer, tag), wildcards being keys like any other. */
struct weft_keyed {
	/* L bucket: the same key, oldest first.  The first one's prev is the last one. */
	struct weft_keyed *next, *prev;
	struct weft_keyed *more; /* L bucket: of a first one that found no slot: the next such */
	struct weft_ctx *ctx;
	int32_t peer, tag;
	uint8_t kind;
	_Atomic bool x_listed; /* changed under the bucket's lock */
};

/* A posted receive. */
struct weft_entry {
	struct weft_keyed node;
	uint64_t stamp;                           /* age among posted receives, see match.c */
	struct weft_entry *wild_next, *wild_prev; /* L context: WILD */
};

#define WEFT_BUCKET_SLOTS 3

/* One cache line: the lock, the first entries of three keys, and a chain for more keys. */
struct weft_bucket {
	alignas(WEFT_CACHELINE) struct weft_biased lock;
	struct weft_keyed *more; /* L */
	struct {
		uint64_t key; /* L: a hash of it; the node says for sure */
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

#endif
