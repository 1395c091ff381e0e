/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ready_bits.h - which of n items are ready: any thread sets them, one thread at a time takes them
 * out as runs of neighbours.
 *
 * Callers   set, set_mask: any thread.  gather, run, reset: the holder of a mask (mask.h).
 * Owner     the memory is the caller's.  An item is the setter's until set, then the taker's.
 * Order     what was written before set() is visible to the holder that run() gives the item to.
 * Progress  set: wait-free, one locked instruction; two where the item is the first of its word.
 * Promise   an item is taken once, also when it is set twice; a second set says so.  The setter that
 *           is told FIRST tries the mask after it and takes, or has a thread do so: then no item stays
 *           behind.
 *
 *            set  gather, run    .  together, no help needed     L  only under the mask
 *   set       .        .
 *   gather    .        L
 *
 * A bit stays in its word until reset, so a second set is seen.  A bit of the level above says that its
 * word may have items that were not gathered: a setter looks at it after its set, the holder takes it
 * before it looks at the word; all four are seq_cst, so one of the two sees the other.
 */
#ifndef WEFT_READY_BITS_H
#define WEFT_READY_BITS_H

#include <string.h>

#include "base/base.h"

struct weft_ready_bits {
	uint32_t items, words;     /* I */
	_Atomic uint64_t *x_word;  /* setters add: ready */
	_Atomic uint64_t *x_top;   /* setters add, C takes: words that may have items */
	uint64_t *taken;           /* C: gathered out of the words */
	uint64_t *mine, *mine_top; /* C: of these, not yet handed out */
	uint32_t at;               /* C: the word in which the next search begins */
};

enum weft_ready {
	WEFT_READY_ADDED, /* beside others that another thread has told of */
	WEFT_READY_FIRST, /* no thread may know of it: look, or have a thread look */
	WEFT_READY_TWICE, /* it was ready before; nothing changed */
};

#define WEFT_READY_WORD 64u

static inline uint32_t weft_ready_words(uint32_t items)
{
	return (uint32_t)(((uint64_t)items + WEFT_READY_WORD - 1) / WEFT_READY_WORD);
}

/* What init() needs for up to that many items. */
static inline size_t weft_ready_bits_bytes(uint32_t most)
{
	size_t words = weft_ready_words(most), tops = weft_ready_words((uint32_t)words);
	return (3 * words + 2 * tops) * sizeof(uint64_t);
}

/* memory: aligned to 8.  Without items: reset says how many there are. */
static inline void weft_ready_bits_init(struct weft_ready_bits *b, uint32_t most, void *memory)
{
	size_t words = weft_ready_words(most), tops = weft_ready_words((uint32_t)words);

	memset(memory, 0, weft_ready_bits_bytes(most));
	b->items = b->words = 0;
	b->x_word = memory;
	b->x_top = b->x_word + words;
	b->taken = (uint64_t *)memory + words + tops;
	b->mine = b->taken + words;
	b->mine_top = b->mine + words;
	b->at = 0;
}

/* The bits of a word that stand for items. */
static inline uint64_t weft_ready_full(const struct weft_ready_bits *b, uint32_t word)
{
	uint32_t rest = b->items - word * WEFT_READY_WORD;
	return rest >= WEFT_READY_WORD ? ~UINT64_C(0) : (UINT64_C(1) << rest) - 1;
}

/* A new round, of that many items; none is ready.  Under the mask. */
static inline void weft_ready_bits_reset(struct weft_ready_bits *b, uint32_t items)
{
	/* Relaxed, all: what hands the items' new round to the setters orders it.  A setter of the last
	 * round may still add to x_top; that is a look for nothing. */
	for (uint32_t w = 0; w < b->words; w++) {
		atomic_store_explicit(&b->x_word[w], 0, memory_order_relaxed);
		b->taken[w] = b->mine[w] = 0;
	}
	for (uint32_t t = 0; t < weft_ready_words(b->words); t++) {
		atomic_store_explicit(&b->x_top[t], 0, memory_order_relaxed);
		b->mine_top[t] = 0;
	}
	b->items = items;
	b->words = weft_ready_words(items);
	b->at = 0;
}

/* Sets the items of one word; *after_p: those of it that are ready.  TWICE: at least one was before, the
 * others are set. */
