/* SPDX-License-Identifier: BSD-3-Clause */
/* core.c - one process's end of all conversations: made, polled, drained, ended. */
#include <stdlib.h>
#include <string.h>
#include "base/mechanism.h"
#include "base/trace.h"
#include "comm/core.h"
#include "comm/lost_peer.h"
#include "comm/large/packets.h"
#include "comm/large/rtr.h"
#include "comm/recv/msg_pool.h"
#include "comm/recv/rx_stream.h"
#include "comm/send/offload.h"
#include "comm/send/pack.h"
#include "comm/send/send.h"

weft_err weft_comm_core_create(int rank, int size, struct weft_core **core_p)
{
	struct weft_core *core =
		aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *core, WEFT_CACHELINE));
	if (!core)
		return WEFT_ERR_NOMEM;
	memset(core, 0, sizeof *core);
	core->rank = rank;
	core->size = size;
	core->credit = UINT64_MAX / 2;
	core->rtr_min = SIZE_MAX;
	core->peer_down = weft_comm_core_peer_down;
	core->out_ops[WEFT_OUT_EAGER] = &weft_comm_send_eager_ops;
	core->out_ops[WEFT_OUT_RTS] = &weft_comm_send_rts_ops;
	core->out_ops[WEFT_OUT_DATA] = &weft_comm_packets_data_ops;
	core->out_ops[WEFT_OUT_CTS] = &weft_comm_packets_cts_ops;
	core->out_ops[WEFT_OUT_CTRL] = &weft_comm_gate_control_ops;
	core->gate = aligned_alloc(WEFT_CACHELINE, sizeof *core->gate * (size_t)size);
	if (!core->gate || weft_comm_answers_init(&core->answers) ||
	    weft_comm_msg_pool_init(core) || weft_comm_match_init(&core->match)) {
		weft_comm_msg_pool_fini(core);
		weft_comm_answers_fini(&core->answers);
		free(core->gate);
		free(core);
		return WEFT_ERR_NOMEM;
	}
	for (int i = 0; i < size; i++)
		weft_comm_gate_init(&core->gate[i], core, i);
	*core_p = core;
	return WEFT_OK;
}

weft_err weft_comm_core_rail_add(struct weft_core *core, const struct weft_driver *driver,
				 const struct weft_net_job *job)
{
	if (core->nrails == WEFT_RAILS_MAX)
		return WEFT_ERR_LIMIT;
	struct weft_rail *rail = &core->rail[core->nrails];
	*rail = (struct weft_rail){.core = core, .driver = driver};
	rail->events = weft_comm_rail_events(rail);
	weft_err err = driver->open(job, &rail->events, &rail->net);
	if (!err)
		core->nrails++;
	return err;
}

/* Relaxed, both: see the fields. */
static void gate_short_ways(struct weft_gate *g)
{
	bool long_only = g->pack || weft_trace_on();
	atomic_store_explicit(&g->x_post_plain, long_only || g->rtr ? NULL : g->driver->post_plain,
			      memory_order_relaxed);
	atomic_store_explicit(
		&g->x_join_plain,
		long_only || !weft_mechanism_on(WEFT_MECH_PACK_JOIN) ? NULL : g->driver->join_plain,
		memory_order_relaxed);
}

void weft_comm_core_gate_set(struct weft_core *core, int peer, int i)
{
	struct weft_rail *rail = &core->rail[i];
	struct weft_gate *g = &core->gate[peer];
	const struct weft_net_card *card = rail->driver->card(rail->net, peer);

	g->net = rail->net;
	g->driver = rail->driver;
	g->max_payload = card->max_payload;
	g->inline_max = card->inline_max;
	weft_comm_gate_eager_set(g, card->eager_max);
	/* Until the peer's setting is known it counts as equal. */
	g->credit = g->credit_given = core->credit;
	if (core->strategy)
		weft_comm_gate_strategy(g, rail, core->strategy);
	weft_comm_rtr_open(g);
	weft_comm_offload_open(g, card->latency_us);
	gate_short_ways(g);
	rail->peers++;
}

void weft_comm_core_trace(struct weft_core *core)
{
	for (int i = 0; i < core->nrails; i++)
		weft_comm_rail_trace(&core->rail[i], weft_trace_on());
	for (int i = 0; i < core->size; i++)
		if (core->gate[i].driver)
			gate_short_ways(&core->gate[i]);
}

void weft_comm_gate_strategy(struct weft_gate *g, struct weft_rail *rail,
			     const struct weft_strategy *s)
{
	if (s->choose)
		s = s->choose(g->driver->card(g->net, g->peer));
	g->strategy = s;
	weft_comm_pack_open(g, rail);
}

int weft_comm_core_poll(struct weft_core *core)
{
	int n = 0;
	for (int i = 0; i < core->nrails; i++)
		n += weft_comm_rail_poll(&core->rail[i]);
	return n;
}

bool weft_comm_core_idle(struct weft_core *core)
{
	/* SEE <- the pulls' last steps, which have posted their answers. */
	if (atomic_load_explicit(&core->x_owed, memory_order_acquire))
		return false;
	for (int i = 0; i < core->size; i++)
		if (core->gate[i].driver && !weft_comm_gate_empty(&core->gate[i]))
			return false;
	return true;
}

bool weft_comm_core_drain(struct weft_core *core)
{
	bool all = true;
	for (int i = 0; i < core->nrails; i++) {
		struct weft_rail *rail = &core->rail[i];
		if (!rail->drained)
			rail->drained = rail->driver->drain(rail->net) != WEFT_AGAIN;
		all = all && rail->drained;
	}
	return all;
}

void weft_comm_core_destroy(struct weft_core *core)
{
	for (int i = 0; i < core->size; i++)
		weft_comm_offload_close(&core->gate[i]);
	/* All peers count as gone: answers for messages that are dropped below go nowhere. */
	for (int i = 0; i < core->size; i++)
		atomic_store_explicit(&core->gate[i].x_down, true, memory_order_seq_cst);
	for (int i = core->nrails; i-- > 0;)
		core->rail[i].driver->close(core->rail[i].net);
	for (int i = 0; i < core->size; i++) {
		weft_comm_rx_abandon(&core->gate[i]);
		weft_comm_gate_purge(&core->gate[i]);
		weft_comm_pack_close(&core->gate[i]);
		weft_comm_rtr_close(&core->gate[i]);
		weft_comm_path_cost_close(&core->gate[i].x_path_cost);
	}
	weft_comm_ctx_fini_all(core);
	weft_comm_msg_pool_fini(core);
	weft_comm_answers_fini(&core->answers);
	weft_comm_ids_fini(&core->ids);
	weft_comm_match_fini(&core->match);
	for (int i = 0; i < core->size; i++)
		weft_comm_rx_free(&core->gate[i]);
	free(core->gate);
	free(core);
}
