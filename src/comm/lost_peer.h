/* SPDX-License-Identifier: BSD-3-Clause */
/* lost_peer.h - the end of a peer. */
#ifndef WEFT_COMM_LOST_PEER_H
#define WEFT_COMM_LOST_PEER_H

#include "comm/core.h"

/* Once for each peer; what comes later does nothing.  WEFT_OK: the peer has left in order. */
void weft_comm_core_peer_down(struct weft_core *core, int peer, weft_err err, const char *why);

#endif
