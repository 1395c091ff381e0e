/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - packets from one sender to one receiver through memory that both can write.
 *
 * Two rings beside each other: slots of one cache line, each with its own sequence number, head and
 * up to 32 payload bytes; and a ring of data lines for longer payloads, each payload contiguous.  A
 * small packet is one line written and one line read.  Payload never lies where a sequence number
 * is looked for, so stale bytes can never look like a packet.  Both sides derive a payload's place
 * from the lengths so far, so the memory holds no index that a peer could forge; a length is read
 * once and checked.
 *
 * Packets of at most 8 bytes that follow each other with the same head but for its number lie up to
 * four in a slot: the sender adds to the slot that it published last, and counts them in its word.
 * Nothing is held back for that.  The receiver stays with a slot that may grow until the next one
 * is there; then it has grown for the last time.
 *
 * Few lines that are written again and again go from core to core much quicker than many in turn.
 * So a sender who knows that the receiver has everything begins again at the first slot and the
 * first data line, and says so in the word.  It knows from the packets of the ring the other way,
 * each of which says how far its sender was with receiving; who talks in both directions stays on a
 * few lines, a stream goes round.  The receiver looks at the next slot and at the first one.
 *
 * Callers   tx functions: one thread at a time.  rx functions: one thread at a time.  Both beside
 *           each other, in one or two processes.
 * Owner     a received payload stays in the ring until weft_ring_consume().
 * Order     what the sender wrote before publish() is visible to whoever sees the packet.
 * Full      room() says no.  News is there when weft_ring_word() has changed; a sender that goes to
 *           sleep says so with wait(), looks once more, and is told (see consume).
 * Progress  wait-free on both sides.
 * Checked   test/net/test_model_ring.c, each order that carries with a mutant;
 *           test_ring.c, two threads.
 *
 * The receiver tells how far it is once per quarter of either ring, in one word.  A sender
 * that found no room had more than half of it outstanding (a packet needs at most a quarter, and
 * wastes less than another one at the end of the ring), so the receiver tells at least once more
 * before it has emptied the ring: no sender waits for news that never comes.
 */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include <string.h>
#include <sys/uio.h>
#include "base/base.h"
#include "base/copy.h"
#include "net/driver.h"
#include "net/ring_word.h"

#define WEFT_RING_INLINE 32
/* Packets that share a slot: the bytes of each at most, their number, from head to head. */
#define WEFT_RING_CELL WEFT_NET_RUN_BYTES
#define WEFT_RING_CELLS WEFT_NET_RUN_MAX
#define WEFT_RING_STEP WEFT_NET_RUN_STEP

/* Once in so many slots a sender goes round without beginning again, see weft_ring_begin. */
#define WEFT_RING_SWEEP (1u << 18)
#define WEFT_RING_SLOTS_MAX 1024u

struct weft_ring_slot {
	/* sender: slot number + 1, how far it has received, payload bytes or BYE, begun again,
	 * packets beyond the first; see ring_word.h */
	_Atomic uint64_t x_word;
	uint8_t head[WEFT_NET_HEAD];
	uint8_t data[WEFT_RING_INLINE];
};
_Static_assert(sizeof(struct weft_ring_slot) == WEFT_CACHELINE, "a slot is a cache line");

struct weft_ring_control {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_seen;    /* receiver: slots << 32 | data bytes */
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_waiting; /* sender sets, receiver clears */
};

/* The sizes, powers of two. */
struct weft_ring_shape {
	uint32_t slots;
	uint32_t data;
};

/* How far a receiver is, for the sender of the ring the other way. */
struct weft_ring_back {
	_Atomic uint64_t x_at;   /* CELLS for each slot left, and packets taken of this one */
	_Atomic uint64_t x_word; /* of the last packet */
};

