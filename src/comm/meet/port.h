/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h - where processes of other jobs come in: a port that listens under a name, and lines, each
 * a conversation with one caller.
 *
 * The name carries addresses and a capability, 32 random bytes that both sides prove to each other
 * to know (net/auth.h) before a line exists; it is never sent.  The network below is the tcp driver,
 * with 64 seats for callers that have come and wait; later ones try again until one is free.
 *
 * Callers   any thread.  One thread at a time per line, and per port_close.
 * Owner     a line belongs to accept's or call's caller until close; texts that recv returns, to its
 *           caller (free).
 * Order     messages of a line arrive in the order in which they were sent, each once.
 * Progress  accept, call, send, recv and the closes wait in the progress engine: they park.
 * Failure   a line whose other side is gone: WEFT_ERR_PEER.  Bytes that make no sense end the line.
 */
#ifndef WEFT_COMM_PORT_H
#define WEFT_COMM_PORT_H

#include <weft/task.h> /* WEFT_FOREVER */
#include "base/base.h"

#define WEFT_PORT_NAME 1024 /* with its NUL */
#define WEFT_LINE_BYTES_MAX (256u << 20)

struct weft_comm_port;
struct weft_comm_line;

/* WEFT_ERR_UNSUPPORTED: no network here. */
weft_err weft_comm_port_open(struct weft_comm_port **port_p) weft_must_use;
/* One word of printable characters; lives as long as the port. */
const char *weft_comm_port_name(const struct weft_comm_port *port);
/* The next caller that is still there, in the order they came.  WEFT_ERR_TIMEOUT; WEFT_ERR_CANCELLED. */
weft_err weft_comm_port_accept(struct weft_comm_port *port, uint64_t timeout_ns,
			       struct weft_comm_line **line_p) weft_must_use;
/* Every accept that waits, or comes later, ends as cancelled.  Any thread, handlers too. */
void weft_comm_port_cancel(struct weft_comm_port *port);
/* Callers that wait are told that there is no port; lines that were accepted must be closed. */
void weft_comm_port_close(struct weft_comm_port *port);

/*
 * Waits until the port's owner accepts.  WEFT_ERR_NOENT: that is no name of a port, or no process
 * listens there (any more); WEFT_ERR_AUTH: it is another port's capability; WEFT_ERR_TIMEOUT.
 */
weft_err weft_comm_port_call(const char *name, uint64_t timeout_ns,
			     struct weft_comm_line **line_p) weft_must_use;

weft_err weft_comm_line_send(struct weft_comm_line *line, const void *data,
			     size_t len) weft_must_use;
weft_err weft_comm_line_recv(struct weft_comm_line *line, void **data_p,
			     size_t *len_p) weft_must_use;
/* Both sides send a message and receive one. */
weft_err weft_comm_line_swap(struct weft_comm_line *line, const void *out, size_t out_len,
			     void **in_p, size_t *in_len_p) weft_must_use;
/* The capability, the same on both sides; WEFT_SECRET_BYTES. */
const uint8_t *weft_comm_line_secret(const struct weft_comm_line *line);
/* What was sent arrives all the same.  The side that accepted waits for the caller's close. */
void weft_comm_line_close(struct weft_comm_line *line);

#endif
