/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx_stream.h - payloads that come as a stream: the driver asks where to write them before it has
 * them.
 *
 * Callers   place, placed: the poller of the connection.  abandon: the same, when the peer is gone.
 *           free: when nothing else can be running.
 * Owner     the gate: made at its first place.
 * Letters   as in request.h.
 */
#ifndef WEFT_COMM_RX_STREAM_H
#define WEFT_COMM_RX_STREAM_H

#include "comm/send/gate.h"
#include "comm/wire.h"

struct weft_msg;
struct weft_req;

/* What the payload that place() announced is for; P throughout. */
struct weft_rx {
	enum { WEFT_RX_NONE, WEFT_RX_RECV, WEFT_RX_MSG, WEFT_RX_DATA, WEFT_RX_CONTROL } what;
	struct weft_req *req;  /* RECV, DATA */
	struct weft_msg *msg;  /* MSG */
	struct weft_wire head; /* DATA, CONTROL */
	void *bounce;          /* for layouts of too many pieces */
	bool last;             /* the peer is given up once this payload is placed */
	uint64_t off, len, room;
	char control[WEFT_CONTROL_MAX];
	char *pack; /* where a packet of several messages is collected; made when needed */
	struct iovec iov[WEFT_IOV_MAX];
};

void weft_comm_inbound_place(void *arg, int peer, const void *head, size_t len,
			     struct weft_net_sink *sink);
void weft_comm_inbound_placed(void *arg, int peer, void *cookie, weft_err err);
/* Ends the payload that is half there. */
void weft_comm_rx_abandon(struct weft_gate *g);
void weft_comm_rx_free(struct weft_gate *g);

#endif