struct weft_ring_tx {
	struct weft_ring_control *control;
	const struct weft_ring_back *back;
	struct weft_ring_slot *slot;
	uint8_t *data;
	uint32_t slot_mask, data_size;
	uint32_t put, data_put;   /* next slot, next data byte; run freely */
	uint32_t base, data_base; /* theirs when we last began again */
	uint32_t seen, data_seen; /* the receiver's, as we know them */
	uint32_t all;             /* the receiver's x_at, when it has everything */
	uint32_t stale;           /* words of the other ring up to this number are too old */
	uint64_t known;           /* the receiver's word, as last read */
	uint64_t next_w0, w1;     /* what may be added to the last slot */
	uint32_t each;            /* its length, or NONE: the slot does not grow */
	uint32_t more;            /* packets added */
	uint64_t again;           /* AGAIN, if that slot began again */
};

#define WEFT_RING_NONE UINT32_MAX

struct weft_ring_rx {
	struct weft_ring_control *control;
	struct weft_ring_slot *slot;
	uint8_t *data;
	uint32_t slot_mask, data_size, max_payload;
	uint32_t data_take;
	uint32_t base, data_base; /* where the sender last began again */
	uint32_t told, data_told; /* as last published */
	uint32_t quarter, data_quarter;
	struct weft_ring_back back;
};

static inline uint64_t weft_ring_at(const struct weft_ring_rx *rx)
{
	/* Relaxed: we are the only writer. */
	return atomic_load_explicit(&rx->back.x_at, memory_order_relaxed);
}

/* The slot that we are at. */
static inline uint32_t weft_ring_taking(uint64_t at)
{
	return (uint32_t)(at / WEFT_RING_CELLS);
}

/* Packets of it that we have; not 0: it may grow. */
static inline uint32_t weft_ring_part(uint64_t at)
{
	return (uint32_t)(at % WEFT_RING_CELLS);
}

static inline void weft_ring_go(struct weft_ring_rx *rx, uint64_t at)
{
	/* HAVE -> CARRY (weft_ring_carried).  Carries: our reads of the packets are over. */
	atomic_store_explicit(&rx->back.x_at, at, memory_order_release);
}

static inline bool weft_ring_shape_ok(struct weft_ring_shape s, size_t max_payload)
{
	return max_payload < WEFT_RING_BYE && s.slots >= 16 && s.slots <= WEFT_RING_SLOTS_MAX &&
	       !(s.slots & (s.slots - 1)) && s.data >= 4 * max_payload && s.data <= 1u << 26 &&
	       !(s.data & (s.data - 1));
}

static inline size_t weft_ring_bytes(struct weft_ring_shape s)
{
	return sizeof(struct weft_ring_control) + s.slots * sizeof(struct weft_ring_slot) + s.data;
}

/* The memory must be zero when the receiver attaches; max_payload bounds what it accepts.  back: of
 * the ring that comes from there, or NULL. */
void weft_ring_tx_attach(struct weft_ring_tx *tx, void *memory, struct weft_ring_shape shape,
			 const struct weft_ring_back *back);
void weft_ring_rx_attach(struct weft_ring_rx *rx, void *memory, struct weft_ring_shape shape,
			 uint32_t max_payload);

/* Data ring bytes that a payload takes at position pos, the unused end of the ring included. */
static inline uint32_t weft_ring_take_size(uint32_t size, uint32_t pos, uint32_t len,
					   uint32_t *skip_p)
{
	uint32_t need = (uint32_t)weft_align_up(len, WEFT_CACHELINE);
	uint32_t left = size - (pos & (size - 1));
	*skip_p = need > left ? left : 0;
	return need + *skip_p;
}

/* Reads the receiver's word again.  False: it makes no sense. */
bool weft_ring_refresh(struct weft_ring_tx *tx);

/* Is there room for a packet of len payload bytes, as far as we know? */
static inline bool weft_ring_room(const struct weft_ring_tx *tx, uint32_t len)
{
	uint32_t skip;
	if (tx->put - tx->seen > tx->slot_mask)
		return false;
	return len <= WEFT_RING_INLINE ||
	       weft_ring_take_size(tx->data_size, tx->data_put - tx->data_base, len, &skip) <=
		       tx->data_size - (tx->data_put - tx->data_seen);
}

