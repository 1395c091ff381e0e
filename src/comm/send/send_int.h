/* SPDX-License-Identifier: BSD-3-Clause */
/* send_int.h - what send.c, send_now.c and send_self.c share. */
#ifndef WEFT_COMM_SEND_INT_H
#define WEFT_COMM_SEND_INT_H

#include "comm/comm_int.h"

/* To ourselves.  r NULL: only if that ends the send at once. */
weft_err weft_comm_send_self(struct weft_req *r, struct weft_ctx *ctx, int tag,
			     const struct weft_buf *buf, enum weft_send_mode mode);

/* Does a driver that expects a burst do well to wait for the next message?  Not if this one's
 * sender may compute before there is one. */
static inline void weft_comm_gate_say_alone_locked(struct weft_gate *g, enum weft_send_mode mode)
{
	/* Relaxed: a hint; see on_hold() in inbound.c. */
	atomic_store_explicit(&g->x_alone, mode != WEFT_SEND_AWAY, memory_order_relaxed);
}

#endif
