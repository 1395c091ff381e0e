/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_write.h - large messages that the network writes by itself. */
#ifndef WEFT_COMM_RDMA_WRITE_H
#define WEFT_COMM_RDMA_WRITE_H

#include "comm/request.h"

/* wanted: should this receive open its buffer?  open: for a CTS with that flag, which is
 * taken off it when that fails; bytes: what a CTS carries, the front of a ticket.  write: the next
 * piece, *len_p: its length; placed: what goes behind the last one. */
bool weft_comm_rdma_write_wanted(struct weft_req *r);
void weft_comm_rdma_write_open(struct weft_req *r, struct weft_wire *cts,
			       struct weft_net_ticket *where_p);
void weft_comm_rdma_write_close(struct weft_req *r);
size_t weft_comm_rdma_write_bytes(const struct weft_wire *cts);
enum weft_post weft_comm_rdma_write_write_locked(struct weft_gate *g, struct weft_req *r,
						 size_t *len_p);
enum weft_post weft_comm_rdma_write_placed_locked(struct weft_gate *g, struct weft_req *r);
/* A receive that had asked is over; closes its window. */
void weft_comm_rndv_recv_over(struct weft_req *r, weft_err err);

#endif
