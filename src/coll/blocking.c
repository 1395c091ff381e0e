/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.c - small blocking collectives without a schedule: one table says which way each takes.
 *
 * All ways combine in the order of reduce.c, so that a blocking and a nonblocking call give the
 * same bits.
 */
#include "base/assert.h"
#include "base/mechanism.h"
#include "base/trace.h"
#include "coll/alg.h"
#include "coll/blocking.h"
#include "coll/limits.h"
#include "coll/shm/shm.h"
#include "task/task.h"

/* ---- what fits where ------------------------------------------------------------------------ */

static bool in_memory(const struct weft_coll_case *c)
{
	return weft_coll_limit_shm(c->g);
}

/* In small phases of its ring? */
static bool in_ring(const struct weft_coll_case *c)
{
	return weft_coll_limit_ring(c->g);
}

static size_t member_count(const struct weft_coll_case *c)
{
	return (size_t)c->g->size;
}

/* Something, but no more than that from each of so many. */
static bool at_most(const struct weft_coll_case *c, size_t most, size_t blocks)
{
	return c->bytes && c->bytes <= most / blocks;
}

static bool any_steps(const struct weft_coll_case *c)
{
	return !c->g->crowded;
}

static bool flat_steps(const struct weft_coll_case *c)
{
	return weft_coll_alg_flat(c->g);
}

static bool ring_bcast(const struct weft_coll_case *c)
{
	return in_memory(c) && at_most(c, WEFT_LIMIT_RING_BCAST, 1);
}

static bool steps_bcast(const struct weft_coll_case *c)
{
	return c->bytes <= WEFT_LIMIT_STEPS_BCAST;
}

static bool ring_scatter(const struct weft_coll_case *c)
{
	return in_memory(c) && at_most(c, weft_coll_shm_scatter_max(c->g->size), 1);
}

static bool ring_gather(const struct weft_coll_case *c)
{
	return in_ring(c) && at_most(c, weft_coll_shm_gather_max(c->g->size), 1);
}

/* Its root combines in a flat order: only where the schedule of a nonblocking call does so too, so that
 * both give the same bits.  Of two ranks there is but one order. */
static bool ring_reduce(const struct weft_coll_case *c)
{
	return c->combines && ring_gather(c) &&
	       (c->g->size == 2 || weft_coll_alg_reduce_flat(c->g, c->bytes));
}

static bool flat_reduce(const struct weft_coll_case *c)
{
	return c->combines && weft_coll_alg_reduce_flat(c->g, c->bytes) &&
	       at_most(c, WEFT_COLL_STEPS_BYTES, 1);
}

static bool meets_at_most(const struct weft_coll_case *c, size_t blocks)
{
	return at_most(c, weft_coll_shm_meet_max(c->g->size), blocks);
}

static bool ring_allgather(const struct weft_coll_case *c)
{
	return in_memory(c) && meets_at_most(c, 1);
}

static bool ring_allreduce(const struct weft_coll_case *c)
{
	return c->combines && ring_allgather(c);
}

static bool ring_alltoall(const struct weft_coll_case *c)
{
	return in_memory(c) && meets_at_most(c, member_count(c));
}

static bool shown_allgather(const struct weft_coll_case *c)
{
	return !c->g->crowded && in_ring(c) && meets_at_most(c, 1);
}

/* Each combines all of them itself. */
static bool shown_allreduce(const struct weft_coll_case *c)
{
	return c->combines && shown_allgather(c) && c->g->size <= WEFT_LIMIT_SHOWN_RANKS &&
	       c->bytes < weft_coll_limit_reduce_share(c->g);
}

static bool shown_alltoall(const struct weft_coll_case *c)
{
	return !c->g->crowded && in_ring(c) && meets_at_most(c, member_count(c));
}

static bool steps_allreduce(const struct weft_coll_case *c)
{
	return c->combines && at_most(c, WEFT_COLL_STEPS_BYTES, 1);
}

