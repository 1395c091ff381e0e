/* SPDX-License-Identifier: BSD-3-Clause */
/* rtr_note.c - the sender's half of rtr.h: what peers have told, and which message goes by it. */
#include <string.h>
#include "base/counters.h"
#include "comm/large/rtr_note.h"
#include "comm/send/credit.h"

void weft_comm_rtr_heard(struct weft_gate *g, const struct weft_wire *h)
{
	struct weft_comm_rtr *e = g->rtr;
	if (!e)
		return;
	weft_comm_spin_lock(&e->lock);
	/* Relaxed: under the lock; its hint is read without. */
	uint32_t n = atomic_load_explicit(&e->x_news, memory_order_relaxed);
	if (n < WEFT_RTR_NEWS) {
		e->news[n] =
			(struct weft_comm_rtr_note){h->context, h->tag, h->sequence, h->length};
		atomic_store_explicit(&e->x_news, n + 1, memory_order_relaxed);
	}
	weft_comm_spin_unlock(&e->lock);
}

/* The holder of the mask looks at what has been heard: has such a message gone meanwhile? */
static void take_news_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_comm_rtr *e = g->rtr;
	weft_comm_spin_lock(&e->lock);
	uint32_t news = atomic_load_explicit(&e->x_news, memory_order_relaxed);
	weft_assert(news <= WEFT_RTR_NEWS && e->n <= WEFT_RTR_KEPT);
	for (uint32_t i = 0; i < news; i++) {
		const struct weft_comm_rtr_note *n = &e->news[i];
		/* Numbers go round: which of two is later says their difference. */
		if ((int32_t)(*weft_comm_rtr_sent(e, n->context, n->tag) - n->sequence) > 0)
			weft_count(WEFT_CNT_EARLY_STALE, 1);
		else if (e->n < WEFT_RTR_KEPT)
			e->note[e->n++] = *n;
	}
	atomic_store_explicit(&e->x_news, 0, memory_order_relaxed);
	weft_comm_spin_unlock(&e->lock);
}

/* The oldest note for that key, or n of them. */
static unsigned find_locked(struct weft_gate *g, uint32_t context, int32_t tag)
{
	weft_assert_held(weft_comm_gate, g);
	const struct weft_comm_rtr *e = g->rtr;
	/* Relaxed: a hint; what is missed now is seen at the next message. */
	if (atomic_load_explicit(&e->x_news, memory_order_relaxed))
		take_news_locked(g);
	unsigned i = 0;
	while (i < e->n && (e->note[i].context != context || e->note[i].tag != tag))
		i++;
	return i;
}

bool weft_comm_rtr_may_locked(struct weft_gate *g, const struct weft_req *r)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_comm_rtr *e = g->rtr;
	size_t len = r->buf.bytes;
	size_t most = g->max_payload < WEFT_RTR_MAX ? g->max_payload : WEFT_RTR_MAX;

	if (g->strategy->apart && g->strategy->piece && most > g->strategy->piece)
		most = g->strategy->piece;
	if (r->buf.type || len > most || len > g->credit / 2)
		return false;
	const struct weft_wire *h = &weft_comm_req_send((struct weft_req *)r)->out.head;
	unsigned i = find_locked(g, h->context, h->tag);
	/* The other half of the credit is for what is small. */
	return i < e->n && len <= e->note[i].room &&
	       weft_comm_credit_may_locked(g, len + (size_t)(g->credit / 2));
}

void weft_comm_rtr_take_locked(struct weft_gate *g, uint32_t context, int32_t tag)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_comm_rtr *e = g->rtr;
	unsigned i = find_locked(g, context, tag);
	if (i == e->n)
		return;
	e->n--;
	memmove(&e->note[i], &e->note[i + 1], (e->n - i) * sizeof e->note[0]);
}
