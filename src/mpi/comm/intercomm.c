/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * intercomm.c - intercommunicators: two groups that talk to each other.
 *
 * Each side has an intracommunicator (`local`); the leaders of both sides exchange what they know
 * through a context that both have (`bridge`), and each tells its own side.  Of the two ids that
 * the leaders offer, that of the leader with the smaller process number is taken.
 */
#include "mpi/comm/comm_int.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/comm/group.h"
#include "mpi/dyn/meet.h"

struct offer {
	int err;
	int size;   /* of the side */
	int leader; /* its process */
	int high;   /* for merge */
	uint32_t id;
};

/*
 * The leaders swap offers and member lists; every member learns the other side's.  *world_p is
 * the list of its processes, to be freed.  Collective over `local`, tag is free on it.
 */
static int meet_leaders(struct weft_mpi_comm *local, int leader, struct weft_ctx *bridge,
			int remote_leader, int tag, struct offer *mine, struct offer *theirs,
			int **world_p)
{
	struct weft_mpi_talk t = weft_mpi_talk_all(local);
	int err = MPI_SUCCESS, *world = NULL;

	mine->size = local->size;
	mine->leader = local->group->world[leader];
	if (local->rank == leader) {
		mine->err = weft_mpi_id_take(local->group->domain->ids, &mine->id);
		err = weft_mpi_talk_swap(bridge, remote_leader, tag, mine, sizeof(*mine), theirs,
					 sizeof(*theirs));
		theirs->err = err ? err : theirs->err ? theirs->err : mine->err;
	}
	int told = weft_mpi_talk_bcast(&t, leader, theirs, sizeof(*theirs));
	if (told || theirs->err)
		return told ? told : theirs->err;
	if (theirs->leader < mine->leader) {
		if (local->rank == leader) /* ours is not used: it rests */
			weft_mpi_id_closed(local->group->domain->ids, mine->id, mine->leader,
					   mine->leader, 0);
		mine->id = theirs->id;
	}
	told = weft_mpi_talk_bcast(&t, leader, &mine->id, sizeof(mine->id));
	world = told ? NULL : malloc((size_t)theirs->size * sizeof(*world));
	if (!world)
		return told ? told : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (local->rank == leader) {
		err = weft_mpi_talk_swap(bridge, remote_leader, tag, local->group->world,
					 (size_t)local->size * sizeof(*world), world,
					 (size_t)theirs->size * sizeof(*world));
	}
	told = weft_mpi_talk_bcast(&t, leader, &err, sizeof(err));
	if (!told && !err)
		told = weft_mpi_talk_bcast(&t, leader, world,
					   (size_t)theirs->size * sizeof(*world));
	if (!told)
		told = weft_mpi_talk_ack(&t, leader);
	if (told || err) {
		free(world);
		return told ? told : err;
	}
	*world_p = world;
	return MPI_SUCCESS;
}

int weft_mpi_inter_make(struct weft_mpi_comm *local, int leader, struct weft_ctx *bridge,
			int remote_leader, int tag, struct weft_mpi_comm *parent,
			struct weft_mpi_comm **comm_p)
{
	struct offer mine = {0}, theirs = {0};
	struct weft_mpi_comm *inner = NULL;
	int *world = NULL;
	int err = meet_leaders(local, leader, bridge, remote_leader, tag, &mine, &theirs, &world);

	if (err)
		return err;
	err = weft_mpi_comm_make(local, local->group, weft_mpi_comm_talk_tag(local), &inner);
	if (!err) {
		struct weft_mpi_comm_plan plan = {
			.id = mine.id,
			.group = local->group,
			.remote = weft_mpi_group_make_in(local->group->domain, theirs.size, world),
			.local = inner,
			.parent = parent};
		/* The leader whose id was taken. */
		plan.keeper = mine.leader < theirs.leader ? mine.leader : theirs.leader;
		err = plan.remote ? weft_mpi_comm_build(&plan, comm_p)
				  : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
		weft_mpi_group_unref(plan.remote);
		if (err)
			weft_mpi_comm_unref(inner);
	}
	free(world);
	return err;
}

/* ---- groups that are in no common domain --------------------------------------------------- */

/* A wire over a communicator that both leaders are in. */
struct bridge_wire {
	struct weft_ctx *ctx;
	int remote_leader, tag;
};

