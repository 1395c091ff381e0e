/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_pool.h - memory for unexpected messages: three sizes kept ready, larger ones from malloc.  One of the
 * largest of the three is held in reserve for when malloc fails.
 *
 * Callers   any thread.  init, fini: when nothing else can be running.
 * Full      alloc: NULL; where a kept size would do, only when the reserve is under way, too.
 */
#ifndef WEFT_COMM_MSG_POOL_H
#define WEFT_COMM_MSG_POOL_H

#include "comm/recv/msg.h"

/* With room for so many bytes of payload. */
struct weft_msg *weft_comm_msg_alloc(struct weft_core *core, size_t payload);
/* Gives back what it was charged with, too. */
void weft_comm_msg_free(struct weft_msg *m);
weft_err weft_comm_msg_pool_init(struct weft_core *core) weft_must_use;
void weft_comm_msg_pool_fini(struct weft_core *core);

#endif
