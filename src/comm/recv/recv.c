/* SPDX-License-Identifier: BSD-3-Clause */
/* recv.c - receives: posting, cancelling. */
#include "base/trace.h"
#include "comm/large/rtr.h"
#include "comm/match/match_fast.h"
#include "comm/msg_trace.h"
#include "comm/recv/deliver.h"
#include "comm/recv/recv_message.h"
#include "comm/sign.h"
#include "task/task.h"
#include "wait/stack.h"

static weft_err irecv_here(struct weft_req *r, struct weft_ctx *ctx, int peer, int tag,
			   const struct weft_buf *buf)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	if (weft_unlikely(peer < WEFT_ANY_PEER || peer >= ctx->core->size))
		return WEFT_ERR_ARG;
	/* Field by field: a load of two of them at once would wait for the stores just made. */
	r->buf.base = buf->base;
	r->buf.bytes = buf->bytes;
	r->buf.type = buf->type;
	r->buf.count = buf->count;
	r->status.cancelled = false;
	r->status.err = WEFT_OK;
	r->status.bytes = 0;
	v->explicit_only = weft_task_progress_off_here;
	v->entry.node.ctx = ctx;
	v->entry.node.peer = peer;
	v->entry.node.tag = tag;
	uint32_t sequence = 0;
	bool announce = weft_unlikely(buf->bytes > ctx->core->rtr_min) && !v->explicit_only &&
			weft_comm_rtr_before(ctx, peer, tag, buf, &sequence);
	v->rtr_sent = announce;
	v->sign = weft_comm_sign_take(&weft_comm_sign_next.recv);
	if (weft_trace_on())
		weft_comm_trace_end(WEFT_TRACE_POST, peer, tag, buf->bytes);
	struct weft_msg *m;
	weft_err err = weft_comm_match_post(&v->entry, &m);
	if (weft_unlikely(err))
		return err;
	/* Posted, the request may be over from here on. */
	if (m)
		weft_comm_recv_message(r, m);
	else if (weft_unlikely(announce))
		weft_comm_rtr_tell(ctx, peer, tag, buf->bytes, sequence);
	return WEFT_OK;
}

struct recv_call {
	struct weft_req *r;
	struct weft_ctx *ctx;
	int peer, tag;
	const struct weft_buf *buf;
	weft_err err;
};

static void irecv_for(void *arg)
{
	struct recv_call *c = arg;
	c->err = irecv_here(c->r, c->ctx, c->peer, c->tag, c->buf);
}

static __attribute__((noinline)) weft_err irecv_there(struct recv_call c)
{
	weft_wait_big_stack(irecv_for, &c);
	return c.err;
}

static __attribute__((noinline)) weft_err irecv_then(struct recv_call c)
{
	weft_task_engine_want(1);
	weft_err err = weft_wait_stack_may_be_small()
			       ? irecv_there(c)
			       : irecv_here(c.r, c.ctx, c.peer, c.tag, c.buf);
	if (err)
		weft_task_engine_want(-1);
	return err;
}

weft_err weft_comm_core_irecv(struct weft_req *r, struct weft_ctx *ctx, int peer, int tag,
			      const struct weft_buf *buf)
{
	/* A request with a `then` must end in the background, though no thread waits for it. */
	if (r->then)
		return irecv_then((struct recv_call){r, ctx, peer, tag, buf, WEFT_OK});
	if (weft_likely(!weft_wait_stack_may_be_small()))
		return irecv_here(r, ctx, peer, tag, buf);
	/* Its stack may be too small for what comes with a message that is there. */
	return irecv_there((struct recv_call){r, ctx, peer, tag, buf, WEFT_OK});
}

/* The first receive of its key, or a message is there, or another thread uses the bucket. */
static __attribute__((noinline)) weft_err irecv_plain_more(struct weft_req *r)
{
	struct weft_entry *e = &weft_comm_req_recv(r)->entry;
	struct weft_msg *m;
	if (weft_comm_match_post_beside(e, e->node.ctx, e->node.peer, e->node.tag))
		return WEFT_OK;
	weft_err err = weft_comm_match_post_exact(e, &m);
	if (weft_likely(!err) && m)
		weft_comm_recv_message(r, m);
	return err;
}

/* A long receive, or from a stack that may be too small. */
static __attribute__((noinline)) weft_err irecv_flat(struct weft_req *r, struct weft_ctx *ctx,
						     int peer, int tag)
{
	struct weft_buf buf = weft_data_buf_flat(r->buf.base, r->buf.bytes);
	return weft_comm_core_irecv(r, ctx, peer, tag, &buf);
}

/* Where a trace is written. */
static __attribute__((noinline, cold)) weft_err irecv_plain_traced(struct weft_req *r)
{
	const struct weft_keyed *n = &weft_comm_req_recv(r)->entry.node;
	weft_comm_trace_end(WEFT_TRACE_POST, n->peer, n->tag, r->buf.bytes);
	return irecv_plain_more(r);
}

/* Rare cases leave by a call at the end, so that the frequent one saves no register. */
weft_err weft_comm_core_irecv_plain(struct weft_req *r, struct weft_ctx *ctx, int peer, int tag,
				    void *base, size_t bytes)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	weft_wait_completion_init(&r->done);
	r->then = NULL;
	r->buf.base = base;
	r->buf.bytes = bytes;
	r->buf.type = NULL;
	if (weft_unlikely(bytes > ctx->core->rtr_min || weft_wait_stack_may_be_small()))
		return irecv_flat(r, ctx, peer, tag);
	r->status.cancelled = false;
	r->status.err = WEFT_OK;
	r->status.bytes = 0;
	v->explicit_only = weft_task_progress_off_here;
	v->rtr_sent = false;
	v->sign = 0;
	v->entry.node.ctx = ctx;
	v->entry.node.peer = peer;
	v->entry.node.tag = tag;
	if (weft_trace_on())
		return irecv_plain_traced(r);
	return weft_likely(weft_comm_match_post_next(&v->entry, ctx, peer, tag))
		       ? WEFT_OK
		       : irecv_plain_more(r);
}

weft_err weft_comm_core_imrecv(struct weft_req *r, struct weft_msg *m, const struct weft_buf *buf)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	if (r->then)
		weft_task_engine_want(1);
	r->buf = *buf;
	r->status.cancelled = false;
	r->status.err = WEFT_OK;
	r->status.bytes = 0;
	v->explicit_only = weft_task_progress_off_here;
	v->entry.node.ctx = m->node.ctx;
	v->entry.node.peer = m->node.peer;
	v->entry.node.tag = m->node.tag;
	v->entry.node.kind = WEFT_KEYED_RECV;
	v->sign = weft_comm_sign_take(&weft_comm_sign_next.recv);
	/* Relaxed: it is in no list, so that a cancel finds it matched. */
	atomic_store_explicit(&v->entry.node.x_listed, false, memory_order_relaxed);
	weft_comm_recv_message(r, m);
	return WEFT_OK;
}

bool weft_comm_recv_cancel(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	if (!weft_comm_match_cancel(&v->entry))
		return false;
	r->status = (struct weft_status){
		.peer = v->entry.node.peer, .tag = v->entry.node.tag, .cancelled = true};
	weft_comm_recv_finish(r, WEFT_ERR_CANCELLED);
	return true;
}
