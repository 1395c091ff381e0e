/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ready.h - which of a worker's threads are ready: a bit for each, with summary levels above.
 *
 * Two vectors over the same slots: `own` for what the worker itself makes ready, plain words under
 * its gate; `x_` for what others signal, atomic.  64 slots to a word, 64 words to a chunk with its
 * summary word, 64 chunks to a middle word, 64 of these to the top: 2^24 slots, chunks made as
 * needed and never moved.
 *
 * Callers   signal, signalled: anyone.  set, take: who holds the gate.
 * Order     what was written before signal() or set() is visible to who takes the slot.
 * Progress  signal: lock-free, one atomic instruction while its word has bits; two when it had
 * none. take: goes up from where the last one stopped and wraps: every slot that was ready when a
 * round began is taken within that round.
 *
 *            signal  set  take       .  together, no help needed
 *   signal     .      .     .        G  only under the gate
 *   set               G     G
 *   take                    G
 *
 * A level's bit says that the word below may have bits.  signal() sets from below; take() clears
 * from above and then looks below again, so a bit that both touch at once stays findable.
 */
#ifndef WEFT_ULT_READY_H
#define WEFT_ULT_READY_H

#include "base/base.h"

#define WEFT_READY_CHUNK 4096u /* slots */
#define WEFT_READY_CHUNKS 4096u
#define WEFT_READY_SLOTS (WEFT_READY_CHUNK * WEFT_READY_CHUNKS)

struct weft_ready_chunk {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_sum; /* signallers, taker */
	alignas(WEFT_CACHELINE) uint64_t sum;           /* G */
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_word[64];
	alignas(WEFT_CACHELINE) uint64_t word[64]; /* G */
};

struct weft_ready {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_top; /* signallers, taker */
	alignas(WEFT_CACHELINE) uint64_t top;           /* G */
	_Atomic uint64_t x_mid[64];
	uint64_t mid[64];                                              /* G */
	_Atomic(struct weft_ready_chunk *) x_chunk[WEFT_READY_CHUNKS]; /* once, under a lock */
};

static inline struct weft_ready_chunk *weft_ready_chunk(struct weft_ready *r, uint32_t c)
{
	/* HAVE: partner is the release store of whoever made the chunk. */
	return atomic_load_explicit(&r->x_chunk[c], memory_order_acquire);
}

static inline uint64_t weft_ready_bit(uint32_t i)
{
	return (uint64_t)1 << (i & 63);
}

/* The bits from i & 63 upwards. */
static inline uint64_t weft_ready_from(uint32_t i)
{
	return ~(uint64_t)0 << (i & 63);
}

/* Says in the levels above that chunk c has something. */
static inline void weft_ready_raise(struct weft_ready *r, uint32_t c)
{
	/* UP -> CLEAR (take).  Carries: the chunk's summary bit.  Without it a taker that clears
	 * our bit here could look below and not see why it was set. */
	if (atomic_fetch_or_explicit(&r->x_mid[c >> 6], weft_ready_bit(c), memory_order_acq_rel) ==
	    0)
		atomic_fetch_or_explicit(&r->x_top, weft_ready_bit(c >> 6), memory_order_seq_cst);
}

/* Makes slot ready, from anywhere. */
static inline void weft_ready_signal(struct weft_ready *r, uint32_t slot)
{
	uint32_t word = slot >> 6, c = word >> 6;
	struct weft_ready_chunk *k = weft_ready_chunk(r, c);
	/* SIG -> TAKE.  Carries: the thread's stored context, and what the signaller wrote.
	 * seq_cst: comes before the caller's look whether the worker sleeps. */
	uint64_t old = atomic_fetch_or_explicit(&k->x_word[word & 63], weft_ready_bit(slot),
						memory_order_seq_cst);
	/* Relaxed: seen set, it was set after the word below got its first bit and will be found,
	 * or its taker has yet to empty the word.  Not set though the word had bits: whoever put
	 * the first one there is half done; do it in its place. */
	uint64_t sum = atomic_load_explicit(&k->x_sum, memory_order_relaxed);
	if (old && (sum & weft_ready_bit(word)))
		return;
	/* UP -> CLEAR: as above, for the word's bits. */
	if (atomic_fetch_or_explicit(&k->x_sum, weft_ready_bit(word), memory_order_acq_rel) == 0 ||
	    old)
		weft_ready_raise(r, c);
}

