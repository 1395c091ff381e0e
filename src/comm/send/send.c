/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send.c - sends with a request: straight to the driver when the gate is free, else through its
 * queue.
 */
#include <stdlib.h>
#include "base/counters.h"
#include "base/trace.h"
#include "comm/large/rtr_note.h"
#include "comm/msg_trace.h"
#include "comm/send/offload.h"
#include "comm/send/pack.h"
#include "comm/send/send.h"
#include "comm/send/send_ref.h"
#include "comm/send/send_self.h"
#include "comm/sign.h"
#include "task/task.h"
#include "wait/stack.h"

/* ---- over a gate -------------------------------------------------------------------------- */

/* The pieces of an eager message; packs what has too many.  Returns their number, -1: no memory. */
static int eager_pieces(struct weft_req *r, struct iovec *iov)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	const struct weft_buf *buf = &r->buf;

	if (s->packed) {
		iov[0] = (struct iovec){s->packed, buf->bytes};
		return 1;
	}
	unsigned n = WEFT_IOV_MAX;
	if (weft_data_iov(buf, 0, iov, &n) == buf->bytes)
		return (int)n;
	s->packed = malloc(buf->bytes);
	if (!s->packed)
		return -1;
	weft_data_pack(buf, 0, s->packed, buf->bytes);
	iov[0] = (struct iovec){s->packed, buf->bytes};
	return 1;
}

static enum weft_post no_memory(struct weft_core_req_send *s)
{
	/* Relaxed: as in drop. */
	atomic_store_explicit(&s->x_err, WEFT_ERR_NOMEM, memory_order_relaxed);
	return WEFT_POST_DOWN;
}

static enum weft_post post_eager_locked(struct weft_gate *g, struct weft_req *r)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct iovec iov[WEFT_IOV_MAX];
	size_t len = r->buf.bytes;
	/* The request may be over with the post. */
	uint32_t context = s->out.head.context, id = 0;
	int32_t tag = s->out.head.tag;
	int n = len ? 1 : 0;

	if (!r->buf.type)
		iov[0] = (struct iovec){r->buf.base, len};
	else if (len && (n = eager_pieces(r, iov)) < 0)
		return no_memory(s);
	s->out.head.sequence = g->send_seq;
	if (weft_unlikely(s->sync)) {
		s->state = WEFT_LARGE_NONE;
		s->id = id = weft_comm_ids_give(&g->core->ids, r, weft_comm_id_send(g->peer));
		if (!id)
			return no_memory(s);
		s->out.head.length = len | (uint64_t)id << 32;
	}
	weft_comm_credit_spend_locked(g, len);
	if (weft_trace_on())
		weft_comm_trace_envelope(WEFT_TRACE_SEND, g, &s->out.head, false);
	enum weft_post p = weft_comm_gate_post_locked(g, &s->out.head, iov, (unsigned)n, len, r);
	if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED) {
		weft_comm_gate_numbered_locked(g, context, tag);
		return p;
	}
	weft_comm_credit_unspend_locked(g, len);
	s->id = 0;
	if (id)
		(void)weft_comm_ids_take(&g->core->ids, id, weft_comm_id_send(g->peer));
	return p;
}

static void sign_eager(struct weft_core_req_send *s)
{
	s->out.head.flags |= WEFT_WIRE_SIGNED;
	s->out.head.length |= (uint64_t)s->sign << 32;
}

/* Its receive has announced itself by RTR: the data goes without asking. */
static void choose_unasked_locked(struct weft_gate *g, struct weft_req *r)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_core_req_send *s = weft_comm_req_send(r);

	if (s->explicit_only || !weft_comm_rtr_may_locked(g, r))
		return;
	weft_count(WEFT_CNT_EARLY_USED, 1);
	s->out.type = WEFT_OUT_EAGER;
	s->out.head.kind = WEFT_WIRE_EAGER;
	s->out.head.flags = s->sync ? WEFT_WIRE_SYNC : 0;
	if (weft_unlikely(s->sign) && !s->sync)
		sign_eager(s);
	/* Relaxed: not posted, so this thread's alone. */
	atomic_store_explicit(&s->x_refs, s->sync ? 2 : 1, memory_order_relaxed);
}

