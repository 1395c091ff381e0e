/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inbound.h - packets that a driver reports.
 *
 * Callers   the poller of the connection.
 */
#ifndef WEFT_COMM_INBOUND_H
#define WEFT_COMM_INBOUND_H

#include <stddef.h>

void weft_comm_inbound_packet(void *arg, int peer, const void *head, const void *payload,
			      size_t len);
void weft_comm_inbound_run(void *arg, int peer, const void *head, const void *payload, size_t len,
			   unsigned n);

#endif
