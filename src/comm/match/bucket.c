/* SPDX-License-Identifier: BSD-3-Clause */
/* bucket.c - the matching table: its memory, keys that found no slot, and scans. */
#include <stdlib.h>
#include <sys/mman.h>
#include "base/counters.h"
#include "comm/match/bucket.h"

weft_err weft_comm_match_init(struct weft_match *m)
{
	size_t bytes = sizeof(struct weft_bucket) * WEFT_BUCKETS;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return WEFT_ERR_NOMEM;
	m->bucket = p;
	return WEFT_OK;
}

void weft_comm_match_fini(struct weft_match *m)
{
	if (m->bucket)
		munmap(m->bucket, sizeof(struct weft_bucket) * WEFT_BUCKETS);
	m->bucket = NULL;
}

struct weft_keyed *weft_comm_bucket_more_locked(struct weft_bucket *b, const struct weft_ctx *ctx,
						int peer, int tag)
{
	weft_assert_held(weft_comm_bucket, b);
	unsigned steps = 0;
	struct weft_keyed *n = b->more;
	/* Bound: the keys that share this bucket, a few unless hashing fails. */
	for (; n && !weft_comm_keyed_is(n, ctx, peer, tag); n = n->more)
		steps++;
	if (steps)
		weft_count(WEFT_CNT_MATCH_STEPS, steps);
	return n;
}

void weft_comm_bucket_replace_locked(struct weft_bucket *b, struct weft_keyed *n,
				     struct weft_keyed *heir)
{
	weft_assert_held(weft_comm_bucket, b);
	struct weft_keyed **link = &b->more;
	/* Ends at n: it is the first of its key and has no slot. */
	while (*link != n)
		link = &(*link)->more;
	if (heir)
		heir->more = n->more;
	*link = heir ? heir : n->more;
}

static void bucket_scan(struct weft_bucket *b,
			void (*fn)(struct weft_bucket *, struct weft_keyed *, void *), void *arg)
{
	weft_wait_owner_lock(&b->lock);
	for (int i = 0; i < WEFT_BUCKET_SLOTS; i++)
		if (b->slot[i].first)
			fn(b, b->slot[i].first, arg);
	for (struct weft_keyed *n = b->more, *more; n; n = more) {
		more = n->more;
		fn(b, n, arg);
	}
	weft_wait_owner_unlock(&b->lock);
}

void weft_comm_bucket_mark_more(struct weft_ctx *ctx, size_t page)
{
	_Atomic uint16_t *place = &ctx->x_page[page % WEFT_CTX_PAGES];
	uint16_t mine = (uint16_t)(page + 1), was = 0;
	/* MARK -> SCAN, and a place is never given up. */
	if (atomic_compare_exchange_strong_explicit(place, &was, mine, memory_order_seq_cst,
						    memory_order_seq_cst) ||
	    was == mine)
		return;
	weft_comm_phase_mark(&ctx->x_rows, (uint64_t)1 << (page / 64 % 64));
	weft_comm_phase_mark(&ctx->x_columns, (uint64_t)1 << (page % 64));
}

static void page_scan(struct weft_match *m, size_t page,
		      void (*fn)(struct weft_bucket *, struct weft_keyed *, void *), void *arg)
{
	weft_count(WEFT_CNT_MATCH_SCANNED, WEFT_BUCKET_GROUP);
	/* Locked even if it looks empty: a thread that puts a node in later has seen what the
	 * caller stored before the scan. */
	for (size_t i = 0; i < WEFT_BUCKET_GROUP; i++)
		bucket_scan(&m->bucket[page * WEFT_BUCKET_GROUP + i], fn, arg);
}

void weft_comm_match_scan(struct weft_match *m, struct weft_ctx *ctx,
			  void (*fn)(struct weft_bucket *, struct weft_keyed *, void *), void *arg)
{
	uint64_t rows = UINT64_MAX, columns = UINT64_MAX;
	for (unsigned i = 0; ctx && i < WEFT_CTX_PAGES; i++) {
		/* SCAN <- MARK. */
		uint16_t page = atomic_load_explicit(&ctx->x_page[i], memory_order_seq_cst);
		if (page)
			page_scan(m, page - 1u, fn, arg);
	}
	if (ctx) {
		rows = weft_comm_phase_marked(&ctx->x_rows);
		columns = weft_comm_phase_marked(&ctx->x_columns);
	}
	for (size_t word = 0; rows && word < weft_countof(m->x_used); word++) {
		if (!(rows >> (word % 64) & 1))
			continue;
		uint64_t bits = weft_comm_phase_marked(&m->x_used[word]) & columns;
		for (; bits; bits &= bits - 1)
			page_scan(m, word * 64 + (size_t)__builtin_ctzll(bits), fn, arg);
	}
}
