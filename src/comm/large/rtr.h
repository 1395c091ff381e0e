/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtr.h - a receive that is posted before its message tells the sender, which need not ask then.
 *
 * A receive of more than the eager threshold sends RTR (ready to receive): context, tag, room, and
 * how many of the peer's envelopes had been matched before.  The sender keeps a note of it
 * (rtr_note.h).  Its next message with that context and tag, if it fits, goes out as an eager
 * message of any length, without RTS and CTS, straight into the buffer.
 *
 * Safe      an RTR is a permission, no more: the message is matched in its order as every other is.
 *           If another message has taken the receive (an older wildcard, a cancel, both crossed), the
 *           payload is kept as an unexpected one, within the credit, of which such messages use at
 *           most half.
 * Sent for  exact receives into one piece of memory, in a context without wildcards, unless they are
 *           explicit-only; one time in sixteen where the peer has asked all the same.
 * Stale     the sender drops a note if it has sent such a message since.
 * Where     payloads come as a stream and the peer's memory cannot be read (driver.h).
 * Callers   before, tell: any thread.  outcome: the poller of the connection.  open, close: the
 *           starting thread.
 * Checked   test/comm/large/test_rtr.c.
 */
#ifndef WEFT_COMM_RTR_H
#define WEFT_COMM_RTR_H

#include "comm/large/rtr_note.h"

/* Gives the gate what it needs for this, if it is worth it; no memory: it does without. */
void weft_comm_rtr_open(struct weft_gate *g);
void weft_comm_rtr_close(struct weft_gate *g);

/* Before a receive is posted: is it one to tell of?  Then *sequence_p is for tell(). */
bool weft_comm_rtr_before(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf,
			  uint32_t *sequence_p);
/* It is posted, and no message was there. */
void weft_comm_rtr_tell(struct weft_ctx *ctx, int peer, int tag, size_t room, uint32_t sequence);
/* Its message has asked (missed), or has not. */
void weft_comm_rtr_outcome(struct weft_gate *g, bool missed);

#endif
