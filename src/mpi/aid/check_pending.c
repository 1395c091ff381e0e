/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_pending.c - buffers of operations that are not completed: two that overlap, where one of them is received
 * into, and sent data that has changed before its send was completed.
 *
 * Overlap is judged for buffers without holes alone: others may interleave.
 */
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "mpi/aid/check.h"
#include "mpi/type/type.h"

#define PENDING_MAX                                                                                \
	4096 /* looked through by each call: what is started beyond them is not checked */

struct pending {
	MPI_Request request;
	const char *call;
	const void *site;
	MPI_Comm comm;
	int peer, tag;
	bool send, flat;
	uint64_t sum; /* send: of its data */
	uintptr_t from, to;
	struct weft_buf buf;
	const struct weft_type *layout; /* referenced */
	struct pending *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *list; /* under lock */
static unsigned listed;      /* under lock: its length */

static uint64_t sum_of(const struct weft_buf *b)
{
	uint64_t sum = b->bytes;
	unsigned char piece[256];
	for (size_t at = 0; at < b->bytes; at += sizeof piece) {
		size_t n = b->bytes - at < sizeof piece ? b->bytes - at : sizeof piece;
		weft_data_pack(b, at, piece, n);
		for (size_t i = 0; i < n; i++)
			sum = (sum ^ piece[i]) * 0x100000001b3u;
	}
	return sum;
}

/* False: no data, or nothing that could be said about it. */
static bool describe(struct pending *p, const void *buf, MPI_Count count, MPI_Datatype type)
{
	struct weft_mpi_type *t = weft_mpi_type_of(type);
	if (!t || !t->layout || count <= 0 || weft_mpi_buf(buf, count, type, &p->buf) ||
	    !p->buf.bytes)
		return false;
	p->layout = t->layout;
	p->flat = t->layout->flat;
	p->from = (uintptr_t)buf + (uintptr_t)t->layout->true_lb;
	p->to = p->from + p->buf.bytes;
	return true;
}

static void pending_free(struct pending *p)
{
	weft_data_type_unref(p->layout);
	free(p);
}

static void report_overlap(const struct pending *p, const struct pending *q)
{
	char here[WEFT_CHECK_PLACE], there[WEFT_CHECK_PLACE];
	weft_mpi_check_place(p->site, here, sizeof here);
	weft_mpi_check_place(q->site, there, sizeof there);
	weft_mpi_check_report(
		"%s%s (rank %d, tag %d, on %s): its buffer overlaps that of %s%s (rank "
		"%d, tag %d), which is not completed",
		p->call, here, p->peer, p->tag, weft_mpi_check_comm(p->comm), q->call, there,
		q->peer, q->tag);
}

/* The first pending operation whose buffer may not be used as p uses its own; copied to *q. */
static bool overlaps_locked(const struct pending *p, struct pending *q)
{
	weft_assert_held(weft_mutex, &lock);
	for (struct pending *o = list; o; o = o->next)
		if (p->flat && o->flat && p->from < o->to && o->from < p->to &&
		    !(p->send && o->send) && weft_mpi_request_of(o->request)) {
			*q = *o;
			return true;
		}
	return false;
}

void weft_mpi_check_used(const char *call, const void *site, bool send, const void *buf,
			 MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)
{
	struct pending p = {.call = call,
			    .site = site,
			    .comm = comm,
			    .peer = peer,
			    .tag = tag,
			    .send = send},
		       q;
	if (!weft_mpi_checking || peer == MPI_PROC_NULL || !describe(&p, buf, count, type))
		return;
	pthread_mutex_lock(&lock);
	bool bad = overlaps_locked(&p, &q);
	pthread_mutex_unlock(&lock);
	if (bad)
		report_overlap(&p, &q);
}

void weft_mpi_check_started(const char *call, const void *site, bool send, const void *buf,
			    MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
			    MPI_Request request)
{
	struct pending *p, q;
	if (!weft_mpi_checking || peer == MPI_PROC_NULL || !(p = malloc(sizeof *p)))
		return;
	*p = (struct pending){.request = request,
			      .call = call,
			      .site = site,
			      .comm = comm,
			      .peer = peer,
			      .tag = tag,
			      .send = send};
	if (!describe(p, buf, count, type)) {
		free(p);
		return;
	}
	weft_data_type_ref(p->layout);
	if (send)
		p->sum = sum_of(&p->buf);
	pthread_mutex_lock(&lock);
	bool bad = overlaps_locked(p, &q), room = listed < PENDING_MAX;
	if (room) {
		p->next = list;
		list = p;
		listed++;
	}
	pthread_mutex_unlock(&lock);
	if (bad)
		report_overlap(p, &q);
	if (!room)
		pending_free(p);
}

bool weft_mpi_check_pending_of(const void *base, const char **call_p, const void **site_p)
{
	pthread_mutex_lock(&lock);
	struct pending *p = list;
	while (p && (p->send || p->buf.base != base)) /* ends: the list does */
		p = p->next;
	if (p) {
		*call_p = p->call;
		*site_p = p->site;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

/* Takes one that is completed out of the list; NULL: none. */
static struct pending *take_completed(void)
{
	struct pending *p = NULL;
	pthread_mutex_lock(&lock);
	for (struct pending **at = &list; *at; at = &(*at)->next)
		if (!weft_mpi_request_of((*at)->request)) {
			p = *at;
			*at = p->next;
			listed--;
			break;
		}
	pthread_mutex_unlock(&lock);
	return p;
}

void weft_mpi_check_completed(void)
{
	if (!weft_mpi_checking)
		return;
	for (struct pending *p; (p = take_completed());) { /* ends: each is taken once */
		if (p->send && sum_of(&p->buf) != p->sum) {
			char place[WEFT_CHECK_PLACE];
			weft_mpi_check_place(p->site, place, sizeof place);
			weft_mpi_check_report(
				"%s%s (to rank %d, tag %d, on %s): the data has changed "
				"before the send was completed",
				p->call, place, p->peer, p->tag, weft_mpi_check_comm(p->comm));
		}
		pending_free(p);
	}
}
