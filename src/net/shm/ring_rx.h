/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_rx.h - the receiving half of ring.h: finding, taking, giving back. */
#ifndef WEFT_RING_RX_H
#define WEFT_RING_RX_H

#include "net/shm/ring.h"

static inline const struct weft_ring_slot *weft_net_ring_slot(const struct weft_ring_rx *rx,
							      uint32_t number)
{
	return &rx->slot[(number - rx->base) & rx->slot_mask];
}

static inline uint64_t weft_net_ring_load(const struct weft_ring_slot *s)
{
	/* SEE <- PUB (weft_net_ring_publish).  Carries: the slot and the payload. */
	return atomic_load_explicit(&s->x_word, memory_order_acquire);
}

/* Has the slot that we are at something that we do not have? */
static inline bool weft_net_ring_has_news(uint64_t word, uint64_t at)
{
	return weft_net_ring_word_is(word, weft_net_ring_taking(at) + 1) &&
	       weft_net_ring_word_more(word) >= weft_net_ring_part(at);
}

/* Is there a packet? */
static inline bool weft_net_ring_peek(const struct weft_ring_rx *rx)
{
	uint64_t at = weft_net_ring_at(rx);
	uint32_t taking = weft_net_ring_taking(at);
	if (weft_net_ring_has_news(weft_net_ring_load(weft_net_ring_slot(rx, taking)), at))
		return true;
	uint32_t number = taking + 1;
	if (weft_net_ring_part(at)) {
		if (weft_net_ring_word_is(weft_net_ring_load(weft_net_ring_slot(rx, number)),
					  number + 1))
			return true;
		number++;
	}
	return weft_net_ring_word_is(weft_net_ring_load(&rx->slot[0]), number);
}

/* A packet has been found, by that word. */
static inline void weft_net_ring_heard(struct weft_ring_rx *rx, uint64_t word)
{
	/* HEAR -> HEARD (weft_net_ring_begin).  Carries: what SEE of this word carried. */
	atomic_store_explicit(&rx->back.x_word, word, memory_order_release);
}

/* The first packet of slot number `taking`. */
static inline void weft_net_ring_enter(struct weft_ring_rx *rx, uint32_t taking, uint64_t word)
{
	if (word & WEFT_RING_AGAIN) {
		rx->base = taking;
		for (int i = 0; i < WEFT_RING_LANES; i++)
			rx->lane[i].base = rx->lane[i].take;
	}
	weft_net_ring_heard(rx, word);
}

/* find() when nothing new is in the slot s, which has been begun: is it in another one? */
static inline const struct weft_ring_slot *weft_net_ring_find_next(struct weft_ring_rx *rx,
								   uint64_t at,
								   const struct weft_ring_slot *s,
								   uint64_t *word_p)
{
	uint32_t taking = weft_net_ring_taking(at) + 1;
	const struct weft_ring_slot *next = weft_net_ring_slot(rx, taking);
	uint64_t word = weft_net_ring_load(next);
	if (!weft_net_ring_word_is(word, taking + 1)) {
		next = &rx->slot[0];
		word = weft_net_ring_load(next);
		if (!weft_net_ring_word_is(word, taking + 1))
			return NULL;
	}
	/* It has grown for the last time before the next one came.  Relaxed: SEE of the next one
	 * carries this word and its payload. */
	*word_p = atomic_load_explicit(&s->x_word, memory_order_relaxed);
	if (weft_net_ring_has_news(*word_p, at)) {
		weft_net_ring_heard(rx, *word_p);
		return s;
	}
	weft_net_ring_go(rx, (at | (WEFT_RING_CELLS - 1)) + 1);
	weft_net_ring_enter(rx, taking, word);
	*word_p = word;
	return next;
}

/* Goes to the slot where the next packet lies; NULL: there is none. */
static inline const struct weft_ring_slot *weft_net_ring_find(struct weft_ring_rx *rx,
							      uint64_t *word_p)
{
	uint64_t at = weft_net_ring_at(rx);
	uint32_t taking = weft_net_ring_taking(at);
	const struct weft_ring_slot *s = weft_net_ring_slot(rx, taking);
	uint64_t word = weft_net_ring_load(s);
	if (!weft_net_ring_has_news(word, at)) {
		if (weft_net_ring_part(at))
			return weft_net_ring_find_next(rx, at, s, word_p);
		s = &rx->slot[0];
		word = weft_net_ring_load(s);
		if (!weft_net_ring_word_is(word, taking + 1))
			return NULL;
	}
	*word_p = word;
	/* No packet but a slot's first says that it begins again. */
	if (weft_net_ring_part(at))
		weft_net_ring_heard(rx, word);
	else
		weft_net_ring_enter(rx, taking, word);
	return s;
}

