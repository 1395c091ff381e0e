/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c - the rare steps of the packet ring: attaching, and telling how far the receiver is. */
#include "net/ring.h"

static void lay_out(void *memory, struct weft_ring_shape shape,
		    struct weft_ring_control **control_p, struct weft_ring_slot **slot_p,
		    uint8_t **data_p)
{
	uint8_t *m = memory;
	*control_p = memory;
	*slot_p = (struct weft_ring_slot *)(void *)(m + sizeof(struct weft_ring_control));
	*data_p =
		m + sizeof(struct weft_ring_control) + shape.slots * sizeof(struct weft_ring_slot);
}

void weft_ring_tx_attach(struct weft_ring_tx *tx, void *memory, struct weft_ring_shape shape,
			 const struct weft_ring_back *back)
{
	static const struct weft_ring_back none;
	memset(tx, 0, sizeof *tx);
	tx->back = back ? back : &none;
	lay_out(memory, shape, &tx->control, &tx->slot, &tx->data);
	tx->slot_mask = shape.slots - 1;
	tx->data_size = shape.data;
	tx->each = WEFT_RING_NONE;
}

void weft_ring_rx_attach(struct weft_ring_rx *rx, void *memory, struct weft_ring_shape shape,
			 uint32_t max_payload)
{
	memset(rx, 0, sizeof *rx);
	lay_out(memory, shape, &rx->control, &rx->slot, &rx->data);
	rx->slot_mask = shape.slots - 1;
	rx->data_size = shape.data;
	rx->max_payload = max_payload;
	rx->quarter = shape.slots / 4;
	rx->data_quarter = shape.data / 4;
}

bool weft_ring_refresh(struct weft_ring_tx *tx)
{
	/* REUSE <- FREE (weft_ring_tell).  Carries: the receiver's reads of what it gave back are
	 * over.  seq_cst: pairs with x_waiting, see weft_ring_wait. */
	uint64_t word = atomic_load_explicit(&tx->control->x_seen, memory_order_seq_cst);
	uint32_t seen = (uint32_t)(word >> 32), data_seen = (uint32_t)word;

	tx->known = word;
	/* We may know more from a packet, see weft_ring_begin. */
	if ((int32_t)(seen - tx->seen) <= 0 && (int32_t)(data_seen - tx->data_seen) <= 0)
		return true;
	/* It can only go forward, and not past us. */
	if (seen - tx->seen > tx->put - tx->seen ||
	    data_seen - tx->data_seen > tx->data_put - tx->data_seen)
		return false;
	/* Words of the other ring grow stale long before 2^20 slots have gone by, with those that
	 * lie in it unread.  Relaxed: a number. */
	if (weft_unlikely((seen ^ tx->seen) >= WEFT_RING_SWEEP / 2))
		tx->stale =
			(uint32_t)atomic_load_explicit(&tx->back->x_word, memory_order_relaxed) +
			WEFT_RING_SLOTS_MAX;
	tx->seen = seen;
	tx->data_seen = data_seen;
	return true;
}

bool weft_ring_tell(struct weft_ring_rx *rx)
{
	rx->told = weft_ring_taking(weft_ring_at(rx));
	uint64_t word = (uint64_t)rx->told << 32 | rx->data_take;
	rx->data_told = rx->data_take;
	/* FREE -> REUSE (weft_ring_refresh).  Carries: our reads of the packets are over.  An
	 * exchange, seq_cst: the load of x_waiting must not pass it. */
	(void)atomic_exchange_explicit(&rx->control->x_seen, word, memory_order_seq_cst);
	/* TELL <- WAIT (weft_ring_wait). */
	if (weft_likely(!atomic_load_explicit(&rx->control->x_waiting, memory_order_seq_cst)))
		return false;
	atomic_store_explicit(&rx->control->x_waiting, 0, memory_order_relaxed);
	return true;
}

void weft_ring_publish_bye(struct weft_ring_tx *tx)
{
	struct weft_ring_slot *s = &tx->slot[(tx->put - tx->base) & tx->slot_mask];
	tx->each = WEFT_RING_NONE;
	tx->all = ++tx->put * WEFT_RING_CELLS;
	uint64_t word = weft_ring_make_word(tx->put, WEFT_RING_BYE, 0) | weft_ring_carried(tx);
	/* PUB -> SEE (weft_ring_find), as in weft_ring_publish. */
	(void)atomic_exchange_explicit(&s->x_word, word, memory_order_seq_cst);
}
