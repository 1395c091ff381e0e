/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_make.c - new intracommunicators: create, split, and the collective dup. */
#include "mpi/comm/comm_int.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/comm/group.h"
#include "mpi/info.h"

/* Rank 0 of the talk takes an id and tells the others. */
static int id_agree(const struct weft_mpi_talk *t, struct weft_mpi_ids *ids, uint32_t *id_p)
{
	uint32_t told[2] = {MPI_SUCCESS, 0};

	if (t->rank == 0)
		told[0] = (uint32_t)weft_mpi_id_take(ids, &told[1]);
	int err = weft_mpi_talk_bcast(t, 0, told, sizeof(told));
	int acked = weft_mpi_talk_ack(t, 0);
	err = err ? err : acked;
	if (!err && told[0])
		err = weft_mpi_err((int)told[0], "no id for a new communicator");
	*id_p = told[1];
	return err;
}

int weft_mpi_comm_make_in(struct weft_ctx *ctx, struct weft_mpi_comm *parent,
			  struct weft_mpi_group *members, int tag, struct weft_mpi_comm **comm_p)
{
	struct weft_mpi_talk t = {.ctx = ctx,
				  .rank = members->rank,
				  .size = members->size,
				  .world = members->world,
				  .tag = tag};
	struct weft_mpi_comm_plan plan = {.group = members, .parent = parent};
	int err = id_agree(&t, members->domain->ids, &plan.id);

	if (err)
		return err;
	plan.keeper = members->world[0];
	return weft_mpi_comm_build(&plan, comm_p);
}

/* Collective over members; tag is free for them on parent->coll. */
int weft_mpi_comm_make(struct weft_mpi_comm *parent, struct weft_mpi_group *members, int tag,
		       struct weft_mpi_comm **comm_p)
{
	return weft_mpi_comm_make_in(parent->coll, parent, members, tag, comm_p);
}

int weft_mpi_comm_make_all(struct weft_mpi_comm *parent, struct weft_mpi_comm **comm_p)
{
	struct weft_mpi_talk t = weft_mpi_talk_all(parent);
	char word = 0;
	int err = weft_mpi_comm_make(parent, parent->group, t.tag, comm_p);
	int all = weft_mpi_talk_bcast_unless(&t, 0, err, &word, sizeof word);

	if (!err && all) {
		weft_mpi_comm_unref(*comm_p);
		*comm_p = NULL;
	}
	return all;
}

/* ---- create ------------------------------------------------------------------------------- */

/* g in c's numbers, with a reference, if all its members are c's; NULL: they are not. */
static struct weft_mpi_group *members_of(struct weft_mpi_comm *c, struct weft_mpi_group *g)
{
	struct weft_mpi_group *in = weft_mpi_group_in(g, c->group->domain);

	for (int r = 0; in && r < in->size; r++) {
		if (weft_mpi_group_rank_of(c->group, in->world[r]) != MPI_UNDEFINED)
			continue;
		weft_mpi_group_unref(in);
		in = NULL;
	}
	if (!in)
		weft_mpi_err(MPI_ERR_GROUP,
			     "the group has processes that are not in the communicator");
	return in;
}

int weft_mpi_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm), *made = NULL;
	struct weft_mpi_group *g = members_of(c, weft_mpi_group_of(group));
	int err = MPI_SUCCESS;

	if (!g)
		return MPI_ERR_GROUP;
	*newcomm = MPI_COMM_NULL;
	if (c->inter) {
		err = weft_mpi_inter_create(c, g, newcomm);
	} else {
		int tag = weft_mpi_comm_talk_tag(c);
		if (g->rank != MPI_UNDEFINED)
			err = weft_mpi_comm_make(c, g, tag, &made);
	}
	weft_mpi_group_unref(g);
	return err || !made ? err : weft_mpi_comm_name(made, newcomm);
}

int weft_mpi_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm), *made = NULL;
	int err = MPI_SUCCESS;

	if (c->inter)
		return weft_mpi_err(MPI_ERR_COMM, "the communicator is an intercommunicator");
	struct weft_mpi_group *g = members_of(c, weft_mpi_group_of(group));
	if (!g)
		return MPI_ERR_GROUP;
	*newcomm = MPI_COMM_NULL;
	tag = WEFT_MPI_TAG_GROUP | (tag & (WEFT_MPI_TAG_GROUP - 1));
	if (g->rank != MPI_UNDEFINED)
		err = weft_mpi_comm_make(c, g, tag, &made);
	weft_mpi_group_unref(g);
	return err || !made ? err : weft_mpi_comm_name(made, newcomm);
}

