/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keyed.h - what hangs in the matching table (table.h): a node under a key (context, peer, tag),
 * and the entry of a posted receive, which lies in its request.
 *
 * Letters as in request.h.
 */
#ifndef WEFT_COMM_KEYED_H
#define WEFT_COMM_KEYED_H

#include "base/base.h"

struct weft_ctx;

enum weft_keyed_kind {
	WEFT_KEYED_RECV,  /* posted: peer and tag are exact */
	WEFT_KEYED_WILD,  /* posted: a wildcard */
	WEFT_KEYED_MSG,   /* unexpected, under its exact key */
	WEFT_KEYED_INDEX, /* the same message once more, under a wildcard's key; see unexpected.h */
};

/* What hangs in the table under a key (ctx, peer, tag), wildcards being keys like any other. */
struct weft_keyed {
	/* L bucket: the same key, oldest first.  The prev of the first node is the last node. */
	struct weft_keyed *next, *prev;
	struct weft_keyed *more; /* L bucket: of a first node without a slot: the next such node */
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

static inline struct weft_entry *weft_comm_entry_of(struct weft_keyed *n)
{
	return weft_container_of(n, struct weft_entry, node);
}

#endif
