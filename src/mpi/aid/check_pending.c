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

#define PENDING_MAX 4096 /* what is started beyond them is not checked */
#define BUCKETS 1024

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
	struct pending *next;           /* in its bucket */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *bucket[BUCKETS]; /* under lock: by request */
static unsigned listed;                 /* under lock: in buckets */

/* Buffers without holes, by where they begin. */
static struct pending *flat[PENDING_MAX]; /* under lock */
static unsigned flats;                    /* under lock */
static uintptr_t longest;                 /* under lock: at least the longest of them */

/* ---- the two indexes ---------------------------------------------------------------------------- */

static struct pending **bucket_of(MPI_Request request)
{
	return &bucket[((uint64_t)(uintptr_t)request * 0x9e3779b97f4a7c15u) >> 54];
}

/* The first that begins at `from` or behind. */
static unsigned flat_at_locked(uintptr_t from)
{
	weft_assert_held(weft_mutex, &lock);
	unsigned lo = 0, hi = flats;
	while (lo < hi) { /* halves */
		unsigned mid = (lo + hi) / 2;
		if (flat[mid]->from < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void add_locked(struct pending *p)
{
	weft_assert_held(weft_mutex, &lock);
	struct pending **b = bucket_of(p->request);
	p->next = *b;
	*b = p;
	listed++;
	if (!p->flat)
		return;
	unsigned at = flat_at_locked(p->from);
	memmove(&flat[at + 1], &flat[at], (flats - at) * sizeof(struct pending *));
	flat[at] = p;
	flats++;
	if (p->to - p->from > longest)
		longest = p->to - p->from;
}

static void remove_flat_locked(const struct pending *p)
{
	weft_assert_held(weft_mutex, &lock);
	unsigned at = flat_at_locked(p->from);
	while (at < flats && flat[at] != p) /* ends: it is there */
		at++;
	if (at == flats)
		return;
	flats--;
	memmove(&flat[at], &flat[at + 1], (flats - at) * sizeof(struct pending *));
	if (!flats)
		longest = 0;
}

/* Takes what a request that has ended was about out of the indexes; NULL: nothing was listed.  The caller judges
 * it before its own call returns: from then on the buffer is the program's. */
static struct pending *take_ended(MPI_Request request)
{
	weft_mpi_check_forget(request);
	pthread_mutex_lock(&lock);
	struct pending **at = bucket_of(request), *p;
	while (*at && (*at)->request != request) /* ends: the list does */
		at = &(*at)->next;
	if ((p = *at)) {
		*at = p->next;
		listed--;
		if (p->flat)
			remove_flat_locked(p);
	}
	pthread_mutex_unlock(&lock);
	return p;
}

/* ---- buffers ------------------------------------------------------------------------------------ */

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
static bool describe_pending(struct pending *p, const void *buf, MPI_Count count, MPI_Datatype type)
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
	if (!p->flat)
		return false;
	unsigned i = flat_at_locked(p->from > longest ? p->from - longest : 0);
	for (; i < flats && flat[i]->from < p->to; i++)
		if (p->from < flat[i]->to && !(p->send && flat[i]->send)) {
			*q = *flat[i];
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
	if (!weft_mpi_checking || peer == MPI_PROC_NULL || !describe_pending(&p, buf, count, type))
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
	if (!describe_pending(p, buf, count, type)) {
		free(p);
		return;
	}
	weft_data_type_ref(p->layout);
	if (send)
		p->sum = sum_of(&p->buf);
	pthread_mutex_lock(&lock);
	bool bad = overlaps_locked(p, &q), room = listed < PENDING_MAX;
	if (room && weft_mpi_request_of(request))
		add_locked(p);
	else
		room = false;
	pthread_mutex_unlock(&lock);
	if (bad)
		report_overlap(p, &q);
	if (!room)
		pending_free(p);
}

bool weft_mpi_check_pending_of(const void *base, const char **call_p, const void **site_p)
{
	pthread_mutex_lock(&lock);
	struct pending *p = NULL;
	for (int i = 0; i < BUCKETS && !p; i++)
		for (p = bucket[i];
		     p && (p->send || p->buf.base != base);) /* ends: the list does */
			p = p->next;
	if (p) {
		*call_p = p->call;
		*site_p = p->site;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

struct weft_mpi_check_about {
	int n;
	MPI_Request request[];
};

struct weft_mpi_check_about *weft_mpi_check_about(int n, const MPI_Request requests[])
{
	if (!weft_mpi_checking || n <= 0 || !requests)
		return NULL;
	struct weft_mpi_check_about *a = malloc(sizeof *a + (size_t)n * sizeof *a->request);
	if (!a)
		return NULL;
	a->n = n;
	memcpy(a->request, requests, (size_t)n * sizeof *a->request);
	return a;
}

static void judge_sent(const struct pending *p)
{
	char place[WEFT_CHECK_PLACE];
	if (!p->send || sum_of(&p->buf) == p->sum)
		return;
	weft_mpi_check_place(p->site, place, sizeof place);
	weft_mpi_check_report("%s%s (to rank %d, tag %d, on %s): the data has changed "
			      "before the send was completed",
			      p->call, place, p->peer, p->tag, weft_mpi_check_comm(p->comm));
}

void weft_mpi_check_completed(struct weft_mpi_check_about *a)
{
	if (!a)
		return;
	for (int i = 0; i < a->n; i++) {
		struct pending *p = NULL;
		if (a->request[i] != MPI_REQUEST_NULL && !weft_mpi_request_of(a->request[i]))
			p = take_ended(a->request[i]);
		if (p) {
			judge_sent(p);
			pending_free(p);
		}
	}
	free(a);
}