/* An eager message for which there is no credit asks first. */
static void choose_eager_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_req *r = weft_comm_req_of_send_out(o);
	struct weft_core_req_send *s = weft_comm_req_send(r);

	if (weft_likely(weft_comm_credit_may_locked(g, r->buf.bytes)))
		return;
	weft_count(WEFT_CNT_CREDIT_ASKED, 1);
	if (weft_trace_on())
		weft_comm_trace_end(WEFT_TRACE_CREDIT_OUT, g->peer, o->head.tag, r->buf.bytes);
	o->type = WEFT_OUT_RTS;
	o->head.kind = WEFT_WIRE_RTS;
	o->head.flags = 0;
	o->head.length = r->buf.bytes;
	/* Relaxed: not posted, so this thread's alone.  1: the peer's answer. */
	atomic_store_explicit(&s->x_refs, 1, memory_order_relaxed);
	weft_count(WEFT_CNT_RNDV_SENT, 1);
}

static void choose_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	if (o->type == WEFT_OUT_EAGER)
		choose_eager_locked(g, o);
	else if (weft_unlikely(g->rtr != NULL))
		choose_unasked_locked(g, weft_comm_req_of_send_out(o));
}

/* Where the peer could fetch the data from: an address if it is in one piece, else 0. */
static uint64_t rts_address(struct weft_gate *g, const struct weft_buf *buf)
{
	if (!weft_comm_gate_can_get(g))
		return 0;
	if (!buf->type)
		return (uint64_t)(uintptr_t)buf->base;
	struct iovec one;
	unsigned n = 1;
	if (weft_data_iov(buf, 0, &one, &n) != buf->bytes)
		return 0;
	return (uint64_t)(uintptr_t)one.iov_base;
}

static enum weft_post post_rts_locked(struct weft_gate *g, struct weft_req *r)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_core_req_send *s = weft_comm_req_send(r);
	/* Before the id is given: that publishes them to the handler of the peer's answer. */
	s->route = WEFT_ROUTE_NONE;
	s->state = WEFT_LARGE_ASKED;
	uint32_t id = weft_comm_ids_give(&g->core->ids, r, weft_comm_id_send(g->peer));
	if (!id)
		return no_memory(s);
	s->id = id;
	struct weft_wire head = s->out.head;
	struct weft_wire_rts rts = {.id = id, .sign = s->sign, .addr = rts_address(g, &r->buf)};
	struct iovec iov = {&rts, sizeof rts};
	head.sequence = g->send_seq;
	head.flags = r->then ? 0 : WEFT_WIRE_QUIET;
	if (weft_trace_on())
		weft_comm_trace_envelope(WEFT_TRACE_SEND, g, &head, false);
	/* From the post on the request may be over at any time: nothing of it is touched. */
	enum weft_post p = weft_comm_gate_post_locked(g, &head, &iov, 1, sizeof rts, NULL);
	if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED) {
		weft_comm_gate_numbered_locked(g, head.context, head.tag);
	} else {
		s->id = 0;
		(void)weft_comm_ids_take(&g->core->ids, id, weft_comm_id_send(g->peer));
	}
	return p;
}

/* It was cancelled while it waited for the network: it never goes out. */
static enum weft_post never_posted(struct weft_core_req_send *s)
{
	/* Relaxed: as in drop. */
	atomic_store_explicit(&s->x_err, WEFT_ERR_CANCELLED, memory_order_relaxed);
	return WEFT_POST_DOWN;
}

static enum weft_post post_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_req *r = weft_comm_req_of_send_out(o);
	if (weft_unlikely(weft_comm_req_send(r)->cancel))
		return never_posted(weft_comm_req_send(r));
	if (o->type == WEFT_OUT_EAGER)
		return post_eager_locked(g, r);
	return post_rts_locked(g, r);
}

