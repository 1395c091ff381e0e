/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_blocks.c - does each member of a collective give the elements that each other member expects of it?
 *
 * A member tells each member that it gives a block to what that consists of.  The receiver compares this with its own
 * arguments.  Where all members give alike, so that check_coll.c has compared them, what a member gives itself is
 * compared here.  In groups of more than PARTNERS members each call compares some pairs, and the next one further ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include "mpi/aid/check_talk.h"
#include "mpi/coll/coll_call.h"

#define PARTNERS 64 /* members that one is compared with in a call */

/* What is given. */
struct block {
	uint64_t bytes, signature, place;
	uint32_t sign; /* comm/sign.h */
	uint32_t zero;
};

struct pair {
	struct weft_mpi_check_talk talk;
	struct block mine, theirs;
	struct block expected;
	const char *call;
	const void *site;
	uint32_t number;
	int rank, from;
	bool across;
	char name[MPI_MAX_OBJECT_NAME];
};

/* A call that is being compared. */
struct round {
	const struct weft_mpi_coll_call *k;
	const char *call;
	const void *site;
	uint32_t number;
	uint64_t place;
};

/* Which members give to which. */
enum flow {
	FLOW_NONE,
	FLOW_TO_ROOT,
	FLOW_FROM_ROOT,
	FLOW_OWN, /* all give alike: a look at the own block is enough */
	FLOW_ALL,
	FLOW_EDGES,
};

static enum flow flow_of(const struct weft_mpi_coll_call *k)
{
	bool inter = k->comm->inter;

	switch (k->a.kind) {
	case WEFT_COLL_BCAST:
		return inter ? FLOW_FROM_ROOT : FLOW_NONE;
	case WEFT_COLL_REDUCE:
		return inter ? FLOW_TO_ROOT : FLOW_NONE;
	case WEFT_COLL_ALLREDUCE:
		return inter ? FLOW_ALL : FLOW_NONE;
	case WEFT_COLL_GATHER:
	case WEFT_COLL_GATHERV:
		return FLOW_TO_ROOT;
	case WEFT_COLL_SCATTER:
	case WEFT_COLL_SCATTERV:
		return FLOW_FROM_ROOT;
	case WEFT_COLL_ALLGATHER:
	case WEFT_COLL_ALLTOALL:
		return inter ? FLOW_ALL : FLOW_OWN;
	case WEFT_COLL_ALLGATHERV:
	case WEFT_COLL_ALLTOALLV:
	case WEFT_COLL_ALLTOALLW:
		return FLOW_ALL;
	case WEFT_COLL_NEIGHBOR_ALLGATHER:
	case WEFT_COLL_NEIGHBOR_ALLGATHERV:
	case WEFT_COLL_NEIGHBOR_ALLTOALL:
	case WEFT_COLL_NEIGHBOR_ALLTOALLV:
	case WEFT_COLL_NEIGHBOR_ALLTOALLW:
		return FLOW_EDGES;
	default:
		return FLOW_NONE;
	}
}

/* ---- what a member gives and expects ------------------------------------------------------------ */

static struct block block_of(int64_t count, const struct weft_type *t)
{
	struct block b = {0};

	b.signature = weft_mpi_check_layout_signature(count, t, &b.bytes);
	b.sign = weft_mpi_check_layout_sign(count, t);
	return b;
}

/* Of the i-th that is expected. */
static struct block expected_block(const struct weft_coll_args *a, int i)
{
	return block_of(a->rcounts ? a->rcounts[i] : (int64_t)a->rcount,
			a->rtypes ? a->rtypes[i] : a->rtype);
}

/* Of the i-th that is given. */
static struct block given_block(const struct weft_mpi_coll_call *k, int i)
{
	const struct weft_coll_args *a = &k->a;
	bool reduces = a->kind == WEFT_COLL_REDUCE || a->kind == WEFT_COLL_ALLREDUCE ||
		       a->kind == WEFT_COLL_BCAST;

	if (reduces)
		return block_of((int64_t)a->rcount, a->rtype);
	/* What is there to be given is what is expected. */
	if (a->in_place && flow_of(k) == FLOW_ALL)
		return expected_block(a, a->kind == WEFT_COLL_ALLGATHERV ? k->comm->rank : i);
	return block_of(a->scounts ? a->scounts[i] : (int64_t)a->scount,
			a->stypes ? a->stypes[i] : a->stype);
}

/* ---- the comparison ------------------------------------------------------------------------------ */

static void report_pair(const struct pair *p)
{
	char here[WEFT_CHECK_PLACE], there[WEFT_CHECK_PLACE];
	bool alike = p->theirs.sign >> 24 == p->expected.sign >> 24;

	weft_mpi_check_place(p->site, here, sizeof here);
	weft_mpi_check_place_of(p->theirs.place, there, sizeof there);
	weft_mpi_check_report(
		"collectives that do not match on %s (different %s): in its collective number %u, "
		"%s%s, rank %d expects %llu bytes%s%s of rank %d%s, which gives %llu bytes%s%s%s",
		p->name,
		alike && p->theirs.bytes != p->expected.bytes ? "amounts of data" : "datatypes",
		p->number, p->call, here, p->rank, (unsigned long long)p->expected.bytes,
		p->expected.sign ? " of " : "",
		p->expected.sign ? weft_mpi_check_elements(p->expected.sign) : "", p->from,
		p->across ? " of the other group" : "", (unsigned long long)p->theirs.bytes,
		p->theirs.sign ? " of " : "",
		p->theirs.sign ? weft_mpi_check_elements(p->theirs.sign) : "", there);
}

