/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h - what the files of this folder share: the contexts of weft/comm.h, its requests, and
 * whether the calling thread is in a handler.
 *
 * Callers   any thread, once weft_comm_open has returned.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H

#include <weft/comm.h>
#include "comm/comm.h"
#include "task/task.h"

enum weft_port_ctx {
	WEFT_PORT_P2P,
	WEFT_PORT_AM,
	WEFT_PORT_DATA, /* of accesses to regions, tag: the operation's number */
	WEFT_PORT_ACK,  /* the same */
	WEFT_PORT_SYNC,
	WEFT_PORT_CTXS
};

/* On SYNC, of a receive that only the loss of its peer ends (region.c); the others are rounds of a barrier. */
#define WEFT_PORT_LOST_TAG 0x40000000

/* NULL: not open. */
extern struct weft_ctx *weft_port_ctx[WEFT_PORT_CTXS];

weft_err weft_port_contexts_open(void) weft_must_use;
void weft_port_contexts_close(void);

/* How many handlers the calling thread is in: a message to oneself runs its handler within the
 * send, where the engine knows of none. */
extern _Thread_local int weft_port_depth;

static inline bool weft_port_in_handler(void)
{
	return weft_port_depth || weft_engine_in_handler();
}

static inline bool weft_port_is_open(void)
{
	return weft_port_ctx[WEFT_PORT_P2P] != NULL;
}

static inline struct weft_req *weft_port_req(weft_comm_request *r)
{
	return (struct weft_req *)(void *)r;
}

#endif