static void eager_failed(struct weft_gate *g, struct weft_out *o)
{
	struct weft_req *r = weft_comm_req_of_send_out(o);
	(void)g;
	if (weft_comm_req_send(r)->sync)
		weft_comm_send_drop(r, WEFT_ERR_PEER); /* the answer that will not come */
	weft_comm_send_drop(r, WEFT_ERR_PEER);
}

const struct weft_out_ops weft_comm_send_eager_ops = {.choose_locked = choose_locked,
						      .post_locked = post_locked,
						      .posted = weft_comm_send_out_posted,
						      .failed = eager_failed};
const struct weft_out_ops weft_comm_send_rts_ops = {.choose_locked = choose_locked,
						    .post_locked = post_locked,
						    .failed = weft_comm_send_out_failed};

static void send_prepare(struct weft_req *r, struct weft_gate *g, struct weft_ctx *ctx, int tag,
			 const struct weft_buf *buf, enum weft_send_mode mode)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	uint32_t sign = weft_comm_sign_take(&weft_comm_sign_next.send);
	/* With an id there is no room for a signature: it asks. */
	bool eager = buf->bytes <= weft_comm_gate_eager_max(g) &&
		     !(weft_unlikely(sign) && mode == WEFT_SEND_SYNC);

	r->buf = *buf;
	r->status = (struct weft_status){.peer = g->peer, .tag = tag, .bytes = buf->bytes};
	s->gate = g;
	s->packed = NULL;
	s->id = 0;
	s->cancel = false;
	s->sync = mode == WEFT_SEND_SYNC;
	s->explicit_only = !eager && weft_task_progress_off_here;
	s->off = s->want = 0;
	/* Relaxed: published by the post or the push. */
	atomic_store_explicit(&s->x_err, WEFT_OK, memory_order_relaxed);
	atomic_store_explicit(&s->x_refs, eager && s->sync ? 2 : 1, memory_order_relaxed);
	s->out.type = eager ? WEFT_OUT_EAGER : WEFT_OUT_RTS;
	s->out.head = (struct weft_wire){.kind = eager ? WEFT_WIRE_EAGER : WEFT_WIRE_RTS,
					 .flags = eager && s->sync ? WEFT_WIRE_SYNC : 0,
					 .context = ctx->id,
					 .tag = tag,
					 .length = buf->bytes};
	s->sign = sign;
	if (weft_unlikely(sign) && eager)
		sign_eager(s);
	if (!eager)
		/* Relaxed: a wish. */
		s->out.priority = atomic_load_explicit(&ctx->x_priority, memory_order_relaxed);
	weft_count(eager ? WEFT_CNT_EAGER_SENT : WEFT_CNT_RNDV_SENT, 1);
}

static weft_err send_by_gate(struct weft_req *r, struct weft_gate *g, enum weft_send_mode mode)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);

	if (weft_likely(weft_comm_gate_try(g))) {
		weft_comm_gate_say_alone_locked(g, mode);
		if (weft_unlikely(g->pack) && s->out.type == WEFT_OUT_EAGER && !s->sync &&
		    weft_comm_pack_hold_locked(g, &s->out.head, &r->buf)) {
			weft_comm_gate_leave(g);
			weft_comm_req_complete_early(r);
			return WEFT_OK;
		}
		if (weft_likely(weft_comm_gate_clear_locked(g))) {
			choose_locked(g, &s->out);
			bool eager = s->out.type == WEFT_OUT_EAGER, sync = s->sync;
			enum weft_post p =
				weft_comm_gate_down(g) ? WEFT_POST_DOWN : post_locked(g, &s->out);
			weft_comm_gate_leave(g);
			switch (p) {
			case WEFT_POST_DONE:
				if (eager && (sync || s->packed))
					weft_comm_send_drop(r, WEFT_OK);
				else if (eager)
					weft_comm_req_complete_early(r);
				return WEFT_OK;
			case WEFT_POST_ACCEPTED:
				return WEFT_OK;
			case WEFT_POST_REFUSED: /* posts are not */
			case WEFT_POST_DOWN:
				free(s->packed);
				/* Relaxed: this thread's alone, it never went out. */
				return atomic_load_explicit(&s->x_err, memory_order_relaxed)
					       ? WEFT_ERR_NOMEM
					       : WEFT_ERR_PEER;
			case WEFT_POST_FULL:
				break;
			}
		} else {
			weft_comm_gate_leave(g);
		}
	}
	weft_comm_gate_submit(g, &s->out);
	return WEFT_OK;
}