static int swap_over_bridge(void *arg, const void *out, size_t out_len, void **in_p,
			    size_t *in_len_p)
{
	struct bridge_wire *b = arg;
	uint64_t mine = out_len, theirs = 0;
	int err = weft_mpi_talk_swap(b->ctx, b->remote_leader, b->tag, &mine, sizeof(mine), &theirs,
				     sizeof(theirs));

	if (err)
		return err;
	*in_len_p = theirs;
	*in_p = malloc(theirs + 1);
	if (!*in_p)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	return weft_mpi_talk_swap(b->ctx, b->remote_leader, b->tag, out, out_len, *in_p, theirs);
}

/* Are both local communicators in the bridge's domain?  Collective over local. */
static int ask_domains(struct weft_mpi_comm *local, int leader, const struct weft_mpi_comm *bridge,
		       int remote_leader, int tag, bool *common_p)
{
	struct weft_mpi_talk t = weft_mpi_talk_all(local);
	int told[2] = {MPI_SUCCESS, 0};

	if (local->rank == leader) {
		int mine = bridge->group->domain == local->group->domain, theirs = 0;
		told[0] = weft_mpi_talk_swap(bridge->coll, remote_leader, tag, &mine, sizeof(mine),
					     &theirs, sizeof(theirs));
		told[1] = mine && theirs;
	}
	int err = weft_mpi_talk_bcast(&t, leader, told, sizeof(told));
	*common_p = told[1];
	return err ? err : told[0];
}

static int create_inter(struct weft_mpi_comm *local, int leader, struct weft_mpi_comm *bridge,
			int remote_leader, int tag, struct weft_mpi_comm **made_p)
{
	struct weft_ctx *ctx = bridge ? bridge->coll : NULL;
	struct bridge_wire over = {.ctx = ctx, .remote_leader = remote_leader, .tag = tag};
	struct weft_mpi_wire wire = {.arg = &over, .swap = swap_over_bridge};
	bool common;
	int err = ask_domains(local, leader, bridge, remote_leader, tag, &common);

	if (err)
		return err;
	if (common)
		return weft_mpi_inter_make(local, leader, ctx, remote_leader, tag, local, made_p);
	if (bridge)
		wire.secret = weft_comm_secret(bridge->group->domain->core);
	return weft_mpi_meet(local, leader, local->rank == leader ? &wire : NULL, MPI_SUCCESS, NULL,
			     local, made_p);
}

int weft_mpi_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm,
			      int remote_leader, int tag, MPI_Comm *newintercomm)
{
	struct weft_mpi_comm *local = weft_mpi_comm_of(local_comm), *made = NULL;
	struct weft_mpi_comm *bridge = weft_mpi_comm_of(peer_comm);
	int world = -1;

	if (local->inter)
		return weft_mpi_err(MPI_ERR_COMM, "the local communicator is an intercommunicator");
	if (local_leader < 0 || local_leader >= local->size)
		return weft_mpi_err(MPI_ERR_RANK,
				    "invalid local leader %d (communicator has %d ranks)",
				    local_leader, local->size);
	if (local->rank == local_leader) {
		if (!bridge)
			return weft_mpi_err(MPI_ERR_COMM, "invalid peer communicator");
		if (remote_leader < 0 || remote_leader >= bridge->peers)
			return weft_mpi_err(MPI_ERR_RANK,
					    "invalid remote leader %d (communicator has %d ranks)",
					    remote_leader, bridge->peers);
		world = weft_mpi_comm_peer(bridge, remote_leader);
	}
	tag = WEFT_MPI_TAG_INTER | (tag & (WEFT_MPI_TAG_INTER - 1));
	if (local->rank != local_leader)
		bridge = NULL;
	int err = create_inter(local, local_leader, bridge, world, tag, &made);
	return err ? err : weft_mpi_comm_name(made, newintercomm);
}

/* ---- merge -------------------------------------------------------------------------------- */

