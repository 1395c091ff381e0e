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

void weft_comm_match_scan(struct weft_match *m, struct weft_ctx *ctx,
			  void (*fn)(struct weft_bucket *, struct weft_keyed *, void *), void *arg)
{
	uint64_t rows = ctx ? weft_comm_phase_marked(&ctx->x_rows) : UINT64_MAX;
	uint64_t columns = ctx ? weft_comm_phase_marked(&ctx->x_columns) : UINT64_MAX;
	for (size_t word = 0; word < weft_countof(m->x_used); word++) {
		if (!(rows >> (word % 64) & 1))
			continue;
		uint64_t bits = weft_comm_phase_marked(&m->x_used[word]) & columns;
		while (bits) {
			size_t page = word * 64 + (size_t)__builtin_ctzll(bits);
			bits &= bits - 1;
			struct weft_bucket *b = &m->bucket[page * WEFT_BUCKET_GROUP];
			weft_count(WEFT_CNT_MATCH_SCANNED, WEFT_BUCKET_GROUP);
			/* Locked even if it looks empty: a thread that puts a node in later has
			 * seen what the caller stored before the scan. */
			for (int i = 0; i < WEFT_BUCKET_GROUP; i++)
				bucket_scan(&b[i], fn, arg);
		}
	}
}
