/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send_now.c - sends that are over when their call returns, or have not happened: small messages
 * while the gate is free and nothing waits there.
 */
#include "base/counters.h"
#include "base/trace.h"
#include "comm/large/rtr_note.h"
#include "comm/msg_trace.h"
#include "comm/send/offload.h"
#include "comm/send/pack.h"
#include "comm/send/send_self.h"
#include "comm/sign.h"
#include "wait/stack.h"

/* Posts the pieces of an eager message, if the gate is free and nothing waits there. */
static inline __attribute__((always_inline)) weft_err
send_now_pieces(struct weft_ctx *ctx, struct weft_gate *g, int tag, const struct weft_buf *buf,
		const struct iovec *iov, unsigned n, enum weft_send_mode mode)
{
	size_t len = buf->bytes;
	if (weft_unlikely(!weft_comm_gate_try(g)))
		return WEFT_AGAIN;
	weft_comm_gate_say_alone_locked(g, mode);
	enum weft_post p = WEFT_POST_FULL;
	struct weft_wire head = {.kind = WEFT_WIRE_EAGER,
				 .sequence = g->send_seq,
				 .context = ctx->id,
				 .tag = tag,
				 .length = len};
	if (weft_unlikely(weft_comm_gate_down(g))) {
		p = WEFT_POST_DOWN;
	} else if (weft_unlikely(g->pack) && weft_comm_pack_hold_locked(g, &head, buf)) {
		p = WEFT_POST_DONE;
	} else if (weft_likely(weft_comm_gate_clear_locked(g) &&
			       weft_comm_credit_may_locked(g, len))) {
		weft_comm_credit_spend_locked(g, len);
		if (weft_trace_on())
			weft_comm_trace_envelope(WEFT_TRACE_SEND, g, &head, false);
		p = weft_comm_gate_post_locked(g, &head, iov, n, len, NULL);
		if (weft_likely(p == WEFT_POST_DONE))
			weft_comm_gate_numbered_locked(g, ctx->id, tag);
		else
			weft_comm_credit_unspend_locked(g, len);
	}
	weft_comm_gate_leave(g);
	if (weft_unlikely(p != WEFT_POST_DONE))
		return p == WEFT_POST_DOWN ? WEFT_ERR_PEER : WEFT_AGAIN;
	weft_count(WEFT_CNT_EAGER_SENT, 1);
	return WEFT_OK;
}

static __attribute__((noinline)) weft_err send_now_typed(struct weft_ctx *ctx, struct weft_gate *g,
							 int tag, const struct weft_buf *buf,
							 enum weft_send_mode mode)
{
	struct iovec iov[WEFT_IOV_MAX];
	unsigned n = WEFT_IOV_MAX;
	if (!buf->bytes)
		n = 0;
	else if (weft_data_iov(buf, 0, iov, &n) != buf->bytes)
		return WEFT_AGAIN;
	return send_now_pieces(ctx, g, tag, buf, iov, n, mode);
}

static inline weft_err send_now_here(struct weft_ctx *ctx, int peer, int tag,
				     const struct weft_buf *buf, enum weft_send_mode mode)
{
	struct weft_core *core = ctx->core;

	if (weft_unlikely((unsigned)peer >= (unsigned)core->size || tag == WEFT_ANY_TAG))
		return WEFT_ERR_ARG;
	if (weft_unlikely(peer == core->rank))
		return weft_comm_send_self(NULL, ctx, tag, buf, WEFT_SEND_STANDARD);
	struct weft_gate *g = &core->gate[peer];
	if (weft_unlikely(buf->bytes >= g->now_end))
		return WEFT_AGAIN;
	if (weft_unlikely(weft_comm_signing) && weft_comm_sign_next.send)
		return WEFT_AGAIN; /* its request carries the signature */
	if (weft_unlikely(buf->type != NULL))
		return send_now_typed(ctx, g, tag, buf, mode);
	struct iovec iov = {buf->base, buf->bytes};
	return send_now_pieces(ctx, g, tag, buf, &iov, buf->bytes != 0, mode);
}

/* Borrows a stack where the caller's may be too small. */
struct send_call {
	struct weft_ctx *ctx;
	int peer, tag;
	const struct weft_buf *buf;
	enum weft_send_mode mode;
	weft_err err;
};

static void send_now_for(void *arg)
{
	struct send_call *c = arg;
	c->err = send_now_here(c->ctx, c->peer, c->tag, c->buf, c->mode);
}

static __attribute__((noinline)) weft_err send_now_there(struct send_call c)
{
	weft_wait_big_stack(send_now_for, &c);
	return c.err;
}

static inline weft_err send_now(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf,
				enum weft_send_mode mode)
{
	if (weft_likely(!weft_wait_stack_may_be_small()))
		return send_now_here(ctx, peer, tag, buf, mode);
	return send_now_there((struct send_call){ctx, peer, tag, buf, mode, WEFT_OK});
}

weft_err weft_comm_send_now(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf)
{
	return send_now(ctx, peer, tag, buf, WEFT_SEND_STANDARD);
}

/* As post_plain_locked, into a burst that waits for the next poll. */
static bool join_plain(struct weft_ctx *ctx, struct weft_gate *g, int tag, const void *base,
		       size_t bytes, weft_post_plain *join)
{
	if (!weft_wait_owner_enter(&g->owner))
		return false;
	bool joined = false;
	if (weft_likely(weft_comm_gate_clear_locked(g) && weft_comm_credit_may_locked(g, bytes) &&
			weft_comm_credit_due(g) < WEFT_CREDIT_UNIT && !weft_comm_gate_down(g)))
		joined = join(g->net, g->peer, (uint64_t)g->send_seq << 32 | WEFT_WIRE_EAGER,
			      (uint64_t)(uint32_t)tag << 32 | ctx->id, base,
			      bytes) == WEFT_POST_DONE;
	if (joined) {
		weft_comm_credit_spend_locked(g, bytes);
		weft_comm_gate_numbered_locked(g, ctx->id, tag);
	}
	weft_wait_owner_leave(&g->owner);
	if (joined)
		weft_count(WEFT_CNT_EAGER_SENT, 1);
	return joined;
}

