/* SPDX-License-Identifier: BSD-3-Clause */
/* withdraw.c - takes out of matching what a lost peer or a closed context leaves there. */
#include "comm/match/bucket.h"
#include "comm/match/unexpected.h"
#include "comm/match/wildcard.h"
#include "comm/match/withdraw.h"

struct leftovers {
	struct weft_ctx *ctx; /* or NULL: those that wait for peer */
	int peer;
	const struct weft_comm_tags *tags; /* NULL: all */
	struct weft_keyed *list;           /* by next */
};

static bool is_of(const struct weft_comm_tags *tags, int tag)
{
	return !tags || tags->has(tags, tag);
}

static void add_leftover(struct leftovers *l, struct weft_keyed *n)
{
	n->next = l->list;
	l->list = n;
}

static void pick_receives(struct weft_bucket *b, struct weft_keyed *n, void *arg)
{
	struct leftovers *l = arg;
	if (n->kind != WEFT_KEYED_RECV || (l->ctx ? n->ctx != l->ctx : n->peer != l->peer) ||
	    !is_of(l->tags, n->tag))
		return;
	while (n) {
		struct weft_keyed *next = n->next;
		weft_comm_bucket_unlink_locked(b, n);
		add_leftover(l, n);
		n = next;
	}
}

static void pick_wildcards(struct weft_ctx *ctx, struct leftovers *l, bool any_too)
{
	weft_comm_spin_lock(&ctx->lock);
	struct weft_entry *e = ctx->wild_head;
	while (e) {
		struct weft_entry *next = e->wild_next;
		if ((l->ctx ||
		     (e->node.peer == WEFT_ANY_PEER ? any_too : e->node.peer == l->peer)) &&
		    is_of(l->tags, e->node.tag)) {
			weft_comm_wild_unlink_locked(ctx, e);
			add_leftover(l, &e->node);
		}
		e = next;
	}
	weft_comm_spin_unlock(&ctx->lock);
}

struct weft_keyed *weft_comm_match_withdraw_peer(struct weft_core *core, int peer, bool any_too)
{
	struct leftovers l = {.peer = peer};
	weft_comm_match_scan(&core->match, NULL, pick_receives, &l);
	weft_comm_spin_lock(&core->ctx_lock);
	struct weft_ctx *all = core->ctx_all;
	weft_comm_spin_unlock(&core->ctx_lock);
	for (struct weft_ctx *c = all; c; c = c->next_all)
		pick_wildcards(c, &l, any_too);
	return l.list;
}

struct weft_keyed *weft_comm_match_withdraw_ctx(struct weft_ctx *ctx,
						const struct weft_comm_tags *tags)
{
	struct leftovers l = {.ctx = ctx, .tags = tags};
	weft_comm_match_scan(&ctx->core->match, ctx, pick_receives, &l);
	pick_wildcards(ctx, &l, true);
	return l.list;
}

struct weft_msg *weft_comm_match_withdraw_msg(struct weft_ctx *ctx, int peer, int tag, uint32_t id,
					      const struct weft_req *send)
{
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	struct weft_msg *m = NULL;

	weft_comm_spin_lock(&ctx->lock);
	weft_wait_owner_lock(&b->lock);
	struct weft_keyed *n = weft_comm_bucket_find_locked(b, ctx, peer, tag, WEFT_KEYED_MSG);
	/* Bound: the messages of that key. */
	for (; n && !m; n = n->next) {
		struct weft_msg *c = weft_comm_msg_of(n);
		if (send ? c->msg_kind == WEFT_MSG_LOCAL && c->send == send : c->id == id)
			m = c;
	}
	if (m)
		weft_comm_bucket_unlink_locked(b, &m->node);
	weft_wait_owner_unlock(&b->lock);
	if (m && m->lists)
		weft_comm_unexpected_unlink_locked(ctx, m);
	weft_comm_spin_unlock(&ctx->lock);
	return m;
}

struct weft_msg *weft_comm_match_withdraw_msgs(struct weft_ctx *ctx,
					       const struct weft_comm_tags *tags)
{
	struct weft_msg *list = NULL, **tail = &list;
	weft_comm_spin_lock(&ctx->lock);
	weft_comm_unexpected_begin_locked(ctx);
	for (struct weft_msg *m = ctx->all_head, *next; m; m = next) {
		next = m->all_next;
		if (!is_of(tags, m->node.tag))
			continue;
		weft_comm_unexpected_take_locked(ctx, m);
		m->all_next = NULL;
		*tail = m;
		tail = &m->all_next;
	}
	weft_comm_spin_unlock(&ctx->lock);
	return list;
}
