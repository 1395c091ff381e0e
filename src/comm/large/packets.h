/* SPDX-License-Identifier: BSD-3-Clause */
/* packets.h - the packets of large messages: CTS and DATA. */
#ifndef WEFT_COMM_PACKETS_H
#define WEFT_COMM_PACKETS_H

#include "comm/send/out.h"

extern const struct weft_out_ops weft_comm_packets_data_ops, weft_comm_packets_cts_ops;

/* Of a driver's sent(): was it a DATA packet?  open: its request; frees what was packed for it. */
bool weft_comm_packets_cookie_is_data(void *cookie);
void *weft_comm_packets_cookie_open(void *cookie);

/* What a CTS carries of a ticket. */
static inline size_t weft_comm_packets_cts_bytes(const struct weft_wire *cts)
{
	if (cts->flags & WEFT_WIRE_REGION)
		return sizeof(struct weft_wire_place);
	return cts->flags & WEFT_WIRE_OFFER ? sizeof(uint64_t) : 0;
}

#endif
