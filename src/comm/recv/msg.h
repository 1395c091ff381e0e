/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg.h - an unexpected message: its node, its payload or where that is to be had.
 *
 * Letters as in request.h.
 */
#ifndef WEFT_COMM_MSG_H
#define WEFT_COMM_MSG_H

#include "comm/match/keyed.h"
#include "comm/recv/packet_pool.h"

struct weft_core;
struct weft_req;

enum weft_msg_kind {
	WEFT_MSG_EAGER,
	WEFT_MSG_RTS,   /* the data is still with the sender */
	WEFT_MSG_LOCAL, /* from this process; the data is in `send`'s buffer */
};

#define WEFT_MSG_ARRIVING ((uintptr_t)0) /* payload not complete, no receive has claimed it */
#define WEFT_MSG_READY ((uintptr_t)1)    /* payload complete */
#define WEFT_MSG_FAILED ((uintptr_t)2)   /* the payload will not come */
#define WEFT_MSG_DROPPED ((uintptr_t)3)  /* no receive will come; the poller frees it */
/* else: the receive that claimed it while it was arriving */

struct weft_msg {
	union {
		struct weft_keyed node;
		struct weft_comm_packet_pool_item stashed; /* in a pool */
	};
	struct weft_msg *all_next, *all_prev; /* L context: by arrival in the context */
	uint64_t number;                      /* by arrival in the process */
	uint8_t lists;                        /* L context and bucket: see unexpected.h */
	struct weft_core *core;
	uint64_t length; /* data bytes of the message */
	uint64_t addr;   /* RTS */
	uint32_t id;     /* RTS, or SYNC: the sender's id, 0 none */
	uint32_t sign;   /* see sign.h */
	uint32_t charge; /* credit to give back when it is gone */
	uint8_t msg_kind;
	uint8_t pool_class;
	bool quiet;            /* RTS: see wire.h */
	struct weft_req *send; /* LOCAL */
	_Atomic uintptr_t x_state;
	struct weft_keyed by_peer, by_tag; /* in lists: (peer, any tag), (any peer, tag) */
	alignas(16) char data[];
};

static inline struct weft_msg *weft_comm_msg_of(struct weft_keyed *n)
{
	return weft_container_of(n, struct weft_msg, node);
}

#endif
