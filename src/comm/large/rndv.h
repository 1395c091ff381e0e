/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv.h - large messages: asked for, fetched, offered. */
#ifndef WEFT_COMM_RNDV_H
#define WEFT_COMM_RNDV_H

#include "comm/request.h"

extern const struct weft_out_ops weft_comm_rndv_data_ops, weft_comm_rndv_cts_ops;

/* r has matched a message whose data the peer keeps; late: the message was there before r. */
void weft_comm_rndv_start(struct weft_req *r, struct weft_gate *g, int tag, uint64_t length,
			  uint32_t id, uint64_t addr, bool quiet, bool late);
void weft_comm_rndv_go_on(struct weft_req *r); /* after it was left to the application */
void weft_comm_rndv_cts_go_on(struct weft_req *r, bool push);
/* Copies one piece; true: the request is over (do not touch it any more). */
bool weft_comm_pull_step(struct weft_req *r);
/* Fetches at most `most` bytes from data byte `off` on; stores how many. */
weft_err weft_comm_pull_piece(struct weft_req *r, uint64_t off, size_t most, size_t *len_p);
/* Do so many pieces of so many bytes in all go through a packed buffer when the kernel copies? */
bool weft_comm_pieces_small(size_t held, unsigned n);
/* The same for a send whose receiver has offered its buffer. */
bool weft_comm_push_step(struct weft_req *r);
/* Instead of fetching: asks the sender to write into our buffer.  False: not possible. */
bool weft_comm_rndv_offer(struct weft_req *r);
bool weft_comm_rndv_cookie_is_data(void *cookie);
void *weft_comm_rndv_cookie_open(void *cookie); /* the request of a driver's sent() */
void weft_comm_rndv_cts(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			size_t len);
void weft_comm_rndv_fin(struct weft_gate *g, const struct weft_wire *h);
void weft_comm_rndv_data(struct weft_gate *g, const struct weft_wire *h, const void *data,
			 size_t len);

#endif
