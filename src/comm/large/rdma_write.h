/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_write.h - buffers that the network writes into by itself (route RDMA). */
#ifndef WEFT_COMM_RDMA_WRITE_H
#define WEFT_COMM_RDMA_WRITE_H

#include "comm/request.h"

/* For a CTS: opens r's buffer, and *where_p is where.  False: not possible. */
bool weft_comm_rdma_write_open(struct weft_req *r, struct weft_wire_place *where_p);
void weft_comm_rdma_write_close(struct weft_req *r);
/* The next piece, *len_p: its length; placed: what goes behind the last one. */
enum weft_post weft_comm_rdma_write_locked(struct weft_gate *g, struct weft_req *r, size_t *len_p);
enum weft_post weft_comm_rdma_write_placed_locked(struct weft_gate *g, struct weft_req *r);

#endif
