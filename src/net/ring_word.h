/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_word.h - the word that publishes a slot of the packet ring, see ring.h: its number, how far
 * the packet's sender is with receiving, the length, and how many packets share the slot.
 */
#ifndef WEFT_RING_WORD_H
#define WEFT_RING_WORD_H

#include "base/base.h"

#define WEFT_RING_BYE 0x1ffffu /* in place of a length: the sender leaves in order */

/* Bits of a word: 0 to 19, 20 to 41, 42 to 58, 59, 60 to 63. */
#define WEFT_RING_NUMBER 0xfffffu
#define WEFT_RING_AT 20
#define WEFT_RING_AT_MASK 0x3fffffu
#define WEFT_RING_LEN 42
#define WEFT_RING_AGAIN ((uint64_t)1 << 59)
#define WEFT_RING_MORE 60

static inline uint64_t weft_ring_make_word(uint32_t number, uint32_t len, uint32_t more)
{
	return (uint64_t)more << WEFT_RING_MORE | (uint64_t)len << WEFT_RING_LEN |
	       (number & WEFT_RING_NUMBER);
}

static inline bool weft_ring_word_is(uint64_t word, uint32_t number)
{
	return !(((uint32_t)word ^ number) & WEFT_RING_NUMBER);
}

static inline uint32_t weft_ring_word_more(uint64_t word)
{
	return (uint32_t)(word >> WEFT_RING_MORE);
}

/* Payload bytes; an end, and what no sender writes, is longer than any packet. */
static inline uint32_t weft_ring_word_len(uint64_t word)
{
	return (uint32_t)(word >> WEFT_RING_LEN) & WEFT_RING_BYE;
}

/* How far the packet's sender was with receiving. */
static inline uint32_t weft_ring_word_at(uint64_t word)
{
	return (uint32_t)(word >> WEFT_RING_AT) & WEFT_RING_AT_MASK;
}

#endif
