/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c - the rare steps of the packet ring: attaching, and telling how far the receiver is. */
#include "base/mechanism.h"
#include "net/shm/ring.h"
#include "net/shm/ring_rx.h"
#include "net/shm/ring_tx.h"

static void lay_out(void *memory, struct weft_ring_shape shape,
		    struct weft_ring_control **control_p, struct weft_ring_slot **slot_p,
		    uint8_t *data_p[WEFT_RING_LANES])
{
	uint8_t *m = memory;
	*control_p = memory;
	m += sizeof(struct weft_ring_control);
	*slot_p = (struct weft_ring_slot *)(void *)m;
	m += shape.slots * sizeof(struct weft_ring_slot);
	data_p[WEFT_RING_NARROW] = m;
	data_p[WEFT_RING_WIDE] = m + shape.narrow;
}

static uint32_t lane_size(struct weft_ring_shape shape, int i)
{
	return i == WEFT_RING_WIDE ? shape.data : shape.narrow;
}

void weft_net_ring_tx_attach(struct weft_ring_tx *tx, void *memory, struct weft_ring_shape shape,
			     const struct weft_ring_back *back)
{
	weft_assert((uintptr_t)memory % WEFT_CACHELINE == 0 && !(shape.slots & (shape.slots - 1)));
	static const struct weft_ring_back none;
	memset(tx, 0, sizeof *tx);
	tx->back = back ? back : &none;
	uint8_t *data[WEFT_RING_LANES];
	lay_out(memory, shape, &tx->control, &tx->slot, data);
	for (int i = 0; i < WEFT_RING_LANES; i++) {
		tx->lane[i].data = data[i];
		tx->lane[i].size = lane_size(shape, i);
	}
	if (!weft_mechanism_on(WEFT_MECH_NARROW_RING))
		tx->lane[WEFT_RING_NARROW].size = 0; /* never room: all goes through the wide one */
	tx->slot_mask = shape.slots - 1;
	tx->each = WEFT_RING_NONE;
}

void weft_net_ring_rx_attach(struct weft_ring_rx *rx, void *memory, struct weft_ring_shape shape,
			     uint32_t max_payload)
{
	weft_assert((uintptr_t)memory % WEFT_CACHELINE == 0 && !(shape.slots & (shape.slots - 1)));
	weft_assert(max_payload < WEFT_RING_BYE); /* an end is longer than any packet */
	memset(rx, 0, sizeof *rx);
	uint8_t *data[WEFT_RING_LANES];
	lay_out(memory, shape, &rx->control, &rx->slot, data);
	for (int i = 0; i < WEFT_RING_LANES; i++) {
		rx->lane[i].data = data[i];
		rx->lane[i].size = lane_size(shape, i);
		rx->lane[i].quarter = lane_size(shape, i) / 4;
	}
	rx->slot_mask = shape.slots - 1;
	rx->max_payload = max_payload;
	rx->quarter = shape.slots / 4;
}

bool weft_net_ring_refresh(struct weft_ring_tx *tx)
{
	/* REUSE <- FREE (weft_net_ring_tell).  Carries: the receiver's reads of what it gave back are
	 * over.  seq_cst: pairs with x_waiting, see weft_net_ring_wait. */
	uint64_t word = atomic_load_explicit(&tx->control->x_seen, memory_order_seq_cst);
	struct weft_ring_lane_tx *narrow = &tx->lane[WEFT_RING_NARROW];
	struct weft_ring_lane_tx *wide = &tx->lane[WEFT_RING_WIDE];
	int32_t slots = weft_net_ring_seen_slots(word, tx->seen);
	int32_t narrow_bytes = weft_net_ring_seen_bytes(word, false, narrow->seen);
	int32_t wide_bytes = weft_net_ring_seen_bytes(word, true, wide->seen);

	tx->known = word;
	/* We may know more from a packet, see weft_net_ring_begin. */
	if (slots <= 0 && narrow_bytes <= 0 && wide_bytes <= 0)
		return true;
	/* It can only go forward, and not past us. */
	if ((uint32_t)slots > tx->put - tx->seen ||
	    (uint32_t)narrow_bytes > narrow->put - narrow->seen ||
	    (uint32_t)wide_bytes > wide->put - wide->seen)
		return false;
	uint32_t seen = tx->seen + (uint32_t)slots;
	/* Words of the other ring grow stale long before 2^20 slots have gone by, with those that
	 * lie in it unread.  Relaxed: a number. */
	if (weft_unlikely((seen ^ tx->seen) >= WEFT_RING_SWEEP / 2))
		tx->stale =
			(uint32_t)atomic_load_explicit(&tx->back->x_word, memory_order_relaxed) +
			WEFT_RING_SLOTS_MAX;
	tx->seen = seen;
	narrow->seen += (uint32_t)narrow_bytes;
	wide->seen += (uint32_t)wide_bytes;
	weft_assert(tx->put - tx->seen <= tx->slot_mask + 1);
	weft_assert(narrow->put - narrow->seen <= narrow->size);
	weft_assert(wide->put - wide->seen <= wide->size);
	return true;
}

bool weft_net_ring_tell(struct weft_ring_rx *rx)
{
	rx->told = weft_net_ring_taking(weft_net_ring_at(rx));
	for (int i = 0; i < WEFT_RING_LANES; i++)
		rx->lane[i].told = rx->lane[i].take;
	uint64_t word = weft_net_ring_make_seen(rx->told, rx->lane[WEFT_RING_WIDE].take,
						rx->lane[WEFT_RING_NARROW].take);
	/* FREE -> REUSE (weft_net_ring_refresh).  Carries: our reads of the packets are over.  An
	 * exchange, seq_cst: the load of x_waiting must not pass it. */
	(void)atomic_exchange_explicit(&rx->control->x_seen, word, memory_order_seq_cst);
	/* TELL <- WAIT (weft_net_ring_wait). */
	if (weft_likely(!atomic_load_explicit(&rx->control->x_waiting, memory_order_seq_cst)))
		return false;
	atomic_store_explicit(&rx->control->x_waiting, 0, memory_order_relaxed);
	return true;
}

void weft_net_ring_publish_bye(struct weft_ring_tx *tx)
{
	weft_assert(weft_net_ring_room(tx, 0));
	struct weft_ring_slot *s = &tx->slot[(tx->put - tx->base) & tx->slot_mask];
	tx->each = WEFT_RING_NONE;
	tx->all = ++tx->put * WEFT_RING_CELLS;
	uint64_t word =
		weft_net_ring_make_word(tx->put, WEFT_RING_BYE, 0) | weft_net_ring_carried(tx);
	/* PUB -> SEE (weft_net_ring_find), as in weft_net_ring_publish. */
	(void)atomic_exchange_explicit(&s->x_word, word, memory_order_seq_cst);
}
