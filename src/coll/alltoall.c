/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoall.c - each rank has a block for each. */
#include "coll/alg.h"
#include "coll/limits.h"

/* So many exchanges of one rank are open at a time: enough to hide one sleeping partner, few enough
 * not to flood a partner with unexpected messages. */
#define WINDOW 32

/* In place: blocks go out from a packed copy, because their place receives. */
static struct weft_buf sent_block(struct weft_coll *c, const struct weft_coll_args *a, int r,
				  int *copied)
{
	*copied = -1;
	if (!a->in_place)
		return weft_coll_view_buf(weft_coll_args_sblock(a, r));
	struct weft_view v = weft_coll_args_rblock(a, r);
	size_t bytes = weft_coll_view_bytes(v);
	struct weft_buf packed =
		weft_data_buf_flat(bytes ? weft_coll_sched_scratch(c, bytes) : NULL, bytes);
	if (bytes)
		*copied = weft_coll_sched_copy(c, packed, weft_coll_view_buf(v), -1);
	return packed;
}

static void alltoall_pairwise(struct weft_coll *c, const struct weft_coll_group *g,
			      const struct weft_coll_args *a)
{
	int gate[WINDOW];
	for (int i = 0; i < WINDOW; i++)
		gate[i] = -1;
	if (!a->in_place)
		weft_coll_alg_copy(c, weft_coll_args_rblock(a, g->rank),
				   weft_coll_args_sblock(a, g->rank), -1);
	/* In place, what goes to a rank must have left the place before that rank's block comes in:
	 * both messages of a round are with one partner then, and each rank sits out one round. */
	for (int k = a->in_place ? 0 : 1; k < g->size; k++) {
		int to = (g->rank + k) % g->size, from = (g->rank - k + g->size) % g->size;
		if (a->in_place)
			to = from = (k - g->rank + g->size) % g->size;
		if (to == g->rank)
			continue;
		int copied, slot = k % WINDOW, join = -1;
		struct weft_buf out = sent_block(c, a, to, &copied);
		struct weft_buf in = weft_coll_view_buf(weft_coll_args_rblock(a, from));
		int got = -1, sent = -1;
		if (in.bytes) {
			got = weft_coll_alg_recv(c, g, from, WEFT_TAG_ACROSS, in, gate[slot]);
			weft_coll_sched_after(c, got, copied);
		}
		if (out.bytes) {
			sent = weft_coll_alg_send(c, g, to, WEFT_TAG_ACROSS, out, gate[slot]);
			weft_coll_sched_after(c, sent, copied);
		}
		if (k + WINDOW < g->size) {
			join = weft_coll_sched_join(c);
			weft_coll_sched_after(c, join, got);
			weft_coll_sched_after(c, join, sent);
			weft_coll_sched_after(c, join, gate[slot]);
			gate[slot] = join;
		}
	}
}

/* Equal small blocks: round k sends all blocks whose distance has bit k set, k rounds in all. */
static void alltoall_bruck(struct weft_coll *c, const struct weft_coll_group *g,
			   const struct weft_coll_args *a, size_t b)
{
	size_t n = (size_t)g->size;
	char *mem = weft_coll_sched_scratch(c, n * b);
	char *out = weft_coll_sched_scratch(c, n * b);
	char *in = weft_coll_sched_scratch(c, n * b);
	int have = weft_coll_sched_join(c);
	/* Place i holds the block for rank + i; after all rounds the block from rank - i. */
	for (int i = 0; i < g->size; i++) {
		int r = (g->rank + i) % g->size;
		struct weft_view v =
			a->in_place ? weft_coll_args_rblock(a, r) : weft_coll_args_sblock(a, r);
		weft_coll_sched_after(
			c, have,
			weft_coll_sched_copy(c, weft_data_buf_flat(mem + (size_t)i * b, b),
					     weft_coll_view_buf(v), -1));
	}
	for (int mask = 1; mask < g->size; mask <<= 1) {
		int packed = weft_coll_sched_join(c), unpacked = weft_coll_sched_join(c);
		size_t m = 0;
		for (int i = 1; i < g->size; i++)
			if (i & mask)
				weft_coll_sched_after(
					c, packed,
					weft_coll_sched_copy(
						c, weft_data_buf_flat(out + m++ * b, b),
						weft_data_buf_flat(mem + (size_t)i * b, b), have));
		int got = weft_coll_alg_recv(c, g, (g->rank - mask + g->size) % g->size,
					     WEFT_TAG_ACROSS, weft_data_buf_flat(in, m * b), have);
		int sent = weft_coll_alg_send(c, g, (g->rank + mask) % g->size, WEFT_TAG_ACROSS,
					      weft_data_buf_flat(out, m * b), packed);
		m = 0;
		for (int i = 1; i < g->size; i++) {
			if (!(i & mask))
				continue;
			int moved =
				weft_coll_sched_copy(c, weft_data_buf_flat(mem + (size_t)i * b, b),
						     weft_data_buf_flat(in + m++ * b, b), got);
			weft_coll_sched_after(c, moved, packed);
			weft_coll_sched_after(c, unpacked, moved);
		}
		weft_coll_sched_after(c, unpacked, sent);
		have = unpacked;
	}
	for (int i = 0; i < g->size; i++) {
		int r = (g->rank - i + g->size) % g->size;
		weft_coll_sched_copy(c, weft_coll_view_buf(weft_coll_args_rblock(a, r)),
				     weft_data_buf_flat(mem + (size_t)i * b, b), have);
	}
}

