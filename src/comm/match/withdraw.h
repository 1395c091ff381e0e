/* SPDX-License-Identifier: BSD-3-Clause */
/* withdraw.h - takes out of matching what a lost peer or a closed context leaves there. */
#ifndef WEFT_COMM_WITHDRAW_H
#define WEFT_COMM_WITHDRAW_H

#include "comm/match/ctx.h"
#include "comm/match/keyed.h"

/* Takes out every posted receive that depends on peer (any context), or that is in ctx (of any peer, with
 * such tags; NULL: all); returns them linked by node.next. */
struct weft_keyed *weft_comm_match_withdraw_peer(struct weft_core *core, int peer, bool any_too);
struct weft_keyed *weft_comm_match_withdraw_ctx(struct weft_ctx *ctx,
						const struct weft_comm_tags *tags);
struct weft_msg *weft_comm_match_withdraw_msgs(struct weft_ctx *ctx,
					       const struct weft_comm_tags *tags);
/* The unexpected message from peer with that tag and the sender's id, or of that send of this
 * process; NULL: a receive has it, or it never came. */
struct weft_msg *weft_comm_match_withdraw_msg(struct weft_ctx *ctx, int peer, int tag, uint32_t id,
					      const struct weft_req *send);
/* A message that no receive will take: its sender is released, its memory given back (ctx.c). */
void weft_comm_msg_drop(struct weft_msg *m);

#endif
