/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unexpected.c - unexpected messages in the order they came, for wildcards: by context, and under the
 * keys (peer, any tag) and (any peer, tag) in the same table as everything else.
 *
 * Made when a context's first wildcard is used (phase.h).  A hint of the application saves an index
 * that no wildcard needs; a wildcard against the hint walks the context's list.
 */
#include "base/counters.h"
#include "comm/match/bucket.h"
#include "comm/match/unexpected.h"

uint8_t weft_comm_unexpected_wanted(struct weft_ctx *ctx)
{
	/* Relaxed: what a message is linked in is written down with it. */
	uint8_t hints = atomic_load_explicit(&ctx->x_hints, memory_order_relaxed);
	return (uint8_t)(WEFT_LISTS_ALL | (hints & WEFT_HINT_NO_ANY_TAG ? 0 : WEFT_LISTS_BY_PEER) |
			 (hints & WEFT_HINT_NO_ANY_PEER ? 0 : WEFT_LISTS_BY_TAG));
}

static void index_add(struct weft_ctx *ctx, struct weft_keyed *n, int peer, int tag)
{
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	n->ctx = ctx;
	n->peer = peer;
	n->tag = tag;
	n->kind = WEFT_KEYED_INDEX;
	weft_wait_owner_lock(&b->lock);
	weft_comm_bucket_append_locked(b, n);
	weft_wait_owner_unlock(&b->lock);
}

static void index_remove(struct weft_keyed *n)
{
	struct weft_bucket *b = weft_comm_bucket_of(n->ctx, n->peer, n->tag);
	weft_wait_owner_lock(&b->lock);
	weft_comm_bucket_unlink_locked(b, n);
	weft_wait_owner_unlock(&b->lock);
}

static void unexpected_add_locked(struct weft_ctx *ctx, uint32_t n)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	/* Relaxed: under the lock; a hint for probes. */
	uint32_t was = atomic_load_explicit(&ctx->x_unexpected, memory_order_relaxed);
	atomic_store_explicit(&ctx->x_unexpected, was + n, memory_order_relaxed);
}

void weft_comm_unexpected_link_locked(struct weft_ctx *ctx, struct weft_msg *m)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	m->all_next = NULL;
	m->all_prev = ctx->all_tail;
	if (ctx->all_tail)
		ctx->all_tail->all_next = m;
	else
		ctx->all_head = m;
	ctx->all_tail = m;
	unexpected_add_locked(ctx, 1);
	if (m->lists & WEFT_LISTS_BY_PEER)
		index_add(ctx, &m->by_peer, m->node.peer, WEFT_ANY_TAG);
	else
		ctx->not_by_peer++;
	if (m->lists & WEFT_LISTS_BY_TAG)
		index_add(ctx, &m->by_tag, WEFT_ANY_PEER, m->node.tag);
	else
		ctx->not_by_tag++;
}

void weft_comm_unexpected_unlink_locked(struct weft_ctx *ctx, struct weft_msg *m)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	if (m->all_prev)
		m->all_prev->all_next = m->all_next;
	else
		ctx->all_head = m->all_next;
	if (m->all_next)
		m->all_next->all_prev = m->all_prev;
	else
		ctx->all_tail = m->all_prev;
	unexpected_add_locked(ctx, -1u);
	if (m->lists & WEFT_LISTS_BY_PEER)
		index_remove(&m->by_peer);
	else
		ctx->not_by_peer--;
	if (m->lists & WEFT_LISTS_BY_TAG)
		index_remove(&m->by_tag);
	else
		ctx->not_by_tag--;
}

void weft_comm_unexpected_take_locked(struct weft_ctx *ctx, struct weft_msg *m)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	struct weft_bucket *b = weft_comm_bucket_of(ctx, m->node.peer, m->node.tag);
	weft_wait_owner_lock(&b->lock);
	weft_comm_bucket_unlink_locked(b, &m->node);
	weft_wait_owner_unlock(&b->lock);
	weft_comm_unexpected_unlink_locked(ctx, m);
}

/* ---- the turn ----------------------------------------------------------------------------- */

