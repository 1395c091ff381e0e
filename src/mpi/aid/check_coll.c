/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_coll.c - do all members of a communicator call the same collectives, in the same order, with the same root,
 * operation and amount of data?  What makes a communicator, a window or a file of it is one of them.
 *
 * Each member sends a note about its call to its right neighbour in the communicator and compares that of its left one with
 * its own, whenever it comes: no call waits for that, so a program that hangs for such a mistake is told, too.  In an
 * intercommunicator the first members of both groups are neighbours, and the groups are no rings.  What one member gives
 * and another expects is compared by check_blocks.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/aid/check_talk.h"
#include "mpi/coll/coll_call.h"
#include "mpi/coll/op.h"

struct coll_note {
	uint64_t bytes, signature, place;
	uint64_t counts; /* a hash of them, where all members name the same */
	uint32_t number;
	int32_t root;
	uint64_t op;   /* a predefined handle; 1: the user's, 0: none */
	uint32_t sign; /* of the data: comm/sign.h */
	char call[40];
};

struct compare {
	struct weft_mpi_check_talk talk;
	struct coll_note mine, theirs;
	int rank, left;
	bool across; /* the left one is of the other group */
	char name[MPI_MAX_OBJECT_NAME];
};

static const char *op_name(uint64_t op)
{
	const struct weft_mpi_op *o =
		op > 1 ? weft_mpi_object_find((MPI_Op)(uintptr_t)op, WEFT_MPI_OP) : NULL;
	return o && o->name ? o->name : op ? "an operation of the program" : "no operation";
}

/* what: the two notes differ in that. */
static void describe_note(const struct coll_note *n, const char *what, char *text, size_t size)
{
	char place[WEFT_CHECK_PLACE];
	int at = snprintf(text, size, "%s", n->call);
	weft_mpi_check_place_of(n->place, place, sizeof place);
	if (n->root >= 0)
		at += snprintf(text + at, size - (size_t)at, ", root %d", n->root);
	if (strcmp(what, "operations") == 0)
		at += snprintf(text + at, size - (size_t)at, ", %s", op_name(n->op));
	if (n->bytes != UINT64_MAX)
		at += snprintf(text + at, size - (size_t)at, ", %llu bytes",
			       (unsigned long long)n->bytes);
	if (n->sign && strcmp(what, "datatypes") == 0)
		at += snprintf(text + at, size - (size_t)at, " of %s",
			       weft_mpi_check_elements(n->sign));
	snprintf(text + at, size - (size_t)at, "%s", place);
}

/* across: of two groups, which have other roots and amounts each. */
static const char *first_difference(const struct coll_note *a, const struct coll_note *b,
				    bool across)
{
	if (strcmp(a->call, b->call) != 0)
		return "calls";
	if (!across && a->root != b->root)
		return "roots";
	if (a->op != b->op && (!across || (a->op && b->op)))
		return "operations";
	if (across)
		return NULL;
	if (a->bytes != b->bytes)
		return "amounts of data";
	if (a->counts != b->counts)
		return "counts";
	return a->signature != b->signature ? "datatypes" : NULL;
}

static void judge_compare(const struct weft_mpi_check_talk *t)
{
	const struct compare *k = (const struct compare *)t;
	const char *what = first_difference(&k->mine, &k->theirs, k->across);
	char mine[240], theirs[240];
	if (!what)
		return;
	describe_note(&k->mine, what, mine, sizeof mine);
	describe_note(&k->theirs, what, theirs, sizeof theirs);
	weft_mpi_check_report(
		"collectives that do not match on %s (different %s): in its collective "
		"number %u rank %d is in %s, rank %d%s in %s",
		k->name, what, k->mine.number, k->rank, mine, k->left,
		k->across ? " of the other group" : "", theirs);
}

static uint64_t op_of(MPI_Op op)
{
	uint64_t h = (uint64_t)(uintptr_t)op;
	return op == MPI_OP_NULL ? 0 : h < WEFT_MPI_PREDEFINED_END ? h : 1;
}

/* Of the call that this thread is in: no wait, and so no switch, comes before it begins. */
static _Thread_local struct {
	const char *call;
	const void *site;
	MPI_Comm comm;
	int root;
	MPI_Count count;
	MPI_Datatype type;
	MPI_Op op;
} announced;

void weft_mpi_check_coll(const char *call, const void *site, MPI_Comm comm, int root,
			 MPI_Count count, MPI_Datatype type, MPI_Op op)
{
	announced.call = weft_mpi_checking ? call : NULL;
	announced.site = site;
	announced.comm = comm;
	announced.root = root;
	announced.count = count;
	announced.type = type;
	announced.op = op;
}

void weft_mpi_check_coll_refused(void)
{
	announced.call = NULL;
}

/* A group of an intercommunicator that holds the root names it by other values on each member. */
static int root_of(const struct weft_mpi_comm *c)
{
	return c->inter && announced.root < 0 ? -1 : announced.root;
}

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* MPI_Reduce_scatter wants one array of counts on all members. */
static void describe_counts(struct coll_note *n, const struct weft_coll_args *a, int size)
{
	uint64_t total = 0;

	n->signature = weft_mpi_check_layout_signature(1, a->rtype, &n->bytes);
	for (int r = 0; r < size; r++) {
		n->counts = mix_hash(n->counts, (uint64_t)a->rcounts[r]);
		total += (uint64_t)a->rcounts[r];
	}
	n->bytes *= total;
}

