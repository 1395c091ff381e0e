/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ready.h - which of a worker's threads are ready: a bit for each, with summary levels above.
 *
 * Two vectors over the same slots: `own` for what the worker itself makes ready, plain words under
 * its lock; `x_` for what others signal, atomic.  64 slots to a word, 64 words to a chunk with its
 * summary word, 64 chunks to a middle word, 64 of these to the top: 2^24 slots, chunks made as
 * needed and never moved.  A signal that finds x_mail empty is left there: one cache line goes over
 * instead of four.
 *
 * Callers   signal, signalled: any thread.  set, pick: the lock's holder.
 * Order     what was written before signal() or set() is visible to the picker of the slot.
 * Progress  signal: lock-free, one atomic instruction; two to four when the mail and the word are
 *           in use.  pick: the first slot after `last`, and round from there; every slot that was
 *           ready when a round began is picked within that round.
 *
 *            signal  set  pick       .  together, no help needed
 *   signal     .      .     .        L  only under the lock
 *   set               L     L
 *   pick                    L
 *
 * A level's bit says that the word below may have bits.  signal() sets from below.  pick() clears
 * from above and then looks below again, so a bit that both touch at once stays findable; of its
 * own levels it clears a bit only when it finds nothing below.
 */
#ifndef WEFT_ULT_READY_H
#define WEFT_ULT_READY_H

#include "base/assert.h"
#include "base/base.h"

#define WEFT_READY_CHUNK 4096u /* slots */
#define WEFT_READY_CHUNKS 4096u
#define WEFT_READY_SLOTS (WEFT_READY_CHUNK * WEFT_READY_CHUNKS)
#define WEFT_READY_NONE (~0u)

struct weft_ready_chunk {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_sum; /* signallers, taker */
	alignas(WEFT_CACHELINE) uint64_t sum;           /* L */
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_word[64];
	alignas(WEFT_CACHELINE) uint64_t word[64]; /* L */
};

struct weft_ready {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_mail; /* a slot + 1, signallers; 0: none, L */
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_top;  /* signallers, taker */
	alignas(WEFT_CACHELINE) uint64_t top;            /* L */
	_Atomic uint32_t x_count; /* L: bits of the own vector; others read it as a hint */
	_Atomic uint64_t x_mid[64];
	uint64_t mid[64];                                              /* L */
	_Atomic(struct weft_ready_chunk *) x_chunk[WEFT_READY_CHUNKS]; /* once, under a lock */
};

static inline struct weft_ready_chunk *weft_ult_ready_chunk(struct weft_ready *r, uint32_t c)
{
	/* HAVE: partner is the release store of the chunk's maker. */
	return atomic_load_explicit(&r->x_chunk[c], memory_order_acquire);
}

static inline uint64_t weft_ult_ready_bit(uint32_t i)
{
	return (uint64_t)1 << (i & 63);
}

/* The bits from i & 63 upwards. */
static inline uint64_t weft_ult_ready_from(uint32_t i)
{
	return ~(uint64_t)0 << (i & 63);
}

/* Says in the levels above that chunk c has something. */
static inline void weft_ult_ready_raise(struct weft_ready *r, uint32_t c)
{
	/* UP -> CLEAR (take).  Carries: the chunk's summary bit.  Without it a taker that clears
	 * our bit here could look below and not see why it was set. */
	if (atomic_fetch_or_explicit(&r->x_mid[c >> 6], weft_ult_ready_bit(c),
				     memory_order_acq_rel) == 0)
		atomic_fetch_or_explicit(&r->x_top, weft_ult_ready_bit(c >> 6),
					 memory_order_seq_cst);
}

/* Makes slot ready in the shared vector. */
static inline void weft_ult_ready_signal_word(struct weft_ready *r, uint32_t slot)
{
	uint32_t word = slot >> 6, c = word >> 6;
	struct weft_ready_chunk *k = weft_ult_ready_chunk(r, c);
	/* SIG -> TAKE.  Carries: the thread's stored context, and what the signaller wrote.
	 * seq_cst: comes before the caller's look whether the worker sleeps. */
	uint64_t old = atomic_fetch_or_explicit(&k->x_word[word & 63], weft_ult_ready_bit(slot),
						memory_order_seq_cst);
	/* Relaxed: seen set, it was set after the word below got its first bit and will be found,
	 * or its taker has yet to empty the word.  Not set though the word had bits: the
	 * signaller of the first one is half done; do it in its place. */
	uint64_t sum = atomic_load_explicit(&k->x_sum, memory_order_relaxed);
	if (old && (sum & weft_ult_ready_bit(word)))
		return;
	/* UP -> CLEAR: as above, for the word's bits. */
	if (atomic_fetch_or_explicit(&k->x_sum, weft_ult_ready_bit(word), memory_order_acq_rel) ==
		    0 ||
	    old)
		weft_ult_ready_raise(r, c);
}