int weft_mpi_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintracomm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(intercomm), *made = NULL;
	struct offer mine = {.high = !!high}, theirs = {0};
	int *remote = NULL;

	if (!c->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not an intercommunicator");
	int tag = weft_mpi_comm_talk_tag(c);
	int err = meet_leaders(c->local, 0, c->coll, weft_mpi_comm_peer(c, 0), tag, &mine, &theirs,
			       &remote);
	if (err)
		return err;
	bool first = mine.high != theirs.high ? !mine.high : mine.leader < theirs.leader;
	int *world = malloc((size_t)(c->size + theirs.size) * sizeof(*world));
	struct weft_mpi_comm_plan plan = {.id = mine.id, .parent = c};
	if (world) {
		memcpy(world + (first ? 0 : theirs.size), c->group->world,
		       (size_t)c->size * sizeof(*world));
		memcpy(world + (first ? c->size : 0), remote, (size_t)theirs.size * sizeof(*world));
		plan.group = weft_mpi_group_make_in(c->group->domain, c->size + theirs.size, world);
	}
	plan.keeper = mine.leader < theirs.leader ? mine.leader : theirs.leader;
	err = plan.group ? weft_mpi_comm_build(&plan, &made)
			 : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	weft_mpi_group_unref(plan.group);
	free(world);
	free(remote);
	return err ? err : weft_mpi_comm_name(made, newintracomm);
}

/* ---- create and split --------------------------------------------------------------------- */

/* A new local part that looks for its counterpart: its colour and its leader's process. */
struct part {
	int color;
	int leader; /* -1: this entry says nothing */
};

/*
 * `part` (or NULL) is our side's new intracommunicator for that colour.  Collective over c: makes
 * an intercommunicator of the parts of the same colour on both sides.
 */
static int pair_up(struct weft_mpi_comm *c, struct weft_mpi_comm *part, int color,
		   MPI_Comm *newcomm)
{
	struct part mine = {color, part && part->rank == 0 ? part->group->world[0] : -1};
	struct part *ours = calloc((size_t)c->size, sizeof(*ours));
	struct part *theirs = calloc((size_t)c->peers, sizeof(*theirs));
	struct weft_mpi_talk t = weft_mpi_talk_all(c->local);
	int tag = weft_mpi_comm_talk_tag(c), tag2 = weft_mpi_comm_talk_tag(c);
	struct weft_mpi_comm *made = NULL;
	int remote = -1;
	int err = ours && theirs ? MPI_SUCCESS : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");

	if (!err)
		err = weft_mpi_talk_allgather(&t, &mine, ours, sizeof(mine));
	if (!err && c->rank == 0) {
		err = weft_mpi_talk_swap(c->coll, weft_mpi_comm_peer(c, 0), tag, ours,
					 (size_t)c->size * sizeof(*ours), theirs,
					 (size_t)c->peers * sizeof(*theirs));
	}
	if (ours && theirs)
		err = weft_mpi_talk_bcast_unless(&t, 0, err, theirs,
						 (size_t)c->peers * sizeof(*theirs));
	for (int r = 0; !err && part && r < c->peers; r++)
		if (theirs[r].leader >= 0 && theirs[r].color == color)
			remote = theirs[r].leader;
	if (remote >= 0) {
		/* Pairs meet at the same time in one context: the leaders' processes tell them
		 * apart. */
		err = weft_mpi_inter_make(part, 0, c->coll, remote, tag2, c, &made);
		if (!err)
			err = weft_mpi_comm_name(made, newcomm);
	}
	free(ours);
	free(theirs);
	return err;
}

int weft_mpi_inter_create(struct weft_mpi_comm *c, struct weft_mpi_group *g, MPI_Comm *newcomm)
{
	struct weft_mpi_comm *part = NULL;
	int tag = weft_mpi_comm_talk_tag(c->local), err = MPI_SUCCESS;

	if (g->rank != MPI_UNDEFINED)
		err = weft_mpi_comm_make(c->local, g, tag, &part);
	if (!err)
		err = pair_up(c, part, 0, newcomm);
	if (part)
		weft_mpi_comm_unref(part);
	return err;
}

int weft_mpi_inter_split(struct weft_mpi_comm *c, int color, int key, MPI_Comm *newcomm)
{
	struct weft_mpi_comm *part = NULL;
	int err = weft_mpi_comm_split(c->local, color, key, &part);

	if (!err)
		err = pair_up(c, part, color, newcomm);
	if (part)
		weft_mpi_comm_unref(part);
	return err;
}
