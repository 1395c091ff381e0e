/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * large.h - large messages, as the rest of comm/ sees them.  The routes of their data: route.h.
 *
 * Callers   start: the thread that matched the message.  cts, data, fin, data_expected: the poller
 *           of the connection.  abandon: the thread that found the peer gone, after weft_comm_gate_down.
 *           _locked: holder of the gate's mask.
 * Owner     the request, from start or the RTS on, until it is complete.
 */
#ifndef WEFT_COMM_LARGE_H
#define WEFT_COMM_LARGE_H

#include "comm/large/route.h"
#include "comm/request.h"

struct weft_gate;

/* r has matched a message of `length` bytes whose data are still at the peer. */
void weft_comm_large_start(struct weft_req *r, struct weft_gate *g, int tag, uint64_t length,
			   const struct weft_comm_large_from *from);
void weft_comm_large_cts(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			 size_t len);
void weft_comm_large_fin(struct weft_gate *g, const struct weft_wire *h);
/* data NULL: they are in place. */
void weft_comm_large_data(struct weft_gate *g, const struct weft_wire *h, const void *data,
			  size_t len);
/* The receiver of a DATA packet, if it belongs where it says; else NULL. */
struct weft_req *weft_comm_large_data_expected(struct weft_gate *g, const struct weft_wire *h,
					       size_t len);
/* The peer of r, a receiver whose id was taken back, is gone. */
void weft_comm_large_abandon(struct weft_req *r);

/* A copy was left for a while: has the sender come to wait by now?  What has been offered is not
 * offered again. */
void weft_comm_large_choose_again(struct weft_req *r);

#endif
