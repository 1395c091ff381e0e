/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_tx.h - the sending half of ring.h: room, beginning again, publishing. */
#ifndef WEFT_RING_TX_H
#define WEFT_RING_TX_H

#include "base/copy.h"
#include "base/mechanism.h"
#include "net/shm/ring.h"

/* Reads the receiver's word again.  False: it makes no sense. */
bool weft_net_ring_refresh(struct weft_ring_tx *tx);

static inline bool weft_net_ring_lane_room(const struct weft_ring_lane_tx *l, uint32_t len)
{
	uint32_t skip;
	return weft_net_ring_take_size(l->size, l->put - l->base, len, &skip) <=
	       l->size - (l->put - l->seen);
}

/* Is there room for a packet of len payload bytes, as far as we know? */
static inline bool weft_net_ring_room(const struct weft_ring_tx *tx, uint32_t len)
{
	if (tx->put - tx->seen > tx->slot_mask)
		return false;
	return len <= WEFT_RING_INLINE ||
	       weft_net_ring_lane_room(&tx->lane[WEFT_RING_NARROW], len) ||
	       weft_net_ring_lane_room(&tx->lane[WEFT_RING_WIDE], len);
}

static inline void weft_net_ring_gather(uint8_t *to, const struct iovec *iov, unsigned n,
					size_t len)
{
	if (weft_likely(n == 1)) {
		weft_copy_bytes(to, iov[0].iov_base, len);
		return;
	}
	/* Ends with the pieces, or when len bytes are copied. */
	for (unsigned i = 0; i < n && len; i++) {
		size_t part = iov[i].iov_len < len ? iov[i].iov_len : len;
		if (part)
			memcpy(to, iov[i].iov_base, part);
		to += part;
		len -= part;
	}
}

/* How far we have received, for a word. */
static inline uint64_t weft_net_ring_carried(const struct weft_ring_tx *tx)
{
	/* CARRY <- HAVE (weft_net_ring_go).  Carries: those packets have been read.  Without it the
	 * peer could write over what our poller still reads. */
	uint64_t at = atomic_load_explicit(&tx->back->x_at, memory_order_acquire);
	return (at & WEFT_RING_AT_MASK) << WEFT_RING_AT;
}

/*
 * Begins again if the receiver has everything.  What it had 2^20 slots ago would look the same, but
 * refresh() has seen to it that so old a word is known as stale.  Once per SWEEP all slots are
 * written in a row, so that no number of a lap of 2^20 is left in any.
 */
static inline bool weft_net_ring_begin(struct weft_ring_tx *tx)
{
	/* HEARD <- HEAR (weft_net_ring_heard).  Carries: the receiver's reads are over. */
	uint64_t word = atomic_load_explicit(&tx->back->x_word, memory_order_acquire);
	if (weft_net_ring_word_at(word) != (tx->all & WEFT_RING_AT_MASK) ||
	    !weft_mechanism_on(WEFT_MECH_RING_AGAIN))
		return false;
	if (weft_unlikely((tx->put + WEFT_RING_SWEEP / 2) % WEFT_RING_SWEEP <= 2 * tx->slot_mask ||
			  (((uint32_t)word - tx->stale) & WEFT_RING_NUMBER) > WEFT_RING_NUMBER / 2))
		return false;
	tx->base = tx->seen = tx->put;
	for (int i = 0; i < WEFT_RING_LANES; i++)
		tx->lane[i].base = tx->lane[i].seen = tx->lane[i].put;
	return true;
}

/* Where a payload lies that is too long for its slot; says so in the word.  room() has said yes. */
static inline uint8_t *weft_net_ring_data_place(struct weft_ring_tx *tx, uint32_t len,
						uint64_t *word_p)
{
	struct weft_ring_lane_tx *l = &tx->lane[WEFT_RING_NARROW];
	if (!weft_net_ring_lane_room(l, len)) {
		/* There may be by now; a word that makes no sense changes nothing. */
		if (l->size)
			(void)weft_net_ring_refresh(tx);
		if (!weft_net_ring_lane_room(l, len)) {
			l = &tx->lane[WEFT_RING_WIDE];
			*word_p |= WEFT_RING_IN_WIDE;
		}
	}
	weft_assert(len > WEFT_RING_INLINE && weft_net_ring_lane_room(l, len));
	uint32_t skip, from = l->put - l->base;
	l->put += weft_net_ring_take_size(l->size, from, len, &skip);
	return l->data + ((from + skip) & (l->size - 1));
}

/*
 * Writes a packet; room() has said yes.  plain: a release store is enough, because the receiver
 * fences for both before it sleeps (membarrier); else the store is an exchange.
 */
