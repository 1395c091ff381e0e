/* SPDX-License-Identifier: BSD-3-Clause */
/* bundle_peer.c - a peer's lock, and the list of peers that each poll looks at. */
#include "base/backoff.h"
#include "net/bundle/bundle_int.h"

void weft_net_bundle_lock(struct weft_bundle_peer *p)
{
	unsigned turns = 0;
	/* LOCK <- UNLOCK.  Carries: all fields marked L.  Ends: held over one post at most. */
	while (atomic_exchange_explicit(&p->x_lock, true, memory_order_acquire))
		weft_backoff(&turns);
}

void weft_net_bundle_unlock(struct weft_bundle_peer *p)
{
	weft_assert_held(weft_net_bundle, p);
	/* UNLOCK -> LOCK. */
	atomic_store_explicit(&p->x_lock, false, memory_order_release);
}

void weft_net_bundle_list(struct weft_bundle *b, int peer)
{
	struct weft_bundle_peer *p = &b->peer[peer];
	if (p->listed)
		return;
	p->listed = true;
	weft_assert(peer != b->job.rank && b->n_active < b->job.size);
	b->active[b->n_active++] = peer;
}
