/* SPDX-License-Identifier: BSD-3-Clause */
/* gather.c - gather and scatter, with equal blocks and with given ones. */
#include "coll/alg.h"
#include "coll/limits.h"

static bool takes_tree(const struct weft_coll_group *g, size_t bytes)
{
	return bytes <= WEFT_LIMIT_TREE_BYTES &&
	       g->size >= (g->crowded ? WEFT_LIMIT_TREE_RANKS_CROWDED : WEFT_LIMIT_TREE_RANKS);
}

/* This rank's place in the binomial tree: ranks counted from the root; a rank with lowest bit `low`
 * has the `below` ranks vr .. vr + below - 1 under it, itself included. */
struct place {
	int vr, low, below;
};

static struct place place_of(const struct weft_coll_group *g, int root)
{
	struct place p = {.vr = (g->rank - root + g->size) % g->size, .low = 1};
	while (p.low < g->size && !(p.vr & p.low))
		p.low <<= 1;
	p.below = p.vr + p.low < g->size ? p.low : g->size - p.vr;
	weft_assert(p.below >= 1 && p.vr + p.below <= g->size);
	return p;
}

static int real_rank(const struct weft_coll_group *g, int vr, int root)
{
	return (vr + root) % g->size;
}

static int gather_tree(struct weft_coll *c, const struct weft_coll_group *g,
		       const struct weft_view *own, struct weft_view all, size_t count, int root,
		       size_t bytes, int after)
{
	struct place p = place_of(g, root);
	char *mem = weft_coll_sched_scratch(c, (size_t)p.below * bytes);
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, after);
	for (int mask = 1; mask < p.low && p.vr + mask < g->size; mask <<= 1) {
		int n = p.vr + 2 * mask <= g->size ? mask : g->size - p.vr - mask;
		int got = weft_coll_alg_recv(
			c, g, real_rank(g, p.vr + mask, root), WEFT_TAG_UP,
			weft_data_buf_flat(mem + (size_t)mask * bytes, (size_t)n * bytes), -1);
		weft_coll_sched_after(c, join, got);
	}
	if (p.vr) {
		weft_coll_sched_after(c, join,
				      weft_coll_sched_copy(c, weft_data_buf_flat(mem, bytes),
							   weft_coll_view_buf(*own), after));
		return weft_coll_alg_send(c, g, real_rank(g, p.vr - p.low, root), WEFT_TAG_UP,
					  weft_data_buf_flat(mem, (size_t)p.below * bytes), join);
	}
	int done = weft_coll_sched_join(c);
	if (own)
		weft_coll_sched_after(
			c, done,
			weft_coll_alg_copy(c, weft_coll_view_part(all, (size_t)root * count, count),
					   *own, after));
	for (int v = 1; v < g->size; v++) {
		size_t r = (size_t)real_rank(g, v, root);
		weft_coll_sched_after(
			c, done,
			weft_coll_sched_copy(
				c, weft_coll_view_buf(weft_coll_view_part(all, r * count, count)),
				weft_data_buf_flat(mem + (size_t)v * bytes, bytes), join));
	}
	return done;
}

int weft_coll_alg_gather(struct weft_coll *c, const struct weft_coll_group *g,
			 const struct weft_view *own, struct weft_view all, size_t count, int root,
			 int after)
{
	bool here = g->rank == root;
	size_t bytes = here ? count * all.t->size : weft_coll_view_bytes(*own);
	if (!bytes)
		return after;
	if (takes_tree(g, bytes))
		return gather_tree(c, g, own, all, count, root, bytes, after);
	if (!here)
		return weft_coll_alg_send(c, g, root, WEFT_TAG_UP, weft_coll_view_buf(*own), after);
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, after);
	for (int k = 1; k < g->size; k++) {
		int r = (root + k) % g->size;
		struct weft_view part = weft_coll_view_part(all, (size_t)r * count, count);
		weft_coll_sched_after(
			c, join,
			weft_coll_alg_recv(c, g, r, WEFT_TAG_UP, weft_coll_view_buf(part), after));
	}
	if (own)
		weft_coll_sched_after(
			c, join,
			weft_coll_alg_copy(c, weft_coll_view_part(all, (size_t)root * count, count),
					   *own, after));
	return join;
}

static int scatter_tree(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view all,
			size_t count, const struct weft_view *own, int root, size_t bytes,
			int after)
{
	struct place p = place_of(g, root);
	char *mem = weft_coll_sched_scratch(c, (size_t)p.below * bytes);
	int have = weft_coll_sched_join(c), join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, have, after);
	if (p.vr) {
		weft_coll_sched_after(
			c, have,
			weft_coll_alg_recv(c, g, real_rank(g, p.vr - p.low, root), WEFT_TAG_DOWN,
					   weft_data_buf_flat(mem, (size_t)p.below * bytes),
					   after));
		weft_coll_sched_after(c, join,
				      weft_coll_sched_copy(c, weft_coll_view_buf(*own),
							   weft_data_buf_flat(mem, bytes), have));
	} else {
		for (int v = 0; v < g->size; v++) {
			size_t r = (size_t)real_rank(g, v, root);
			struct weft_view part = weft_coll_view_part(all, r * count, count);
			if (v)
				weft_coll_sched_after(
					c, have,
					weft_coll_sched_copy(
						c,
						weft_data_buf_flat(mem + (size_t)v * bytes, bytes),
						weft_coll_view_buf(part), after));
			else if (own)
				weft_coll_sched_after(c, join,
						      weft_coll_alg_copy(c, *own, part, after));
		}
	}
	for (int mask = p.low >> 1; mask; mask >>= 1) {
		if (p.vr + mask >= g->size)
			continue;
		int n = p.vr + 2 * mask <= g->size ? mask : g->size - p.vr - mask;
		weft_coll_sched_after(
			c, join,
			weft_coll_alg_send(
				c, g, real_rank(g, p.vr + mask, root), WEFT_TAG_DOWN,
				weft_data_buf_flat(mem + (size_t)mask * bytes, (size_t)n * bytes),
				have));
	}
	return join;
}

