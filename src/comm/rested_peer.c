/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rested_peer.c - what waits for a peer whose connection rests has the driver expect it again, so that its end is noticed.
 *
 * What lost_peer.c would end is what waits: receives and probes that name the peer, messages that it has yet to answer, packets
 * that wait for credit, and what the layer above says (windows).  A receive from any peer does not keep connections.
 */
#include "comm/rested_peer.h"
#include "comm/match/bucket.h"
#include "comm/match/probe_waiter.h"
#include "comm/request.h"

struct search {
	int peer;
	bool found;
};

static void find_receive(struct weft_bucket *b, struct weft_keyed *n, void *arg)
{
	struct search *s = arg;
	s->found |= n->kind == WEFT_KEYED_RECV && n->peer == s->peer;
}

/* A receive with any tag, or a thread that probes. */
static bool in_lists(struct weft_ctx *ctx, int peer)
{
	bool found = false;
	weft_comm_spin_lock(&ctx->lock);
	for (struct weft_entry *e = ctx->wild_head; e && !found; e = e->wild_next)
		found = e->node.peer == peer;
	for (struct weft_probe_waiter *w = ctx->probes; w && !found; w = w->next)
		found = w->peer == peer;
	weft_comm_spin_unlock(&ctx->lock);
	return found;
}

static bool is_awaited(struct weft_core *core, int peer)
{
	struct search s = {.peer = peer};
	if (weft_comm_ids_any(&core->ids, weft_comm_id_send(peer)) ||
	    weft_comm_ids_any(&core->ids, weft_comm_id_recv(peer)) ||
	    !weft_comm_gate_empty(&core->gate[peer]))
		return true;
	weft_comm_match_scan(&core->match, NULL, find_receive, &s);
	weft_comm_spin_lock(&core->ctx_lock);
	struct weft_ctx *all = core->ctx_all;
	weft_comm_spin_unlock(&core->ctx_lock);
	for (struct weft_ctx *c = all; c && !s.found; c = c->next_all)
		s.found = in_lists(c, peer);
	return s.found || (core->awaits_hook && core->awaits_hook(core, peer));
}

void weft_comm_core_peer_rests(struct weft_core *core, int peer)
{
	struct weft_gate *g = &core->gate[peer];
	if (weft_comm_gate_down(g))
		return;
	/* RESTS -> EXPECT (weft_comm_gate_expect).  seq_cst, and the scan takes each lock: either it finds the receive, or
	 * the poster, which has let go of the lock before it looks, sees this. */
	atomic_store_explicit(&g->x_expected, false, memory_order_seq_cst);
	if (is_awaited(core, peer))
		weft_comm_gate_expect(g);
}
