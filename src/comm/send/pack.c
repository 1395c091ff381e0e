/* SPDX-License-Identifier: BSD-3-Clause */
/* pack.c - several small messages in one packet: put together, held back, sent. */
#include <stdlib.h>
#include <string.h>
#include "base/counters.h"
#include "base/trace.h"
#include "comm/large/rtr_note.h"
#include "comm/msg_trace.h"
#include "comm/send/pack.h"

#define HEAD sizeof(struct weft_wire)

void weft_comm_pack_open(struct weft_gate *g, struct weft_rail *rail)
{
	size_t most = g->strategy->pack;
	weft_comm_pack_close(g);
	if (most > g->inline_max)
		most = g->inline_max; /* only those posts are over when they return */
	if (most > WEFT_PACK_MAX)
		most = WEFT_PACK_MAX;
	if (most < 4 * HEAD)
		return;
	struct weft_pack *k = malloc(sizeof *k);
	if (!k)
		return;
	memset(k, 0, offsetof(struct weft_pack, data));
	k->may_hold = g->strategy->may_hold;
	k->most = most & ~(size_t)7;
	k->last_round = UINT64_MAX;
	k->gate = g;
	k->rail = rail;
	if (!rail->packs)
		weft_mpsc_init(&rail->held);
	rail->packs = true;
	g->pack = k;
}

void weft_comm_pack_close(struct weft_gate *g)
{
	free(g->pack);
	g->pack = NULL;
}

bool weft_comm_pack_fits(const struct weft_gate *g, struct weft_out *o)
{
	if (!g->pack || o->type == WEFT_OUT_CTRL)
		return g->pack;
	if (o->type != WEFT_OUT_EAGER)
		return false;
	struct weft_req *r = weft_comm_req_of_send_out(o);
	size_t len = r->buf.bytes;
	return !weft_comm_req_send(r)->sync && len <= WEFT_PACK_EACH && len + HEAD <= g->pack->most;
}

/* One record: the head, then the payload, padded. */
static bool add_record_locked(struct weft_gate *g, const struct weft_wire *head,
			      const struct weft_buf *buf, size_t len)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_pack *k = g->pack;
	if (k->len + HEAD + len > k->most)
		return false;
	char *at = k->data + k->len;
	memcpy(at, head, HEAD);
	if (len)
		weft_data_pack(buf, 0, at + HEAD, len);
	if (head->kind == WEFT_WIRE_EAGER) {
		weft_comm_credit_spend_locked(g, len);
		((struct weft_wire *)(void *)at)->sequence = g->send_seq;
		if (weft_trace_on())
			weft_comm_trace_envelope(WEFT_TRACE_SEND, g, (struct weft_wire *)(void *)at,
						 true);
		weft_comm_gate_numbered_locked(g, head->context, head->tag);
	}
	size_t end = weft_align_up(HEAD + len, 8);
	memset(at + HEAD + len, 0, end - HEAD - len);
	k->len += end;
	k->n++;
	return true;
}

bool weft_comm_pack_add_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	if (o->type == WEFT_OUT_CTRL)
		return add_record_locked(g, &o->head, NULL, 0);
	struct weft_buf *buf = &weft_comm_req_of_send_out(o)->buf;
	return add_record_locked(g, &o->head, buf, buf->bytes);
}

enum weft_post weft_comm_pack_send_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_pack *k = g->pack;
	if (!k || !k->n)
		return WEFT_POST_DONE;
	struct weft_wire head = {.kind = WEFT_WIRE_PACK, .sequence = k->n, .length = k->len};
	struct iovec iov = {k->data, k->len};
	if (k->n == 1) { /* alone: as it would have gone */
		uint32_t none;
		memcpy(&head, k->data, HEAD);
		iov = (struct iovec){k->data + HEAD,
				     head.kind == WEFT_WIRE_EAGER
					     ? weft_comm_wire_eager_length(&head, &none)
					     : 0};
	}
	enum weft_post p = weft_comm_gate_down(g)
				   ? WEFT_POST_DOWN
				   : weft_comm_gate_post_locked(g, &head, &iov, iov.iov_len > 0,
								iov.iov_len, NULL);
	k->held = false;
	if (p == WEFT_POST_FULL)
		return p;
	if (p == WEFT_POST_DONE && k->n > 1) {
		weft_count(WEFT_CNT_PACKS, 1);
		weft_count(WEFT_CNT_AGGREGATED, k->n);
	}
	k->n = 0;
	k->len = 0;
	return p;
}

/* ---- held back ------------------------------------------------------------------------------- */

/* Did another message go since the last poll? */
static bool follows_locked(struct weft_pack *k)
{
	weft_assert_held(weft_comm_gate, k->gate);
	/* Relaxed: the number of polls so far; being late by one makes a message go at once. */
	uint64_t round = atomic_load_explicit(&k->rail->x_round, memory_order_relaxed);
	bool follows = k->last_round == round;
	k->last_round = round;
	return follows;
}

static void hold_for_poll_locked(struct weft_pack *k)
{
	weft_assert_held(weft_comm_gate, k->gate);
	k->held = true;
	/* REUSE <- FREE (rail_packs_round).  Carries: the queue is done with the node.
	 * Without it, a push could link a node that pop still reads. */
	if (!atomic_exchange_explicit(&k->x_listed, true, memory_order_acquire))
		weft_mpsc_push(&k->rail->held, &k->node);
}

bool weft_comm_pack_hold_locked(struct weft_gate *g, const struct weft_wire *head,
				const struct weft_buf *buf)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_pack *k = g->pack;
	size_t len = buf->bytes;
	/* Relaxed: the thread sees its own pushes anyway, as in clear. */
	if (g->out_head || atomic_load_explicit(&g->x_in, memory_order_relaxed) ||
	    len > WEFT_PACK_EACH || len + HEAD > k->most || !weft_comm_credit_may_locked(g, len) ||
	    weft_comm_gate_down(g))
		return false;
	if (!k->n) {
		/* Relaxed: looked at again below. */
		if (!k->may_hold || !follows_locked(k) ||
		    atomic_load_explicit(&k->rail->x_armed, memory_order_relaxed) ||
		    !g->core->hold || !g->core->hold())
			return false;
		(void)add_record_locked(g, head, buf, len);
		hold_for_poll_locked(k);
		/* HOLD -> SLEEP (arm).  Either this thread sees that no poll will come, or the poller
		 * sees the pack before it sleeps: the push was an exchange. */
		if (atomic_load_explicit(&k->rail->x_armed, memory_order_seq_cst))
			(void)weft_comm_pack_send_locked(g); /* full: ready() sends it */
		return true;
	}
	if (add_record_locked(g, head, buf, len))
		return true;
	/* A full pack goes; the next is held only if this was. */
	bool held = k->held;
	if (weft_comm_pack_send_locked(g) != WEFT_POST_DONE || !held)
		return false;
	(void)add_record_locked(g, head, buf, len);
	hold_for_poll_locked(k);
	if (atomic_load_explicit(&k->rail->x_armed, memory_order_seq_cst))
		(void)weft_comm_pack_send_locked(g);
	return true;
}

void weft_comm_pack_check(const struct weft_pack *k)
{
	weft_assert(k->len <= k->most && k->most <= sizeof k->data);
	weft_assert(k->len % 8 == 0 && k->len >= k->n * HEAD && !k->n == !k->len);
	/* Held back, it is in the rail's queue: the next poll sends it.
	 * Relaxed: no thread is in the core. */
	weft_assert(!k->held || !k->n || atomic_load_explicit(&k->x_listed, memory_order_relaxed));
}
