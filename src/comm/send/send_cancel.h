/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send_cancel.h - sends that are taken back: by name at the receiver, or before they are posted.
 *
 * Callers   asked: the poller of the connection.  The sender's side is weft_comm_send_cancel.
 * Owner     the sender owns its request until that is complete, so that a cancel may look at it
 *           under the gate's mask.
 * Order     a CANCEL is submitted after the post of its RTS, or EAGER with SYNC, and arrives after it.
 */
#ifndef WEFT_COMM_SEND_CANCEL_H
#define WEFT_COMM_SEND_CANCEL_H

struct weft_gate;
struct weft_wire;

/* The peer takes a message back; it is answered only if no receive has the message. */
void weft_comm_cancel_asked(struct weft_gate *g, const struct weft_wire *h);

#endif
