/* SPDX-License-Identifier: BSD-3-Clause */
/* port_int.h - what port.c, port_am.c and port_put.c share: contexts, and active messages inside.
 */
#ifndef WEFT_PORT_INT_H
#define WEFT_PORT_INT_H

#include <string.h>
#include <weft/comm.h>
#include "base/log.h"
#include "comm/comm.h"
#include "task/task.h"

enum weft_port_ctx {
	WEFT_PORT_P2P,
	WEFT_PORT_AM,
	WEFT_PORT_DATA, /* of put and get, tag: the operation's number */
	WEFT_PORT_ACK,  /* the same */
	WEFT_PORT_SYNC,
	WEFT_PORT_CTXS
};

/* NULL: not open. */
extern struct weft_ctx *weft_port_ctx[WEFT_PORT_CTXS];

/* The handler of put and get, behind those of users. */
#define WEFT_PORT_AM_ACCESS WEFT_COMM_AM_HANDLERS

/* Handlers of ours that the calling thread is in: a message to oneself runs its handler within
 * the send, where the engine knows of none. */
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

/* port_am.c */
weft_err weft_port_am_start(void) weft_must_use;
/* No handler runs or will run. */
void weft_port_am_stop(void);
/* From handlers: never waits, keeps a copy if the network is full. */
weft_err weft_port_am_send(int peer, int id, const void *data, size_t bytes) weft_must_use;

/* port_put.c */
void weft_port_access(int peer, const void *data, size_t bytes, void *arg);
void weft_port_put_stop(void);

#endif
