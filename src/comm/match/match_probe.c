/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match_probe.c - unexpected messages that a probe asks for, taken out or not.  match.c argues the
 * order.
 */
#include "comm/match/match_fast.h"
#include "comm/match/match_probe.h"
#include "comm/match/unexpected.h"

static void status_of_msg(const struct weft_msg *m, struct weft_status *st)
{
	*st = (struct weft_status){
		.peer = m->node.peer, .tag = m->node.tag, .err = WEFT_OK, .bytes = m->length};
}

/* With exact keys the context's lock is not needed, as long as the message is in no list. */
static struct weft_msg *probe_exact(struct weft_ctx *ctx, int peer, int tag, bool take,
				    struct weft_status *st)
{
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	struct weft_msg *m = NULL;

	enum weft_owner_how how = weft_wait_owner_in(&b->lock);
	struct weft_keyed *n = weft_comm_bucket_find_locked(b, ctx, peer, tag, WEFT_KEYED_MSG);
	if (n && take) {
		m = weft_comm_match_take_posted(ctx, b, how, n);
		if (m)
			status_of_msg(m, st);
		return m;
	}
	if (n) {
		m = weft_comm_msg_of(n);
		status_of_msg(m, st);
	}
	weft_wait_owner_out(&b->lock, how);
	return m; /* not taken: the caller may only compare it with NULL */
}

/* Context locked. */
static struct weft_msg *probe_locked(struct weft_ctx *ctx, int peer, int tag, bool take,
				     struct weft_status *st)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	struct weft_msg *m;
	if (peer != WEFT_ANY_PEER && tag != WEFT_ANY_TAG) {
		struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
		weft_wait_owner_lock(&b->lock);
		struct weft_keyed *n =
			weft_comm_bucket_find_locked(b, ctx, peer, tag, WEFT_KEYED_MSG);
		m = n ? weft_comm_msg_of(n) : NULL;
		if (m)
			status_of_msg(m, st);
		if (m && take)
			weft_comm_bucket_unlink_locked(b, n);
		weft_wait_owner_unlock(&b->lock);
		if (m && take && m->lists)
			weft_comm_unexpected_unlink_locked(ctx, m);
		return m;
	}
	weft_comm_unexpected_begin_locked(ctx);
	m = weft_comm_unexpected_find_locked(ctx, peer, tag);
	if (m)
		status_of_msg(m, st);
	if (m && take)
		weft_comm_unexpected_take_locked(ctx, m);
	return m;
}

static struct weft_msg *probe_wait(struct weft_ctx *ctx, int peer, int tag, bool take,
				   struct weft_status *st, struct weft_probe_waiter *w)
{
	/* RAISE -> READ (arrive): an arrival that does not see it has put its message where the
	 * search below looks. */
	atomic_fetch_add_explicit(&ctx->x_wild, 1, memory_order_seq_cst);
	weft_comm_spin_lock(&ctx->lock);
	struct weft_msg *m = probe_locked(ctx, peer, tag, take, st);
	if (m) {
		atomic_fetch_sub_explicit(&ctx->x_wild, 1, memory_order_relaxed);
	} else {
		w->peer = peer;
		w->tag = tag;
		w->next = ctx->probes;
		ctx->probes = w;
	}
	weft_comm_spin_unlock(&ctx->lock);
	return m;
}

struct weft_msg *weft_comm_match_probe(struct weft_ctx *ctx, int peer, int tag, bool take,
				       struct weft_status *st, struct weft_probe_waiter *w)
{
	if (w)
		return probe_wait(ctx, peer, tag, take, st, w);
	if (peer != WEFT_ANY_PEER && tag != WEFT_ANY_TAG)
		return probe_exact(ctx, peer, tag, take, st);
	/* Relaxed: hints that save the lock; what they miss arrives just now. */
	if (weft_comm_phase_lists(&ctx->phase) &&
	    !atomic_load_explicit(&ctx->x_unexpected, memory_order_relaxed))
		return NULL;
	weft_comm_spin_lock(&ctx->lock);
	struct weft_msg *m = probe_locked(ctx, peer, tag, take, st);
	weft_comm_spin_unlock(&ctx->lock);
	return m;
}
