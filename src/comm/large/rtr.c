/* SPDX-License-Identifier: BSD-3-Clause */
/* rtr.c - receives that are posted early: told, heard of, and made use of. */
#include "comm/large/rtr.h"

#include <stdlib.h>
#include "comm/send/credit.h"

/* So many times in vain, then one time in so many. */
#define MISSES 4
#define SELDOM 16

void weft_comm_rtr_open(struct weft_gate *g)
{
	const struct weft_net_card *card = g->driver->card(g->net, g->peer);
	if (!g->core->rtr || !card->streams || weft_comm_gate_can_get(g))
		return;
	g->early = calloc(1, sizeof *g->early);
	weft_comm_gate_eager_set(g, g->eager_max); /* early_min */
}

void weft_comm_rtr_close(struct weft_gate *g)
{
	free(g->early);
	g->early = NULL;
}

/* ---- receiving ------------------------------------------------------------------------------ */

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
	if (!g->early || buf->bytes <= weft_comm_gate_eager_max(g) || weft_comm_gate_down(g) ||
	    atomic_load_explicit(&ctx->x_wild, memory_order_relaxed) || !worth_it(g->early))
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
	struct weft_comm_rtr *e = g->early;
	if (!e)
		return;
	/* Relaxed: as in worth_it. */
	uint32_t misses = atomic_load_explicit(&e->x_misses, memory_order_relaxed);
	if (misses != (missed ? MISSES : 0))
		atomic_store_explicit(&e->x_misses, missed ? misses + 1 : 0, memory_order_relaxed);
}

/* ---- sending -------------------------------------------------------------------------------- */

void weft_comm_rtr_heard(struct weft_gate *g, const struct weft_wire *h)
{
	struct weft_comm_rtr *e = g->early;
	if (!e)
		return;
	weft_comm_spin_lock(&e->lock);
	/* Relaxed: under the lock; its hint is read without. */
	uint32_t n = atomic_load_explicit(&e->x_news, memory_order_relaxed);
	if (n < WEFT_EARLY_NEWS) {
		e->news[n] =
			(struct weft_comm_rtr_note){h->context, h->tag, h->sequence, h->length};
		atomic_store_explicit(&e->x_news, n + 1, memory_order_relaxed);
	}
	weft_comm_spin_unlock(&e->lock);
}

/* What has been heard is looked at by who holds the mask: has such a message gone meanwhile? */
static void take_news_locked(struct weft_comm_rtr *e)
{
	weft_comm_spin_lock(&e->lock);
	uint32_t news = atomic_load_explicit(&e->x_news, memory_order_relaxed);
	for (uint32_t i = 0; i < news; i++) {
		const struct weft_comm_rtr_note *n = &e->news[i];
		/* Numbers go round: which of two is later says their difference. */
		if ((int32_t)(*weft_comm_rtr_sent(e, n->context, n->tag) - n->sequence) > 0)
			weft_count(WEFT_CNT_EARLY_STALE, 1);
		else if (e->n < WEFT_EARLY_KEPT)
			e->note[e->n++] = *n;
	}
	atomic_store_explicit(&e->x_news, 0, memory_order_relaxed);
	weft_comm_spin_unlock(&e->lock);
}

/* The oldest note for that key, or e->n. */
static unsigned find_locked(struct weft_comm_rtr *e, uint32_t context, int32_t tag)
{
	/* Relaxed: a hint; what is missed now is seen at the next message. */
	if (atomic_load_explicit(&e->x_news, memory_order_relaxed))
		take_news_locked(e);
	unsigned i = 0;
	while (i < e->n && (e->note[i].context != context || e->note[i].tag != tag))
		i++;
	return i;
}

bool weft_comm_rtr_may_locked(struct weft_gate *g, const struct weft_req *r)
{
	struct weft_comm_rtr *e = g->early;
	size_t len = r->buf.bytes;
	size_t most = g->max_payload < WEFT_EARLY_MAX ? g->max_payload : WEFT_EARLY_MAX;

	if (g->strategy->apart && g->strategy->piece && most > g->strategy->piece)
		most = g->strategy->piece;
	if (r->buf.type || len > most || len > g->credit / 2)
		return false;
	const struct weft_wire *h = &weft_comm_req_send((struct weft_req *)r)->out.head;
	unsigned i = find_locked(e, h->context, h->tag);
	/* The other half of the credit is for what is small. */
	return i < e->n && len <= e->note[i].room &&
	       weft_comm_credit_may_locked(g, len + (size_t)(g->credit / 2));
}

void weft_comm_rtr_take_locked(struct weft_comm_rtr *e, uint32_t context, int32_t tag)
{
	unsigned i = find_locked(e, context, tag);
	if (i == e->n)
		return;
	e->n--;
	memmove(&e->note[i], &e->note[i + 1], (e->n - i) * sizeof e->note[0]);
}
