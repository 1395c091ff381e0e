/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_trace.c - what happens to messages, for the trace.
 *
 * Where a trace is written, the short ways are not taken (send_plain, runs), and what arrives comes
 * through here: a process without a trace spends nothing on it there.
 */
#include <string.h>
#include "base/trace.h"
#include "comm/msg_trace.h"

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
		       eager ? weft_comm_wire_eager_length(h, &id) : h->length);
}

/* The poller's own: what arrives is matched before the next arrival. */
static _Thread_local bool kept;

void weft_comm_trace_arrived(const struct weft_gate *g, const struct weft_wire *h, bool packed)
{
	kept = false;
	weft_comm_trace_envelope(WEFT_TRACE_ARRIVE, g, h, packed);
}

void weft_comm_trace_unexpected(void)
{
	kept = true;
}

void weft_comm_trace_judged(const struct weft_gate *g, const struct weft_wire *h, bool packed)
{
	weft_comm_trace_envelope(kept ? WEFT_TRACE_UNEXPECTED : WEFT_TRACE_MATCH, g, h, packed);
	kept = false;
}

void weft_comm_trace_judged_whole(const struct weft_gate *g, const struct weft_wire *h, bool packed)
{
	bool received = !kept && h->kind == WEFT_WIRE_EAGER;
	uint32_t id;
	weft_comm_trace_judged(g, h, packed);
	if (received)
		weft_comm_trace_received(g->peer, h->tag, weft_comm_wire_eager_length(h, &id));
}

void weft_comm_trace_sent(const struct weft_core_req_send *s, const struct weft_req *r)
{
	weft_trace_put(WEFT_TRACE_SENT, r->status.err != WEFT_OK, (uint32_t)s->gate->peer,
		       (uint64_t)(uint32_t)s->out.head.tag << 32, r->buf.bytes);
}

void weft_comm_trace_end(enum weft_trace_kind kind, int peer, int tag, uint64_t bytes)
{
	weft_trace_put(kind, 0, (uint32_t)peer, (uint64_t)(uint32_t)tag << 32, bytes);
}

void weft_comm_trace_received(int peer, int tag, uint64_t bytes)
{
	weft_trace_put(WEFT_TRACE_RECEIVED, EAGER, (uint32_t)peer, (uint64_t)(uint32_t)tag << 32,
		       bytes);
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