static inline void weft_ring_gather(uint8_t *to, const struct iovec *iov, unsigned n, size_t len)
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
static inline uint64_t weft_ring_carried(const struct weft_ring_tx *tx)
{
	/* CARRY <- HAVE (weft_ring_go).  Carries: those packets have been read.  Without it the
	 * peer could write over what our poller still reads. */
	uint64_t at = atomic_load_explicit(&tx->back->x_at, memory_order_acquire);
	return (at & WEFT_RING_AT_MASK) << WEFT_RING_AT;
}

/*
 * Begins again if the receiver has everything.  What it had 2^20 slots ago would look the same, but
 * refresh() has seen to it that so old a word is known as stale.  Once per SWEEP all slots are
 * written in a row, so that no number of a lap of 2^20 is left in any.
 */
static inline bool weft_ring_begin(struct weft_ring_tx *tx)
{
	/* HEARD <- HEAR (weft_ring_heard).  Carries: the receiver's reads are over. */
	uint64_t word = atomic_load_explicit(&tx->back->x_word, memory_order_acquire);
	if (weft_ring_word_at(word) != (tx->all & WEFT_RING_AT_MASK))
		return false;
	if (weft_unlikely((tx->put + WEFT_RING_SWEEP / 2) % WEFT_RING_SWEEP <= 2 * tx->slot_mask ||
			  (((uint32_t)word - tx->stale) & WEFT_RING_NUMBER) > WEFT_RING_NUMBER / 2))
		return false;
	tx->base = tx->seen = tx->put;
	tx->data_base = tx->data_seen = tx->data_put;
	return true;
}

/* Where a payload lies that is too long for its slot. */
static inline uint8_t *weft_ring_data_place(struct weft_ring_tx *tx, uint32_t len)
{
	uint32_t skip, from = tx->data_put - tx->data_base;
	tx->data_put += weft_ring_take_size(tx->data_size, from, len, &skip);
	return tx->data + ((from + skip) & (tx->data_size - 1));
}

/*
 * Writes a packet; room() has said yes.  plain: a release store is enough, because the receiver
 * fences for both before it sleeps (membarrier); else the store is an exchange.
 */
static inline void weft_ring_publish(struct weft_ring_tx *tx, const void *head,
				     const struct iovec *iov, unsigned n, uint32_t len, bool plain)
{
	uint64_t word = weft_ring_begin(tx) ? WEFT_RING_AGAIN : 0;
	struct weft_ring_slot *s = &tx->slot[(tx->put - tx->base) & tx->slot_mask];

	/* The slot's line last: a receiver who looks at it meanwhile would take it from us. */
	if (len <= WEFT_RING_INLINE) {
		if (len)
			weft_ring_gather(s->data, iov, n, len);
	} else {
		weft_ring_gather(weft_ring_data_place(tx, len), iov, n, len);
	}
	memcpy(s->head, head, WEFT_NET_HEAD);
	tx->each = WEFT_RING_NONE;
	tx->all = tx->put * WEFT_RING_CELLS + (len <= WEFT_RING_CELL ? 1 : WEFT_RING_CELLS);
	word |= weft_ring_make_word(++tx->put, len, 0) | weft_ring_carried(tx);
	/* PUB -> SEE (weft_ring_find).  Carries: the slot and the payload.  Without it the receiver
	 * could read the bytes of an earlier lap. */
	if (plain)
		atomic_store_explicit(&s->x_word, word, memory_order_release);
	else
		(void)atomic_exchange_explicit(&s->x_word, word, memory_order_seq_cst);
}

