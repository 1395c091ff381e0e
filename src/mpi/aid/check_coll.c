/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_coll.c - do all members of a communicator call the same collectives, in the same order, with the same root,
 * operation and amount of data?
 *
 * Each member sends a note about its call to its right neighbour in the communicator and compares that of its left one with
 * its own, whenever it comes: no call waits for that, so a program that hangs for such a mistake is told, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/aid/check.h"
#include "task/task.h"

/* Above the tags of communicators that are being made, which count one by one. */
#define TAG_NOTE 0x1c000000
#define TAG_MASK 0x03ffffff

struct coll_note {
	uint64_t bytes, signature, place;
	uint32_t number;
	int32_t root;
	uint64_t op; /* a predefined handle; 1: the user's, 0: none */
	char call[40];
};

struct compare {
	struct weft_req recv, send;
	struct coll_note mine, theirs;
	struct weft_mpi_comm *comm; /* NULL: it has been freed */
	int rank, left;
	char name[MPI_MAX_OBJECT_NAME];
	_Atomic int x_left; /* ends of messages to come */
	struct compare *next;
	bool over;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct compare *list; /* under lock: all that are not freed */

static void describe(const struct coll_note *n, char *text, size_t size)
{
	char place[WEFT_CHECK_PLACE];
	int at = snprintf(text, size, "%s", n->call);
	weft_mpi_check_place_of(n->place, place, sizeof place);
	if (n->root >= 0)
		at += snprintf(text + at, size - (size_t)at, ", root %d", n->root);
	if (n->bytes != UINT64_MAX)
		at += snprintf(text + at, size - (size_t)at, ", %llu bytes",
			       (unsigned long long)n->bytes);
	snprintf(text + at, size - (size_t)at, "%s", place);
}

static const char *difference(const struct coll_note *a, const struct coll_note *b)
{
	if (strcmp(a->call, b->call) != 0)
		return "calls";
	if (a->root != b->root)
		return "roots";
	if (a->op != b->op)
		return "operations";
	if (a->bytes != b->bytes)
		return "amounts of data";
	return a->signature != b->signature ? "datatypes" : NULL;
}

static void judge(const struct compare *k)
{
	const char *what = difference(&k->mine, &k->theirs);
	char mine[240], theirs[240];
	if (!what)
		return;
	describe(&k->mine, mine, sizeof mine);
	describe(&k->theirs, theirs, sizeof theirs);
	weft_mpi_check_report(
		"collectives that do not match on %s (different %s): in its collective "
		"number %u rank %d is in %s, rank %d in %s",
		k->name, what, k->mine.number, k->rank, mine, k->left, theirs);
}

static void message_over(struct weft_req *req, void *arg)
{
	struct compare *k = arg;
	if (req == &k->recv && !req->status.err && !req->status.cancelled &&
	    req->status.bytes == sizeof k->theirs)
		judge(k);
	/* Release: the one that frees it has our accesses behind it. */
	atomic_fetch_sub_explicit(&k->x_left, 1, memory_order_acq_rel);
}

/* Frees those whose messages are over; true: there are others, of c or of any (NULL). */
static bool sweep(const struct weft_mpi_comm *c)
{
	bool others = false;
	pthread_mutex_lock(&lock);
	for (struct compare **at = &list; *at;) {
		struct compare *k = *at;
		if (!atomic_load_explicit(&k->x_left, memory_order_acquire)) {
			*at = k->next;
			free(k);
			continue;
		}
		others |= !c || k->comm == c;
		at = &k->next;
	}
	pthread_mutex_unlock(&lock);
	return others;
}

static bool start(struct compare *k, bool send, int peer)
{
	struct weft_req *req = send ? &k->send : &k->recv;
	struct weft_buf b = send ? weft_data_buf_flat(&k->mine, sizeof k->mine)
				 : weft_data_buf_flat(&k->theirs, sizeof k->theirs);
	int tag = TAG_NOTE | (int)(k->mine.number & TAG_MASK);
	weft_comm_req_init(req, message_over, k);
	weft_err err =
		send ? weft_comm_core_isend(req, k->comm->coll, peer, tag, &b, WEFT_SEND_STANDARD)
		     : weft_comm_core_irecv(req, k->comm->coll, peer, tag, &b);
	if (err)
		atomic_fetch_sub_explicit(&k->x_left, 1, memory_order_acq_rel);
	return !err;
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

static void describe_mine(struct coll_note *n, uint32_t number)
{
	size_t length = strlen(announced.call);
	*n = (struct coll_note){.number = number,
				.root = announced.root,
				.op = op_of(announced.op),
				.place = weft_mpi_check_offset(announced.site),
				.bytes = UINT64_MAX};
	if (announced.count >= 0)
		n->signature = weft_mpi_check_signature(announced.count, announced.type, &n->bytes);
	if (length > 2 && strcmp(announced.call + length - 2, "_c") == 0)
		length -= 2; /* the same collective */
	if (length >= sizeof n->call)
		length = sizeof n->call - 1;
	memcpy(n->call, announced.call, length);
}

void weft_mpi_check_coll_begin(struct weft_mpi_comm *c)
{
	if (!announced.call || c->inter || c->size < 2)
		return;
	struct compare *k = calloc(1, sizeof *k);
	(void)sweep(c);
	uint32_t n = ++c->checked;
	if (!k)
		return;
	k->comm = c;
	k->rank = c->rank;
	k->left = (c->rank + c->size - 1) % c->size;
	describe_mine(&k->mine, n);
	snprintf(k->name, sizeof k->name, "%s", weft_mpi_check_comm(announced.comm));
	announced.call = NULL;
	atomic_store_explicit(&k->x_left, 2, memory_order_relaxed); /* published by the lock */
	pthread_mutex_lock(&lock);
	k->next = list;
	list = k;
	pthread_mutex_unlock(&lock);
	(void)start(k, false, weft_mpi_comm_peer(c, k->left));
	(void)start(k, true, weft_mpi_comm_peer(c, (c->rank + 1) % c->size));
}

void weft_mpi_check_coll_end(MPI_Comm comm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	if (!weft_mpi_checking || !c || c->inter)
		return;
	/* Ends: every member has sent as many notes when it frees the communicator. */
	while (sweep(c))
		weft_engine_poll();
}

void weft_mpi_check_coll_fini(void)
{
	/* All members are in MPI_Finalize: notes that are to come are under way.  A member that has called fewer
	 * collectives has sent fewer. */
	uint64_t until = weft_clock_ns() + 50 * 1000000u;
	while (sweep(NULL) && weft_clock_ns() < until)
		weft_engine_poll();
	pthread_mutex_lock(&lock);
	for (struct compare *k = list; k; k = k->next)
		k->over = true;
	pthread_mutex_unlock(&lock);
	for (bool some = true; some;) {
		struct compare *k;
		pthread_mutex_lock(&lock);
		for (k = list; k && !k->over; k = k->next)
			;
		if (k)
			k->over = false;
		pthread_mutex_unlock(&lock);
		some = k != NULL;
		if (k && atomic_load_explicit(&k->x_left, memory_order_acquire))
			(void)weft_comm_recv_cancel(&k->recv);
	}
	while (sweep(NULL)) /* ends: receives are cancelled, sends are small */
		weft_engine_poll();
}
