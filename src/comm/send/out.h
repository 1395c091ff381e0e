/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out.h - a packet that waits at a gate, and what the gate does with it.
 *
 * A gate knows no messages: how a packet of some type is posted, and what its end means, says a
 * table by type (weft_core, out_ops).
 *
 * Owner     the gate, from push until `posted` or `failed`; the packet lies in a request or in an
 *           answer.
 */
#ifndef WEFT_COMM_OUT_H
#define WEFT_COMM_OUT_H

#include "comm/wire.h"

struct weft_gate;

enum weft_out_type {
	WEFT_OUT_EAGER,
	WEFT_OUT_RTS,
	WEFT_OUT_DATA,
	WEFT_OUT_CTS,
	WEFT_OUT_CTRL, /* from the core's own memory, not part of a request */
	WEFT_OUT_TYPES
};

struct weft_out {
	struct weft_out *next;
	struct weft_wire head;
	uint8_t type;
	int16_t priority; /* DATA: its context's, when the send began */
};

/*
 * For one type of packets.  _locked: the gate's mask is held.  posted and failed are called without
 * it and may start operations on the same gate.
 */
struct weft_out_ops {
	/* Last word before it is posted: its type may change.  NULL: nothing to decide. */
	void (*choose_locked)(struct weft_gate *g, struct weft_out *o);
	enum weft_post (*post_locked)(struct weft_gate *g, struct weft_out *o);
	/* It is posted and its payload is free.  NULL: from the post on the peer's answer may end
	 * the request, so the packet is not touched. */
	void (*posted)(struct weft_gate *g, struct weft_out *o);
	/* The peer is gone before it was posted. */
	void (*failed)(struct weft_gate *g, struct weft_out *o);
};

#endif
