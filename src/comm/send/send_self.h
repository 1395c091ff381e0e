/* SPDX-License-Identifier: BSD-3-Clause */
/* send_self.h - messages of a process to itself. */
#ifndef WEFT_COMM_SEND_SELF_H
#define WEFT_COMM_SEND_SELF_H

#include "comm/comm.h"

/* r NULL: only if that ends the send at once. */
weft_err weft_comm_send_self(struct weft_req *r, struct weft_ctx *ctx, int tag,
			     const struct weft_buf *buf, enum weft_send_mode mode);

#endif