/* As send_by_gate, unless an idle core posts it; some are measured. */
static __attribute__((noinline)) weft_err isend_offloaded(struct weft_req *r, struct weft_gate *g)
{
	struct weft_comm_offload *a = g->offload;
	size_t bytes = r->buf.bytes;
	if (weft_comm_offload_send(g, r))
		return WEFT_OK;
	if (bytes > weft_comm_gate_eager_max(g) ||
	    weft_likely(!weft_comm_offload_samples(a, bytes)))
		return send_by_gate(r, g, WEFT_SEND_AWAY);
	uint64_t t = weft_clock_ns();
	weft_err err = send_by_gate(r, g, WEFT_SEND_AWAY); /* r may be over */
	if (!err)
		weft_comm_offload_learn(a, bytes, weft_clock_ns() - t);
	return err;
}

/* ---- the calls ---------------------------------------------------------------------------- */

static weft_err isend_here(struct weft_req *r, struct weft_ctx *ctx, int peer, int tag,
			   const struct weft_buf *buf, enum weft_send_mode mode)
{
	struct weft_core *core = ctx->core;

	if (weft_unlikely(peer < 0 || peer >= core->size || tag == WEFT_ANY_TAG))
		return WEFT_ERR_ARG;
	if (peer == core->rank)
		return weft_comm_send_self(r, ctx, tag, buf, mode);
	struct weft_gate *g = &core->gate[peer];
	if (weft_unlikely(weft_comm_gate_down(g)))
		return WEFT_ERR_PEER;
	if (weft_unlikely(!g->driver))
		return WEFT_ERR_UNSUPPORTED;
	send_prepare(r, g, ctx, tag, buf, mode);
	if (mode == WEFT_SEND_AWAY && weft_unlikely(g->offload != NULL))
		return isend_offloaded(r, g);
	return send_by_gate(r, g, mode);
}

/* Borrows a stack where the caller's may be too small. */
struct send_call {
	struct weft_req *r;
	struct weft_ctx *ctx;
	int peer, tag;
	const struct weft_buf *buf;
	enum weft_send_mode mode;
	weft_err err;
};

static void isend_for(void *arg)
{
	struct send_call *c = arg;
	c->err = isend_here(c->r, c->ctx, c->peer, c->tag, c->buf, c->mode);
}

static __attribute__((noinline)) weft_err isend_there(struct send_call c)
{
	weft_wait_big_stack(isend_for, &c);
	return c.err;
}

/* As in weft_comm_core_irecv. */
static __attribute__((noinline)) weft_err isend_then(struct send_call c)
{
	weft_task_engine_want(1);
	weft_err err = weft_wait_stack_may_be_small()
			       ? isend_there(c)
			       : isend_here(c.r, c.ctx, c.peer, c.tag, c.buf, c.mode);
	if (err)
		weft_task_engine_want(-1);
	return err;
}

weft_err weft_comm_core_isend(struct weft_req *r, struct weft_ctx *ctx, int peer, int tag,
			      const struct weft_buf *buf, enum weft_send_mode mode)
{
	if (r->then)
		return isend_then((struct send_call){r, ctx, peer, tag, buf, mode, WEFT_OK});
	if (weft_likely(!weft_wait_stack_may_be_small()))
		return isend_here(r, ctx, peer, tag, buf, mode);
	return isend_there((struct send_call){r, ctx, peer, tag, buf, mode, WEFT_OK});
}
