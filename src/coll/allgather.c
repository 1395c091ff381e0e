/* SPDX-License-Identifier: BSD-3-Clause */
/* allgather.c - each rank gets the blocks of all. */
#include <string.h>

#include "coll/alg.h"
#include "coll/limits.h"

static int allgather_direct(struct weft_coll *c, const struct weft_coll_group *g,
			    struct weft_buf own, const struct weft_view *blocks, int after,
			    int copied)
{
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, after);
	weft_coll_sched_after(c, join, copied);
	for (int k = 1; k < g->size; k++) {
		int r = (g->rank - k + g->size) % g->size;
		if (weft_coll_view_bytes(blocks[r]))
			weft_coll_sched_after(c, join,
					      weft_coll_alg_recv(c, g, r, WEFT_TAG_SPREAD,
								 weft_coll_view_buf(blocks[r]),
								 after));
	}
	for (int k = 1; k < g->size && own.bytes; k++)
		weft_coll_sched_after(c, join,
				      weft_coll_alg_send(c, g, (g->rank + k) % g->size,
							 WEFT_TAG_SPREAD, own, after));
	return join;
}

static int allgather_ring(struct weft_coll *c, const struct weft_coll_group *g, struct weft_buf own,
			  const struct weft_view *blocks, int after, int copied)
{
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, after);
	weft_coll_sched_after(c, join, copied);
	int right = (g->rank + 1) % g->size, left = (g->rank - 1 + g->size) % g->size;
	int have = after;
	for (int k = 0; k < g->size - 1; k++) {
		int out = (g->rank - k + g->size) % g->size, in = (out - 1 + g->size) % g->size;
		struct weft_buf buf = k ? weft_coll_view_buf(blocks[out]) : own;
		weft_coll_sched_after(c, join,
				      weft_coll_alg_send(c, g, right, WEFT_TAG_SPREAD, buf, have));
		/* One receive at a time: same sender, same tag, so in the order of sending. */
		have = weft_coll_alg_recv(c, g, left, WEFT_TAG_SPREAD,
					  weft_coll_view_buf(blocks[in]), have);
		weft_coll_sched_after(c, join, have);
	}
	return join;
}

/* Blocks of b bytes each, gathered in a rotated copy: block of rank + i at place i. */
static int allgather_bruck(struct weft_coll *c, const struct weft_coll_group *g,
			   struct weft_buf own, const struct weft_view *blocks, size_t b, int after,
			   int copied)
{
	char *mem = weft_coll_sched_scratch(c, (size_t)g->size * b);
	int have = weft_coll_sched_copy(c, weft_data_buf_flat(mem, b), own, after);
	for (int n = 1; n < g->size; n *= 2) {
		int more = n < g->size - n ? n : g->size - n;
		int to = (g->rank - n + g->size) % g->size, from = (g->rank + n) % g->size;
		weft_coll_alg_send(c, g, to, WEFT_TAG_SPREAD,
				   weft_data_buf_flat(mem, (size_t)more * b), have);
		have = weft_coll_alg_recv(c, g, from, WEFT_TAG_SPREAD,
					  weft_data_buf_flat(mem + (size_t)n * b, (size_t)more * b),
					  have);
	}
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, copied);
	for (int i = 1; i < g->size; i++)
		weft_coll_sched_after(
			c, join,
			weft_coll_sched_copy(c, weft_coll_view_buf(blocks[(g->rank + i) % g->size]),
					     weft_data_buf_flat(mem + (size_t)i * b, b), have));
	return join;
}

/* Blocks of one size, and not more than so many bytes together.  The same on all ranks. */
static bool even_blocks(const struct weft_coll_group *g, const struct weft_view *blocks,
			size_t most)
{
	size_t each = weft_coll_view_bytes(blocks[0]);
	if (!each || each > most / (size_t)g->size)
		return false;
	for (int r = 1; r < g->size; r++)
		if (weft_coll_view_bytes(blocks[r]) != each)
			return false;
	return true;
}

