/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h - large copies as tasks of the progress engine. */
#ifndef WEFT_COMM_COPY_H
#define WEFT_COMM_COPY_H

#include "comm/request.h"

struct weft_core;

/* Has the copying done for r by pull or push steps: small ones on the spot. */
void weft_comm_copy_start(struct weft_core *core, struct weft_req *r, bool push, bool small);
/* Was r's step left to the application's own polls?  Called before the step that a CTS (push: an
 * offer) or a matched RTS asks for. */
bool weft_comm_copy_leave_send(struct weft_req *r, bool push);
bool weft_comm_copy_leave_recv(struct weft_req *r);

#endif