/* Makes slot ready; the caller holds the gate. */
static inline void weft_ready_set(struct weft_ready *r, uint32_t slot)
{
	uint32_t word = slot >> 6, c = word >> 6;
	struct weft_ready_chunk *k = weft_ready_chunk(r, c);
	uint64_t old = k->word[word & 63];
	k->word[word & 63] = old | weft_ready_bit(slot);
	if (old)
		return;
	old = k->sum;
	k->sum = old | weft_ready_bit(word);
	if (old)
		return;
	r->mid[c >> 6] |= weft_ready_bit(c);
	r->top |= weft_ready_bit(c >> 6);
}

/* Has anybody signalled something?  Anyone may ask; what is taken meanwhile may show or not. */
static inline bool weft_ready_signalled(struct weft_ready *r)
{
	/* seq_cst: comes after the worker has said that it will sleep, see worker.c. */
	return atomic_load_explicit(&r->x_top, memory_order_seq_cst) != 0;
}

/* The shared side of chunk c has become empty: say so above, unless a signal comes. */
static inline void weft_ready_lower(struct weft_ready *r, uint32_t c)
{
	struct weft_ready_chunk *k = weft_ready_chunk(r, c);
	uint64_t bit = weft_ready_bit(c), up = weft_ready_bit(c >> 6);
	/* CLEAR <- UP, twice: then look below again. */
	uint64_t mid =
		atomic_fetch_and_explicit(&r->x_mid[c >> 6], ~bit, memory_order_acq_rel) & ~bit;
	if (atomic_load_explicit(&k->x_sum, memory_order_acquire)) {
		weft_ready_raise(r, c);
		return;
	}
	if (mid)
		return;
	atomic_fetch_and_explicit(&r->x_top, ~up, memory_order_acq_rel);
	if (atomic_load_explicit(&r->x_mid[c >> 6], memory_order_acquire))
		atomic_fetch_or_explicit(&r->x_top, up, memory_order_seq_cst);
}

/* Takes the bits of a word; 0: it had none. */
static inline uint64_t weft_ready_claim(struct weft_ready *r, uint32_t word)
{
	uint32_t c = word >> 6;
	struct weft_ready_chunk *k = weft_ready_chunk(r, c);
	uint64_t bit = weft_ready_bit(word), bits = k->word[word & 63];
	if (bits) {
		k->word[word & 63] = 0;
		k->sum &= ~bit;
		if (!k->sum) {
			r->mid[c >> 6] &= ~weft_ready_bit(c);
			if (!r->mid[c >> 6])
				r->top &= ~weft_ready_bit(c >> 6);
		}
	}
	/* Relaxed: a hint; the exchange below decides. */
	if (!(atomic_load_explicit(&k->x_sum, memory_order_relaxed) & bit))
		return bits;
	/* CLEAR <- UP. */
	uint64_t sum = atomic_fetch_and_explicit(&k->x_sum, ~bit, memory_order_acq_rel) & ~bit;
	/* TAKE <- SIG.  Without it we could jump to a context that is not yet stored. */
	bits |= atomic_exchange_explicit(&k->x_word[word & 63], 0, memory_order_acq_rel);
	if (!sum)
		weft_ready_lower(r, c);
	return bits;
}

/* The first chunk from c on that may have something; WEFT_READY_CHUNKS: none. */
static inline uint32_t weft_ready_next_chunk(struct weft_ready *r, uint32_t c)
{
	uint32_t m = c >> 6;
	uint64_t mask = weft_ready_from(c);
	uint64_t tops = weft_ready_from(m);
	for (;;) { /* ends: tops loses a bit each time */
		/* Relaxed, here and below: hints where to look; a signal whose bit we do not see
		 * yet is found in the next round, or by the look before the worker sleeps. */
		uint64_t top =
			(r->top | atomic_load_explicit(&r->x_top, memory_order_relaxed)) & tops;
		if (!top)
			return WEFT_READY_CHUNKS;
		uint32_t t = (uint32_t)__builtin_ctzll(top);
		if (t != m)
			mask = ~(uint64_t)0;
		uint64_t mid =
			(r->mid[t] | atomic_load_explicit(&r->x_mid[t], memory_order_relaxed)) &
			mask;
		if (mid)
			return t << 6 | (uint32_t)__builtin_ctzll(mid);
		if (t == 63)
			return WEFT_READY_CHUNKS;
		tops = weft_ready_from(t + 1);
	}
}