/* ---- split -------------------------------------------------------------------------------- */

struct vote {
	int color, key, rank;
};

static int vote_order(const void *x, const void *y)
{
	const struct vote *a = x, *b = y;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The group of the ranks that voted for color, ordered by key and rank; NULL: no memory. */
static struct weft_mpi_group *members_of_color(struct weft_mpi_comm *c, struct vote *all, int color)
{
	int *world = malloc((size_t)c->size * sizeof(*world)), n = 0;

	if (!world)
		return NULL;
	for (int r = 0; r < c->size; r++)
		if (all[r].color == color)
			all[n++] = all[r];
	qsort(all, (size_t)n, sizeof(*all), vote_order);
	for (int i = 0; i < n; i++)
		world[i] = c->group->world[all[i].rank];
	struct weft_mpi_group *g = weft_mpi_group_make_in(c->group->domain, n, world);
	free(world);
	return g;
}

int weft_mpi_comm_split(struct weft_mpi_comm *parent, int color, int key,
			struct weft_mpi_comm **comm_p)
{
	struct weft_mpi_talk t = weft_mpi_talk_all(parent);
	struct vote mine = {.color = color, .key = key, .rank = parent->rank};
	struct vote *all = malloc((size_t)parent->size * sizeof(*all));
	int tag = weft_mpi_comm_talk_tag(parent);

	*comm_p = NULL;
	if (!all)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	int err = weft_mpi_talk_allgather(&t, &mine, all, sizeof(mine));
	if (!err && color != MPI_UNDEFINED) {
		struct weft_mpi_group *g = members_of_color(parent, all, color);
		err = g ? weft_mpi_comm_make(parent, g, tag, comm_p)
			: weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
		weft_mpi_group_unref(g);
	}
	free(all);
	return err;
}

int weft_mpi_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm), *made = NULL;

	if (color < 0 && color != MPI_UNDEFINED)
		return weft_mpi_err(MPI_ERR_ARG,
				    "color %d is negative: give MPI_UNDEFINED to stay out", color);
	*newcomm = MPI_COMM_NULL;
	if (c->inter)
		return weft_mpi_inter_split(c, color, key, newcomm);
	int err = weft_mpi_comm_split(c, color, key, &made);
	return err || !made ? err : weft_mpi_comm_name(made, newcomm);
}

/* ---- dup ---------------------------------------------------------------------------------- */

int weft_mpi_comm_dup_topo(struct weft_mpi_comm *from, struct weft_mpi_comm *to)
{
	if (from->topo) {
		to->topo = from->topo_ops->dup ? from->topo_ops->dup(from->topo) : NULL;
		if (!to->topo) {
			weft_mpi_comm_unref(to);
			return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
		}
	}
	to->topo_ops = from->topo_ops;
	to->topo_kind = from->topo_kind;
	return MPI_SUCCESS;
}

static int dup_finish(struct weft_mpi_comm *from, struct weft_mpi_comm *to, MPI_Comm *handle_p)
{
	int err = weft_mpi_comm_dup_topo(from, to);

	if (!err)
		err = weft_mpi_comm_name(to, handle_p);
	if (err)
		return err;
	err = weft_mpi_attrs_copy(&from->head, &to->head);
	if (err) {
		weft_mpi_attrs_free(&to->head);
		weft_mpi_object_retire(&to->head);
		weft_mpi_comm_unref(to);
		*handle_p = MPI_COMM_NULL;
	}
	return err;
}

static int dup_plain(struct weft_mpi_comm *c, struct weft_mpi_comm **comm_p)
{
	int tag = weft_mpi_comm_talk_tag(c);

	if (c->inter)
		return weft_mpi_inter_make(c->local, 0, c->coll, weft_mpi_comm_peer(c, 0), tag, c,
					   comm_p);
	return weft_mpi_comm_make(c, c->group, tag, comm_p);
}

int weft_mpi_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm), *made = NULL;

	if (!c) /* callers inside have no entry point before them */
		return weft_mpi_err(MPI_ERR_COMM, "invalid communicator");
	int err = dup_plain(c, &made);
	*newcomm = MPI_COMM_NULL;
	if (!err)
		err = dup_finish(c, made, newcomm);
	if (!err && info != MPI_INFO_NULL)
		err = weft_mpi_Comm_set_info(*newcomm, info);
	return err;
}

int weft_mpi_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
	return weft_mpi_Comm_dup_with_info(comm, MPI_INFO_NULL, newcomm);
}