/* A private copy of the head of the packet that find() went to, 24 bytes, and its payload. */
static inline const void *weft_net_ring_open(const struct weft_ring_rx *rx,
					     const struct weft_ring_slot *s, void *head)
{
	uint32_t part = weft_net_ring_part(weft_net_ring_at(rx));
	uint64_t w0;
	memcpy(head, s->head, WEFT_NET_HEAD);
	memcpy(&w0, head, sizeof w0);
	w0 += part * WEFT_RING_STEP;
	memcpy(head, &w0, sizeof w0);
	return s->data + (size_t)part * WEFT_RING_CELL;
}

/* n packets in a slot are over; may the slot grow, or has it grown?  Then we stay. */
static inline void weft_net_ring_step(struct weft_ring_rx *rx, uint32_t len, uint32_t n)
{
	weft_assert(n > 0 && n <= WEFT_RING_CELLS);
	weft_net_ring_go(rx, weft_net_ring_at(rx) + (len <= WEFT_RING_CELL ? n : WEFT_RING_CELLS));
}

/* A packet taken out of the ring: a private copy of its head; the payload lies in the ring, where
 * the peer may still change it: what decides something is read once. */
struct weft_ring_packet {
	alignas(8) uint8_t head[WEFT_NET_HEAD];
	const uint8_t *payload;
	uint32_t len;
	struct weft_ring_lane_rx *lane; /* where the payload lies; NULL: in the slot */
	uint32_t size;                  /* bytes of it to give back */
};

/*
 * Takes the packet that find() went to.  WEFT_OK, WEFT_AGAIN for BYE, WEFT_ERR_PROTO: no packet is
 * like that; the ring is of no use any more.
 */
static inline weft_err weft_net_ring_take_found(struct weft_ring_rx *rx, struct weft_ring_packet *p,
						const struct weft_ring_slot *s, uint64_t word)
{
	/* What decides was read once, whatever the peer writes meanwhile. */
	uint32_t len = weft_net_ring_word_len(word);

	if (weft_unlikely(len > rx->max_payload ||
			  (weft_net_ring_part(weft_net_ring_at(rx)) && len > WEFT_RING_CELL)))
		return len == WEFT_RING_BYE ? WEFT_AGAIN : WEFT_ERR_PROTO;
	p->payload = weft_net_ring_open(rx, s, p->head);
	p->len = len;
	p->lane = NULL;
	p->size = 0;
	if (len > WEFT_RING_INLINE) {
		struct weft_ring_lane_rx *l = &rx->lane[(word & WEFT_RING_IN_WIDE) != 0];
		uint32_t skip, from = l->take - l->base;
		if (weft_unlikely(len > l->size))
			return WEFT_ERR_PROTO;
		p->lane = l;
		p->size = weft_net_ring_take_size(l->size, from, len, &skip);
		p->payload = l->data + ((from + skip) & (l->size - 1));
	}
	return WEFT_OK;
}

/* The same for the packet that peek() saw. */
static inline weft_err weft_net_ring_take(struct weft_ring_rx *rx, struct weft_ring_packet *p)
{
	uint64_t word;
	const struct weft_ring_slot *s = weft_net_ring_find(rx, &word);
	return s ? weft_net_ring_take_found(rx, p, s, word) : WEFT_ERR_PROTO;
}

/* Publishes how far the receiver is.  True: a sender waits to hear that. */
bool weft_net_ring_tell(struct weft_ring_rx *rx);

/* How many packets of the slot that find() went to lie there, a cell apart, for weft_net_ring_open():
 * consume_inline() gives n of them back.  0: its payload lies elsewhere, or it is none. */
static inline uint32_t weft_net_ring_run(const struct weft_ring_rx *rx, uint64_t word)
{
	uint32_t len = weft_net_ring_word_len(word),
		 part = weft_net_ring_part(weft_net_ring_at(rx));
	uint32_t more = weft_net_ring_word_more(word);
	if (len <= WEFT_RING_CELL)
		return (more < WEFT_RING_CELLS ? more : WEFT_RING_CELLS - 1) - part + 1;
	return len <= WEFT_RING_INLINE && !part;
}

static inline bool weft_net_ring_consume_inline(struct weft_ring_rx *rx, uint32_t len, uint32_t n)
{
	weft_net_ring_step(rx, len, n);
	return weft_unlikely(weft_net_ring_taking(weft_net_ring_at(rx)) - rx->told >=
			     rx->quarter) &&
	       weft_net_ring_tell(rx);
}

/* Gives the packet's place back.  True: tell the sender, it waits for room. */
static inline bool weft_net_ring_consume(struct weft_ring_rx *rx, const struct weft_ring_packet *p)
{
	weft_net_ring_step(rx, p->len, 1);
	bool tell = weft_net_ring_taking(weft_net_ring_at(rx)) - rx->told >= rx->quarter;
	struct weft_ring_lane_rx *l = p->lane;
	if (l) {
		weft_assert(p->size && p->size % WEFT_CACHELINE == 0);
		l->take += p->size;
		tell |= l->take - l->told >= l->quarter;
	}
	return weft_unlikely(tell) && weft_net_ring_tell(rx);
}

#endif