struct collect {
	struct weft_ctx *ctx;
	struct weft_msg *list; /* by all_next */
};

static void collect_loose(struct weft_bucket *b, struct weft_keyed *n, void *arg)
{
	struct collect *c = arg;
	(void)b;
	if (n->ctx != c->ctx || n->kind != WEFT_KEYED_MSG)
		return;
	for (; n; n = n->next) {
		struct weft_msg *m = weft_comm_msg_of(n);
		if (m->lists)
			continue;
		/* From here on it is taken under the context's lock only, held here. */
		m->lists = weft_comm_unexpected_wanted(c->ctx);
		m->all_next = c->list;
		c->list = m;
	}
}

static struct weft_msg *merge_by_number(struct weft_msg *a, struct weft_msg *b)
{
	struct weft_msg *head = NULL, **end = &head;
	while (a && b) {
		struct weft_msg **from = a->number <= b->number ? &a : &b;
		*end = *from;
		end = &(*from)->all_next;
		*from = *end;
	}
	*end = a ? a : b;
	return head;
}

/* By number: in order of arrival. */
static struct weft_msg *sort_by_number(struct weft_msg *list)
{
	struct weft_msg *run[64] = {NULL}; /* run[i]: 2^i of them, or none */
	while (list) {
		struct weft_msg *m = list;
		unsigned i = 0;
		list = m->all_next;
		m->all_next = NULL;
		for (; run[i]; i++) {
			m = merge_by_number(run[i], m);
			run[i] = NULL;
		}
		run[i] = m;
	}
	for (unsigned i = 0; i < 64; i++)
		list = merge_by_number(run[i], list);
	return list;
}

void weft_comm_unexpected_begin_locked(struct weft_ctx *ctx)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	struct collect c = {.ctx = ctx};
	if (weft_likely(weft_comm_phase_lists(&ctx->phase)))
		return;
	if (!weft_comm_phase_turn(&ctx->phase))
		return;
	weft_comm_match_scan(&ctx->core->match, ctx, collect_loose, &c);
	struct weft_msg *m = sort_by_number(c.list);
	while (m) {
		struct weft_msg *next = m->all_next;
		weft_comm_unexpected_link_locked(ctx, m);
		m = next;
	}
}

/* ---- looking ------------------------------------------------------------------------------ */

static struct weft_keyed *index_first(struct weft_ctx *ctx, int peer, int tag)
{
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	weft_wait_owner_lock(&b->lock);
	/* Stays: indexes change under the context's lock only. */
	struct weft_keyed *n = weft_comm_bucket_find_locked(b, ctx, peer, tag, WEFT_KEYED_INDEX);
	weft_wait_owner_unlock(&b->lock);
	return n;
}

/* A wildcard against the hint.  Bound: the messages in the context. */
static struct weft_msg *walk_all(struct weft_ctx *ctx, int peer, int tag)
{
	struct weft_msg *m = ctx->all_head;
	for (; m; m = m->all_next) {
		weft_count(WEFT_CNT_MATCH_STEPS, 1);
		if ((peer == WEFT_ANY_PEER || m->node.peer == peer) &&
		    (tag == WEFT_ANY_TAG || m->node.tag == tag))
			break;
	}
	return m;
}

struct weft_msg *weft_comm_unexpected_find_locked(struct weft_ctx *ctx, int peer, int tag)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	if (!ctx->all_head || (peer == WEFT_ANY_PEER && tag == WEFT_ANY_TAG))
		return ctx->all_head;
	if (tag == WEFT_ANY_TAG) {
		if (weft_unlikely(ctx->not_by_peer))
			return walk_all(ctx, peer, tag);
		struct weft_keyed *n = index_first(ctx, peer, tag);
		return n ? weft_container_of(n, struct weft_msg, by_peer) : NULL;
	}
	if (weft_unlikely(ctx->not_by_tag))
		return walk_all(ctx, peer, tag);
	struct weft_keyed *n = index_first(ctx, peer, tag);
	return n ? weft_container_of(n, struct weft_msg, by_tag) : NULL;
}