/* A long message, from a stack that may be small, or over a network without post_plain. */
static __attribute__((noinline)) weft_err send_rare(struct weft_ctx *ctx, int peer, int tag,
						    const void *base, size_t bytes, bool away)
{
	struct weft_gate *g = &ctx->core->gate[peer];
	weft_post_plain *join = atomic_load_explicit(&g->x_join_plain, memory_order_relaxed);
	if (join && bytes < g->now_end && !weft_wait_stack_may_be_small() &&
	    join_plain(ctx, g, tag, base, bytes, join))
		return WEFT_OK;
	struct weft_buf buf = weft_data_buf_flat((void *)(uintptr_t)base, bytes);
	return away ? weft_comm_start_now(ctx, peer, tag, &buf)
		    : weft_comm_send_now(ctx, peer, tag, &buf);
}

/* Inside the gate: posts, if nothing waits and nothing is due. */
static inline __attribute__((always_inline)) enum weft_post
post_plain_locked(struct weft_ctx *ctx, struct weft_gate *g, int peer, int tag, const void *base,
		  size_t bytes, weft_post_plain *post)
{
	weft_assert_held(weft_comm_gate, g);
	/* Credit that is due to the peer goes with the next message that takes the longer way. */
	if (weft_unlikely(!weft_comm_gate_clear_locked(g) ||
			  !weft_comm_credit_may_locked(g, bytes) ||
			  weft_comm_credit_due(g) >= WEFT_CREDIT_UNIT || weft_comm_gate_down(g)))
		return WEFT_POST_FULL;
	weft_comm_credit_spend_locked(g, bytes);
	enum weft_post p = post(g->net, peer, (uint64_t)g->send_seq << 32 | WEFT_WIRE_EAGER,
				(uint64_t)(uint32_t)tag << 32 | ctx->id, base, bytes);
	if (weft_likely(p == WEFT_POST_DONE))
		g->send_seq++;
	else
		weft_comm_credit_unspend_locked(g, bytes);
	return p;
}

static weft_err result_of_plain(enum weft_post p)
{
	if (weft_unlikely(p != WEFT_POST_DONE))
		return WEFT_AGAIN;
	weft_count(WEFT_CNT_EAGER_SENT, 1);
	return WEFT_OK;
}

/* By the mask: the calling thread does not own the gate. */
static __attribute__((noinline)) weft_err send_plain_by_mask(struct weft_ctx *ctx,
							     struct weft_gate *g, int peer, int tag,
							     const void *base, size_t bytes,
							     weft_post_plain *post)
{
	if (weft_unlikely(!weft_comm_gate_try(g)))
		return WEFT_AGAIN;
	enum weft_post p = post_plain_locked(ctx, g, peer, tag, base, bytes, post);
	weft_comm_gate_leave(g);
	return result_of_plain(p);
}

static inline __attribute__((always_inline)) weft_err
send_plain(struct weft_ctx *ctx, int peer, int tag, const void *base, size_t bytes, bool away)
{
	struct weft_core *core = ctx->core;
	struct weft_gate *g = &core->gate[peer];

	weft_post_plain *post = atomic_load_explicit(&g->x_post_plain, memory_order_relaxed);
	if (weft_unlikely(bytes >= g->now_end || !post || weft_wait_stack_may_be_small()))
		return send_rare(ctx, peer, tag, base, bytes, away);
	if (weft_unlikely(!weft_wait_owner_enter(&g->owner)))
		return send_plain_by_mask(ctx, g, peer, tag, base, bytes, post);
	enum weft_post p = post_plain_locked(ctx, g, peer, tag, base, bytes, post);
	weft_wait_owner_leave(&g->owner);
	return result_of_plain(p);
}

weft_err weft_comm_send_plain(struct weft_ctx *ctx, int peer, int tag, const void *base,
			      size_t bytes)
{
	return send_plain(ctx, peer, tag, base, bytes, false);
}

weft_err weft_comm_start_plain(struct weft_ctx *ctx, int peer, int tag, const void *base,
			       size_t bytes)
{
	return send_plain(ctx, peer, tag, base, bytes, true);
}

/* Where an idle core may post it, if that pays; else now, and some are measured. */
static __attribute__((noinline)) weft_err start_measured(struct weft_ctx *ctx, struct weft_gate *g,
							 int tag, const struct weft_buf *buf)
{
	if (weft_comm_offload_pays(g, buf->bytes))
		return WEFT_AGAIN;
	if (weft_likely(!weft_comm_offload_samples(g->offload, buf->bytes)))
		return send_now(ctx, g->peer, tag, buf, WEFT_SEND_AWAY);
	uint64_t t = weft_clock_ns();
	weft_err err = send_now(ctx, g->peer, tag, buf, WEFT_SEND_AWAY);
	if (!err)
		weft_comm_offload_learn(g->offload, buf->bytes, weft_clock_ns() - t);
	return err;
}

weft_err weft_comm_start_now(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf)
{
	struct weft_core *core = ctx->core;
	if (weft_unlikely((unsigned)peer >= (unsigned)core->size))
		return WEFT_ERR_ARG;
	struct weft_gate *g = &core->gate[peer];
	if (weft_likely(!g->offload))
		return send_now(ctx, peer, tag, buf, WEFT_SEND_AWAY);
	return start_measured(ctx, g, tag, buf);
}
