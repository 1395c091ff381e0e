/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lost_peer.c - a peer is gone: everything that needs it ends now, with WEFT_ERR_PEER.
 *
 * Receives from any peer fail, too, when the peer died (err is not WEFT_OK): a receive that waited
 * for it alone would wait for ever.  Messages that it sent in full stay.
 */
#include "comm/lost_peer.h"
#include "base/trace.h"
#include "comm/large/large.h"
#include "comm/match/probe_waiter.h"
#include "comm/match/withdraw.h"
#include "comm/recv/deliver.h"
#include "comm/recv/rx_stream.h"
#include "comm/send/send_ref.h"

static void fail_entries(struct weft_keyed *list)
{
	while (list) {
		struct weft_keyed *next = list->next;
		struct weft_req *r = weft_comm_req_of_entry(weft_comm_entry_of(list));
		r->status = (struct weft_status){.peer = list->peer, .tag = list->tag};
		weft_comm_recv_finish(r, WEFT_ERR_PEER);
		list = next;
	}
}

/* Requests that wait for the peer's answer. */
static void fail_ids(struct weft_core *core, int peer)
{
	uint32_t from = 0;
	struct weft_req *r;
	while ((r = weft_comm_ids_take_any(&core->ids, weft_comm_id_send(peer), &from)))
		weft_comm_send_drop(r, WEFT_ERR_PEER);
	from = 0;
	while ((r = weft_comm_ids_take_any(&core->ids, weft_comm_id_recv(peer), &from)))
		weft_comm_large_abandon(r);
}

void weft_comm_core_peer_down(struct weft_core *core, int peer, weft_err err, const char *why)
{
	struct weft_gate *g = &core->gate[peer];

	/* DOWN -> SEE (weft_comm_gate_down).  seq_cst against threads that post meanwhile: they see it,
	 * or the scans below see what they posted. */
	if (atomic_exchange_explicit(&g->x_down, true, memory_order_seq_cst))
		return;
	weft_trace(WEFT_TRACE_PEER_DOWN, err != WEFT_OK, (uint32_t)peer, 0, 0);
	atomic_fetch_add_explicit(&core->x_died, err != WEFT_OK, memory_order_seq_cst);
	atomic_fetch_add_explicit(&core->x_gone, 1, memory_order_seq_cst);
	weft_comm_rx_abandon(g);
	weft_comm_gate_purge(g);
	fail_ids(core, peer);
	fail_entries(weft_comm_match_withdraw_peer(core, peer, err != WEFT_OK));
	weft_comm_spin_lock(&core->ctx_lock);
	struct weft_ctx *all = core->ctx_all;
	weft_comm_spin_unlock(&core->ctx_lock);
	for (struct weft_ctx *c = all; c; c = c->next_all)
		weft_comm_match_wake_probes(c, peer, err != WEFT_OK);
	if (core->down_hook)
		core->down_hook(core, peer, err, why);
}
