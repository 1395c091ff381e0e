/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rail.c - one driver of a core: the events that it reports, its polls, and the packs that are held
 * back until one.
 */
#include <string.h>
#include "base/trace.h"
#include "comm/large/packets.h"
#include "comm/msg_trace.h"
#include "comm/rail.h"
#include "comm/recv/arrival.h"
#include "comm/recv/inbound.h"
#include "comm/recv/rx_stream.h"
#include "comm/rested_peer.h"
#include "comm/send/pack.h"
#include "comm/send/send_ref.h"
#include "task/task.h"

static void on_sent(void *arg, int peer, void *cookie, weft_err err)
{
	struct weft_rail *rail = arg;
	if (!cookie)
		return;
	struct weft_gate *g = &rail->core->gate[peer];
	/* Asked first: the request may be over with the drop. */
	bool data = g->strategy->apart && weft_comm_packets_cookie_is_data(cookie);
	weft_comm_send_drop(weft_comm_packets_cookie_open(cookie), err ? WEFT_ERR_PEER : WEFT_OK);
	if (!data)
		return;
	/* Relaxed: the kick orders. */
	atomic_fetch_sub_explicit(&g->x_data_under, 1, memory_order_relaxed);
	weft_comm_gate_kick(g);
}

static void on_ready(void *arg, int peer)
{
	struct weft_gate *g = weft_comm_inbound_gate(arg, peer);
	if (!g)
		return;
	/* READY <- MUTE (gate.c). */
	if (weft_likely(!atomic_load_explicit(&g->x_mute, memory_order_seq_cst)))
		weft_comm_gate_kick(g);
	else if (g->rx && g->rx->what != WEFT_RX_NONE)
		g->rx->last = true; /* the driver still writes into the payload's place */
	else
		weft_comm_inbound_give_up(g);
}

static void on_down(void *arg, int peer, weft_err err, const char *why)
{
	struct weft_gate *g = weft_comm_inbound_gate(arg, peer);
	if (g)
		g->core->peer_down(g->core, peer, err, why);
}

static void on_rests(void *arg, int peer)
{
	struct weft_gate *g = weft_comm_inbound_gate(arg, peer);
	if (g)
		weft_comm_core_peer_rests(g->core, peer);
}

static bool on_hold(void *arg, int peer, bool first)
{
	struct weft_rail *rail = arg;
	struct weft_core *core = rail->core;
	/* Relaxed: a hint; another sender's makes a packet go at once, or wait a tick. */
	if (first && atomic_load_explicit(&core->gate[peer].x_alone, memory_order_relaxed))
		return false;
	return core->hold && core->hold();
}

/* ---- the same where a trace is written ------------------------------------------------------ */

static void on_packet_traced(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	const struct weft_rail *rail = arg;
	struct weft_wire h;
	memcpy(&h, head, sizeof h);
	bool message = (unsigned)peer < (unsigned)rail->core->size &&
		       (h.kind == WEFT_WIRE_EAGER || h.kind == WEFT_WIRE_RTS);
	if (message)
		weft_comm_trace_arrived(&rail->core->gate[peer], &h, false);
	weft_comm_inbound_packet(arg, peer, head, payload, len);
	if (message)
		weft_comm_trace_judged_whole(&rail->core->gate[peer], &h, false);
}

static void on_run_traced(void *arg, int peer, const void *head, const void *payload, size_t len,
			  unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t h[WEFT_NET_HEAD / sizeof(uint64_t)];
		memcpy(h, head, sizeof h);
		h[0] += i * WEFT_NET_RUN_STEP;
		on_packet_traced(arg, peer, h, (const char *)payload + i * weft_net_run_apart(len),
				 len);
	}
}

void weft_comm_rail_trace(struct weft_rail *rail, bool on)
{
	if ((rail->events.packet == on_packet_traced) == on)
		return;
	rail->events.packet = on ? on_packet_traced : weft_comm_inbound_packet;
	rail->events.run = on ? on_run_traced : weft_comm_inbound_run;
	if (rail->net && rail->driver->upcalls)
		rail->driver->upcalls(rail->net, &rail->events);
}

struct weft_net_events weft_comm_rail_events(struct weft_rail *rail)
{
	return (struct weft_net_events){
		.arg = rail,
		.packet = weft_trace_on() ? on_packet_traced : weft_comm_inbound_packet,
		.run = weft_trace_on() ? on_run_traced : weft_comm_inbound_run,
		.place = weft_comm_inbound_place,
		.placed = weft_comm_inbound_placed,
		.sent = on_sent,
		.ready = on_ready,
		.down = on_down,
		.rests = on_rests,
		.hold = on_hold,
	};
}

/* ---- packs that are held back --------------------------------------------------------------- */

static void rail_packs_round(struct weft_rail *rail)
{
	/* Relaxed: a count with one writer. */
	uint64_t round = atomic_load_explicit(&rail->x_round, memory_order_relaxed);
	atomic_store_explicit(&rail->x_round, round + 1, memory_order_relaxed);
	if (weft_likely(weft_mpsc_empty(&rail->held)))
		return;
	struct weft_mpsc_node *n;
	/* Bound: a gate comes again only if a thread sends meanwhile; that is the next round's. */
	for (int i = 0; i < rail->core->size && (n = weft_mpsc_pop(&rail->held)); i++) {
		struct weft_pack *k = weft_container_of(n, struct weft_pack, node);
		/* FREE -> REUSE (list).  Carries: the reads of the node are over.  Before the kick,
		 * so that what is added while it says true is sent by this kick. */
		atomic_store_explicit(&k->x_listed, false, memory_order_release);
		weft_comm_gate_kick(k->gate);
	}
}

bool weft_comm_rail_packs_arm(struct weft_rail *rail)
{
	/* SLEEP -> HOLD (hold). */
	(void)atomic_exchange_explicit(&rail->x_armed, true, memory_order_seq_cst);
	if (weft_mpsc_empty(&rail->held))
		return true;
	weft_comm_rail_packs_disarm(rail);
	return false;
}

void weft_comm_rail_packs_disarm(struct weft_rail *rail)
{
	/* Relaxed: seen late, a message is not held. */
	atomic_store_explicit(&rail->x_armed, false, memory_order_relaxed);
}

void weft_comm_rail_polled(struct weft_rail *rail)
{
	struct weft_comm_urge *urge = &rail->core->urge;
	if (weft_task_engine_runner() == WEFT_RUNNER_APPLICATION)
		weft_comm_urge_back(urge, weft_cycles(),
				    weft_cycles_per_us() * (WEFT_URGE_SHORT_NS / 1000));
}

int weft_comm_rail_poll(struct weft_rail *rail)
{
	if (weft_unlikely(weft_comm_urge_open(&rail->core->urge)))
		weft_comm_rail_polled(rail);
	if (weft_unlikely(rail->packs))
		rail_packs_round(rail);
	return rail->driver->poll(rail->net);
}