/* publish() by a release store; the head is w0, w1, len. */
static inline void weft_ring_publish_words(struct weft_ring_tx *tx, uint64_t w0, uint64_t w1,
					   const void *data, uint32_t len)
{
	uint64_t word = weft_ring_begin(tx) ? WEFT_RING_AGAIN : 0;
	uint32_t put = tx->put;
	struct weft_ring_slot *s = &tx->slot[(put - tx->base) & tx->slot_mask];
	const uint64_t w2 = len;
	bool small = len <= WEFT_RING_CELL;

	if (len <= WEFT_RING_INLINE)
		weft_copy_bytes(s->data, data, len);
	else
		memcpy(weft_ring_data_place(tx, len), data, len);
	memcpy(s->head, &w0, sizeof w0);
	memcpy(s->head + 8, &w1, sizeof w1);
	memcpy(s->head + 16, &w2, sizeof w2);
	tx->put = put + 1;
	tx->again = word;
	tx->next_w0 = w0 + WEFT_RING_STEP;
	tx->w1 = w1;
	tx->more = 0;
	tx->each = small ? len : WEFT_RING_NONE;
	tx->all = put * WEFT_RING_CELLS + (small ? 1 : WEFT_RING_CELLS);
	word |= weft_ring_make_word(put + 1, len, 0) | weft_ring_carried(tx);
	/* PUB -> SEE (weft_ring_find), as in weft_ring_publish. */
	atomic_store_explicit(&s->x_word, word, memory_order_release);
}

/* The same into the last slot, which needs no room.  False: it does not go there. */
static inline bool weft_ring_add_inline(struct weft_ring_tx *tx, uint64_t w0, uint64_t w1,
					const void *data, size_t len)
{
	if (len != tx->each || w0 != tx->next_w0 || w1 != tx->w1)
		return false;
	uint32_t put = tx->put, more = tx->more + 1;
	struct weft_ring_slot *s = &tx->slot[(put - 1 - tx->base) & tx->slot_mask];

	if (weft_likely(len == WEFT_RING_CELL))
		memcpy(s->data + (size_t)more * WEFT_RING_CELL, data, WEFT_RING_CELL);
	else
		weft_copy_bytes(s->data + (size_t)more * WEFT_RING_CELL, data, len);
	tx->next_w0 = w0 + WEFT_RING_STEP;
	tx->more = more;
	tx->all++;
	if (more == WEFT_RING_CELLS - 1)
		tx->each = WEFT_RING_NONE;
	/* PUB -> SEE (weft_ring_find).  Carries: the payload. */
	atomic_store_explicit(&s->x_word,
			      weft_ring_make_word(put, (uint32_t)len, more) | tx->again |
				      weft_ring_carried(tx),
			      memory_order_release);
	return true;
}

void weft_ring_publish_bye(struct weft_ring_tx *tx);

static inline const struct weft_ring_slot *weft_ring_slot(const struct weft_ring_rx *rx,
							  uint32_t number)
{
	return &rx->slot[(number - rx->base) & rx->slot_mask];
}

static inline uint64_t weft_ring_load(const struct weft_ring_slot *s)
{
	/* SEE <- PUB (weft_ring_publish).  Carries: the slot and the payload. */
	return atomic_load_explicit(&s->x_word, memory_order_acquire);
}

/* Has the slot that we are at something that we do not have? */
static inline bool weft_ring_has_news(uint64_t word, uint64_t at)
{
	return weft_ring_word_is(word, weft_ring_taking(at) + 1) &&
	       weft_ring_word_more(word) >= weft_ring_part(at);
}

/* Is there a packet? */
static inline bool weft_ring_peek(const struct weft_ring_rx *rx)
{
	uint64_t at = weft_ring_at(rx);
	uint32_t taking = weft_ring_taking(at);
	if (weft_ring_has_news(weft_ring_load(weft_ring_slot(rx, taking)), at))
		return true;
	uint32_t number = taking + 1;
	if (weft_ring_part(at)) {
		if (weft_ring_word_is(weft_ring_load(weft_ring_slot(rx, number)), number + 1))
			return true;
		number++;
	}
	return weft_ring_word_is(weft_ring_load(&rx->slot[0]), number);
}