static inline enum weft_ready weft_ready_bits_set_mask(struct weft_ready_bits *b, uint32_t word,
						       uint64_t bits, uint64_t *after_p)
{
	uint64_t top = UINT64_C(1) << word % WEFT_READY_WORD;
	/* READY -> TOOK (take_word).  Carries: the items' contents; and stands before our look at the
	 * level above.  Without it the taker could read them before they are written. */
	uint64_t old = atomic_fetch_or_explicit(&b->x_word[word], bits, memory_order_seq_cst);
	bool known =
		atomic_load_explicit(&b->x_top[word / WEFT_READY_WORD], memory_order_seq_cst) & top;

	*after_p = old | bits;
	if (!known)
		/* TELL -> HEAR (gather).  Carries: that the word has items.  Without it the taker could
		 * take the bit and find the word as it was before. */
		atomic_fetch_or_explicit(&b->x_top[word / WEFT_READY_WORD], top,
					 memory_order_seq_cst);
	if (weft_unlikely(old & bits))
		return WEFT_READY_TWICE;
	return known ? WEFT_READY_ADDED : WEFT_READY_FIRST;
}

static inline enum weft_ready weft_ready_bits_set(struct weft_ready_bits *b, uint32_t item,
						  uint64_t *after_p)
{
	return weft_ready_bits_set_mask(b, item / WEFT_READY_WORD,
					UINT64_C(1) << item % WEFT_READY_WORD, after_p);
}

/* Takes what one word has. */
static inline void weft_ready_bits_take_word(struct weft_ready_bits *b, uint32_t word)
{
	/* TOOK <- READY (set).  Carries: the items' contents. */
	uint64_t ready = atomic_load_explicit(&b->x_word[word], memory_order_seq_cst);

	b->mine[word] |= ready & ~b->taken[word];
	b->taken[word] = ready;
	if (b->mine[word])
		b->mine_top[word / WEFT_READY_WORD] |= UINT64_C(1) << word % WEFT_READY_WORD;
}

/* Takes what all words have that were told of. */
static inline void weft_ready_bits_gather(struct weft_ready_bits *b)
{
	for (uint32_t t = 0; t < weft_ready_words(b->words); t++) {
		/* Relaxed: a bit that is missed has a setter that looks, or has a thread look, after it. */
		if (!atomic_load_explicit(&b->x_top[t], memory_order_relaxed))
			continue;
		/* HEAR <- TELL (set).  Carries: that these words have items. */
		uint64_t top = atomic_exchange_explicit(&b->x_top[t], 0, memory_order_seq_cst);
		for (; top; top &= top - 1) /* ends: a bit less each round */
			weft_ready_bits_take_word(b, t * WEFT_READY_WORD +
							     (uint32_t)__builtin_ctzll(top));
	}
}

/* The first word with items at or behind `from`, or b->words. */
static inline uint32_t weft_ready_bits_find(const struct weft_ready_bits *b, uint32_t from)
{
	uint32_t t = from / WEFT_READY_WORD, tops = weft_ready_words(b->words);
	uint64_t mask = ~UINT64_C(0) << from % WEFT_READY_WORD;

	for (; t < tops; t++, mask = ~UINT64_C(0))
		if (b->mine_top[t] & mask)
			return t * WEFT_READY_WORD +
			       (uint32_t)__builtin_ctzll(b->mine_top[t] & mask);
	return b->words;
}

/* Hands out up to n neighbours, all gathered before: their number; *first_p: the first. */
static inline uint32_t weft_ready_bits_run(struct weft_ready_bits *b, uint32_t n, uint32_t *first_p)
{
	uint32_t w = weft_ready_bits_find(b, b->at), got = 0;

	if (w == b->words && b->at)
		w = weft_ready_bits_find(b, 0);
	if (w == b->words)
		return 0;
	uint32_t bit = (uint32_t)__builtin_ctzll(b->mine[w]);
	*first_p = w * WEFT_READY_WORD + bit;
	while (got < n && w < b->words) { /* ends: a word further each round, or at a gap */
		uint64_t gaps = ~(b->mine[w] >> bit);
		uint32_t here = gaps ? (uint32_t)__builtin_ctzll(gaps) : WEFT_READY_WORD;
		if (here > WEFT_READY_WORD - bit)
			here = WEFT_READY_WORD - bit;
		bool ends = bit + here < WEFT_READY_WORD;
		if (here > n - got) {
			here = n - got;
			ends = true;
		}
		uint64_t bits =
			here == WEFT_READY_WORD ? ~UINT64_C(0) : ((UINT64_C(1) << here) - 1) << bit;
		b->mine[w] &= ~bits;
		if (!b->mine[w])
			b->mine_top[w / WEFT_READY_WORD] &= ~(UINT64_C(1) << w % WEFT_READY_WORD);
		got += here;
		b->at = w;
		if (ends)
			break;
		w++;
		bit = 0;
	}
	return got;
}

#endif
