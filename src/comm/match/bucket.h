/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bucket.h - what is done in the matching table's buckets.
 *
 * A bucket is one cache line: a lock, three slots (hash of the key, the key's first node) and a
 * chain of the first nodes of further keys.  All nodes of a key are of one kind: posted receives or
 * messages.  They form a queue in the order they came, and the first node knows the last: so
 * finding a key, appending, and taking out any node cost a few steps however many there are.
 *
 * Callers   _locked: inside the bucket's lock.
 * Order     locks: context, then one bucket at a time.
 */
#ifndef WEFT_COMM_BUCKET_H
#define WEFT_COMM_BUCKET_H

#include "base/assert.h"
#include "comm/core.h"
#include "comm/match/ctx.h"
#include "comm/match/table.h"

/*
 * Neighbouring tags share pages and never a bucket.  Tags that are 4096 or more apart are scattered;
 * in a context of counted tags they share a bucket, so that no number of tags needs more than 4096.
 */
#define WEFT_BUCKET_SCATTER 0x85ebca6bu
#define WEFT_BUCKET_FOLD (0u - ((uint32_t)4096 << (32 - WEFT_BUCKET_BITS)))

static inline uint32_t weft_comm_bucket_index(const struct weft_ctx *ctx, int peer, int tag)
{
	uint32_t h = ctx->base + (uint32_t)peer * 0x9e3779b1u;
	h ^= h >> 15;
	h += (uint32_t)tag + (((uint32_t)tag >> 12) * ctx->scatter >> (32 - WEFT_BUCKET_BITS));
	return h & (WEFT_BUCKETS - 1);
}

static inline struct weft_bucket *weft_comm_bucket_of(struct weft_ctx *ctx, int peer, int tag)
{
	return &ctx->core->match.bucket[weft_comm_bucket_index(ctx, peer, tag)];
}

/* For weft_assert_held: a thread is inside, as the lock's holder or as its owner. */
static inline bool weft_comm_bucket_held(const struct weft_bucket *b)
{
	/* Relaxed, both: asked by the thread that is inside. */
	return atomic_load_explicit(&b->lock.x_held, memory_order_relaxed) ||
	       atomic_load_explicit(&b->lock.x_inside, memory_order_relaxed);
}

/* Tells the keys in a bucket apart, nearly always; the node decides. */
static inline uint64_t weft_comm_bucket_key(const struct weft_ctx *ctx, int peer, int tag)
{
	return ((uint64_t)(uint32_t)tag << 32 | (ctx->base ^ (uint32_t)peer * 0x9e3779b1u));
}

static inline bool weft_comm_keyed_is(const struct weft_keyed *n, const struct weft_ctx *ctx,
				      int peer, int tag)
{
	return n->tag == tag && n->peer == peer && n->ctx == ctx;
}

/* The slower half of mark: the page is new to ctx, or another one has its place. */
void weft_comm_bucket_mark_more(struct weft_ctx *ctx, size_t page);

/* Remembers that b's page is used, and that ctx uses it, before anything is put into b. */
static inline void weft_comm_bucket_mark(struct weft_ctx *ctx, const struct weft_bucket *b)
{
	struct weft_match *m = &ctx->core->match;
	size_t page = (size_t)(b - m->bucket) / WEFT_BUCKET_GROUP;
	weft_comm_phase_mark(&m->x_used[page / 64], (uint64_t)1 << (page % 64));
	/* MARK -> SCAN (phase.h), with the same cargo. */
	if (weft_unlikely(atomic_load_explicit(&ctx->x_page[page % WEFT_CTX_PAGES],
					       memory_order_seq_cst) != page + 1))
		weft_comm_bucket_mark_more(ctx, page);
}

/* The slower half of first: the keys that found no slot. */
struct weft_keyed *weft_comm_bucket_more_locked(struct weft_bucket *b, const struct weft_ctx *ctx,
						int peer, int tag);

/* The slot of that key; WEFT_BUCKET_SLOTS: it has none. */
static inline unsigned weft_comm_bucket_slot_locked(const struct weft_bucket *b,
						    const struct weft_ctx *ctx, int peer, int tag,
						    uint64_t key)
{
	weft_assert_held(weft_comm_bucket, b);
	unsigned i = 0;
	for (; i < WEFT_BUCKET_SLOTS; i++) {
		const struct weft_keyed *n = b->slot[i].first;
		if (b->slot[i].key == key && n && weft_comm_keyed_is(n, ctx, peer, tag))
			break;
	}
	return i;
}

/* The first node of that key, or NULL. */
static inline struct weft_keyed *
weft_comm_bucket_first_locked(struct weft_bucket *b, const struct weft_ctx *ctx, int peer, int tag)
{
	weft_assert_held(weft_comm_bucket, b);
	unsigned i = weft_comm_bucket_slot_locked(b, ctx, peer, tag,
						  weft_comm_bucket_key(ctx, peer, tag));
	if (weft_likely(i < WEFT_BUCKET_SLOTS))
		return b->slot[i].first;
	if (weft_likely(!b->more))
		return NULL;
	return weft_comm_bucket_more_locked(b, ctx, peer, tag);
}

/* The same, if the key's nodes are of that kind. */
static inline struct weft_keyed *weft_comm_bucket_find_locked(struct weft_bucket *b,
							      const struct weft_ctx *ctx, int peer,
							      int tag, enum weft_keyed_kind kind)
{
	weft_assert_held(weft_comm_bucket, b);
	struct weft_keyed *n = weft_comm_bucket_first_locked(b, ctx, peer, tag);
	return n && n->kind == kind ? n : NULL;
}

/* n becomes the last behind `first` of its key. */
static inline void weft_comm_bucket_queue_locked(struct weft_keyed *first, struct weft_keyed *n)
{
	weft_assert_held(weft_comm_bucket,
			 weft_comm_bucket_of(first->ctx, first->peer, first->tag));
	n->next = NULL;
	n->prev = first->prev;
	first->prev->next = n;
	first->prev = n;
	atomic_store_explicit(&n->x_listed, true, memory_order_relaxed);
}

/* n is the first of its key. */
static inline void weft_comm_bucket_insert_locked(struct weft_bucket *b, struct weft_keyed *n)
{
	weft_assert_held(weft_comm_bucket, b);
	n->next = NULL;
	n->prev = n;
	atomic_store_explicit(&n->x_listed, true, memory_order_relaxed);
	for (int i = 0; i < WEFT_BUCKET_SLOTS; i++) {
		if (!b->slot[i].first) {
			b->slot[i].first = n;
			b->slot[i].key = weft_comm_bucket_key(n->ctx, n->peer, n->tag);
			return;
		}
	}
	n->more = b->more;
	b->more = n;
}

/* n becomes the last of its key, perhaps the first, too. */
static inline void weft_comm_bucket_append_locked(struct weft_bucket *b, struct weft_keyed *n)
{
	weft_assert_held(weft_comm_bucket, b);
	struct weft_keyed *first = weft_comm_bucket_first_locked(b, n->ctx, n->peer, n->tag);
	if (first)
		weft_comm_bucket_queue_locked(first, n);
	else
		weft_comm_bucket_insert_locked(b, n);
}

/* Takes out the first node of slot i; the next node of the key takes its place. */
static inline struct weft_keyed *weft_comm_bucket_shift_locked(struct weft_bucket *b, unsigned i)
{
	weft_assert_held(weft_comm_bucket, b);
	struct weft_keyed *n = b->slot[i].first, *heir = n->next;
	atomic_store_explicit(&n->x_listed, false, memory_order_relaxed);
	b->slot[i].first = heir;
	if (heir)
		heir->prev = n->prev; /* the last of the key */
	return n;
}

/* The first n nodes of slot i go, or all; they keep their order by `next`.  Returns how many. */
static inline unsigned weft_comm_bucket_shift_run_locked(struct weft_bucket *b, unsigned i,
							 unsigned n)
{
	weft_assert_held(weft_comm_bucket, b);
	struct weft_keyed *at = b->slot[i].first, *last = at->prev;
	unsigned m = 0;
	/* Bound: n, or the nodes of the key. */
	for (; m < n && at; m++, at = at->next)
		atomic_store_explicit(&at->x_listed, false, memory_order_relaxed);
	b->slot[i].first = at;
	if (at)
		at->prev = last;
	return m;
}

/* n is the first of its key and goes; heir, the next one, takes its place (or NULL). */
void weft_comm_bucket_replace_locked(struct weft_bucket *b, struct weft_keyed *n,
				     struct weft_keyed *heir);

static inline void weft_comm_bucket_unlink_locked(struct weft_bucket *b, struct weft_keyed *n)
{
	weft_assert_held(weft_comm_bucket, b);
	struct weft_keyed *heir = n->next;
	atomic_store_explicit(&n->x_listed, false, memory_order_relaxed);
	if (n->prev->next) { /* not the first, whose prev is the last */
		n->prev->next = heir;
		if (heir)
			heir->prev = n->prev;
		else
			weft_comm_bucket_first_locked(b, n->ctx, n->peer, n->tag)->prev = n->prev;
		return;
	}
	if (heir)
		heir->prev = n->prev;
	for (int i = 0; i < WEFT_BUCKET_SLOTS; i++) {
		if (b->slot[i].first == n) {
			b->slot[i].first = heir;
			return;
		}
	}
	weft_comm_bucket_replace_locked(b, n, heir);
}

/* Calls fn for the first node of each key in each bucket that is or was used, bucket locked; fn
 * may unlink nodes of that key.  With ctx, in each bucket of the pages that ctx has marked, however
 * many others there are. */
void weft_comm_match_scan(struct weft_match *m, struct weft_ctx *ctx,
			  void (*fn)(struct weft_bucket *b, struct weft_keyed *first, void *arg),
			  void *arg);

#endif
