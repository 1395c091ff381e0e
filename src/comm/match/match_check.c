/* SPDX-License-Identifier: BSD-3-Clause */
/* match_check.c - the invariants of the matching table, of contexts and of their lists, asserted. */
#include "base/assert.h"
#include "comm/match/bucket.h"
#include "comm/match/match_check.h"
#include "comm/match/probe_waiter.h"
#include "comm/match/unexpected.h"

/* Relaxed throughout: no thread is in the core. */
static bool is_listed(const struct weft_keyed *n)
{
	return atomic_load_explicit(&n->x_listed, memory_order_relaxed);
}

static bool is_marked(const _Atomic uint64_t *word, size_t bit)
{
	return atomic_load_explicit(word, memory_order_relaxed) >> (bit % 64) & 1;
}

/* ---- buckets ------------------------------------------------------------------------------- */

static void node_check(const struct weft_match *m, const struct weft_bucket *b,
		       const struct weft_keyed *first, const struct weft_keyed *n)
{
	size_t page = (size_t)(b - m->bucket) / WEFT_BUCKET_GROUP;

	weft_assert(is_listed(n));
	weft_assert(n->kind == first->kind);
	weft_assert(weft_comm_keyed_is(n, first->ctx, first->peer, first->tag));
	weft_assert(weft_comm_bucket_of(n->ctx, n->peer, n->tag) == b);
	if (n->kind != WEFT_KEYED_RECV && n->kind != WEFT_KEYED_MSG)
		return;
	/* Scans find it: its page is marked, in the table and in its context. */
	weft_assert(n->peer >= 0 && n->peer < n->ctx->core->size);
	weft_assert(is_marked(&m->x_used[page / 64], page));
	/* Relaxed: nothing else runs. */
	weft_assert(atomic_load_explicit(&n->ctx->x_page[page % WEFT_CTX_PAGES],
					 memory_order_relaxed) == page + 1 ||
		    (is_marked(&n->ctx->x_rows, page / 64) && is_marked(&n->ctx->x_columns, page)));
	/* A context that keeps lists has each of its messages in them. */
	if (n->kind == WEFT_KEYED_MSG && weft_comm_phase_lists(&n->ctx->phase))
		weft_assert(weft_container_of(n, struct weft_msg, node)->lists & WEFT_LISTS_ALL);
}

/* The nodes of a key: a queue whose first node knows the last. */
static void key_check(const struct weft_match *m, const struct weft_bucket *b,
		      const struct weft_keyed *first)
{
	const struct weft_keyed *last = first;
	node_check(m, b, first, first);
	for (const struct weft_keyed *n = first->next; n; n = n->next) {
		weft_assert(n->prev == last);
		node_check(m, b, first, n);
		last = n;
	}
	weft_assert(first->prev == last);
}

static void bucket_check(const struct weft_match *m, const struct weft_bucket *b)
{
	weft_assert(!weft_comm_bucket_held(b));
	for (int i = 0; i < WEFT_BUCKET_SLOTS; i++) {
		const struct weft_keyed *n = b->slot[i].first;
		if (!n)
			continue;
		weft_assert(b->slot[i].key == weft_comm_bucket_key(n->ctx, n->peer, n->tag));
		for (int j = 0; j < i; j++)
			weft_assert(!b->slot[j].first ||
				    !weft_comm_keyed_is(b->slot[j].first, n->ctx, n->peer, n->tag));
		key_check(m, b, n);
	}
	for (const struct weft_keyed *n = b->more; n; n = n->more) {
		for (const struct weft_keyed *o = n->more; o; o = o->more)
			weft_assert(!weft_comm_keyed_is(o, n->ctx, n->peer, n->tag));
		for (int i = 0; i < WEFT_BUCKET_SLOTS; i++)
			weft_assert(!b->slot[i].first ||
				    !weft_comm_keyed_is(b->slot[i].first, n->ctx, n->peer, n->tag));
		key_check(m, b, n);
	}
}

