/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_word.h - the words of the packet ring, see ring.h.  The one that publishes a slot: its
 * number, how far the packet's sender is with receiving, the length, how many packets share the
 * slot, and in which ring of data lines a long payload lies.  The receiver's: how far it is.
 */
#ifndef WEFT_RING_WORD_H
#define WEFT_RING_WORD_H

#include "base/base.h"

#define WEFT_RING_BYE 0x1ffffu /* in place of a length: the sender leaves in order */

/* Bits of a slot's word: 0 to 19, 20 to 41, 42 to 58, 59, 60 to 62, 63. */
#define WEFT_RING_NUMBER 0xfffffu
#define WEFT_RING_AT 20
#define WEFT_RING_AT_MASK 0x3fffffu
#define WEFT_RING_LEN 42
#define WEFT_RING_AGAIN ((uint64_t)1 << 59)
#define WEFT_RING_MORE 60
#define WEFT_RING_MORE_MASK 7u
#define WEFT_RING_IN_WIDE ((uint64_t)1 << 63)

static inline uint64_t weft_net_ring_make_word(uint32_t number, uint32_t len, uint32_t more)
{
	return (uint64_t)more << WEFT_RING_MORE | (uint64_t)len << WEFT_RING_LEN |
	       (number & WEFT_RING_NUMBER);
}

static inline bool weft_net_ring_word_is(uint64_t word, uint32_t number)
{
	return !(((uint32_t)word ^ number) & WEFT_RING_NUMBER);
}

static inline uint32_t weft_net_ring_word_more(uint64_t word)
{
	return (uint32_t)(word >> WEFT_RING_MORE) & WEFT_RING_MORE_MASK;
}

/* Payload bytes; an end, and what no sender writes, is longer than any packet. */
static inline uint32_t weft_net_ring_word_len(uint64_t word)
{
	return (uint32_t)(word >> WEFT_RING_LEN) & WEFT_RING_BYE;
}

/* How far the packet's sender was with receiving. */
static inline uint32_t weft_net_ring_word_at(uint64_t word)
{
	return (uint32_t)(word >> WEFT_RING_AT) & WEFT_RING_AT_MASK;
}

/* The receiver's word: slots in bits 40 to 63, lines of the wide ring in 20 to 39, of the narrow
 * one in 0 to 19. */
#define WEFT_RING_SEEN_LINES 0xfffffu

static inline uint64_t weft_net_ring_make_seen(uint32_t slots, uint32_t wide, uint32_t narrow)
{
	return (uint64_t)slots << 40 |
	       (uint64_t)(wide / WEFT_CACHELINE & WEFT_RING_SEEN_LINES) << 20 |
	       (narrow / WEFT_CACHELINE & WEFT_RING_SEEN_LINES);
}

/* How many slots it is further than that; negative: it is an older word. */
static inline int32_t weft_net_ring_seen_slots(uint64_t word, uint32_t from)
{
	return (int32_t)(((uint32_t)(word >> 40) - from) << 8) >> 8;
}

/* The same in bytes of a ring of data lines. */
static inline int32_t weft_net_ring_seen_bytes(uint64_t word, bool wide, uint32_t from)
{
	uint32_t lines = (uint32_t)(word >> (wide ? 20 : 0));
	return (int32_t)((lines - from / WEFT_CACHELINE) << 12) / (1 << 12) * WEFT_CACHELINE;
}

#endif
