/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unexpected.h - unexpected messages in the order they came, for wildcards.
 *
 * Callers   _locked: holder of the context's lock.
 */
#ifndef WEFT_COMM_UNEXPECTED_H
#define WEFT_COMM_UNEXPECTED_H

#include "comm/match/ctx.h"
#include "comm/recv/msg.h"

/*
 * What a message is linked in, beside its bucket; changed under both locks, so that either will
 * do to read it.
 */
#define WEFT_LISTS_ALL 1u     /* the context's, by arrival */
#define WEFT_LISTS_BY_PEER 2u /* key (peer, any tag) */
#define WEFT_LISTS_BY_TAG 4u  /* key (any peer, tag) */

/* m->lists for a message that is about to be linked. */
uint8_t weft_comm_unexpected_wanted(struct weft_ctx *ctx);
/* Links m as m->lists says; its bucket need not be locked. */
void weft_comm_unexpected_link_locked(struct weft_ctx *ctx, struct weft_msg *m);
/* The reverse; m is in no bucket any more. */
void weft_comm_unexpected_unlink_locked(struct weft_ctx *ctx, struct weft_msg *m);
/* From now on all messages of ctx are linked, those there are too. */
void weft_comm_unexpected_begin_locked(struct weft_ctx *ctx);
/* The oldest message that fits a wildcard. */
struct weft_msg *weft_comm_unexpected_find_locked(struct weft_ctx *ctx, int peer, int tag);
/* Takes m out of its bucket and the lists; its bucket is not locked. */
void weft_comm_unexpected_take_locked(struct weft_ctx *ctx, struct weft_msg *m);

#endif