/* Are the blocks, of b bytes each, one run of bytes? */
static bool side_by_side(const struct weft_coll_group *g, const struct weft_view *blocks, size_t b)
{
	char *first = weft_coll_view_buf(blocks[0]).base;
	for (int r = 0; r < g->size; r++) {
		struct weft_buf buf = weft_coll_view_buf(blocks[r]);
		if (buf.type || (char *)buf.base != first + (size_t)r * b)
			return false;
	}
	return true;
}

/* What is gathered in memory in one piece, in the order of ranks: in place if the blocks lie so,
 * else in scratch memory, and copied from there after `join`. */
struct run {
	char *mem;
	bool here;
	int have; /* the own block is there */
};

static struct run run_of(struct weft_coll *c, const struct weft_coll_group *g, struct weft_buf own,
			 const struct weft_view *blocks, size_t b, int after, int copied)
{
	struct run run = {.here = side_by_side(g, blocks, b), .have = weft_coll_sched_join(c)};
	run.mem = run.here ? weft_coll_view_buf(blocks[0]).base
			   : weft_coll_sched_scratch(c, (size_t)g->size * b);
	weft_coll_sched_after(c, run.have, after);
	weft_coll_sched_after(c, run.have, copied);
	if (!run.here)
		weft_coll_sched_after(
			c, run.have,
			weft_coll_sched_copy(c,
					     weft_data_buf_flat(run.mem + (size_t)g->rank * b, b),
					     own, after));
	return run;
}

static int run_end(struct weft_coll *c, const struct weft_coll_group *g, const struct run *run,
		   const struct weft_view *blocks, size_t b, int join)
{
	int done = weft_coll_sched_join(c);
	weft_coll_sched_after(c, done, join);
	for (int r = 0; r < g->size && !run->here; r++)
		if (r != g->rank)
			weft_coll_sched_after(
				c, done,
				weft_coll_sched_copy(
					c, weft_coll_view_buf(blocks[r]),
					weft_data_buf_flat(run->mem + (size_t)r * b, b), join));
	return done;
}

/* To rank 0, and all of it from there to each rank: each has its turn on a core twice, and there
 * are 2 (n - 1) messages instead of n (n - 1). */
static int allgather_through_root(struct weft_coll *c, const struct weft_coll_group *g,
				  struct weft_buf own, const struct weft_view *blocks, size_t b,
				  int after, int copied)
{
	struct run run = run_of(c, g, own, blocks, b, after, copied);
	struct weft_buf all = weft_data_buf_flat(run.mem, (size_t)g->size * b);
	int join = weft_coll_sched_join(c);
	/* The own block is written before those of the other ranks come. */
	weft_coll_sched_after(c, join, run.have);
	if (g->rank) {
		/* In the run, our block comes back over itself: first it must be on its way. */
		weft_coll_sched_after(c, join,
				      weft_coll_alg_send(c, g, 0, WEFT_TAG_SPREAD, own, after));
		join = weft_coll_alg_recv(c, g, 0, WEFT_TAG_SPREAD, all, join);
		return run_end(c, g, &run, blocks, b, join);
	}
	for (int r = 1; r < g->size; r++)
		weft_coll_sched_after(
			c, join,
			weft_coll_alg_recv(c, g, r, WEFT_TAG_SPREAD,
					   weft_data_buf_flat(run.mem + (size_t)r * b, b), after));
	int done = run_end(c, g, &run, blocks, b, join);
	for (int r = 1; r < g->size; r++)
		weft_coll_sched_after(c, done,
				      weft_coll_alg_send(c, g, r, WEFT_TAG_SPREAD, all, join));
	return done;
}

/* With a neighbour: `blocks` blocks from block `out` on against as many from block `in` on.  A
 * message for each: one of 128 KiB for both took half as long again with 16 ranks. */
static int swap_blocks(struct weft_coll *c, const struct weft_coll_group *g, const struct run *run,
		       size_t b, int to, int out, int in, int blocks, int after, int join)
{
	int got = weft_coll_sched_join(c);
	weft_coll_sched_after(c, got, after);
	for (int i = 0; i < blocks; i++) {
		struct weft_buf there = weft_data_buf_flat(run->mem + (size_t)(out + i) * b, b);
		struct weft_buf here = weft_data_buf_flat(run->mem + (size_t)(in + i) * b, b);
		weft_coll_sched_after(
			c, join, weft_coll_alg_send(c, g, to, WEFT_TAG_EDGE + i, there, after));
		weft_coll_sched_after(c, got,
				      weft_coll_alg_recv(c, g, to, WEFT_TAG_EDGE + i, here, after));
	}
	return got;
}

