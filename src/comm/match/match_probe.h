/* SPDX-License-Identifier: BSD-3-Clause */
/* match_probe.h - unexpected messages that are asked for without a receive. */
#ifndef WEFT_COMM_MATCH_PROBE_H
#define WEFT_COMM_MATCH_PROBE_H

#include "comm/match/probe_waiter.h"

/* The oldest unexpected message that fits, or NULL; with take it is taken out.  If w is given and
 * nothing fits, w is signalled by the next arrival that does. */
struct weft_msg *weft_comm_match_probe(struct weft_ctx *ctx, int peer, int tag, bool take,
				       struct weft_status *st, struct weft_probe_waiter *w);

#endif
