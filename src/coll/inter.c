/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inter.c - collectives of intercommunicators: two groups, each works for the other.
 *
 * Rank 0 of each group speaks for it where one voice is enough.
 */
#include "coll/alg.h"

static const struct weft_buf nothing;

static int far_send(struct weft_coll *c, const struct weft_coll_group *g, int rank,
		    struct weft_buf buf, int after)
{
	return weft_coll_sched_send(c, weft_coll_remote(g, rank), g->tag + WEFT_TAG_ACROSS, buf,
				    after);
}

static int far_recv(struct weft_coll *c, const struct weft_coll_group *g, int rank,
		    struct weft_buf buf, int after)
{
	return weft_coll_sched_recv(c, weft_coll_remote(g, rank), g->tag + WEFT_TAG_ACROSS, buf,
				    after);
}

static void inter_barrier(struct weft_coll *c, const struct weft_coll_group *g)
{
	int done = weft_coll_alg_signal_up(c, g, -1);
	if (!g->rank) {
		int sent = far_send(c, g, 0, nothing, done);
		done = far_recv(c, g, 0, nothing, -1);
		weft_coll_sched_after(c, done, sent);
	}
	weft_coll_alg_signal_down(c, g, done);
}

static void inter_bcast(struct weft_coll *c, const struct weft_coll_group *g,
			const struct weft_coll_args *a)
{
	struct weft_view v = weft_coll_view(a->rbuf, a->rcount, a->rtype);
	if (!weft_coll_view_bytes(v) || a->root == WEFT_COLL_ROOT_NONE)
		return;
	if (a->root == WEFT_COLL_ROOT_HERE) {
		far_send(c, g, 0, weft_coll_view_buf(v), -1);
		return;
	}
	int have = g->rank ? -1 : far_recv(c, g, a->root, weft_coll_view_buf(v), -1);
	weft_coll_alg_bcast(c, g, v, 0, have);
}

static void inter_gather(struct weft_coll *c, const struct weft_coll_group *g,
			 const struct weft_coll_args *a)
{
	if (a->root == WEFT_COLL_ROOT_NONE)
		return;
	if (a->root != WEFT_COLL_ROOT_HERE) {
		if (a->scount * a->stype->size > 0)
			far_send(c, g, a->root, weft_data_buf_typed(a->sbuf, a->scount, a->stype),
				 -1);
		return;
	}
	for (int r = 0; r < g->remote_size; r++) {
		struct weft_view v = weft_coll_args_rblock(a, r);
		if (weft_coll_view_bytes(v))
			far_recv(c, g, r, weft_coll_view_buf(v), -1);
	}
}

static void inter_scatter(struct weft_coll *c, const struct weft_coll_group *g,
			  const struct weft_coll_args *a)
{
	if (a->root == WEFT_COLL_ROOT_NONE)
		return;
	if (a->root != WEFT_COLL_ROOT_HERE) {
		if (a->rcount * a->rtype->size > 0)
			far_recv(c, g, a->root, weft_data_buf_typed(a->rbuf, a->rcount, a->rtype),
				 -1);
		return;
	}
	for (int r = 0; r < g->remote_size; r++) {
		struct weft_view v = weft_coll_args_sblock(a, r);
		if (weft_coll_view_bytes(v))
			far_send(c, g, r, weft_coll_view_buf(v), -1);
	}
}

/* inter_allgather(v), inter_alltoall(v, w): a message to and from each member of the other group. */
static void inter_exchange(struct weft_coll *c, const struct weft_coll_group *g,
			   const struct weft_coll_args *a)
{
	bool same = a->kind == WEFT_COLL_ALLGATHER || a->kind == WEFT_COLL_ALLGATHERV;
	for (int k = 0; k < g->remote_size; k++) {
		int r = (g->rank + k) % g->remote_size;
		struct weft_view v = weft_coll_args_rblock(a, r);
		if (weft_coll_view_bytes(v))
			far_recv(c, g, r, weft_coll_view_buf(v), -1);
	}
	for (int k = 0; k < g->remote_size; k++) {
		int r = (g->rank + k) % g->remote_size;
		struct weft_view v = same ? weft_coll_view(a->sbuf, a->scount, a->stype)
					  : weft_coll_args_sblock(a, r);
		if (weft_coll_view_bytes(v))
			far_send(c, g, r, weft_coll_view_buf(v), -1);
	}
}

/* Reduces the local group's contributions to its rank 0, into scratch memory. */
static int reduce_here(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		       struct weft_view *sum_p)
{
	*sum_p = weft_coll_view_scratch(c, from.count, from.t);
	return weft_coll_alg_reduce(c, g, from, *sum_p, 0, -1);
}

