/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - what happens to messages, for the trace.
 *
 * Where a trace is written, the short ways are not taken (send_plain, runs), and what arrives comes
 * through here: a process without a trace spends nothing on it there.
 */
#include "comm/recv/inbound_int.h"

#include <string.h>

/* How: the `small` of SEND and ARRIVE. */
enum { EAGER = 1, RENDEZVOUS = 2, PACKED = 3, SELF = 4 };

void weft_comm_trace_envelope(enum weft_trace_kind kind, const struct weft_gate *g,
			      const struct weft_wire *h, bool packed)
{
	bool eager = h->kind == WEFT_WIRE_EAGER;
	uint32_t id;
	weft_trace_put(kind,
		       !eager   ? RENDEZVOUS
		       : packed ? PACKED
				: EAGER,
		       (uint32_t)g->peer, h->sequence | (uint64_t)(uint32_t)h->tag << 32,
		       eager ? weft_comm_inbound_eager_length(h, &id) : h->length);
}

void weft_comm_trace_end(enum weft_trace_kind kind, int peer, int tag, uint64_t bytes)
{
	weft_trace_put(kind, 0, (uint32_t)peer, (uint64_t)(uint32_t)tag << 32, bytes);
}

void weft_comm_trace_self(struct weft_core *core, int tag, uint64_t bytes)
{
	static _Atomic uint32_t x_number;
	/* Relaxed: a number. */
	uint64_t a = atomic_fetch_add_explicit(&x_number, 1, memory_order_relaxed) |
		     (uint64_t)(uint32_t)tag << 32;
	weft_trace_put(WEFT_TRACE_SEND, SELF, (uint32_t)core->rank, a, bytes);
	weft_trace_put(WEFT_TRACE_ARRIVE, SELF, (uint32_t)core->rank, a, bytes);
}

static void told(void *arg, int peer, const void *head, unsigned i)
{
	const struct weft_rail *rail = arg;
	struct weft_wire h;
	memcpy(&h, head, sizeof h);
	h.sequence += i;
	if ((unsigned)peer < (unsigned)rail->core->size &&
	    (h.kind == WEFT_WIRE_EAGER || h.kind == WEFT_WIRE_RTS))
		weft_comm_trace_envelope(WEFT_TRACE_ARRIVE, &rail->core->gate[peer], &h, false);
}

static void packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	told(arg, peer, head, 0);
	weft_comm_inbound_packet(arg, peer, head, payload, len);
}

static void run(void *arg, int peer, const void *head, const void *payload, size_t len, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		told(arg, peer, head, i);
	weft_comm_inbound_run(arg, peer, head, payload, len, n);
}

void weft_comm_trace_events(struct weft_net_events *e)
{
	if (!weft_trace_on())
		return;
	e->packet = packet;
	if (e->run)
		e->run = run;
}
