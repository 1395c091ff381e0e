/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtr.h - receives that are posted early tell their sender, who need not ask then.
 *
 * A receive of more than eager_max bytes, posted before its message, sends RTR: context, tag, room,
 * and how many of the peer's envelopes had been matched before.  The sender keeps it until its next
 * message with that context and tag; if that one fits, it goes out as an eager message of any
 * length, without RTS and CTS, and straight into the buffer that waits for it.
 *
 * An RTR is a permission, no more: the message is matched when it comes, in its order, as every
 * other is.  So it does no harm when another message took the receive (a wildcard was older, the
 * receive was cancelled, both crossed): the payload is kept as an unexpected one, within the
 * credit, of which these messages use at most half.
 *
 * Told are exact receives into one piece of memory, in a context without wildcards, if they may
 * advance in the background; a peer whose messages came with a request all the same is told one
 * time in sixteen.  The sender drops what is
 * stale: it has sent such a message since.
 *
 * Only where payloads come as a stream and the peer's memory cannot be read (driver.h).
 *
 * The sender's half is rtr_note.h.
 *
 * Callers   before, tell: any thread.  outcome: the poller of the connection.  open, close: the
 *           starting thread.
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
