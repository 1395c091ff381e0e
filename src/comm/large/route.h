/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.h - the routes that the data of a large message can take, the states of its request, and
 * the choice of the route.
 *
 *   route      the data
 *   PACKETS    the receiver asks with a CTS, the sender posts them as DATA packets
 *   RDMA       the receiver opens its buffer and asks; the sender's network writes into it
 *   FETCH      the receiver copies them out of the sender's memory, alone
 *   PUSH       the receiver offers its buffer with a CTS; the sender copies into it, alone
 *   BOTH       the receiver copies pieces from the front, a sender that waits, or comes to, from the
 *              back
 *   REST       the receiver copies pieces from the front, a sender that waits posts all the rest
 *
 *   receiver   ->            when
 *   (posted)   CHOOSING      its message's RTS is matched; an explicit-only one stays here until the
 *                            application calls
 *   CHOOSING   COPYING       FETCH, BOTH, REST
 *              ASKED         PACKETS, RDMA, PUSH: the CTS is submitted
 *              OVER          nothing is wanted, or the peer is gone
 *   COPYING    COPYING       another route: the sender has come to wait before the first piece, or has
 *                            stopped halfway
 *              ASKED         no thread waits here: PUSH; the memory cannot be read: PACKETS, RDMA
 *              CHOOSING      the memory cannot be read, and the sender has a part of it
 *              OVER          all data are there, or the peer is gone
 *   ASKED      OVER          the same
 *
 *   sender     ->            when
 *   (posted)   ASKED         the RTS goes out
 *   ASKED      CHOOSING      a CTS; an explicit-only one stays here until the application calls
 *              POSTING       REST: all that is left is claimed
 *   CHOOSING   COPYING       PUSH
 *              POSTING       PACKETS, RDMA
 *   COPYING    POSTING       the receiver's memory cannot be written: PACKETS
 *   POSTING    CHOOSING      a CTS after REST: the receiver could not read the front
 *
 * A sender's request is over with its last reference, in any state from ASKED on.  BOTH changes
 * nothing there: the receiver's answer may come while a piece is being copied.
 *
 * Order     state and route have one writer at a time: the thread that matched the message, the
 *           copying task, or the poller of the connection, as the message is handed on.
 * Checked   each change asserts may_follow; test/comm/large/test_route.c.
 */
#ifndef WEFT_COMM_ROUTE_H
#define WEFT_COMM_ROUTE_H

#include "base/assert.h"

enum weft_comm_route {
	WEFT_ROUTE_NONE,
	WEFT_ROUTE_PACKETS,
	WEFT_ROUTE_RDMA,
	WEFT_ROUTE_FETCH,
	WEFT_ROUTE_PUSH,
	WEFT_ROUTE_BOTH,
	WEFT_ROUTE_REST,
	WEFT_ROUTES
};

enum weft_comm_large_state {
	WEFT_LARGE_NONE, /* an eager message that waits for its answer */
	WEFT_LARGE_CHOOSING,
	WEFT_LARGE_COPYING,
	WEFT_LARGE_ASKED,
	WEFT_LARGE_POSTING,
	WEFT_LARGE_OVER,
	WEFT_LARGE_STATES
};

/* In a sender's request: what its CTS said. */
struct weft_comm_large_to {
	uint64_t addr, key; /* PUSH, RDMA: of the receiver's buffer */
	uint32_t id;        /* the receiver's */
	uint32_t most;      /* bytes of a DATA packet; 0: no bound */
};

/* In a receiver's: where the data are, as its RTS said. */
struct weft_comm_large_from {
	uint64_t addr; /* where they can be read; else 0 */
	uint32_t id;   /* the sender's */
	bool quiet;    /* only a thread that waits at the sender needs our last answer */
	bool late;     /* the RTS came before the receive was posted */
	uint8_t slot;  /* BOTH, REST: of the share, in the core */
};

/* What the choice depends on. */
struct weft_comm_route_facts {
	uint64_t bytes;      /* that the receiver wants */
	bool flat;           /* its buffer has no holes */
	bool fine;           /* it has, and pieces between them that are small for the kernel */
	bool readable;       /* the receiver can read the sender's memory */
	bool writable;       /* the sender can write into the receiver's */
	bool opens;          /* the network can, by itself */
	bool offers;         /* offer before anything else */
	bool sender_waits;   /* and would take a part */
	bool may_help;       /* it may come to wait before the copy is over, and take a part then */
	bool sent_sooner;    /* as measured, REST takes less time than FETCH (path_cost.h) */
	uint64_t one_packet; /* so many bytes go in one packet */
	uint64_t both_least; /* from so many on, a copy by both sides takes less time */
};

/* The route of a message that no byte of has moved; NONE: nothing is wanted. */
enum weft_comm_route weft_comm_route_choose(const struct weft_comm_route_facts *f);
/* The same where the receiver can only ask. */
enum weft_comm_route weft_comm_route_ask(const struct weft_comm_route_facts *f);

/* What a receiver that is about to copy does first. */
enum weft_comm_route_turn {
	WEFT_ROUTE_COPY,
	WEFT_ROUTE_OFFER, /* ask the sender to copy instead (PUSH) */
	WEFT_ROUTE_LEAVE, /* leave it a while: until a thread waits here */
};
struct weft_comm_route_load {
	bool behind;          /* the watcher copies: no thread of this process waits */
	bool sender_computes; /* no thread waits at the sender's either */
	bool no_core_spare;   /* each core has a rank */
	bool may_leave, may_offer;
};
enum weft_comm_route_turn weft_comm_route_before_copy(const struct weft_comm_route_load *l);

/* Is this change one of the card's? */
bool weft_comm_large_may_follow(enum weft_comm_large_state from, enum weft_comm_large_state to);
bool weft_comm_route_may_follow(enum weft_comm_route from, enum weft_comm_route to);

#endif
