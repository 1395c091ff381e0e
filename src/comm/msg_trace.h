/* SPDX-License-Identifier: BSD-3-Clause */
/* msg_trace.h - what happens to messages, for the trace; called only where a trace is written. */
#ifndef WEFT_COMM_MSG_TRACE_H
#define WEFT_COMM_MSG_TRACE_H

#include "base/trace.h"
#include "comm/core.h"
#include "comm/request.h"

__attribute__((cold)) void weft_comm_trace_envelope(enum weft_trace_kind kind,
						    const struct weft_gate *g,
						    const struct weft_wire *h, bool packed);
/* A message of this rank to itself. */
__attribute__((cold)) void weft_comm_trace_self(struct weft_core *core, int tag, uint64_t bytes);
/* A send that was not over with its post is over. */
__attribute__((cold)) void weft_comm_trace_sent(const struct weft_core_req_send *s,
						const struct weft_req *r);
/* An arrival, in two steps: arrived() tells of it, judged() whether it was expected; between them
 * unexpected(), by the same thread, if it was not. */
__attribute__((cold)) void weft_comm_trace_arrived(const struct weft_gate *g,
						   const struct weft_wire *h, bool packed);
__attribute__((cold)) void weft_comm_trace_unexpected(void);
__attribute__((cold)) void weft_comm_trace_judged(const struct weft_gate *g,
						  const struct weft_wire *h, bool packed);
/* The same for a packet that came whole: what was expected has been received, too. */
__attribute__((cold)) void weft_comm_trace_judged_whole(const struct weft_gate *g,
							const struct weft_wire *h, bool packed);
/* A receive is over whose data came with its envelope. */
__attribute__((cold)) void weft_comm_trace_received(int peer, int tag, uint64_t bytes);
__attribute__((cold)) void weft_comm_trace_end(enum weft_trace_kind kind, int peer, int tag,
					       uint64_t bytes);

#endif