/* A packet has been found, by that word. */
static inline void weft_ring_heard(struct weft_ring_rx *rx, uint64_t word)
{
	/* HEAR -> HEARD (weft_ring_begin).  Carries: what SEE of this word carried. */
	atomic_store_explicit(&rx->back.x_word, word, memory_order_release);
}

/* The first packet of slot number `taking`. */
static inline void weft_ring_enter(struct weft_ring_rx *rx, uint32_t taking, uint64_t word)
{
	if (word & WEFT_RING_AGAIN) {
		rx->base = taking;
		rx->data_base = rx->data_take;
	}
	weft_ring_heard(rx, word);
}

/* find() when nothing new is in the slot s, which has been begun: is it in another one? */
static inline const struct weft_ring_slot *weft_ring_find_next(struct weft_ring_rx *rx, uint64_t at,
							       const struct weft_ring_slot *s,
							       uint64_t *word_p)
{
	uint32_t taking = weft_ring_taking(at) + 1;
	const struct weft_ring_slot *next = weft_ring_slot(rx, taking);
	uint64_t word = weft_ring_load(next);
	if (!weft_ring_word_is(word, taking + 1)) {
		next = &rx->slot[0];
		word = weft_ring_load(next);
		if (!weft_ring_word_is(word, taking + 1))
			return NULL;
	}
	/* It has grown for the last time before the next one came.  Relaxed: SEE of the next one
	 * carries this word and its payload. */
	*word_p = atomic_load_explicit(&s->x_word, memory_order_relaxed);
	if (weft_ring_has_news(*word_p, at)) {
		weft_ring_heard(rx, *word_p);
		return s;
	}
	weft_ring_go(rx, (at | (WEFT_RING_CELLS - 1)) + 1);
	weft_ring_enter(rx, taking, word);
	*word_p = word;
	return next;
}

/* Goes to the slot where the next packet lies; NULL: there is none. */
static inline const struct weft_ring_slot *weft_ring_find(struct weft_ring_rx *rx, uint64_t *word_p)
{
	uint64_t at = weft_ring_at(rx);
	uint32_t taking = weft_ring_taking(at);
	const struct weft_ring_slot *s = weft_ring_slot(rx, taking);
	uint64_t word = weft_ring_load(s);
	if (!weft_ring_has_news(word, at)) {
		if (weft_ring_part(at))
			return weft_ring_find_next(rx, at, s, word_p);
		s = &rx->slot[0];
		word = weft_ring_load(s);
		if (!weft_ring_word_is(word, taking + 1))
			return NULL;
	}
	*word_p = word;
	/* No packet but a slot's first says that it begins again. */
	if (weft_ring_part(at))
		weft_ring_heard(rx, word);
	else
		weft_ring_enter(rx, taking, word);
	return s;
}

/* A private copy of the head of the packet that find() went to, 24 bytes, and its payload. */
static inline const void *weft_ring_open(const struct weft_ring_rx *rx,
					 const struct weft_ring_slot *s, void *head)
{
	uint32_t part = weft_ring_part(weft_ring_at(rx));
	uint64_t w0;
	memcpy(head, s->head, WEFT_NET_HEAD);
	memcpy(&w0, head, sizeof w0);
	w0 += part * WEFT_RING_STEP;
	memcpy(head, &w0, sizeof w0);
	return s->data + (size_t)part * WEFT_RING_CELL;
}

/* n packets in a slot are over; may the slot grow, or has it grown?  Then we stay. */
static inline void weft_ring_step(struct weft_ring_rx *rx, uint32_t len, uint32_t n)
{
	weft_ring_go(rx, weft_ring_at(rx) + (len <= WEFT_RING_CELL ? n : WEFT_RING_CELLS));
}

/* A packet taken out of the ring: a private copy of its head; the payload lies in the ring, where
 * the peer may still change it: what decides something is read once. */
struct weft_ring_packet {
	alignas(8) uint8_t head[WEFT_NET_HEAD];
	const uint8_t *payload;
	uint32_t len;
	uint32_t size; /* data ring bytes to give back */
};