/*
 * Each rank talks to the rank on either side only, in turn: with its partner first, they are a pair
 * that has both blocks; then it gives the two blocks that came last to one side, and gets from
 * there the two that came last there.  An even number of ranks.
 */
static int allgather_neighbors(struct weft_coll *c, const struct weft_coll_group *g,
			       struct weft_buf own, const struct weft_view *blocks, size_t b,
			       int after, int copied)
{
	struct run run = run_of(c, g, own, blocks, b, after, copied);
	int n = g->size, pairs = n / 2, odd = g->rank % 2, out = g->rank / 2;
	int side[2] = {(g->rank + (odd ? n - 1 : 1)) % n, (g->rank + (odd ? 1 : n - 1)) % n};
	int join = weft_coll_sched_join(c);
	int have = swap_blocks(c, g, &run, b, side[0], g->rank, side[0], 1, run.have, join);
	for (int k = 1; k < pairs; k++) {
		/* Pairs come from ever farther away, from both directions in turn. */
		int far = k % 2 == odd ? (k + 1) / 2 : pairs - (k + 1) / 2;
		int in = (g->rank / 2 + far) % pairs;
		/* One round at a time: same tags, so in the order of sending. */
		have = swap_blocks(c, g, &run, b, side[k % 2], 2 * out, 2 * in, 2, have, join);
		out = in;
	}
	weft_coll_sched_after(c, join, have);
	return run_end(c, g, &run, blocks, b, join);
}

static bool goes_direct(const struct weft_coll_group *g, const struct weft_view *blocks)
{
	if (!g->crowded)
		return g->size <= WEFT_LIMIT_DIRECT_RANKS;
	return g->size <= WEFT_LIMIT_DIRECT_RANKS_CROWDED &&
	       (g->size <= WEFT_LIMIT_DIRECT_RANKS_SMALL ||
		!even_blocks(g, blocks, WEFT_LIMIT_DIRECT_BYTES_SMALL));
}

int weft_coll_alg_allgather(struct weft_coll *c, const struct weft_coll_group *g,
			    const struct weft_view *own, const struct weft_view *blocks, int after)
{
	int copied = -1;
	struct weft_buf mine = weft_coll_view_buf(blocks[g->rank]);
	if (own) {
		mine = weft_coll_view_buf(*own);
		copied = weft_coll_alg_copy(c, blocks[g->rank], *own, after);
	}
	if (g->size == 1)
		return copied < 0 ? after : copied;
	if (weft_coll_limit_rooted(g) && even_blocks(g, blocks, WEFT_LIMIT_ALLGATHER_ROOT_BYTES))
		return allgather_through_root(c, g, mine, blocks, weft_coll_view_bytes(blocks[0]),
					      after, copied);
	size_t b = weft_coll_view_bytes(blocks[0]);
	if (weft_coll_limit_neighbors(g, b) && even_blocks(g, blocks, SIZE_MAX))
		return allgather_neighbors(c, g, mine, blocks, b, after, copied);
	if (goes_direct(g, blocks))
		return allgather_direct(c, g, mine, blocks, after, copied);
	if (even_blocks(g, blocks, WEFT_LIMIT_ALLGATHER_BRUCK_BYTES))
		return allgather_bruck(c, g, mine, blocks, weft_coll_view_bytes(blocks[0]), after,
				       copied);
	return allgather_ring(c, g, mine, blocks, after, copied);
}

void weft_coll_build_allgather(struct weft_coll *c, const struct weft_coll_group *g,
			       const struct weft_coll_args *a)
{
	struct weft_view *blocks = weft_coll_sched_scratch(c, (size_t)g->size * sizeof *blocks);
	if (c->err)
		return;
	for (int r = 0; r < g->size; r++)
		blocks[r] = weft_coll_args_rblock(a, r);
	struct weft_view own = weft_coll_view(a->sbuf, a->scount, a->stype);
	weft_coll_alg_allgather(c, g, a->in_place ? NULL : &own, blocks, -1);
}
