/* SPDX-License-Identifier: BSD-3-Clause */
/* send.h - how a gate posts eager messages and requests to send. */
#ifndef WEFT_COMM_SEND_H
#define WEFT_COMM_SEND_H

#include "comm/send/out.h"

extern const struct weft_out_ops weft_comm_send_eager_ops, weft_comm_send_rts_ops;

#endif
