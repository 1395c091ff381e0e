/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share_copy.h - a large message that both sides copy, pieces of it each (share.h).
 *
 * Letters as in request.h.
 */
#ifndef WEFT_COMM_SHARE_COPY_H
#define WEFT_COMM_SHARE_COPY_H

#include "comm/wire.h"

struct weft_gate;
struct weft_req;

#define WEFT_SHARE_PIECE_MAX ((size_t)256 * 1024) /* as in rndv.c */
#define WEFT_SHARE_SMALL ((size_t)128 * 1024)     /* copied on the spot */
#define WEFT_SHARE_REST_PIECE ((size_t)64 * 1024) /* fetched before the rest is likely taken */

/* What the sender is told besides the CTS's head; the tag is the number of the word. */
struct weft_share_offer {
	uint64_t addr, number, piece;
};
_Static_assert(sizeof(struct weft_share_offer) <= WEFT_CONTROL_MAX,
	       "an offer comes as a control packet");

/* A large message that both sides copy (share.c). */
struct weft_share {
	_Atomic uint64_t *word; /* I */
	uint64_t number, piece; /* I */
	unsigned n, id;         /* I: pieces; the name for the report */
	bool late;              /* I: offered when a part had been fetched */
	bool rest;              /* I: the sender sends what is left, instead of writing pieces */
	uint64_t at, to;        /* the puller: fetched; claimed */
	unsigned waited;        /* the puller: rounds in which the sender was busy */
	unsigned helped; /* the puller, before it is through: pieces that the sender claimed */
	bool failed;     /* the same */
	uint64_t placed; /* the poller, before the report is through */
	uint64_t next;   /* the poller, with rest: where its next bytes belong */
	_Atomic unsigned x_through; /* who is through: puller, report */
};

/* Offers to share r's copy, if that is possible and worth it.  True: the sender sends it all. */
bool weft_comm_share_begin(struct weft_req *r);
/* Is the sender still busy with what it sends before r?  Then r need not be fetched yet. */
bool weft_comm_share_waits(struct weft_req *r);
/* Between two pieces of a fetch that is not shared: does it pay by now?  Then it is from now on. */
void weft_comm_share_late(struct weft_req *r);
bool weft_comm_share_pull_step(struct weft_req *r); /* as weft_comm_pull_step */
void weft_comm_share_report(struct weft_gate *g, const struct weft_wire *h);
/* DATA of a shared message: does it belong there?  Its bytes are there. */
bool weft_comm_share_expects(struct weft_req *r, uint64_t off, size_t len);
void weft_comm_share_came(struct weft_req *r, uint64_t off, size_t len);
/* The peer is gone, and r's id with it.  True: r is shared, and ends by itself. */
bool weft_comm_share_abandon(struct weft_req *r);
void weft_comm_share_help(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			  size_t len);

#endif
