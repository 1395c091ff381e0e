/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what processes say to each other: the head of each packet and the kinds of packets.
 *
 * The version of this language is part of the drivers' hello.  All numbers are little-endian.
 * Everything that arrives is checked; what makes no sense closes the connection with that peer
 * and never touches memory.  Requests are named by ids (slot and generation in the owner's table,
 * ids.h), never by addresses.  The only address on the wire is that of a buffer, offered to a peer
 * that may copy from and to this process's memory anyway, or write into the region that it names.
 *
 * kind     sides  sequence  context    tag      length          payload
 * EAGER    S->R   envelope  context    tag      data bytes (1)  the data
 * RTS      S->R   envelope  context    tag      data bytes      struct weft_wire_rts
 * CTS      R->S   R's id    S's id     most     bytes wanted    -
 *                                                               OFFER: address, 8 bytes
 *                                                               REGION: struct weft_wire_place
 *                                                               SHARE: see share.c; tag: the word
 *                                                               REST: send what you claim
 * DATA     S->R   offset lo R's id     off. hi  bytes here      that part of the data
 *                                                               PLACED: none, it is there
 * FIN      R->S   -         S's id     -        -               -
 *                                                               CANCELLED: it was taken back
 * CANCEL   S->R   -         context    tag      S's id          -
 * CREDIT   R->S   -         -          -        -               -
 * RTR      R->S  S's seen  context    tag      room            -
 * PACK     S->R   messages  -          -        bytes here      records of a head (EAGER without
 *                                                               SYNC, FIN, CREDIT, PLACED,
 *                                                               RTR) and
 *                                                               its payload, padded to 8 bytes
 *
 * S is the sender of the message, R its receiver.  (1) with the flag SYNC, the upper half of
 * `length` is S's id and R answers FIN when the message is matched.  With the flag SIGNED it is the
 * message's signature (sign.h), which goes where both sides check.
 *
 *   eager:       EAGER                    (then FIN, if SYNC)
 *   taken back:  RTS or EAGER + SYNC, CANCEL, FIN + CANCELLED   unless R has matched it already:
 *                                         then CANCEL is not answered, the message goes on
 *   eager, long: RTR, EAGER               the receive was posted before; see rtr.h
 *   rendezvous:  RTS, CTS, DATA ...       R has the data when all bytes wanted are there
 *                RTS, FIN                 R took the data itself (get), or wanted none
 *                RTS, CTS + OFFER, DATA + PLACED   S wrote the data itself (put)
 *                RTS, CTS + REGION, DATA + PLACED  the same, by the network
 *                RTS, CTS + SHARE, (DATA + PLACED + SHARE,) FIN   both did, pieces of it each
 *                RTS, CTS + SHARE + REST, (DATA + REST ...,) FIN  R took the front, S sent the rest
 *
 * `most` bounds the payload of each DATA packet; 0: no bound.
 *
 * A sender's envelopes (EAGER, RTS) are numbered, and matched in that order.
 */
#ifndef WEFT_COMM_WIRE_H
#define WEFT_COMM_WIRE_H

#include <assert.h>
#include "net/driver.h"

enum weft_wire_kind {
	WEFT_WIRE_EAGER = 1,
	WEFT_WIRE_RTS = 2,
	WEFT_WIRE_CTS = 3,
	WEFT_WIRE_DATA = 4,
	WEFT_WIRE_FIN = 5,
	WEFT_WIRE_CREDIT = 6,
	WEFT_WIRE_PACK = 7,
	WEFT_WIRE_RTR = 8,
	WEFT_WIRE_CANCEL = 9,
};

#define WEFT_WIRE_SYNC 1u      /* flag of EAGER */
#define WEFT_WIRE_SIGNED 32u   /* flag of EAGER without SYNC: sign.h */
#define WEFT_WIRE_OFFER 1u     /* flag of CTS */
#define WEFT_WIRE_CANCELLED 1u /* flag of FIN */
#define WEFT_WIRE_PLACED 1u    /* flag of DATA */
#define WEFT_WIRE_SHARE 2u     /* flag of CTS and DATA */
#define WEFT_WIRE_REST 4u      /* flag of CTS, with SHARE, and of DATA */
#define WEFT_WIRE_REGION 8u    /* flag of CTS */
#define WEFT_WIRE_QUIET                                                                            \
	16u /* flag of RTS, CTS with OFFER: its end matters to waiting threads only */

#define WEFT_CONTROL_MAX 24 /* payload of a control packet */

struct weft_wire {
	uint8_t kind;
	uint8_t flags;
	uint16_t credit; /* eager payload given back, in units; see credit.h */
	uint32_t sequence;
	uint32_t context;
	int32_t tag;
	uint64_t length;
};

struct weft_wire_rts {
	uint32_t id;   /* of the send */
	uint32_t sign; /* its signature, or 0 (sign.h) */
	uint64_t addr; /* of the data in the sender's memory; 0: not in one piece, or not offered */
};

/* Where the sender shall write: a ticket of a region without its length, which is `length`. */
struct weft_wire_place {
	uint64_t addr, key;
};

static_assert(sizeof(struct weft_wire) == WEFT_NET_HEAD, "the head fills what drivers carry");
static_assert(sizeof(struct weft_wire_rts) == 16, "no holes on the wire");
static_assert(sizeof(struct weft_wire_place) == 16, "no holes on the wire");
static_assert(offsetof(struct weft_wire, sequence) == 4, "layout of the head");
static_assert(offsetof(struct weft_wire, context) == 8, "layout of the head");
static_assert(offsetof(struct weft_wire, tag) == 12, "layout of the head");
static_assert(offsetof(struct weft_wire, length) == 16, "layout of the head");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "the wire is little-endian; this machine would have to swap");

/* Data bytes of an eager message, and the id that wants an answer. */
static inline size_t weft_comm_wire_eager_length(const struct weft_wire *h, uint32_t *sync_id)
{
	*sync_id = 0;
	if (weft_likely(!(h->flags & (WEFT_WIRE_SYNC | WEFT_WIRE_SIGNED))))
		return h->length;
	if (h->flags & WEFT_WIRE_SIGNED)
		return h->length & 0xffffffffu;
	*sync_id = (uint32_t)(h->length >> 32);
	return h->length & 0xffffffffu;
}

static inline uint32_t weft_comm_wire_eager_sign(const struct weft_wire *h)
{
	return weft_unlikely(h->flags & WEFT_WIRE_SIGNED) ? (uint32_t)(h->length >> 32) : 0;
}

#endif