/* Makes slot ready, from anywhere. */
static inline void weft_ult_ready_signal(struct weft_ready *r, uint32_t slot)
{
	uint32_t none = 0;
	/* Relaxed: a hint.  MAIL -> FETCH.  Carries, and seq_cst: as SIG. */
	if (atomic_load_explicit(&r->x_mail, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong_explicit(&r->x_mail, &none, slot + 1,
						     memory_order_seq_cst, memory_order_relaxed))
		weft_ult_ready_signal_word(r, slot);
}

static inline void weft_ult_ready_count(struct weft_ready *r, uint32_t more)
{
	/* Relaxed: one writer at a time, and the lock orders them. */
	atomic_store_explicit(&r->x_count,
			      atomic_load_explicit(&r->x_count, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

/* Adds bits to a word of the own vector; the caller holds the lock. */
static inline void weft_ult_ready_add(struct weft_ready *r, uint32_t word, uint64_t bits)
{
	uint32_t c = word >> 6;
	struct weft_ready_chunk *k = weft_ult_ready_chunk(r, c);
	weft_assert(!(k->word[word & 63] & bits)); /* each is made ready once */
	k->word[word & 63] |= bits;
	if (k->sum & weft_ult_ready_bit(word))
		return; /* and so are the levels above */
	k->sum |= weft_ult_ready_bit(word);
	r->mid[c >> 6] |= weft_ult_ready_bit(c);
	r->top |= weft_ult_ready_bit(c >> 6);
}

/* Makes slot ready; the caller holds the lock. */
static inline void weft_ult_ready_set(struct weft_ready *r, uint32_t slot)
{
	weft_ult_ready_add(r, slot >> 6, weft_ult_ready_bit(slot));
	weft_ult_ready_count(r, 1);
}

/* Is something signalled?  Any thread may ask; what is taken meanwhile may show or not. */
static inline bool weft_ult_ready_signalled(struct weft_ready *r)
{
	/* seq_cst: comes after the worker has said that it will sleep, see worker.c. */
	return atomic_load_explicit(&r->x_mail, memory_order_seq_cst) != 0 ||
	       atomic_load_explicit(&r->x_top, memory_order_seq_cst) != 0;
}

/* Puts the mail into the own vector. */
static inline void weft_ult_ready_fetch(struct weft_ready *r)
{
	/* FETCH <- MAIL.  Without it we could jump to a context that is not yet stored. */
	uint32_t mail = atomic_load_explicit(&r->x_mail, memory_order_acquire);
	if (weft_likely(!mail))
		return;
	/* Relaxed: only the lock's holder takes mail out; a signaller needs nothing of us. */
	atomic_store_explicit(&r->x_mail, 0, memory_order_relaxed);
	weft_ult_ready_set(r, mail - 1);
}

/* The shared side of middle word m has become empty: say so above, unless a signal comes. */
static inline void weft_ult_ready_lower_top(struct weft_ready *r, uint32_t m)
{
	/* CLEAR <- UP: then look below again. */
	atomic_fetch_and_explicit(&r->x_top, ~weft_ult_ready_bit(m), memory_order_acq_rel);
	if (atomic_load_explicit(&r->x_mid[m], memory_order_acquire))
		atomic_fetch_or_explicit(&r->x_top, weft_ult_ready_bit(m), memory_order_seq_cst);
}

/* The same for chunk c. */
static inline void weft_ult_ready_lower(struct weft_ready *r, uint32_t c)
{
	struct weft_ready_chunk *k = weft_ult_ready_chunk(r, c);
	uint64_t bit = weft_ult_ready_bit(c);
	/* CLEAR <- UP. */
	uint64_t mid =
		atomic_fetch_and_explicit(&r->x_mid[c >> 6], ~bit, memory_order_acq_rel) & ~bit;
	if (atomic_load_explicit(&k->x_sum, memory_order_acquire))
		weft_ult_ready_raise(r, c);
	else if (!mid)
		weft_ult_ready_lower_top(r, c >> 6);
}

/* Puts what was signalled in a word into the own one; returns its bits. */
static inline uint64_t weft_ult_ready_gather(struct weft_ready *r, uint32_t word)
{
	uint32_t c = word >> 6;
	struct weft_ready_chunk *k = weft_ult_ready_chunk(r, c);
	uint64_t bit = weft_ult_ready_bit(word);
	/* Relaxed: a hint; the exchange below decides. */
	if (atomic_load_explicit(&k->x_sum, memory_order_relaxed) & bit) {
		/* CLEAR <- UP. */
		uint64_t sum =
			atomic_fetch_and_explicit(&k->x_sum, ~bit, memory_order_acq_rel) & ~bit;
		/* TAKE <- SIG.  Without it we could jump to a context that is not yet stored. */
		uint64_t bits =
			atomic_exchange_explicit(&k->x_word[word & 63], 0, memory_order_acq_rel);
		if (!sum)
			weft_ult_ready_lower(r, c);
		if (bits) {
			weft_ult_ready_add(r, word, bits);
			weft_ult_ready_count(r, (uint32_t)__builtin_popcountll(bits));
		}
	}
	if (!k->word[word & 63])
		k->sum &= ~bit;
	return k->word[word & 63];
}

/* The first chunk from c on that may have something; WEFT_READY_CHUNKS: none. */
static inline uint32_t weft_ult_ready_next_chunk(struct weft_ready *r, uint32_t c)
{
	while (c < WEFT_READY_CHUNKS) { /* ends: c grows */
		uint32_t m = c >> 6;
		/* Relaxed, here and below: hints where to look; a signal whose bit we do not see
		 * yet is found in the next round, or by the look before the worker sleeps. */
		uint64_t shared = atomic_load_explicit(&r->x_mid[m], memory_order_relaxed);
		uint64_t mid = (r->mid[m] | shared) & weft_ult_ready_from(c);
		if (mid)
			return m << 6 | (uint32_t)__builtin_ctzll(mid);
		uint64_t top = atomic_load_explicit(&r->x_top, memory_order_relaxed);
		if (!r->mid[m])
			r->top &= ~weft_ult_ready_bit(m);
		if (!shared && (top & weft_ult_ready_bit(m)))
			/* Left over by a signaller that was late to set it. */
			weft_ult_ready_lower_top(r, m);
		top = (r->top | top) & (m == 63 ? 0 : weft_ult_ready_from(m + 1));
		c = top ? (uint32_t)__builtin_ctzll(top) << 6 : WEFT_READY_CHUNKS;
	}
	return WEFT_READY_CHUNKS;
}

/* The first word from `word` on that may have bits; WEFT_READY_NONE: none. */
static inline uint32_t weft_ult_ready_next_word(struct weft_ready *r, uint32_t word)
{
	uint32_t c = word >> 6;
	uint64_t from = weft_ult_ready_from(word);
	if (c >= WEFT_READY_CHUNKS || !weft_ult_ready_chunk(r, c)) {
		c = weft_ult_ready_next_chunk(r, c);
		from = ~(uint64_t)0;
	}
	while (c < WEFT_READY_CHUNKS) { /* ends: c grows */
		struct weft_ready_chunk *k = weft_ult_ready_chunk(r, c);
		uint64_t shared = atomic_load_explicit(&k->x_sum, memory_order_relaxed);
		if ((k->sum | shared) & from)
			return c << 6 | (uint32_t)__builtin_ctzll((k->sum | shared) & from);
		if (!k->sum)
			r->mid[c >> 6] &= ~weft_ult_ready_bit(c);
		if (!shared && (atomic_load_explicit(&r->x_mid[c >> 6], memory_order_relaxed) &
				weft_ult_ready_bit(c)))
			weft_ult_ready_lower(r, c); /* its bit above was left over */
		c = weft_ult_ready_next_chunk(r, c + 1);
		from = ~(uint64_t)0;
	}
	return WEFT_READY_NONE;
}

/* Takes a slot out of the own vector. */
static inline void weft_ult_ready_clear(struct weft_ready *r, uint32_t slot)
{
	weft_assert(weft_ult_ready_chunk(r, slot >> 12)->word[slot >> 6 & 63] &
		    weft_ult_ready_bit(slot));
	weft_ult_ready_chunk(r, slot >> 12)->word[slot >> 6 & 63] &= ~weft_ult_ready_bit(slot);
	weft_ult_ready_count(r, ~0u);
}

/* pick() when the word of `last` has nothing more: the words behind it, and round. */
static inline uint32_t weft_ult_ready_pick_far(struct weft_ready *r, uint32_t last)
{
	uint32_t word = weft_ult_ready_next_word(r, (last >> 6) + 1);
	bool wrapped = false;
	for (;;) { /* ends: found, or round once; a word that was empty is behind us */
		if (word == WEFT_READY_NONE) {
			if (wrapped)
				return WEFT_READY_NONE;
			wrapped = true;
			word = weft_ult_ready_next_word(r, 0);
			continue;
		}
		uint64_t bits = weft_ult_ready_gather(r, word);
		if (bits)
			return word << 6 | (uint32_t)__builtin_ctzll(bits);
		word = weft_ult_ready_next_word(r, word + 1);
	}
}

/* Are all the ready slots in this word of chunk k, and nothing signalled? */
static inline bool weft_ult_ready_all_in_word(struct weft_ready *r,
					      const struct weft_ready_chunk *k, uint32_t word)
{
	uint32_t c = word >> 6;
	return k && k->word[word & 63] && k->sum == weft_ult_ready_bit(word) &&
	       r->mid[c >> 6] == weft_ult_ready_bit(c) && r->top == weft_ult_ready_bit(c >> 6) &&
	       !atomic_load_explicit(&r->x_top, memory_order_relaxed);
}

/* Asserts what holds of the own vector under the lock: the count is that of the bits, and each level
 * says so where the one below has bits. */
static inline void weft_ult_ready_check(struct weft_ready *r)
{
	uint32_t bits = 0;
	for (uint32_t c = 0; c < WEFT_READY_CHUNKS; c++) {
		struct weft_ready_chunk *k = weft_ult_ready_chunk(r, c);
		for (uint32_t i = 0; k && i < 64; i++) {
			bits += (uint32_t)__builtin_popcountll(k->word[i]);
			weft_assert(!k->word[i] || (k->sum & weft_ult_ready_bit(i)));
		}
		weft_assert(!k || !k->sum || (r->mid[c >> 6] & weft_ult_ready_bit(c)));
	}
	for (uint32_t m = 0; m < 64; m++)
		weft_assert(!r->mid[m] || (r->top & weft_ult_ready_bit(m)));
	weft_assert(bits == atomic_load_explicit(&r->x_count, memory_order_relaxed));
	(void)bits;
}

/*
 * The first ready slot after `last`, and round from there; it is taken out.  WEFT_READY_NONE:
 * nothing is ready.
 */
static inline uint32_t weft_ult_ready_pick(struct weft_ready *r, uint32_t last)
{
	struct weft_ready_chunk *k = weft_ult_ready_chunk(r, last >> 12);
	uint32_t slot = WEFT_READY_NONE;
	weft_ult_ready_fetch(r);
	if (weft_likely(k != NULL)) {
		uint64_t bits = k->word[last >> 6 & 63] & (~(uint64_t)1 << (last & 63));
		if (bits)
			slot = (last & ~63u) | (uint32_t)__builtin_ctzll(bits);
	}
	if (slot == WEFT_READY_NONE) {
		/* Relaxed: seen a round later, or by the look before the worker sleeps. */
		if (!atomic_load_explicit(&r->x_count, memory_order_relaxed) &&
		    !atomic_load_explicit(&r->x_top, memory_order_relaxed))
			return WEFT_READY_NONE;
		slot = weft_ult_ready_all_in_word(r, k, last >> 6)
			       ? (last & ~63u) | (uint32_t)__builtin_ctzll(k->word[last >> 6 & 63])
			       : weft_ult_ready_pick_far(r, last);
		if (slot == WEFT_READY_NONE)
			return slot;
	}
	weft_ult_ready_clear(r, slot);
	return slot;
}

#endif
