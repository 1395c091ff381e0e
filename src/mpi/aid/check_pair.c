/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_pair.c - do the two sides of a message mean the same elements?  The sender's signature travels with
 * it (comm/sign.h) and is compared with the receive's where the two meet, on whatever thread that is.
 */
#include <stdio.h>
#include <stdlib.h>
#include "base/assert.h"
#include "comm/sign.h"
#include "mpi/aid/check.h"
#include "mpi/p2p/request.h"
#include "mpi/type/type.h"

/* The receive that a thread is in; one for each thread, kept when it ends. */
struct place {
	const char *call; /* under lock, all */
	const void *site, *base;
	struct place *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places; /* under lock */
static _Thread_local struct place *own;

static const char *const basic_name[WEFT_BASIC_COUNT] = {
#define WEFT_BASIC(id, ctype, class, ext) [WEFT_B_##id] = #ctype,
#include "data/basic_table.h"
#undef WEFT_BASIC
};

uint32_t weft_mpi_check_layout_sign(MPI_Count count, const struct weft_type *t)
{
	uint64_t bytes;

	if (!t || count <= 0 || !t->size)
		return 0;
	if (t->sig->kind == WEFT_SIG_BASIC)
		return (uint32_t)(t->sig->basic + 1u) << 24;
	return WEFT_SIGN_MIXED << 24 |
	       ((uint32_t)weft_mpi_check_layout_signature(count, t, &bytes) & WEFT_SIGN_HASH);
}

uint32_t weft_mpi_check_sign(MPI_Count count, MPI_Datatype type)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);

	/* Packed data may be received as what it is, and the reverse. */
	return t && type != MPI_PACKED ? weft_mpi_check_layout_sign(count, t->layout) : 0;
}

static void say_place(const char *call, const void *site, const void *base)
{
	if (!own && !(own = calloc(1, sizeof *own)))
		return;
	pthread_mutex_lock(&lock);
	if (!own->call && !own->next && places != own) {
		own->next = places;
		places = own;
	}
	own->call = call;
	own->site = site;
	own->base = base;
	pthread_mutex_unlock(&lock);
}

void weft_mpi_check_place_said(const char *call, const void *site, const void *buf)
{
	if (weft_mpi_checking)
		say_place(call, site, buf);
}

void weft_mpi_check_message(const char *call, const void *site, bool send, const void *buf,
			    MPI_Count count, MPI_Datatype type)
{
	if (!weft_mpi_checking)
		return;
	if (send) {
		weft_comm_sign_next.send = weft_mpi_check_sign(count, type);
		return;
	}
	weft_comm_sign_next.recv = weft_mpi_check_sign(count, type);
	say_place(call, site, buf);
}

/* A call is over, which may have used neither: to MPI_PROC_NULL, or refused. */
void weft_mpi_check_message_over(void)
{
	if (!weft_mpi_checking)
		return;
	weft_comm_sign_next = (struct weft_comm_sign_next){0};
}

void weft_mpi_check_message_keep(struct weft_mpi_request *r)
{
	r->sign =
		r->mode == WEFT_MPI_MODE_RECV ? weft_comm_sign_next.recv : weft_comm_sign_next.send;
	weft_mpi_check_message_over();
}

void weft_mpi_check_message_start(const struct weft_mpi_request *r)
{
	const void *site;
	const char *call = weft_mpi_check_made_by(weft_mpi_request_handle(r), &site);

	weft_mpi_check_message_over();
	if (!r->ops->by_core)
		return;
	if (r->mode != WEFT_MPI_MODE_RECV) {
		weft_comm_sign_next.send = r->sign;
		return;
	}
	weft_comm_sign_next.recv = r->sign;
	say_place(call ? call : "a persistent receive", site, r->buf.base);
}

static void find_place(const void *base, const char **call_p, const void **site_p)
{
	*call_p = "a receive";
	*site_p = NULL;
	if (weft_mpi_check_pending_of(base, call_p, site_p))
		return;
	pthread_mutex_lock(&lock);
	for (struct place *p = places; p; p = p->next)
		if (p->base == base && p->call) {
			*call_p = p->call;
			*site_p = p->site;
		}
	pthread_mutex_unlock(&lock);
}

const char *weft_mpi_check_elements(uint32_t sign)
{
	unsigned basic = (sign >> 24) - 1;
	return sign >> 24 == WEFT_SIGN_MIXED ? "elements of several types"
	       : basic < WEFT_BASIC_COUNT    ? basic_name[basic]
					     : "something else";
}

static void report_difference(const struct weft_req *recv, const char *comm, int peer, int tag,
			      uint64_t bytes, uint32_t theirs, uint32_t ours)
{
	char where[WEFT_CHECK_PLACE];
	const char *call;
	const void *site;

	find_place(recv->buf.base, &call, &site);
	weft_mpi_check_place(site, where, sizeof where);
	weft_mpi_check_report(
		"%s%s (tag %d, on %s): process %d has sent %llu bytes of %s, the receive means "
		"%s%s: both sides must name the same elements",
		call, where, tag, comm[0] ? comm : "an unnamed communicator", peer,
		(unsigned long long)bytes, weft_mpi_check_elements(theirs),
		theirs >> 24 == WEFT_SIGN_MIXED && ours >> 24 == WEFT_SIGN_MIXED ? "other " : "",
		weft_mpi_check_elements(ours));
}

void weft_mpi_check_part(const void *base, int peer, int tag, uint64_t bytes, uint32_t theirs,
			 uint32_t ours)
{
	char where[WEFT_CHECK_PLACE];
	const char *call;
	const void *site;

	if (!theirs || theirs == ours || !bytes)
		return;
	find_place(base, &call, &site);
	weft_mpi_check_place(site, where, sizeof where);
	weft_mpi_check_report(
		"%s%s (tag %d): the partitions of process %d are %llu bytes of %s, those "
		"here are %s%s: both sides must name the same elements",
		site ? call : "MPI_Precv_init", where, tag, peer, (unsigned long long)bytes,
		weft_mpi_check_elements(theirs), theirs >> 24 == ours >> 24 ? "other " : "",
		weft_mpi_check_elements(ours));
}

void weft_mpi_check_pair_init(void)
{
	weft_comm_sign_differs = report_difference;
	weft_comm_signing = weft_mpi_checking;
}
