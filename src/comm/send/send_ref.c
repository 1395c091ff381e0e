/* SPDX-License-Identifier: BSD-3-Clause */
/* send_ref.c - the references to a send, and its end. */
#include <stdlib.h>
#include "base/trace.h"
#include "comm/msg_trace.h"
#include "comm/send/send_ref.h"

void weft_comm_send_drop(struct weft_req *r, weft_err err)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	if (err) {
		int none = WEFT_OK;
		/* Relaxed: read after the last reference is gone, which orders. */
		atomic_compare_exchange_strong_explicit(&s->x_err, &none, err, memory_order_relaxed,
							memory_order_relaxed);
	}
	/* DROP -> LAST.  Carries: x_err, and that the buffer is not read any more. */
	if (atomic_fetch_sub_explicit(&s->x_refs, 1, memory_order_acq_rel) != 1)
		return;
	if (s->packed)
		free(s->packed);
	/* Relaxed: the last reference is the caller's. */
	r->status.err = atomic_load_explicit(&s->x_err, memory_order_relaxed);
	r->status.cancelled = r->status.err == WEFT_ERR_CANCELLED;
	if (weft_trace_on())
		weft_comm_trace_sent(s, r);
	weft_comm_req_complete(r);
}

void weft_comm_send_out_posted(struct weft_gate *g, struct weft_out *o)
{
	(void)g;
	weft_comm_send_drop(weft_comm_req_of_send_out(o), WEFT_OK);
}

void weft_comm_send_out_failed(struct weft_gate *g, struct weft_out *o)
{
	(void)g;
	weft_comm_send_drop(weft_comm_req_of_send_out(o), WEFT_ERR_PEER);
}
