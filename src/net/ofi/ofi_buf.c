/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_buf.c - the slab: all buffers of an endpoint, in both directions, registered as one piece.
 *
 * Senders take from two lists, small and large, under a lock of a few instructions.  Buffers to
 * receive into are the network's; those that it did not take lie in rx_idle, the poller's.
 */
#include "base/backoff.h"
#include "net/ofi/ofi_int.h"

struct weft_ofi_lacks weft_net_ofi_lacks; /* here, where all of the driver may see it */

#if __has_include(<rdma/fabric.h>)

#include <stdlib.h>
#include <string.h>

static size_t buf_bytes(size_t payload)
{
	return weft_align_up(sizeof(struct weft_ofi_buf) + payload, WEFT_CACHELINE);
}

weft_err weft_net_ofi_slab_make(struct weft_ofi *o)
{
	const struct {
		unsigned n;
		size_t payload;
		struct weft_ofi_buf **list;
	} kind[] = {{WEFT_OFI_N_SMALL, WEFT_OFI_SMALL, &o->free_small},
		    {WEFT_OFI_N_LARGE, WEFT_OFI_MAX_PAYLOAD, &o->free_large},
		    {WEFT_OFI_N_RX, WEFT_OFI_MAX_PAYLOAD, &o->rx_idle}};
	for (size_t k = 0; k < weft_countof(kind); k++)
		o->slab_bytes += kind[k].n * buf_bytes(kind[k].payload);
	o->slab_bytes = weft_align_up(o->slab_bytes, 4096);
	o->slab = aligned_alloc(4096, o->slab_bytes);
	if (!o->slab)
		return WEFT_ERR_NOMEM;
	uint8_t *at = o->slab;
	for (size_t k = 0; k < weft_countof(kind); k++)
		for (unsigned i = 0; i < kind[k].n; i++) {
			struct weft_ofi_buf *b = (struct weft_ofi_buf *)at;
			memset(b, 0, sizeof *b);
			b->is_small = k == 0;
			b->is_rx = k == 2;
			b->next = *kind[k].list;
			*kind[k].list = b;
			at += buf_bytes(kind[k].payload);
		}
	return WEFT_OK;
}

static void free_lock(struct weft_ofi *o)
{
	unsigned turns = 0;
	/* LOCK <- UNLOCK.  Carries: the two lists.  Ends: held for a few instructions. */
	while (atomic_exchange_explicit(&o->x_free_lock, true, memory_order_acquire))
		weft_backoff(&turns);
}

static void free_unlock(struct weft_ofi *o)
{
	/* UNLOCK -> LOCK. */
	atomic_store_explicit(&o->x_free_lock, false, memory_order_release);
}

struct weft_ofi_buf *weft_net_ofi_buf_take(struct weft_ofi *o, size_t len)
{
	free_lock(o);
	struct weft_ofi_buf **list = &o->free_large;
	if (len <= WEFT_OFI_SMALL && o->free_small)
		list = &o->free_small;
	struct weft_ofi_buf *b = *list;
	if (b)
		*list = b->next;
	free_unlock(o);
	return b;
}

void weft_net_ofi_buf_give(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	weft_assert(!b->is_rx && !b->is_read);
	free_lock(o);
	struct weft_ofi_buf **list = b->is_small ? &o->free_small : &o->free_large;
	b->next = *list;
	*list = b;
	free_unlock(o);
}

/* Gives the receive buffers that are idle to the network. */
void weft_net_ofi_rx_post(struct weft_ofi *o)
{
	while (o->rx_idle) {
		struct weft_ofi_buf *b = o->rx_idle;
		o->rx_idle = b->next;
		if (fi_recv(o->ep, &b->frame, sizeof b->frame + WEFT_OFI_MAX_PAYLOAD, o->desc,
			    FI_ADDR_UNSPEC, b) == 0)
			continue;
		b->next = o->rx_idle; /* tried again with the next poll */
		o->rx_idle = b;
		return;
	}
}

void weft_net_ofi_rx_give(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	weft_assert(b->is_rx);
	b->next = o->rx_idle;
	o->rx_idle = b;
}

#endif