/* a: NULL: the call makes something of the communicator. */
static void describe_mine(struct coll_note *n, uint32_t number, const struct weft_mpi_comm *c,
			  const struct weft_coll_args *a)
{
	size_t length = strlen(announced.call);
	bool data = announced.root != MPI_PROC_NULL && announced.root != MPI_ROOT;
	*n = (struct coll_note){.number = number,
				.root = root_of(c),
				.op = op_of(announced.op),
				.place = weft_mpi_check_offset(announced.site),
				.bytes = UINT64_MAX};
	if (announced.count >= 0 && data) {
		n->signature = weft_mpi_check_signature(announced.count, announced.type, &n->bytes);
		n->sign = weft_mpi_check_sign(announced.count, announced.type);
	}
	if (a && a->kind == WEFT_COLL_REDUCE_SCATTER && !c->inter)
		describe_counts(n, a, c->size);
	if (length > 2 && strcmp(announced.call + length - 2, "_c") == 0)
		length -= 2; /* the same collective */
	if (length >= sizeof n->call)
		length = sizeof n->call - 1;
	memcpy(n->call, announced.call, length);
}

/* The neighbours' processes; -1: there is none. */
static int left_process(const struct weft_mpi_comm *c, int left)
{
	if (!c->inter)
		return weft_mpi_comm_peer(c, left);
	return c->rank ? c->group->world[left] : weft_mpi_comm_peer(c, 0);
}

static void compare_with_left(struct weft_mpi_comm *c, MPI_Comm handle,
			      const struct coll_note *mine)
{
	struct compare *k = calloc(1, sizeof *k);

	if (!k)
		return;
	k->talk.comm = c;
	k->talk.judge = judge_compare;
	k->rank = c->rank;
	k->across = c->inter && !c->rank;
	k->left = k->across ? 0 : (c->rank + c->size - 1) % c->size;
	k->mine = *mine;
	snprintf(k->name, sizeof k->name, "%s", weft_mpi_check_comm(handle));
	int tag = WEFT_MPI_CHECK_TAG_NOTE | (int)(mine->number & WEFT_MPI_CHECK_TAG_MASK);
	int right = (c->rank + 1) % c->size, from = left_process(c, k->left), to;
	if (!c->inter)
		to = weft_mpi_comm_peer(c, right);
	else
		to = right ? c->group->world[right] : -1;
	if (k->across) {
		/* The first talks to two: to the other group's first, and below to its own next. */
		struct compare *next = right ? calloc(1, sizeof *next) : NULL;
		if (next) {
			*next = *k;
			weft_mpi_check_talk_start(&next->talk, tag, to, &next->mine, -1,
						  &next->theirs, sizeof next->mine);
		}
		to = from;
	}
	weft_mpi_check_talk_start(&k->talk, tag, to, &k->mine, from, &k->theirs, sizeof k->mine);
}

void weft_mpi_check_coll_begin(struct weft_mpi_coll_call *k)
{
	struct weft_mpi_comm *c = k->comm;

	if (!announced.call || (!c->inter && c->size < 2))
		return;
	(void)weft_mpi_check_talk_sweep(c);
	uint32_t n = ++c->checked;
	struct coll_note mine;
	describe_mine(&mine, n, c, &k->a);
	compare_with_left(c, announced.comm, &mine);
	weft_mpi_check_blocks(k, announced.call, announced.site, n);
	announced.call = NULL;
}

void weft_mpi_check_coll_makes(const char *call, const void *site, MPI_Comm comm, int root)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	if (!weft_mpi_checking || !c || (!c->inter && c->size < 2))
		return;
	weft_mpi_check_coll(call, site, comm, root, -1, MPI_DATATYPE_NULL, MPI_OP_NULL);
	(void)weft_mpi_check_talk_sweep(c);
	struct coll_note mine;
	describe_mine(&mine, ++c->checked, c, NULL);
	compare_with_left(c, announced.comm, &mine);
	announced.call = NULL;
}

void weft_mpi_check_coll_last(void)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(MPI_COMM_WORLD);
	if (!weft_mpi_checking || c->size < 2)
		return;
	struct coll_note last = {
		.number = ++c->checked, .root = -1, .bytes = UINT64_MAX, .call = "MPI_Finalize"};
	compare_with_left(c, MPI_COMM_WORLD, &last);
}

void weft_mpi_check_coll_end(const char *call, MPI_Comm comm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	if (!weft_mpi_checking || !c)
		return;
	weft_mpi_check_talk_end(c);
	weft_mpi_check_lost(call, comm);
}

void weft_mpi_check_coll_fini(void)
{
	/* All members are in MPI_Finalize: notes that are to come are under way.  A member that has called fewer
	 * collectives has sent fewer, and its last one is of MPI_Finalize. */
	weft_mpi_check_talk_end(NULL);
}
