/* SPDX-License-Identifier: BSD-3-Clause */
/* recv.c - receives: posting, taking data in, cancelling. */
#include "wait/stack.h"
#include "comm/large/rtr.h"
#include "comm/match/match_fast.h"

/* ---- data --------------------------------------------------------------------------------- */

void weft_comm_buf_copy(const struct weft_buf *to, const struct weft_buf *from, size_t len)
{
	if (!to->type && !from->type) {
		if (len)
			memmove(to->base, from->base, len);
	} else if (!from->type) {
		weft_data_unpack(to, 0, from->base, len);
	} else if (!to->type) {
		weft_data_pack(from, 0, to->base, len);
	} else {
		/* Both have holes: piece by piece of the source.  Ends: each round copies. */
		size_t off = 0;
		while (off < len) {
			struct iovec iov[WEFT_IOV_MAX];
			unsigned n = WEFT_IOV_MAX;
			if (!weft_data_iov(from, off, iov, &n))
				break;
			for (unsigned i = 0; i < n && off < len; i++) {
				size_t k = iov[i].iov_len;
				if (k > len - off)
					k = len - off;
				weft_data_unpack(to, off, iov[i].iov_base, k);
				off += k;
			}
		}
	}
}

/* With a layout, or longer than its place. */
void weft_comm_recv_deliver_rare(struct weft_req *r, int peer, int tag, const void *data,
				 size_t len)
{
	size_t n = len;

	r->status.peer = peer;
	r->status.tag = tag;
	r->status.err = WEFT_OK;
	r->status.cancelled = false;
	if (weft_unlikely(len > r->buf.bytes)) {
		n = r->buf.bytes;
		r->status.err = WEFT_ERR_TRUNC;
	}
	r->status.bytes = n;
	if (weft_unlikely(r->buf.type != NULL))
		weft_data_unpack(&r->buf, 0, data, n);
	else if (n)
		memcpy(r->buf.base, data, n);
	weft_comm_req_complete(r);
}

void weft_comm_recv_finish(struct weft_req *r, weft_err err)
{
	if (err)
		r->status.err = err;
	if (weft_trace_on())
		weft_comm_trace_end(WEFT_TRACE_RECEIVED, r->status.peer, r->status.tag,
				    r->status.bytes);
	weft_comm_req_complete(r);
}

/* A message from ourselves whose data is still in the sender's buffer. */
static void take_local(struct weft_req *r, struct weft_msg *m)
{
	struct weft_req *send = m->send;
	size_t n = m->length < r->buf.bytes ? m->length : r->buf.bytes;

	weft_comm_buf_copy(&r->buf, &send->buf, n);
	r->status = (struct weft_status){.peer = m->node.peer,
					 .tag = m->node.tag,
					 .bytes = n,
					 .err = n < m->length ? WEFT_ERR_TRUNC : WEFT_OK};
	weft_comm_msg_free(m);
	weft_comm_req_complete(send);
	weft_comm_req_complete(r);
}

/* The same as weft_comm_recv_deliver, and the time of the copy is learned from. */
static __attribute__((noinline)) void deliver_measured(struct weft_req *r, struct weft_msg *m,
						       struct weft_comm_eager_threshold *learn)
{
	/* What has holes or is longer than its place tells nothing of the others. */
	if (r->buf.type || m->length > r->buf.bytes) {
		weft_comm_recv_deliver(r, m->node.peer, m->node.tag, m->data, m->length);
		return;
	}
	uint64_t t = weft_clock_ns();
	memcpy(r->buf.base, m->data, m->length);
	weft_comm_eager_threshold_copied(learn, m->length, weft_clock_ns() - t);
	r->status.err = WEFT_OK;
	r->status.cancelled = false;
	r->status.bytes = m->length;
	weft_comm_req_complete(r);
}