int weft_coll_alg_scatter(struct weft_coll *c, const struct weft_coll_group *g,
			  struct weft_view all, size_t count, const struct weft_view *own, int root,
			  int after)
{
	bool here = g->rank == root;
	size_t bytes = here ? count * all.t->size : weft_coll_view_bytes(*own);
	if (!bytes)
		return after;
	if (takes_tree(g, bytes))
		return scatter_tree(c, g, all, count, own, root, bytes, after);
	if (!here)
		return weft_coll_alg_recv(c, g, root, WEFT_TAG_DOWN, weft_coll_view_buf(*own),
					  after);
	int join = weft_coll_sched_join(c);
	weft_coll_sched_after(c, join, after);
	for (int k = 1; k < g->size; k++) {
		int r = (root + k) % g->size;
		struct weft_view part = weft_coll_view_part(all, (size_t)r * count, count);
		weft_coll_sched_after(c, join,
				      weft_coll_alg_send(c, g, r, WEFT_TAG_DOWN,
							 weft_coll_view_buf(part), after));
	}
	if (own)
		weft_coll_sched_after(
			c, join,
			weft_coll_alg_copy(c, *own,
					   weft_coll_view_part(all, (size_t)root * count, count),
					   after));
	return join;
}

/* ---- whole collectives -------------------------------------------------------------------- */

/* With given blocks: the root exchanges with each rank directly. */
static void build_gatherv(struct weft_coll *c, const struct weft_coll_group *g,
			  const struct weft_coll_args *a)
{
	if (g->rank != a->root) {
		if (a->scount * a->stype->size > 0)
			weft_coll_alg_send(c, g, a->root, WEFT_TAG_UP,
					   weft_data_buf_typed(a->sbuf, a->scount, a->stype), -1);
		return;
	}
	for (int k = 1; k < g->size; k++) {
		int r = (g->rank + k) % g->size;
		struct weft_view v = weft_coll_args_rblock(a, r);
		if (weft_coll_view_bytes(v))
			weft_coll_alg_recv(c, g, r, WEFT_TAG_UP, weft_coll_view_buf(v), -1);
	}
	if (!a->in_place)
		weft_coll_alg_copy(c, weft_coll_args_rblock(a, g->rank),
				   weft_coll_view(a->sbuf, a->scount, a->stype), -1);
}

static void build_scatterv(struct weft_coll *c, const struct weft_coll_group *g,
			   const struct weft_coll_args *a)
{
	if (g->rank != a->root) {
		if (a->rcount * a->rtype->size > 0)
			weft_coll_alg_recv(c, g, a->root, WEFT_TAG_DOWN,
					   weft_data_buf_typed(a->rbuf, a->rcount, a->rtype), -1);
		return;
	}
	for (int k = 1; k < g->size; k++) {
		int r = (g->rank + k) % g->size;
		struct weft_view v = weft_coll_args_sblock(a, r);
		if (weft_coll_view_bytes(v))
			weft_coll_alg_send(c, g, r, WEFT_TAG_DOWN, weft_coll_view_buf(v), -1);
	}
	if (!a->in_place)
		weft_coll_alg_copy(c, weft_coll_view(a->rbuf, a->rcount, a->rtype),
				   weft_coll_args_sblock(a, g->rank), -1);
}

void weft_coll_build_gather(struct weft_coll *c, const struct weft_coll_group *g,
			    const struct weft_coll_args *a)
{
	if (a->kind == WEFT_COLL_GATHERV) {
		build_gatherv(c, g, a);
		return;
	}
	struct weft_view own = weft_coll_view(a->sbuf, a->scount, a->stype);
	struct weft_view all = weft_coll_view(a->rbuf, (size_t)g->size * a->rcount, a->rtype);
	weft_coll_alg_gather(c, g, a->in_place ? NULL : &own, all, a->rcount, a->root, -1);
}

void weft_coll_build_scatter(struct weft_coll *c, const struct weft_coll_group *g,
			     const struct weft_coll_args *a)
{
	if (a->kind == WEFT_COLL_SCATTERV) {
		build_scatterv(c, g, a);
		return;
	}
	struct weft_view own = weft_coll_view(a->rbuf, a->rcount, a->rtype);
	struct weft_view all = weft_coll_view(a->sbuf, (size_t)g->size * a->scount, a->stype);
	weft_coll_alg_scatter(c, g, all, a->scount, a->in_place ? NULL : &own, a->root, -1);
}
