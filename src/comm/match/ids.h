/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ids.h - names for requests that a peer will answer to: slot and generation, never an address.
 *
 * Callers   give, take, peek: any thread.
 *           peek: only while no other thread can take (the poller of that peer's connection).
 * Owner     the taker of an id owns that reference to the request; of several takers one wins.
 * Memory    chunks of slots that are never returned while the table lives, so that a wild id from
 *           the wire reads valid memory and finds nothing.
 * Full      give() returns 0.
 */
#ifndef WEFT_COMM_IDS_H
#define WEFT_COMM_IDS_H

#include "comm/lock.h"

#define WEFT_IDS_SLOT_BITS 22 /* 4 M requests under way at once */
#define WEFT_IDS_CHUNK_BITS 8
#define WEFT_IDS_CHUNKS (1u << (WEFT_IDS_SLOT_BITS - WEFT_IDS_CHUNK_BITS))

struct weft_ids_slot {
	_Atomic uint64_t x_owner; /* the request's address, 0: free */
	_Atomic uint32_t x_id;    /* its full id; generation in the upper bits */
	_Atomic int32_t x_peer;
	uint32_t next_free; /* L: slot + 1 */
};

struct weft_ids {
	struct weft_spin lock;
	uint32_t free_head; /* L: slot + 1, or 0 */
	uint32_t used;      /* L: slots that exist */
	_Atomic(struct weft_ids_slot *) x_chunk[WEFT_IDS_CHUNKS];
	_Atomic uint32_t x_live;
};

void weft_comm_ids_fini(struct weft_ids *t);
/* Asserts what the table promises, while no thread uses it. */
void weft_comm_ids_check(struct weft_ids *t);

/* A new id for `owner`, valid for packets from `peer` (a number that stands for the peer and what
 * it may name); 0: no memory or too many. */
uint32_t weft_comm_ids_give(struct weft_ids *t, void *owner, int peer);

/* The owner of id if it exists and belongs to peer, else NULL.  The id stays valid. */
void *weft_comm_ids_peek(struct weft_ids *t, uint32_t id, int peer);

/* The same, and the id ends.  Of several takers a single one gets the owner. */
void *weft_comm_ids_take(struct weft_ids *t, uint32_t id, int peer);

/* Is there an id of peer? */
bool weft_comm_ids_any(struct weft_ids *t, int peer);

/* Ends some id of peer and returns its owner, or NULL when there is none; *from is the scan's
 * position, 0 at first. */
void *weft_comm_ids_take_any(struct weft_ids *t, int peer, uint32_t *from);

#endif