/* Rank 0 of through_root: blocks[r * n + d], of b bytes, goes from rank r to rank d. */
static void alltoall_serve_all(struct weft_coll *c, const struct weft_coll_group *g, char *blocks,
			       size_t b, int have)
{
	size_t n = (size_t)g->size;
	char *out = weft_coll_sched_scratch(c, n * n * b);
	for (size_t d = 1; d < n; d++) {
		int packed = weft_coll_sched_join(c);
		for (size_t r = 0; r < n; r++)
			weft_coll_sched_after(
				c, packed,
				weft_coll_sched_copy(
					c, weft_data_buf_flat(out + (d * n + r) * b, b),
					weft_data_buf_flat(blocks + (r * n + d) * b, b), have));
		weft_coll_alg_send(c, g, (int)d, WEFT_TAG_ACROSS,
				   weft_data_buf_flat(out + d * n * b, n * b), packed);
	}
}

/* Small blocks, many ranks, few cores: each rank has two messages, all with rank 0, and two turns
 * on a core. */
static void alltoall_through_root(struct weft_coll *c, const struct weft_coll_group *g,
				  const struct weft_coll_args *a, size_t b)
{
	size_t n = (size_t)g->size;
	bool root = g->rank == 0;
	char *mem = weft_coll_sched_scratch(c, root ? n * n * b : n * b);
	char *in = root ? mem : weft_coll_sched_scratch(c, n * b);
	int packed = weft_coll_sched_join(c), have = packed;
	for (int r = 0; r < g->size; r++) {
		struct weft_view v =
			a->in_place ? weft_coll_args_rblock(a, r) : weft_coll_args_sblock(a, r);
		weft_coll_sched_after(
			c, packed,
			weft_coll_sched_copy(c, weft_data_buf_flat(mem + (size_t)r * b, b),
					     weft_coll_view_buf(v), -1));
	}
	if (root) {
		for (int r = 1; r < g->size; r++)
			weft_coll_sched_after(
				c, have,
				weft_coll_alg_recv(
					c, g, r, WEFT_TAG_ACROSS,
					weft_data_buf_flat(mem + (size_t)r * n * b, n * b), -1));
		alltoall_serve_all(c, g, mem, b, have);
	} else {
		weft_coll_alg_send(c, g, 0, WEFT_TAG_ACROSS, weft_data_buf_flat(mem, n * b),
				   packed);
		/* After the packing: in place, its sources are what the answer is unpacked to. */
		have = weft_coll_alg_recv(c, g, 0, WEFT_TAG_ACROSS, weft_data_buf_flat(in, n * b),
					  packed);
	}
	for (int r = 0; r < g->size; r++)
		weft_coll_sched_copy(c, weft_coll_view_buf(weft_coll_args_rblock(a, r)),
				     weft_data_buf_flat(in + (size_t)r * (root ? n : 1) * b, b),
				     have);
}

void weft_coll_build_alltoall(struct weft_coll *c, const struct weft_coll_group *g,
			      const struct weft_coll_args *a)
{
	size_t b = a->kind == WEFT_COLL_ALLTOALL ? a->rcount * a->rtype->size : 0;
	size_t all = (size_t)g->size * b;
	if (b && weft_coll_limit_rooted(g) && all <= WEFT_LIMIT_ALLTOALL_ROOT_BYTES)
		alltoall_through_root(c, g, a, b);
	else if (b && b <= WEFT_LIMIT_ALLTOALL_BRUCK_BYTES &&
		 g->size >= WEFT_LIMIT_ALLTOALL_BRUCK_RANKS)
		alltoall_bruck(c, g, a, b);
	else
		alltoall_pairwise(c, g, a);
}