static bool stage_allgather(const struct weft_coll_case *c)
{
	return in_memory(c) && at_most(c, WEFT_LIMIT_STAGE_ALLGATHER, 1);
}

/* With a core for each rank only what a nonblocking call combines in shares, too, and so in the same
 * order. */
static bool stage_allreduce(const struct weft_coll_case *c)
{
	if (in_memory(c))
		return c->combines && at_most(c, WEFT_LIMIT_STAGE_ALLREDUCE, 1);
	return in_ring(c) && c->combines && c->count >= member_count(c) &&
	       c->bytes >= weft_coll_limit_reduce_share(c->g) &&
	       at_most(c, WEFT_LIMIT_STAGE_ALLREDUCE_FREE, 1);
}

static bool stage_alltoall(const struct weft_coll_case *c)
{
	return in_memory(c) && at_most(c, WEFT_LIMIT_STAGE_ALLTOALL, member_count(c));
}

static bool read_allreduce(const struct weft_coll_case *c)
{
	return in_memory(c) && c->combines && c->count >= member_count(c) &&
	       c->bytes > WEFT_LIMIT_STAGE_ALLREDUCE && at_most(c, WEFT_LIMIT_READ, 1);
}

static bool read_alltoall(const struct weft_coll_case *c)
{
	return in_memory(c) && !c->in_place && c->bytes >= WEFT_LIMIT_READ_ALLTOALL &&
	       at_most(c, WEFT_LIMIT_READ, member_count(c));
}

/* ---- the table ------------------------------------------------------------------------------ */

#define RING WEFT_COLL_SHM_RING
#define STAGE (WEFT_COLL_SHM_RING | WEFT_COLL_SHM_STAGE)
#define READ (WEFT_COLL_SHM_RING | WEFT_COLL_SHM_READ)
#define WAYS_MOST 5 /* of a kind; a row without a name ends them before */

/* clang-format off */
static const struct weft_coll_way ways[WEFT_COLL_KIND_COUNT][WAYS_MOST] = {
	[WEFT_COLL_BARRIER] = {
		{"ring", RING, in_ring, weft_coll_shm_barrier},
		{"steps", 0, any_steps, weft_coll_steps_barrier},
		{"flat steps", 0, flat_steps, weft_coll_steps_barrier_flat},
	},
	[WEFT_COLL_BCAST] = {
		{"ring", RING, ring_bcast, weft_coll_shm_bcast},
		{"steps", 0, steps_bcast, weft_coll_steps_bcast},
	},
	[WEFT_COLL_SCATTER] = {
		{"ring", RING, ring_scatter, weft_coll_shm_scatter},
	},
	[WEFT_COLL_GATHER] = {
		{"ring", RING, ring_gather, weft_coll_shm_gather},
	},
	[WEFT_COLL_REDUCE] = {
		{"ring", RING, ring_reduce, weft_coll_shm_reduce},
		{"flat steps", 0, flat_reduce, weft_coll_steps_reduce},
	},
	[WEFT_COLL_ALLGATHER] = {
		{"ring", RING, ring_allgather, weft_coll_shm_allgather},
		{"shown", RING, shown_allgather, weft_coll_shown_allgather},
		{"stage", STAGE, stage_allgather, weft_coll_stage_allgather},
	},
	[WEFT_COLL_FILE_WAITS] = {
		{"ring", RING, ring_allgather, weft_coll_shm_allgather},
		{"shown", RING, shown_allgather, weft_coll_shown_allgather},
	},
	[WEFT_COLL_ALLTOALL] = {
		{"ring", RING, ring_alltoall, weft_coll_shm_alltoall},
		{"shown", RING, shown_alltoall, weft_coll_shown_alltoall},
		{"stage", STAGE, stage_alltoall, weft_coll_stage_alltoall},
		{"read", READ, read_alltoall, weft_coll_read_alltoall},
	},
	[WEFT_COLL_ALLREDUCE] = {
		{"ring", RING, ring_allreduce, weft_coll_shm_allreduce},
		{"shown", RING, shown_allreduce, weft_coll_shown_allreduce},
		{"steps", 0, steps_allreduce, weft_coll_steps_allreduce},
		{"stage", STAGE, stage_allreduce, weft_coll_stage_allreduce},
		{"read", READ, read_allreduce, weft_coll_read_allreduce},
	},
};
/* clang-format on */