static void judge_pair(const struct pair *p)
{
	if (p->theirs.bytes != p->expected.bytes || p->theirs.signature != p->expected.signature)
		report_pair(p);
}

static void judge_talk(const struct weft_mpi_check_talk *t)
{
	judge_pair((const struct pair *)t);
}

static struct pair *pair_new(const struct round *r, int from)
{
	struct weft_mpi_comm *c = r->k->comm;
	struct pair *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->talk.comm = c;
	p->talk.judge = judge_talk;
	p->talk.loose = true;
	p->call = r->call;
	p->site = r->site;
	p->number = r->number;
	p->rank = c->rank;
	p->from = from;
	p->across = c->inter;
	snprintf(p->name, sizeof p->name, "%s", weft_mpi_check_comm(r->k->handle));
	return p;
}

/* To one member, and from one; negative: none.  i, j: their places in the arguments. */
static void exchange_blocks(const struct round *r, int to, int i, int from, int j)
{
	struct weft_mpi_comm *c = r->k->comm;
	struct pair *p = pair_new(r, from);
	int tag = WEFT_MPI_CHECK_TAG_BLOCK | (int)(r->number & WEFT_MPI_CHECK_TAG_MASK);

	if (!p)
		return;
	if (to >= 0)
		p->mine = given_block(r->k, i);
	p->mine.place = r->place;
	if (from >= 0)
		p->expected = expected_block(&r->k->a, j);
	weft_mpi_check_talk_start(&p->talk, tag, to < 0 ? -1 : weft_mpi_comm_peer(c, to), &p->mine,
				  from < 0 ? -1 : weft_mpi_comm_peer(c, from), &p->theirs,
				  sizeof p->mine);
}

/* What the member gives to itself. */
static void compare_own(const struct round *r, int i)
{
	struct pair *p = r->k->a.in_place ? NULL : pair_new(r, r->k->comm->rank);

	if (!p)
		return;
	p->theirs = given_block(r->k, i);
	p->theirs.place = r->place;
	p->expected = expected_block(&r->k->a, i);
	judge_pair(p);
	free(p);
}

/* Is that pair compared in this call?  Both sides answer alike. */
static bool has_turn(const struct round *r, int giver, int taker)
{
	const struct weft_mpi_comm *c = r->k->comm;
	int64_t most = c->size > c->peers ? c->size : c->peers;
	int64_t apart = (taker - (int64_t)giver + most) % most;
	int64_t first = (int64_t)r->number * PARTNERS % most;

	return most <= PARTNERS || (apart - first + most) % most < PARTNERS;
}

static void compare_all(const struct round *r)
{
	const struct weft_mpi_comm *c = r->k->comm;

	for (int i = 0; i < c->peers; i++) {
		bool self = !c->inter && i == c->rank;
		if (self)
			compare_own(r, i);
		else
			exchange_blocks(r, has_turn(r, c->rank, i) ? i : -1, i,
					has_turn(r, i, c->rank) ? i : -1, i);
	}
}

static void compare_with_root(const struct round *r, bool to_root)
{
	const struct weft_mpi_comm *c = r->k->comm;
	int root = r->k->a.root;

	if (c->inter ? root == MPI_PROC_NULL : root < 0)
		return;
	if (root == (c->inter ? MPI_ROOT : c->rank)) {
		for (int i = 0; i < c->peers; i++) {
			if (!c->inter && i == c->rank)
				compare_own(r, i);
			else if (to_root && has_turn(r, i, c->rank))
				exchange_blocks(r, -1, 0, i, i);
			else if (!to_root && has_turn(r, c->rank, i))
				exchange_blocks(r, i, i, -1, 0);
		}
	} else if (to_root && has_turn(r, c->rank, root)) {
		exchange_blocks(r, root, 0, -1, 0);
	} else if (!to_root && has_turn(r, root, c->rank)) {
		exchange_blocks(r, -1, 0, root, 0);
	}
}

/* Messages between the same two match in the order of the edges; in a grid what goes out in one direction comes in from
 * the opposite one. */
static void compare_edges(const struct round *r)
{
	const struct weft_coll_args *a = &r->k->a;

	for (int i = 0; i < a->destinations; i++)
		if (a->destination[i] >= 0)
			exchange_blocks(r, a->destination[i], i, -1, 0);
	for (int i = 0; i < a->sources; i++) {
		int at = a->mirrored ? i ^ 1 : i;
		if (a->source[at] >= 0)
			exchange_blocks(r, -1, 0, a->source[at], at);
	}
}

void weft_mpi_check_blocks(const struct weft_mpi_coll_call *k, const char *call, const void *site,
			   uint32_t number)
{
	struct round r = {k, call, site, number, weft_mpi_check_offset(site)};

	switch (flow_of(k)) {
	case FLOW_TO_ROOT:
		compare_with_root(&r, true);
		break;
	case FLOW_FROM_ROOT:
		compare_with_root(&r, false);
		break;
	case FLOW_OWN:
		compare_own(&r, k->comm->rank);
		break;
	case FLOW_ALL:
		compare_all(&r);
		break;
	case FLOW_EDGES:
		compare_edges(&r);
		break;
	case FLOW_NONE:
		break;
	}
}