/* Puts bits of a word back that were taken and not used. */
static inline void weft_ready_put_back(struct weft_ready *r, uint32_t word, uint64_t bits)
{
	weft_ready_set(r, word << 6 | (uint32_t)__builtin_ctzll(bits));
	weft_ready_chunk(r, word >> 6)->word[word & 63] |= bits;
}

/* Takes a word's bits from slot on and leaves the lower ones; 0: it has none there. */
static inline uint64_t weft_ready_claim_from(struct weft_ready *r, uint32_t slot)
{
	uint32_t word = slot >> 6;
	struct weft_ready_chunk *k = weft_ready_chunk(r, word >> 6);
	uint64_t from = weft_ready_from(slot);
	/* Relaxed: a hint, the claim orders. */
	uint64_t seen = k->word[word & 63] |
			atomic_load_explicit(&k->x_word[word & 63], memory_order_relaxed);
	if (!(seen & from))
		return 0;
	uint64_t bits = weft_ready_claim(r, word), low = bits & ~from;
	if (low)
		weft_ready_put_back(r, word, low);
	return bits & from;
}

/* The first word of the chunks from c on that may have bits; ~0: none. */
static inline uint32_t weft_ready_next_word(struct weft_ready *r, uint32_t c)
{
	while (c < WEFT_READY_CHUNKS && /* ends: c grows */
	       (c = weft_ready_next_chunk(r, c)) < WEFT_READY_CHUNKS) {
		struct weft_ready_chunk *k = weft_ready_chunk(r, c);
		uint64_t sum = k->sum | atomic_load_explicit(&k->x_sum, memory_order_relaxed);
		if (sum)
			return c << 6 | (uint32_t)__builtin_ctzll(sum);
		weft_ready_lower(r, c); /* its bit above was left over */
		c++;
	}
	return ~0u;
}

/*
 * Takes ready slots of one word, the first at or after slot `at` and round from there; 0: nothing
 * is ready.  *word_p: which word.  The caller goes on behind the last one that it ran.
 */
static inline uint64_t weft_ready_take(struct weft_ready *r, uint32_t at, uint32_t *word_p)
{
	uint32_t word = at >> 6, c = word >> 6;
	struct weft_ready_chunk *k = c < WEFT_READY_CHUNKS ? weft_ready_chunk(r, c) : NULL;
	bool wrapped = false;
	if (k) {
		uint64_t bits = weft_ready_claim_from(r, at), sum = 0;
		*word_p = word;
		if (bits)
			return bits;
		if ((word & 63) != 63)
			sum = (k->sum | atomic_load_explicit(&k->x_sum, memory_order_relaxed)) &
			      weft_ready_from(word + 1);
		word = sum ? c << 6 | (uint32_t)__builtin_ctzll(sum)
			   : weft_ready_next_word(r, c + 1);
	} else {
		word = ~0u;
	}
	for (;;) { /* ends: found, or round once; a word that was empty is behind us */
		if (word == ~0u) {
			if (wrapped || (!r->top && !weft_ready_signalled(r)))
				return 0;
			wrapped = true;
			word = weft_ready_next_word(r, 0);
			continue;
		}
		uint64_t bits = weft_ready_claim(r, word);
		*word_p = word;
		if (bits)
			return bits;
		c = word >> 6;
		k = weft_ready_chunk(r, c);
		uint64_t sum =
			(word & 63) == 63
				? 0
				: (k->sum | atomic_load_explicit(&k->x_sum, memory_order_relaxed)) &
					  weft_ready_from(word + 1);
		word = sum ? c << 6 | (uint32_t)__builtin_ctzll(sum)
			   : weft_ready_next_word(r, c + 1);
	}
}

#endif
