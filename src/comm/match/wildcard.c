/* SPDX-License-Identifier: BSD-3-Clause */
/* wildcard.c - posted wildcards, context locked.  match.c argues the order. */
#include "comm/match/bucket.h"
#include "comm/match/wildcard.h"

enum wild { WILD_ALL, WILD_TAG, WILD_PEER };

static inline enum wild wild_of(const struct weft_keyed *n)
{
	return n->tag != WEFT_ANY_TAG ? WILD_PEER : n->peer != WEFT_ANY_PEER ? WILD_TAG : WILD_ALL;
}

void weft_comm_wild_append_locked(struct weft_ctx *ctx, struct weft_entry *e)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	struct weft_bucket *b = weft_comm_bucket_of(ctx, e->node.peer, e->node.tag);
	/* Relaxed: written under the context's lock only; a thread that posted an earlier wildcard
	 * sees at least its stamp (match.c). */
	e->stamp = atomic_load_explicit(&ctx->x_epoch, memory_order_relaxed) + 1;
	atomic_store_explicit(&ctx->x_epoch, e->stamp, memory_order_relaxed);
	e->wild_next = NULL;
	e->wild_prev = ctx->wild_tail;
	if (ctx->wild_tail)
		ctx->wild_tail->wild_next = e;
	else
		ctx->wild_head = e;
	ctx->wild_tail = e;
	ctx->wild_posted[wild_of(&e->node)]++;
	weft_wait_owner_lock(&b->lock);
	weft_comm_bucket_append_locked(b, &e->node);
	weft_wait_owner_unlock(&b->lock);
}

void weft_comm_wild_unlink_locked(struct weft_ctx *ctx, struct weft_entry *e)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	struct weft_bucket *b = weft_comm_bucket_of(ctx, e->node.peer, e->node.tag);
	weft_wait_owner_lock(&b->lock);
	weft_comm_bucket_unlink_locked(b, &e->node);
	weft_wait_owner_unlock(&b->lock);
	if (e->wild_prev)
		e->wild_prev->wild_next = e->wild_next;
	else
		ctx->wild_head = e->wild_next;
	if (e->wild_next)
		e->wild_next->wild_prev = e->wild_prev;
	else
		ctx->wild_tail = e->wild_prev;
	ctx->wild_posted[wild_of(&e->node)]--;
	/* LOWER: an arrival that still reads the old count only takes the longer way. */
	atomic_fetch_sub_explicit(&ctx->x_wild, 1, memory_order_relaxed);
}

/* The older of best and the oldest posted under that key. */
static struct weft_entry *wild_older_locked(struct weft_ctx *ctx, int peer, int tag,
					    struct weft_entry *best)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	weft_wait_owner_lock(&b->lock);
	/* Stays: posted wildcards change under the context's lock only. */
	struct weft_keyed *n = weft_comm_bucket_find_locked(b, ctx, peer, tag, WEFT_KEYED_WILD);
	weft_wait_owner_unlock(&b->lock);
	if (n && (!best || weft_comm_entry_of(n)->stamp < best->stamp))
		best = weft_comm_entry_of(n);
	return best;
}

struct weft_entry *weft_comm_wild_oldest_locked(struct weft_ctx *ctx, int peer, int tag)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	struct weft_entry *e = NULL;
	if (ctx->wild_posted[WILD_ALL])
		e = wild_older_locked(ctx, WEFT_ANY_PEER, WEFT_ANY_TAG, e);
	if (ctx->wild_posted[WILD_TAG])
		e = wild_older_locked(ctx, peer, WEFT_ANY_TAG, e);
	if (ctx->wild_posted[WILD_PEER])
		e = wild_older_locked(ctx, WEFT_ANY_PEER, tag, e);
	return e;
}