static void table_check(const struct weft_match *m)
{
	for (size_t word = 0; word < weft_countof(m->x_used); word++) {
		uint64_t bits = atomic_load_explicit(&m->x_used[word], memory_order_relaxed);
		/* Bound: the bits of a word. */
		for (; bits; bits &= bits - 1) {
			size_t page = word * 64 + (size_t)__builtin_ctzll(bits);
			for (size_t i = 0; i < WEFT_BUCKET_GROUP; i++)
				bucket_check(m, &m->bucket[page * WEFT_BUCKET_GROUP + i]);
		}
	}
}

/* ---- contexts ------------------------------------------------------------------------------ */

/* Is n among the nodes of its key?  Its place alone is checked: the rest follows from the places of the other nodes. */
static bool in_bucket(const struct weft_keyed *n)
{
	struct weft_bucket *b = weft_comm_bucket_of(n->ctx, n->peer, n->tag);
	weft_wait_owner_lock(&b->lock);
	const struct weft_keyed *at = weft_comm_bucket_first_locked(b, n->ctx, n->peer, n->tag);
	weft_wait_owner_unlock(&b->lock);
	return at && (at == n || n->prev->next == n) && (n->next ? n->next->prev : at->prev) == n;
}

static void wildcards_check(const struct weft_ctx *ctx)
{
	uint32_t n = 0, posted = 0, waiting = 0;
	uint64_t stamp = 0;
	const struct weft_entry *last = NULL;

	for (const struct weft_entry *e = ctx->wild_head; e; e = e->wild_next, n++) {
		weft_assert(e->wild_prev == last);
		weft_assert(e->node.kind == WEFT_KEYED_WILD && e->node.ctx == ctx);
		weft_assert(e->node.peer == WEFT_ANY_PEER || e->node.tag == WEFT_ANY_TAG);
		weft_assert(e->stamp > stamp); /* in order of age */
		weft_assert(is_listed(&e->node) && in_bucket(&e->node));
		stamp = e->stamp;
		last = e;
	}
	weft_assert(ctx->wild_tail == last);
	weft_assert(stamp <= atomic_load_explicit(&ctx->x_epoch, memory_order_relaxed));
	for (size_t i = 0; i < weft_countof(ctx->wild_posted); i++)
		posted += ctx->wild_posted[i];
	weft_assert(posted == n);
	for (const struct weft_probe_waiter *w = ctx->probes; w; w = w->next)
		waiting++;
	/* An arrival takes the short way exactly while this count is 0. */
	weft_assert(atomic_load_explicit(&ctx->x_wild, memory_order_relaxed) == posted + waiting);
}

static void lists_check(struct weft_ctx *ctx)
{
	uint32_t n = 0, not_by_peer = 0, not_by_tag = 0;
	const struct weft_msg *last = NULL;

	for (const struct weft_msg *m = ctx->all_head; m; m = m->all_next, n++) {
		weft_assert(m->all_prev == last);
		weft_assert(m->node.kind == WEFT_KEYED_MSG && m->node.ctx == ctx);
		weft_assert(m->lists & WEFT_LISTS_ALL);
		weft_assert(!last || last->number < m->number || last->node.peer != m->node.peer);
		weft_assert(is_listed(&m->node) && in_bucket(&m->node));
		if (m->lists & WEFT_LISTS_BY_PEER)
			weft_assert(is_listed(&m->by_peer) && in_bucket(&m->by_peer));
		else
			not_by_peer++;
		if (m->lists & WEFT_LISTS_BY_TAG)
			weft_assert(is_listed(&m->by_tag) && in_bucket(&m->by_tag));
		else
			not_by_tag++;
		last = m;
	}
	weft_assert(ctx->all_tail == last);
	weft_assert(ctx->not_by_peer == not_by_peer && ctx->not_by_tag == not_by_tag);
	weft_assert(atomic_load_explicit(&ctx->x_unexpected, memory_order_relaxed) == n);
	weft_assert(!n || weft_comm_phase_lists(&ctx->phase));
}

void weft_comm_match_check(struct weft_core *core)
{
	table_check(&core->match);
	weft_assert(!weft_comm_spin_held(&core->ctx_lock));
	for (struct weft_ctx *ctx = core->ctx_all; ctx; ctx = ctx->next_all) {
		weft_assert(ctx->core == core);
		weft_assert(!weft_comm_spin_held(&ctx->lock));
		wildcards_check(ctx);
		lists_check(ctx);
	}
}
