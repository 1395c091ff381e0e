/* SPDX-License-Identifier: BSD-3-Clause */
/* recv_message.h - a receive meets a message that was there before it. */
#ifndef WEFT_COMM_RECV_MESSAGE_H
#define WEFT_COMM_RECV_MESSAGE_H

#include "comm/recv/msg.h"
#include "comm/request.h"

/* m is out of the table, and r's from here on; both may be over on return. */
void weft_comm_recv_message(struct weft_req *r, struct weft_msg *m);

#endif
