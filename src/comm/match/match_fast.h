/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match_fast.h - the inline half of matching: exact receives and messages.  Rare cases go to
 * match.c, which also argues the order.
 *
 * Callers   post: any thread.  arrive: the poller of the message's connection.
 * Cost      the bucket's line and those of the two nodes that meet.
 */
#ifndef WEFT_MATCH_FAST_H
#define WEFT_MATCH_FAST_H

#include "comm/match/match.h"

/* ---- posting ------------------------------------------------------------------------------ */

/* If receives with e's key are posted: appends e to them.  False: nothing has changed. */
static inline bool weft_comm_match_queue_locked(struct weft_bucket *b, struct weft_entry *e,
						struct weft_ctx *ctx, int peer, int tag)
{
	weft_assert_held(weft_comm_bucket, b);
	struct weft_keyed *first = b->slot[0].first;
	if (weft_unlikely(!first || !weft_comm_keyed_is(first, ctx, peer, tag) ||
			  first->kind != WEFT_KEYED_RECV))
		return false;
	e->node.kind = WEFT_KEYED_RECV;
	/* Relaxed: as in weft_comm_match_post_exact. */
	e->stamp = atomic_load_explicit(&ctx->x_epoch, memory_order_relaxed);
	weft_comm_bucket_queue_locked(first, &e->node);
	return true;
}

/*
 * The most frequent case: other receives with e's key are posted, and the calling thread owns the
 * bucket.  False: it is another case, and nothing has changed.  ctx, peer, tag: those of the node.
 *
 * The peer's state is not read.  While a receive of this key is posted, the scan for a lost peer's
 * receives has not come to the bucket, and will find e there, too.
 */
static inline bool weft_comm_match_post_next(struct weft_entry *e, struct weft_ctx *ctx, int peer,
					     int tag)
{
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);

	if (weft_unlikely(!weft_wait_owner_enter(&b->lock)))
		return false;
	bool good = weft_comm_match_queue_locked(b, e, ctx, peer, tag);
	weft_wait_owner_out(&b->lock, WEFT_OWNER_BY_STORES);
	return good;
}

/* The same where another thread may use the bucket, if none is inside. */
static inline bool weft_comm_match_post_beside(struct weft_entry *e, struct weft_ctx *ctx, int peer,
					       int tag)
{
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	enum weft_owner_how how = weft_wait_owner_try(&b->lock);

	if (weft_unlikely(how == WEFT_OWNER_BUSY))
		return false;
	bool good = weft_comm_match_queue_locked(b, e, ctx, peer, tag);
	weft_wait_owner_out(&b->lock, how);
	return good;
}

/* weft_comm_match_post for a receive without wildcards. */
static inline weft_err weft_comm_match_post_exact(struct weft_entry *e, struct weft_msg **msg_p)
{
	struct weft_ctx *ctx = e->node.ctx;
	struct weft_core *core = ctx->core;
	int peer = e->node.peer, tag = e->node.tag;
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	struct weft_keyed *first;

	e->node.kind = WEFT_KEYED_RECV;
	enum weft_owner_how how = weft_wait_owner_in(&b->lock);
	/* Bound: each further round means that another receive took a message. */
	while (weft_unlikely((first = weft_comm_bucket_first_locked(b, ctx, peer, tag)) != NULL &&
			     first->kind == WEFT_KEYED_MSG)) {
		/* Relaxed: it is in no list, so that a cancel finds it matched. */
		atomic_store_explicit(&e->node.x_listed, false, memory_order_relaxed);
		*msg_p = weft_comm_match_take_posted(ctx, b, how, first);
		if (*msg_p)
			return WEFT_OK;
		how = weft_wait_owner_in(&b->lock);
	}
	*msg_p = NULL;
	/* If the key has nodes, its page is marked: the thread that marked it found the peer up
	 * after that, so a scan for that peer's receives comes later and sees the mark. */
	if (!first)
		weft_comm_bucket_mark(ctx, b);
	if (weft_unlikely(weft_comm_gate_down(&core->gate[peer]))) {
		weft_wait_owner_out(&b->lock, how);
		return WEFT_ERR_PEER;
	}
	/* Relaxed: the calling thread sees its own earlier wildcards anyway. */
	e->stamp = atomic_load_explicit(&ctx->x_epoch, memory_order_relaxed);
	if (first)
		weft_comm_bucket_queue_locked(first, &e->node);
	else
		weft_comm_bucket_insert_locked(b, &e->node);
	weft_wait_owner_out(&b->lock, how);
	weft_comm_gate_expect(&core->gate[peer]);
	return WEFT_OK;
}

/* ---- arriving ----------------------------------------------------------------------------- */

/* Takes out the oldest exact receive of that key, or NULL. */
static inline struct weft_keyed *weft_comm_match_take_exact_locked(struct weft_bucket *b,
								   struct weft_ctx *ctx, int peer,
								   int tag, uint64_t key)
{
	weft_assert_held(weft_comm_bucket, b);
	unsigned i = weft_comm_bucket_slot_locked(b, ctx, peer, tag, key);
	if (weft_likely(i < WEFT_BUCKET_SLOTS))
		return b->slot[i].first->kind == WEFT_KEYED_RECV
			       ? weft_comm_bucket_shift_locked(b, i)
			       : NULL;
	if (weft_likely(!b->more))
		return NULL;
	return weft_comm_match_take_more_locked(b, ctx, peer, tag);
}

/* weft_comm_match_arrive without a call, while no wildcard is posted; b, key: those of ctx, peer, tag.
 */
static inline struct weft_entry *weft_comm_match_arrive_at(struct weft_bucket *b, uint64_t key,
							   struct weft_ctx *ctx, int peer, int tag)
{
	enum weft_owner_how how = weft_wait_owner_in(&b->lock);
	/* READ <- RAISE (post_wild), see the top of match.c. */
	if (weft_unlikely(atomic_load_explicit(&ctx->x_wild, memory_order_seq_cst))) {
		weft_wait_owner_out(&b->lock, how);
		return weft_comm_match_arrive(ctx, peer, tag);
	}
	struct weft_keyed *n = weft_comm_match_take_exact_locked(b, ctx, peer, tag, key);
	weft_wait_owner_out(&b->lock, how);
	return n ? weft_comm_entry_of(n) : NULL;
}

/*
 * The same for n messages in a row: how many of the first of them found a receive; *found_p is the
 * first of these, the further ones follow by `next`.  The rest go by weft_comm_match_arrive, as do all while a
 * wildcard is posted.
 */
static inline unsigned weft_comm_match_arrive_run(struct weft_bucket *b, uint64_t key,
						  struct weft_ctx *ctx, int peer, int tag,
						  unsigned n, struct weft_keyed **found_p)
{
	unsigned m = 0;
	enum weft_owner_how how = weft_wait_owner_in(&b->lock);
	/* READ <- RAISE (post_wild), as in weft_comm_match_arrive_at. */
	if (weft_likely(!atomic_load_explicit(&ctx->x_wild, memory_order_seq_cst))) {
		unsigned i = weft_comm_bucket_slot_locked(b, ctx, peer, tag, key);
		if (i < WEFT_BUCKET_SLOTS && b->slot[i].first->kind == WEFT_KEYED_RECV) {
			*found_p = b->slot[i].first;
			m = weft_comm_bucket_shift_run_locked(b, i, n);
		}
	}
	weft_wait_owner_out(&b->lock, how);
	return m;
}

#endif
