/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share_copy.h - a large message that both sides copy, pieces of it each (share.h), as large.c sees
 * it.
 *
 * Callers   offer, step: the copying thread.  expects, came, report: the poller of the
 *           connection.  abandon: after weft_comm_ids_take of the share's id.
 * Result    the caller acts on it: nothing here ends a request.
 */
#ifndef WEFT_COMM_SHARE_COPY_H
#define WEFT_COMM_SHARE_COPY_H

#include "comm/large/route.h"
#include "comm/wire.h"

struct weft_gate;
struct weft_req;

#define WEFT_SHARE_LEAST ((size_t)4096) /* shorter messages are fetched, whatever the layout */
#define WEFT_SHARE_OPEN 4 /* so many times both_least: worth offering to a sender that computes */
#define WEFT_SHARE_REST_PIECE ((size_t)64 * 1024) /* fetched before the rest is likely claimed */

/* What the sender is told besides the CTS's head; the tag is the number of the word. */
struct weft_share_offer {
	uint64_t addr, number, piece;
};
_Static_assert(sizeof(struct weft_share_offer) <= WEFT_CONTROL_MAX,
	       "an offer comes as a control packet");

/* A large message that both sides copy. */
struct weft_share {
	_Atomic uint64_t *word; /* I */
	uint64_t number, piece; /* I */
	unsigned n, id;         /* I: pieces; the name for the report */
	bool open;              /* I: the sender did not wait when it was offered; it may come */
	bool rest;              /* I: of route REST */
	uint64_t at, to;        /* the copying thread: fetched; claimed */
	unsigned waited;        /* the same: rounds in which the sender was busy */
	unsigned helped;        /* the same, before its half ends: pieces that the sender claimed */
	bool failed;            /* the same */
	uint64_t placed;        /* the poller, before its half ends */
	uint64_t next;          /* the poller, REST: where its next bytes belong */
	_Atomic unsigned x_halves; /* that have ended; share.c */
};

enum weft_comm_share_end {
	WEFT_SHARE_MORE,      /* the next step follows */
	WEFT_SHARE_ELSEWHERE, /* the other half ends it; r may be over */
	WEFT_SHARE_WHOLE,     /* all data are there; here and below the share has ended */
	WEFT_SHARE_SHORT,     /* the sender wrote less than it claimed */
	WEFT_SHARE_FAILED,    /* the sender's memory cannot be read */
	WEFT_SHARE_DOWN,      /* the peer is gone */
};

/* ---- share.c: the receiver ------------------------------------------------------------------ */

/* Can what is left of this message be shared at all, if it is `least` bytes or more? */
bool weft_comm_share_possible(struct weft_req *r, size_t least);
/* Does the sender wait, most likely?  Counts the offers that it leaves out. */
bool weft_comm_share_sender_waits(struct weft_gate *g);
/* Offers the message by route BOTH or REST, which r then takes.  sender_waits: now; else it may come
 * to.  False: not possible now. */
bool weft_comm_share_offer(struct weft_req *r, enum weft_comm_route route, bool sender_waits);
/* Has the sender claimed anything, within so many looks?  looks: how many are worth it. */
bool weft_comm_share_taken(struct weft_req *r, unsigned looks);
unsigned weft_comm_share_looks(struct weft_req *r);
/* Is the sender still busy with what it posts before r?  Then r need not be fetched yet. */
bool weft_comm_share_pauses(struct weft_req *r);
/* Fetches the next piece. */
enum weft_comm_share_end weft_comm_share_step(struct weft_req *r);
/* DATA of a shared message: do they belong there?  They have come. */
bool weft_comm_share_expects(struct weft_req *r, uint64_t off, size_t len);
enum weft_comm_share_end weft_comm_share_came(struct weft_req *r, uint64_t off, size_t len);
/* The sender has written `placed` bytes, and will not any more; r's id was taken back. */
enum weft_comm_share_end weft_comm_share_report(struct weft_req *r, uint64_t placed);
enum weft_comm_share_end weft_comm_share_abandon(struct weft_req *r);

/* ---- share_help.c: the sender --------------------------------------------------------------- */

/* A CTS with SHARE. */
void weft_comm_share_help(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			  size_t len);

#endif
