/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_check.h - what holds of the two ends of a packet ring between any two of their operations.
 *
 * Callers   a test or a model, in the thread that owns that end.
 * Cost      none without WEFT_CHECKED.
 */
#ifndef WEFT_RING_CHECK_H
#define WEFT_RING_CHECK_H

#include "base/assert.h"
#include "net/shm/ring.h"

static inline void weft_net_ring_tx_check(const struct weft_ring_tx *tx)
{
	weft_assert(!(tx->slot_mask & (tx->slot_mask + 1)));
	/* The receiver has seen nothing that was not put, and no slot is used twice. */
	weft_assert(tx->put - tx->seen <= tx->slot_mask + 1);
	weft_assert(tx->more < WEFT_RING_CELLS);
	for (unsigned i = 0; i < WEFT_RING_LANES; i++) {
		const struct weft_ring_lane_tx *l = &tx->lane[i];
		weft_assert(l->put - l->seen <= l->size);
		weft_assert(l->put % WEFT_CACHELINE == 0);
	}
}

static inline void weft_net_ring_rx_check(const struct weft_ring_rx *rx)
{
	uint32_t taking = weft_net_ring_taking(weft_net_ring_at(rx));
	weft_assert(!(rx->slot_mask & (rx->slot_mask + 1)));
	/* What the sender was told is what was taken, or less. */
	weft_assert(taking - rx->told <= rx->slot_mask + 1);
	for (unsigned i = 0; i < WEFT_RING_LANES; i++) {
		const struct weft_ring_lane_rx *l = &rx->lane[i];
		weft_assert(l->take - l->told <= l->size);
		weft_assert(l->take % WEFT_CACHELINE == 0);
	}
}

#endif
