/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what the members of a window say to each other.
 *
 * A message is a head, spans of the target's memory, and data.  A window has a context of its own,
 * so that no message needs its name.  Nothing that arrives is trusted: serve.c checks each span
 * against the memory of the window.
 *
 * kind       sender  id          spans  data
 * PUT        origin  -           where  what; flags: ASKS, then id of pending: answered as a FLUSH behind it
 * PUT_LARGE  origin  tag         where  -; comes as a message on `data`
 * GET        origin  of pending  where  -; answered by RESULT
 * GET_LARGE  origin  tag         where  -; answered by a message on `data`
 * ACC        origin  -           where  operands; ASKS: as PUT
 * FETCH_ACC  origin  of pending  where  operands, but for NO_OP; answered by RESULT: what was there
 * SWAP       origin  of pending  where  compare, value; answered by RESULT: what was there
 * FLUSH      origin  of pending  -      -; answered by FLUSHED when all before it has been done
 * UNLOCK     origin  -           -      -; flags: EXCLUSIVE
 * COMPLETE   origin  -           -      -
 * NOTE       origin  its number  -      -; counted when all puts before it are there
 *            these are numbered per origin and target, and served in that order
 * LOCK       origin  of pending  -      -; flags: EXCLUSIVE; answered by GRANTED
 * FREED      origin  -           -      -; the lock is free, and a member waits for it
 * POST       target  -           -      -
 * WAKE       any     -           -      -; a word that the receiver sleeps on has changed (told.h)
 * RESULT     target  of pending  -      what was there, or err
 * FLUSHED    target  of pending  -      -; err: the first since the last flush
 * GRANTED    target  of pending  -      -
 */
#ifndef WEFT_RMA_WIRE_H
#define WEFT_RMA_WIRE_H

#include "data/reduce.h"

enum weft_rma_kind {
	WEFT_RMA_PUT = 1,
	WEFT_RMA_PUT_LARGE,
	WEFT_RMA_GET,
	WEFT_RMA_GET_LARGE,
	WEFT_RMA_ACC,
	WEFT_RMA_FETCH_ACC,
	WEFT_RMA_SWAP,
	WEFT_RMA_FLUSH,
	WEFT_RMA_UNLOCK,
	WEFT_RMA_COMPLETE,
	WEFT_RMA_NOTE,
	WEFT_RMA_LOCK, /* from here on the order does not count */
	WEFT_RMA_FREED,
	WEFT_RMA_POST,
	WEFT_RMA_WAKE,
	WEFT_RMA_RESULT, /* from here on: answers */
	WEFT_RMA_FLUSHED,
	WEFT_RMA_GRANTED,
	WEFT_RMA_KINDS
};

#define WEFT_RMA_EXCLUSIVE 1u /* flags */
#define WEFT_RMA_ASKS 2u
#define WEFT_RMA_MESSAGE_MAX 8192
#define WEFT_RMA_SPANS_MAX 32
/* From here on an access to one piece of memory is a message of its own. */
#define WEFT_RMA_LARGE 16384

struct weft_rma_head {
	uint8_t kind, op, elem, flags;
	uint32_t seq;
	uint32_t id;
	uint32_t n_spans;
	uint32_t bytes; /* of data */
	int32_t err;
};

/* Bytes [at, at + len) of the window, or of the target's memory if the window is dynamic. */
struct weft_rma_span {
	uint64_t at, len;
};

/* Tags of large accesses, on `data`. */
#define WEFT_RMA_TAG_LARGE 0x40000000
#define WEFT_RMA_TAG_GET 0x20000000

static inline int weft_rma_tag(bool get, uint32_t number)
{
	return (int)(WEFT_RMA_TAG_LARGE | (get ? WEFT_RMA_TAG_GET : 0) |
		     (number & (WEFT_RMA_TAG_GET - 1)));
}

/* Is it one, and no wildcard? */
static inline bool weft_rma_tag_sane(int tag, bool get)
{
	return tag == weft_rma_tag(get, (uint32_t)tag);
}

/* Operations and elements travel as their numbers: WEFT_AUTH_VERSION goes up when one of them changes. */
_Static_assert(WEFT_OP_SUM == 0 && WEFT_OP_MINLOC == 10 && WEFT_OP_NO_OP == 13, "as on the wire");
_Static_assert(WEFT_B_BYTE == 0 && WEFT_B_I32 == 5 && WEFT_B_F64 == 14, "as on the wire");
_Static_assert(WEFT_B_C80 == 18 && WEFT_B_L64 == 23, "as on the wire");
_Static_assert(WEFT_B_F32_I32 == 32 && WEFT_B_I64_I64 == 40 && WEFT_B_I16_I64 == 45,
	       "as on the wire");
_Static_assert(sizeof(struct weft_rma_head) == 24, "no holes on the wire");
_Static_assert(sizeof(struct weft_rma_span) == 16, "no holes on the wire");

static inline struct weft_rma_span *weft_rma_spans(const struct weft_rma_head *h)
{
	return (struct weft_rma_span *)(uintptr_t)(h + 1);
}

static inline char *weft_rma_data(const struct weft_rma_head *h)
{
	return (char *)(uintptr_t)(weft_rma_spans(h) + h->n_spans);
}

static inline size_t weft_rma_message_bytes(const struct weft_rma_head *h)
{
	return sizeof *h + h->n_spans * sizeof(struct weft_rma_span) + h->bytes;
}

/* Data that fits beside n_spans. */
static inline size_t weft_rma_room(unsigned n_spans)
{
	return WEFT_RMA_MESSAGE_MAX - sizeof(struct weft_rma_head) -
	       n_spans * sizeof(struct weft_rma_span);
}

#endif