static inline void weft_net_ring_publish(struct weft_ring_tx *tx, const void *head,
					 const struct iovec *iov, unsigned n, uint32_t len,
					 bool plain)
{
	weft_assert(weft_net_ring_room(tx, len));
	uint64_t word = weft_net_ring_begin(tx) ? WEFT_RING_AGAIN : 0;
	struct weft_ring_slot *s = &tx->slot[(tx->put - tx->base) & tx->slot_mask];

	/* The slot's line last: a receiver that looks at it meanwhile would take it from us. */
	if (len <= WEFT_RING_INLINE) {
		if (len)
			weft_net_ring_gather(s->data, iov, n, len);
	} else {
		weft_net_ring_gather(weft_net_ring_data_place(tx, len, &word), iov, n, len);
	}
	memcpy(s->head, head, WEFT_NET_HEAD);
	tx->each = WEFT_RING_NONE;
	tx->all = tx->put * WEFT_RING_CELLS + (len <= WEFT_RING_CELL ? 1 : WEFT_RING_CELLS);
	word |= weft_net_ring_make_word(++tx->put, len, 0) | weft_net_ring_carried(tx);
	/* PUB -> SEE (weft_net_ring_find).  Carries: the slot and the payload.  Without it the receiver
	 * could read the bytes of an earlier lap. */
	if (plain)
		atomic_store_explicit(&s->x_word, word, memory_order_release);
	else
		(void)atomic_exchange_explicit(&s->x_word, word, memory_order_seq_cst);
}

/* publish() by a release store; the head is w0, w1, len. */
static inline void weft_net_ring_publish_words(struct weft_ring_tx *tx, uint64_t w0, uint64_t w1,
					       const void *data, uint32_t len)
{
	weft_assert(weft_net_ring_room(tx, len));
	uint64_t word = weft_net_ring_begin(tx) ? WEFT_RING_AGAIN : 0;
	uint32_t put = tx->put;
	struct weft_ring_slot *s = &tx->slot[(put - tx->base) & tx->slot_mask];
	const uint64_t w2 = len;
	bool small = len <= WEFT_RING_CELL;

	if (len <= WEFT_RING_INLINE)
		weft_copy_bytes(s->data, data, len);
	else
		memcpy(weft_net_ring_data_place(tx, len, &word), data, len);
	memcpy(s->head, &w0, sizeof w0);
	memcpy(s->head + 8, &w1, sizeof w1);
	memcpy(s->head + 16, &w2, sizeof w2);
	tx->put = put + 1;
	tx->again = word;
	tx->next_w0 = w0 + WEFT_RING_STEP;
	tx->w1 = w1;
	tx->more = 0;
	tx->each = small && weft_mechanism_on(WEFT_MECH_LINE_RUNS) ? len : WEFT_RING_NONE;
	tx->all = put * WEFT_RING_CELLS + (small ? 1 : WEFT_RING_CELLS);
	word |= weft_net_ring_make_word(put + 1, len, 0) | weft_net_ring_carried(tx);
	/* PUB -> SEE (weft_net_ring_find), as in weft_net_ring_publish. */
	atomic_store_explicit(&s->x_word, word, memory_order_release);
}

/* The same into the last slot, which needs no room, for len bytes, a constant if it can be.  False:
 * it does not go there. */
static inline __attribute__((always_inline)) bool weft_net_ring_add_inline(struct weft_ring_tx *tx,
									   uint64_t w0, uint64_t w1,
									   const void *data,
									   size_t len)
{
	if (len != tx->each || w0 != tx->next_w0 || w1 != tx->w1)
		return false;
	uint32_t put = tx->put, more = tx->more + 1;
	weft_assert(more < WEFT_RING_CELLS && len <= WEFT_RING_CELL);
	struct weft_ring_slot *s = &tx->slot[(put - 1 - tx->base) & tx->slot_mask];

	weft_copy_bytes(s->data + (size_t)more * WEFT_RING_CELL, data,
			len < WEFT_RING_CELL ? len : WEFT_RING_CELL);
	tx->next_w0 = w0 + WEFT_RING_STEP;
	tx->more = more;
	tx->all++;
	if (more == WEFT_RING_CELLS - 1)
		tx->each = WEFT_RING_NONE;
	/* PUB -> SEE (weft_net_ring_find).  Carries: the payload. */
	atomic_store_explicit(&s->x_word,
			      weft_net_ring_make_word(put, (uint32_t)len, more) | tx->again |
				      weft_net_ring_carried(tx),
			      memory_order_release);
	return true;
}

void weft_net_ring_publish_bye(struct weft_ring_tx *tx);

/* The receiver's word: changes whenever there is more room.  Any thread of the sender. */
static inline uint64_t weft_net_ring_word(const struct weft_ring_control *control)
{
	/* seq_cst: pairs with x_waiting, see weft_net_ring_wait. */
	return atomic_load_explicit(&control->x_seen, memory_order_seq_cst);
}

/* The word that our last refresh() saw. */
static inline uint64_t weft_net_ring_known(const struct weft_ring_tx *tx)
{
	return tx->known;
}

/* The sender will sleep until there is room: after this, look at the word once more. */
static inline void weft_net_ring_wait(struct weft_ring_control *control)
{
	/* WAIT -> TELL (weft_net_ring_tell).  A seq_cst exchange before the second look: either that
	 * look sees the receiver's word, or the receiver sees this flag. */
	(void)atomic_exchange_explicit(&control->x_waiting, 1, memory_order_seq_cst);
}

#endif
