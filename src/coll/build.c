/* SPDX-License-Identifier: BSD-3-Clause */
/* build.c - from a collective's arguments to its schedule. */
#include "coll/alg.h"
#include "wait/stack.h"

/* Reductions: the contribution is in the receive buffer when in place. */
static struct weft_view own_contribution(const struct weft_coll_args *a, size_t count)
{
	return weft_coll_view(a->in_place ? a->rbuf : a->sbuf, count, a->rtype);
}

static void build_reduce_scatter(struct weft_coll *c, const struct weft_coll_group *g,
				 const struct weft_coll_args *a)
{
	size_t *at = weft_coll_sched_scratch(c, ((size_t)g->size + 1) * sizeof *at);
	if (c->err)
		return;
	at[0] = 0;
	for (int r = 0; r < g->size; r++)
		at[r + 1] = at[r] + (a->kind == WEFT_COLL_REDUCE_SCATTER ? (size_t)a->rcounts[r]
									 : a->rcount);
	struct weft_view to = weft_coll_view(a->rbuf, at[g->rank + 1] - at[g->rank], a->rtype);
	weft_coll_alg_reduce_scatter(c, g, own_contribution(a, at[g->size]), at, to, -1);
}

static void build_intra(struct weft_coll *c, const struct weft_coll_group *g,
			const struct weft_coll_args *a)
{
	struct weft_view to = weft_coll_view(a->rbuf, a->rcount, a->rtype);
	switch (a->kind) {
	case WEFT_COLL_BARRIER:
		weft_coll_alg_barrier(c, g, -1);
		break;
	case WEFT_COLL_BCAST:
		weft_coll_alg_bcast(c, g, to, a->root, -1);
		break;
	case WEFT_COLL_GATHER:
	case WEFT_COLL_GATHERV:
		weft_coll_build_gather(c, g, a);
		break;
	case WEFT_COLL_SCATTER:
	case WEFT_COLL_SCATTERV:
		weft_coll_build_scatter(c, g, a);
		break;
	case WEFT_COLL_ALLGATHER:
	case WEFT_COLL_ALLGATHERV:
		weft_coll_build_allgather(c, g, a);
		break;
	case WEFT_COLL_ALLTOALL:
	case WEFT_COLL_ALLTOALLV:
	case WEFT_COLL_ALLTOALLW:
		weft_coll_build_alltoall(c, g, a);
		break;
	case WEFT_COLL_REDUCE:
		weft_coll_alg_reduce(c, g, own_contribution(a, a->rcount), to, a->root, -1);
		break;
	case WEFT_COLL_ALLREDUCE:
		weft_coll_alg_allreduce(c, g, own_contribution(a, a->rcount), to, -1);
		break;
	case WEFT_COLL_REDUCE_SCATTER:
	case WEFT_COLL_REDUCE_SCATTER_BLOCK:
		build_reduce_scatter(c, g, a);
		break;
	case WEFT_COLL_SCAN:
	case WEFT_COLL_EXSCAN:
		weft_coll_alg_scan(c, g, own_contribution(a, a->rcount), to,
				   a->kind == WEFT_COLL_EXSCAN);
		break;
	default:
		weft_coll_build_neighbor(c, g, a);
	}
}

/* Layouts may be freed by the user while the schedule runs. */
static void keep_types(struct weft_coll *c, const struct weft_coll_group *g,
		       const struct weft_coll_args *a)
{
	weft_coll_sched_keep(c, a->stype);
	weft_coll_sched_keep(c, a->rtype);
	bool neighbor = a->kind == WEFT_COLL_NEIGHBOR_ALLTOALLW;
	int peers = g->remote_size ? g->remote_size : g->size;
	int n = neighbor ? a->destinations : peers;
	for (int i = 0; a->stypes && i < n; i++)
		weft_coll_sched_keep(c, a->stypes[i]);
	n = neighbor ? a->sources : peers;
	for (int i = 0; a->rtypes && i < n; i++)
		weft_coll_sched_keep(c, a->rtypes[i]);
}

struct order {
	struct weft_coll *c;
	const struct weft_coll_group *g;
	const struct weft_coll_args *a;
};

static void build_on_big_stack(void *arg)
{
	struct order *o = arg;
	o->c->ctx = o->g->ctx;
	o->c->op = o->a->op;
	o->c->kind = o->a->kind;
	keep_types(o->c, o->g, o->a);
	if (o->g->remote_size)
		weft_coll_build_inter(o->c, o->g, o->a);
	else
		build_intra(o->c, o->g, o->a);
}

weft_err weft_coll_build(struct weft_coll *c, const struct weft_coll_group *g,
			 const struct weft_coll_args *a)
{
	struct order o = {.c = c, .g = g, .a = a};
	weft_wait_big_stack(build_on_big_stack, &o);
	weft_coll_sched_check(c);
	return c->err;
}