static void take_eager(struct weft_req *r, struct weft_msg *m)
{
	struct weft_core *core = m->core;
	int peer = m->node.peer, tag = m->node.tag;

	if (m->id) {
		weft_comm_gate_fin(&core->gate[peer], m->id);
		m->id = 0;
	}
	uintptr_t state = WEFT_MSG_ARRIVING;
	r->status.peer = peer;
	r->status.tag = tag;
	/* CLAIM -> LAST (placed).  Carries: r's fields, for the poller that completes it.
	 * SEE <- READY (placed).  Carries: the payload. */
	if (atomic_compare_exchange_strong_explicit(&m->x_state, &state, (uintptr_t)r,
						    memory_order_acq_rel, memory_order_acquire))
		return;
	if (state == WEFT_MSG_READY) {
		weft_count(WEFT_CNT_COPIES, 1);
		struct weft_comm_eager_threshold *learn = core->gate[peer].learn;
		if (weft_unlikely(learn && weft_comm_eager_threshold_wants(learn, m->length))) {
			deliver_measured(r, m, learn);
		} else {
			weft_comm_recv_deliver(r, peer, tag, m->data, m->length);
		}
	} else {
		r->status.bytes = 0;
		weft_comm_recv_finish(r, WEFT_ERR_PEER);
	}
	weft_comm_msg_free(m);
}

void weft_comm_recv_message(struct weft_req *r, struct weft_msg *m)
{
	if (weft_trace_on())
		weft_comm_trace_end(WEFT_TRACE_TAKE, m->node.peer, m->node.tag, m->length);
	switch ((enum weft_msg_kind)m->msg_kind) {
	case WEFT_MSG_EAGER:
		take_eager(r, m);
		break;
	case WEFT_MSG_RTS: {
		struct weft_gate *g = &m->core->gate[m->node.peer];
		int tag = m->node.tag;
		uint64_t length = m->length, addr = m->addr;
		uint32_t id = m->id;
		bool quiet = m->quiet;
		weft_comm_msg_free(m);
		weft_comm_rndv_start(r, g, tag, length, id, addr, quiet, true);
		break;
	}
	case WEFT_MSG_LOCAL:
		take_local(r, m);
		break;
	}
}

/* ---- the calls ---------------------------------------------------------------------------- */

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
	bool tell = weft_unlikely(buf->bytes > ctx->core->early_min) && !v->explicit_only &&
		    weft_comm_rtr_before(ctx, peer, tag, buf, &sequence);
	v->told = tell;
	if (weft_trace_on())
		weft_comm_trace_end(WEFT_TRACE_POST, peer, tag, buf->bytes);
	struct weft_msg *m;
	weft_err err = weft_comm_match_post(&v->entry, &m);
	if (weft_unlikely(err))
		return err;
	/* From here on, without a message, the request may be over. */
	if (m)
		weft_comm_recv_message(r, m);
	else if (weft_unlikely(tell))
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
	/* Who gave a `then` wants to hear of the end, though nobody may be waiting. */
	if (r->then)
		return irecv_then((struct recv_call){r, ctx, peer, tag, buf, WEFT_OK});
	if (weft_likely(!weft_wait_stack_may_be_small()))
		return irecv_here(r, ctx, peer, tag, buf);
	/* Its stack may be too small for what comes with a message that is there. */
	return irecv_there((struct recv_call){r, ctx, peer, tag, buf, WEFT_OK});
}

/* Not one of several with its key, or a message is there, or the bucket is not ours alone. */
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

/* A long one, or from a stack that may be too small. */
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

/* What is not the most frequent leaves by a call at its end: so no register is saved. */
weft_err weft_comm_core_irecv_plain(struct weft_req *r, struct weft_ctx *ctx, int peer, int tag,
				    void *base, size_t bytes)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);

	weft_wait_completion_init(&r->done);
	r->then = NULL;
	r->buf.base = base;
	r->buf.bytes = bytes;
	r->buf.type = NULL;
	if (weft_unlikely(bytes > ctx->core->early_min || weft_wait_stack_may_be_small()))
		return irecv_flat(r, ctx, peer, tag);
	r->status.cancelled = false;
	r->status.err = WEFT_OK;
	r->status.bytes = 0;
	v->explicit_only = weft_task_progress_off_here;
	v->told = false;
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
