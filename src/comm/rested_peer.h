/* SPDX-License-Identifier: BSD-3-Clause */
/* rested_peer.h - a peer whose connection has been closed for a while, for want of descriptors. */
#ifndef WEFT_COMM_RESTED_PEER_H
#define WEFT_COMM_RESTED_PEER_H

#include "comm/core.h"

/* The driver does not notice the peer's end any more: expects it anew, if anything waits for the peer. */
void weft_comm_core_peer_rests(struct weft_core *core, int peer);

#endif
