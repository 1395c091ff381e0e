/* SPDX-License-Identifier: BSD-3-Clause */
/* send_ref.h - the references to a send (x_refs), and its end. */
#ifndef WEFT_COMM_SEND_REF_H
#define WEFT_COMM_SEND_REF_H

#include "comm/request.h"

/* Drops a reference, with what went wrong; the last completes the request.  No mask held. */
void weft_comm_send_drop(struct weft_req *r, weft_err err);

/* For weft_out_ops: drops the reference of the post. */
void weft_comm_send_out_posted(struct weft_gate *g, struct weft_out *o);
void weft_comm_send_out_failed(struct weft_gate *g, struct weft_out *o);

#endif
