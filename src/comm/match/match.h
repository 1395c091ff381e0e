/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match.h - brings posted receives and arriving messages together; match_fast.h is its inline half.
 *
 * Callers   post, cancel: any thread.  arrive: the poller of the message's connection. take_posted:
 *           inside the bucket.
 */
#ifndef WEFT_COMM_MATCH_H
#define WEFT_COMM_MATCH_H

#include "comm/match/bucket.h"
#include "comm/recv/msg.h"

/* Posts e unless a message is there already: that message is taken out and returned in *msg_p.
 * WEFT_ERR_PEER: the peer is gone and left no message. */
weft_err weft_comm_match_post(struct weft_entry *e, struct weft_msg **msg_p);
/* The receive that a message from peer with tag belongs to, taken out; NULL: none so far. */
struct weft_entry *weft_comm_match_arrive(struct weft_ctx *ctx, int peer, int tag);
/* The same, and if there is none, m goes in. */
struct weft_entry *weft_comm_match_arrive_unexpected(struct weft_ctx *ctx, struct weft_msg *m);
/* Takes a posted receive back; false: it was matched. */
bool weft_comm_match_cancel(struct weft_entry *e);

/* The oldest of its key is a message, n.  The caller is inside the bucket, as `how` says, and
 * outside on return.  NULL: another receive took it, and no other message is there. */
struct weft_msg *weft_comm_match_take_posted(struct weft_ctx *ctx, struct weft_bucket *b,
					     enum weft_owner_how how, struct weft_keyed *n);
/* Takes out the oldest exact receive of a key that has no slot, or NULL. */
struct weft_keyed *weft_comm_match_take_more_locked(struct weft_bucket *b, struct weft_ctx *ctx,
						    int peer, int tag);

#endif