const struct weft_coll_way *weft_coll_choose(const struct weft_coll_case *c, unsigned have)
{
	weft_assert(c->kind < WEFT_COLL_KIND_COUNT && c->g->size > 1);
	const struct weft_coll_way *w = ways[c->kind];
	for (int i = 0; i < WAYS_MOST && w[i].name; i++)
		if (!(w[i].needs & ~have) && w[i].fits(c))
			return &w[i];
	return NULL;
}

/* ---- one call ------------------------------------------------------------------------------- */

static void describe_case(struct weft_coll_case *c, const struct weft_coll_group *g,
			  const struct weft_coll_args *a)
{
	/* Of the root of a scatter, and of those that give to a gather, only these count. */
	bool gives = (a->kind == WEFT_COLL_SCATTER && g->rank == a->root) ||
		     (a->kind == WEFT_COLL_GATHER && g->rank != a->root);
	const struct weft_type *t = gives ? a->stype : a->rtype;
	*c = (struct weft_coll_case){.g = g,
				     .kind = a->kind,
				     .count = gives ? a->scount : a->rcount,
				     .in_place = a->in_place};
	if (!t)
		return;
	c->bytes = t->size && c->count > SIZE_MAX / t->size ? SIZE_MAX : c->count * t->size;
	c->combines = a->op.fn && t->flat && !t->true_lb;
}

/* Ways that are not left out by the setting `without`, the same on all ranks. */
static unsigned ways_on(void)
{
	return (weft_mechanism_on(WEFT_MECH_COLL_RING) ? (unsigned)WEFT_COLL_SHM_RING : 0) |
	       (weft_mechanism_on(WEFT_MECH_COLL_STAGE) ? (unsigned)WEFT_COLL_SHM_STAGE : 0) |
	       (weft_mechanism_on(WEFT_MECH_COLL_READ) ? (unsigned)WEFT_COLL_SHM_READ : 0);
}

/* Members with a core each look at words in memory, not at the network: for the engine they have
 * computed, and it would be woken at once for what comes next. */
static bool waits_in_memory(const struct weft_coll_case *c, const struct weft_coll_way *w,
			    const struct weft_coll_args *a)
{
	bool gives = (c->kind == WEFT_COLL_GATHER || c->kind == WEFT_COLL_REDUCE) &&
		     c->g->rank != a->root;
	return w->needs && !c->g->crowded && !gives;
}

weft_err weft_coll_blocking(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct weft_coll_case c;
	unsigned have = 0;
	if (g->remote_size || g->size == 1 || !ways[a->kind][0].name)
		return WEFT_AGAIN;
	describe_case(&c, g, a);
	const struct weft_coll_way *w = weft_coll_choose(&c, ways_on());
	if (w && w->needs) {
		weft_err err = weft_coll_shm_open(g, a->kind, w->needs, &have);
		if (weft_unlikely(err))
			return err;
		if (w->needs & ~have)
			w = weft_coll_choose(&c, have & ways_on());
	}
	weft_assert(!w || !(w->needs & ~have)); /* the same way on all members */
	if (w && weft_trace_on())
		weft_trace_put(WEFT_TRACE_COLL_SHORT, a->kind, weft_comm_ctx_id(g->ctx),
			       weft_trace_static(w->name), c.bytes);
	if (!w)
		return WEFT_AGAIN;
	weft_err err = w->run(g, a);
	if (waits_in_memory(&c, w, a))
		weft_task_engine_waited();
	return err;
}
