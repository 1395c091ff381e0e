/* SPDX-License-Identifier: BSD-3-Clause */
/* rtr.c - receives that are posted early: told, heard of, and made use of. */
#include <stdlib.h>
#include <string.h>
#include "base/counters.h"
#include "comm/core.h"
#include "comm/large/rtr.h"

/* So many times in vain, then one time in so many. */
#define MISSES 4
#define SELDOM 16

void weft_comm_rtr_open(struct weft_gate *g)
{
	const struct weft_net_card *card = g->driver->card(g->net, g->peer);
	if (!g->core->rtr || !card->streams || weft_comm_gate_can_get(g))
		return;
	g->rtr = calloc(1, sizeof *g->rtr);
	weft_comm_gate_eager_set(g, g->eager_max); /* rtr_min */
}

void weft_comm_rtr_close(struct weft_gate *g)
{
	free(g->rtr);
	g->rtr = NULL;
}

static bool worth_it(struct weft_comm_rtr *e)
{
	/* Relaxed: statistics; an error costs a packet. */
	if (weft_likely(atomic_load_explicit(&e->x_misses, memory_order_relaxed) < MISSES))
		return true;
	return atomic_fetch_add_explicit(&e->x_held_back, 1, memory_order_relaxed) % SELDOM ==
	       SELDOM - 1;
}

bool weft_comm_rtr_before(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf,
			  uint32_t *sequence_p)
{
	if (peer == WEFT_ANY_PEER || tag == WEFT_ANY_TAG || buf->type)
		return false;
	struct weft_gate *g = &ctx->core->gate[peer];
	/* Relaxed: an older wildcard of ours we see; others' have no order against us. */
	if (!g->rtr || buf->bytes <= weft_comm_gate_eager_max(g) || weft_comm_gate_down(g) ||
	    atomic_load_explicit(&ctx->x_wild, memory_order_relaxed) || !worth_it(g->rtr))
		return false;
	/* Relaxed: an old value makes the sender more careful. */
	*sequence_p = atomic_load_explicit(&g->x_recv_seq, memory_order_relaxed);
	return true;
}

void weft_comm_rtr_tell(struct weft_ctx *ctx, int peer, int tag, size_t room, uint32_t sequence)
{
	weft_count(WEFT_CNT_EARLY_TOLD, 1);
	weft_comm_gate_control(&ctx->core->gate[peer], &(struct weft_wire){.kind = WEFT_WIRE_RTR,
									   .sequence = sequence,
									   .context = ctx->id,
									   .tag = tag,
									   .length = room});
}

void weft_comm_rtr_outcome(struct weft_gate *g, bool missed)
{
	struct weft_comm_rtr *e = g->rtr;
	if (!e)
		return;
	/* Relaxed: as in worth_it. */
	uint32_t misses = atomic_load_explicit(&e->x_misses, memory_order_relaxed);
	if (misses != (missed ? MISSES : 0))
		atomic_store_explicit(&e->x_misses, missed ? misses + 1 : 0, memory_order_relaxed);
}