/*
 * Takes the packet that find() went to.  WEFT_OK, WEFT_AGAIN for BYE, WEFT_ERR_PROTO: no packet is
 * like that; the ring is of no use any more.
 */
static inline weft_err weft_ring_take_found(struct weft_ring_rx *rx, struct weft_ring_packet *p,
					    const struct weft_ring_slot *s, uint64_t word)
{
	/* What decides was read once, whatever the peer writes meanwhile. */
	uint32_t len = weft_ring_word_len(word);

	if (weft_unlikely(len > rx->max_payload ||
			  (weft_ring_part(weft_ring_at(rx)) && len > WEFT_RING_CELL)))
		return len == WEFT_RING_BYE ? WEFT_AGAIN : WEFT_ERR_PROTO;
	p->payload = weft_ring_open(rx, s, p->head);
	p->len = len;
	p->size = 0;
	if (len > WEFT_RING_INLINE) {
		uint32_t skip, from = rx->data_take - rx->data_base;
		p->size = weft_ring_take_size(rx->data_size, from, len, &skip);
		p->payload = rx->data + ((from + skip) & (rx->data_size - 1));
	}
	return WEFT_OK;
}

/* The same for the packet that peek() saw. */
static inline weft_err weft_ring_take(struct weft_ring_rx *rx, struct weft_ring_packet *p)
{
	uint64_t word;
	const struct weft_ring_slot *s = weft_ring_find(rx, &word);
	return s ? weft_ring_take_found(rx, p, s, word) : WEFT_ERR_PROTO;
}

/* Publishes how far the receiver is.  True: a sender waits to hear that. */
bool weft_ring_tell(struct weft_ring_rx *rx);

/* How many packets of the slot that find() went to lie there, a cell apart, for weft_ring_open():
 * consume_inline() gives n of them back.  0: its payload lies elsewhere, or it is none. */
static inline uint32_t weft_ring_run(const struct weft_ring_rx *rx, uint64_t word)
{
	uint32_t len = weft_ring_word_len(word), part = weft_ring_part(weft_ring_at(rx));
	uint32_t more = weft_ring_word_more(word);
	if (len <= WEFT_RING_CELL)
		return (more < WEFT_RING_CELLS ? more : WEFT_RING_CELLS - 1) - part + 1;
	return len <= WEFT_RING_INLINE && !part;
}

static inline bool weft_ring_consume_inline(struct weft_ring_rx *rx, uint32_t len, uint32_t n)
{
	weft_ring_step(rx, len, n);
	return weft_unlikely(weft_ring_taking(weft_ring_at(rx)) - rx->told >= rx->quarter) &&
	       weft_ring_tell(rx);
}

/* Gives the packet's place back.  True: tell the sender, it waits for room. */
static inline bool weft_ring_consume(struct weft_ring_rx *rx, const struct weft_ring_packet *p)
{
	weft_ring_step(rx, p->len, 1);
	rx->data_take += p->size;
	if (weft_likely(weft_ring_taking(weft_ring_at(rx)) - rx->told < rx->quarter &&
			rx->data_take - rx->data_told < rx->data_quarter))
		return false;
	return weft_ring_tell(rx);
}

/* The receiver's word: changes whenever there is more room.  Any thread of the sender. */
static inline uint64_t weft_ring_word(const struct weft_ring_control *control)
{
	/* seq_cst: pairs with x_waiting, see weft_ring_wait. */
	return atomic_load_explicit(&control->x_seen, memory_order_seq_cst);
}

/* The word that our last refresh() saw. */
static inline uint64_t weft_ring_known(const struct weft_ring_tx *tx)
{
	return tx->known;
}

/* The sender will sleep until there is room: after this, look at the word once more. */
static inline void weft_ring_wait(struct weft_ring_control *control)
{
	/* WAIT -> TELL (weft_ring_tell).  A seq_cst exchange before the second look: either that
	 * look sees the receiver's word, or the receiver sees this flag. */
	(void)atomic_exchange_explicit(&control->x_waiting, 1, memory_order_seq_cst);
}

#endif
