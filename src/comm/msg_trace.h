/* SPDX-License-Identifier: BSD-3-Clause */
/* msg_trace.h - what happens to messages, for the trace; called only where a trace is written. */
#ifndef WEFT_COMM_MSG_TRACE_H
#define WEFT_COMM_MSG_TRACE_H

#include "base/trace.h"
#include "comm/core.h"

__attribute__((cold)) void weft_comm_trace_envelope(enum weft_trace_kind kind,
						    const struct weft_gate *g,
						    const struct weft_wire *h, bool packed);
/* A message of this rank to itself. */
__attribute__((cold)) void weft_comm_trace_self(struct weft_core *core, int tag, uint64_t bytes);
__attribute__((cold)) void weft_comm_trace_end(enum weft_trace_kind kind, int peer, int tag,
					       uint64_t bytes);

#endif
