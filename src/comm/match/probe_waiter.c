/* SPDX-License-Identifier: BSD-3-Clause */
/* probe_waiter.c - threads that wait for a message to come. */
#include "comm/match/probe_waiter.h"

struct weft_probe_waiter *weft_comm_probes_pick_locked(struct weft_ctx *ctx, int peer, int tag)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	struct weft_probe_waiter *picked = NULL;
	struct weft_probe_waiter **link = &ctx->probes;
	while (*link) {
		struct weft_probe_waiter *w = *link;
		if ((w->peer == WEFT_ANY_PEER || w->peer == peer) &&
		    (w->tag == WEFT_ANY_TAG || w->tag == tag || tag == WEFT_ANY_TAG)) {
			*link = w->next;
			w->next = picked;
			/* LOWER, as with wildcards. */
			atomic_fetch_sub_explicit(&ctx->x_wild, 1, memory_order_relaxed);
			picked = w;
		} else {
			link = &w->next;
		}
	}
	return picked;
}

void weft_comm_probes_signal(struct weft_probe_waiter *w)
{
	while (w) {
		struct weft_probe_waiter *next = w->next; /* w may vanish with the signal */
		weft_wait_completion_signal(&w->arrived);
		w = next;
	}
}

void weft_comm_match_wake_probes(struct weft_ctx *ctx, int peer, bool failed)
{
	weft_comm_spin_lock(&ctx->lock);
	struct weft_probe_waiter *picked = weft_comm_probes_pick_locked(ctx, peer, WEFT_ANY_TAG);
	weft_comm_spin_unlock(&ctx->lock);
	for (struct weft_probe_waiter *w = picked; w; w = w->next)
		w->failed = failed;
	weft_comm_probes_signal(picked);
}
