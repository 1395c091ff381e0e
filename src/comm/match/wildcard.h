/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wildcard.h - posted receives from any peer or with any tag.
 *
 * Callers   _locked: holder of the context's lock.
 */
#ifndef WEFT_COMM_WILDCARD_H
#define WEFT_COMM_WILDCARD_H

#include "comm/match/ctx.h"
#include "comm/match/keyed.h"

/* e becomes the last of its key, stamped with the next epoch. */
void weft_comm_wild_append_locked(struct weft_ctx *ctx, struct weft_entry *e);
/* Takes a posted wildcard out; its bucket is not locked. */
void weft_comm_wild_unlink_locked(struct weft_ctx *ctx, struct weft_entry *e);
/* The oldest that a message from peer with tag fits, or NULL. */
struct weft_entry *weft_comm_wild_oldest_locked(struct weft_ctx *ctx, int peer, int tag);

#endif
