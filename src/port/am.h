/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am.h - active messages, for the other files of this folder.
 *
 * Callers   start, stop: the thread that opens and closes.  send: any thread, handlers included.
 * Progress  send never waits: if the network is full, it keeps a copy of the data.
 */
#ifndef WEFT_PORT_AM_H
#define WEFT_PORT_AM_H

#include "port/port.h"

/* The handler of accesses to regions, behind those of users. */
#define WEFT_PORT_AM_ACCESS WEFT_COMM_AM_HANDLERS
#define WEFT_PORT_AM_HANDLERS (WEFT_COMM_AM_HANDLERS + 1)

weft_err weft_port_am_start(void) weft_must_use;
/* On return no handler runs, and none will. */
void weft_port_am_stop(void);
/* Names a handler; before start, or before its first message. */
void weft_port_am_set(int id, weft_comm_handler fn, void *arg);
weft_err weft_port_am_send(int peer, int id, const void *data, size_t bytes) weft_must_use;

#endif