static void inter_reduce(struct weft_coll *c, const struct weft_coll_group *g,
			 const struct weft_coll_args *a)
{
	struct weft_view to = weft_coll_view(a->rbuf, a->rcount, a->rtype), sum;
	if (a->root == WEFT_COLL_ROOT_NONE)
		return;
	if (!weft_coll_view_bytes(to))
		return;
	if (a->root == WEFT_COLL_ROOT_HERE) {
		far_recv(c, g, 0, weft_coll_view_buf(to), -1);
		return;
	}
	int done = reduce_here(c, g, weft_coll_view(a->sbuf, a->rcount, a->rtype), &sum);
	if (!g->rank)
		far_send(c, g, a->root, weft_coll_view_buf(sum), done);
}

static void inter_allreduce(struct weft_coll *c, const struct weft_coll_group *g,
			    const struct weft_coll_args *a)
{
	struct weft_view to = weft_coll_view(a->rbuf, a->rcount, a->rtype), sum;
	if (!weft_coll_view_bytes(to))
		return;
	int done = reduce_here(c, g, weft_coll_view(a->sbuf, a->rcount, a->rtype), &sum);
	if (!g->rank) {
		far_send(c, g, 0, weft_coll_view_buf(sum), done);
		done = far_recv(c, g, 0, weft_coll_view_buf(to), -1);
	}
	weft_coll_alg_bcast(c, g, to, 0, done);
}

/* The other group's sum arrives at rank 0, which deals it out. */
static void inter_reduce_scatter(struct weft_coll *c, const struct weft_coll_group *g,
				 const struct weft_coll_args *a)
{
	bool even = a->kind == WEFT_COLL_REDUCE_SCATTER_BLOCK;
	size_t total = even ? (size_t)g->size * a->rcount : 0;
	for (int r = 0; r < g->size && !even; r++)
		total += (size_t)a->rcounts[r];
	struct weft_view sum;
	if (total * a->rtype->size == 0)
		return;
	int done = reduce_here(c, g, weft_coll_view(a->sbuf, total, a->rtype), &sum);
	size_t mine = even ? a->rcount : (size_t)a->rcounts[g->rank];
	struct weft_view to = weft_coll_view(a->rbuf, mine, a->rtype);
	if (g->rank) {
		if (weft_coll_view_bytes(to))
			weft_coll_alg_recv(c, g, 0, WEFT_TAG_DOWN, weft_coll_view_buf(to), -1);
		return;
	}
	far_send(c, g, 0, weft_coll_view_buf(sum), done);
	struct weft_view all = weft_coll_view_scratch(c, total, a->rtype);
	int got = far_recv(c, g, 0, weft_coll_view_buf(all), -1);
	size_t at = mine;
	weft_coll_alg_copy(c, to, weft_coll_view_part(all, 0, mine), got);
	for (int r = 1; r < g->size; r++) {
		size_t n = even ? a->rcount : (size_t)a->rcounts[r];
		struct weft_view part = weft_coll_view_part(all, at, n);
		if (weft_coll_view_bytes(part))
			weft_coll_alg_send(c, g, r, WEFT_TAG_DOWN, weft_coll_view_buf(part), got);
		at += n;
	}
}

void weft_coll_build_inter(struct weft_coll *c, const struct weft_coll_group *g,
			   const struct weft_coll_args *a)
{
	switch (a->kind) {
	case WEFT_COLL_BARRIER:
		inter_barrier(c, g);
		break;
	case WEFT_COLL_BCAST:
		inter_bcast(c, g, a);
		break;
	case WEFT_COLL_GATHER:
	case WEFT_COLL_GATHERV:
		inter_gather(c, g, a);
		break;
	case WEFT_COLL_SCATTER:
	case WEFT_COLL_SCATTERV:
		inter_scatter(c, g, a);
		break;
	case WEFT_COLL_REDUCE:
		inter_reduce(c, g, a);
		break;
	case WEFT_COLL_ALLREDUCE:
		inter_allreduce(c, g, a);
		break;
	case WEFT_COLL_REDUCE_SCATTER:
	case WEFT_COLL_REDUCE_SCATTER_BLOCK:
		inter_reduce_scatter(c, g, a);
		break;
	case WEFT_COLL_ALLGATHER:
	case WEFT_COLL_ALLGATHERV:
	case WEFT_COLL_ALLTOALL:
	case WEFT_COLL_ALLTOALLV:
	case WEFT_COLL_ALLTOALLW:
		inter_exchange(c, g, a);
		break;
	default:
		weft_coll_sched_fail(c, WEFT_ERR_UNSUPPORTED);
	}
}
