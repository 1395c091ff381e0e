/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_made.c - where each handle was made, and freed: for leaks, and for handles that are used after that.
 *
 * Requests are forgotten when they are completed; of other objects the last FREED_KEPT that were freed are kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "mpi/aid/check.h"
#include "mpi/object.h"
#include "mpi/p2p/request.h"

#define BUCKETS 4096
#define FREED_KEPT 1024
#define LEAKS_SHOWN 5 /* of a kind */

struct made {
	uint64_t handle;
	const char *call, *freed_call;
	const void *site, *freed_site;
	struct made *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct made *bucket[BUCKETS];        /* under lock */
static uint64_t freed[FREED_KEPT], n_freed; /* under lock */

static const char *const kind_name[WEFT_MPI_KIND_COUNT] = {
	[WEFT_MPI_COMM] = "communicator", [WEFT_MPI_GROUP] = "group",
	[WEFT_MPI_WIN] = "window",        [WEFT_MPI_FILE] = "file",
	[WEFT_MPI_SESSION] = "session",   [WEFT_MPI_MESSAGE] = "message",
	[WEFT_MPI_INFO] = "info object",  [WEFT_MPI_ERRHANDLER] = "error handler",
	[WEFT_MPI_REQUEST] = "request",   [WEFT_MPI_TYPE] = "datatype",
	[WEFT_MPI_OP] = "operation",
};

static uint64_t handle_number(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static enum weft_mpi_kind kind_of(uint64_t h)
{
	uint64_t kind = h >> WEFT_MPI_KIND_SHIFT;
	return kind < WEFT_MPI_KIND_COUNT ? (enum weft_mpi_kind)kind : WEFT_MPI_NONE;
}

static struct made **place_locked(uint64_t h)
{
	weft_assert_held(weft_mutex, &lock);
	struct made **at = &bucket[(h * 0x9e3779b97f4a7c15u) >> 52];
	while (*at && (*at)->handle != h) /* ends: the list does */
		at = &(*at)->next;
	return at;
}

static void forget_locked(uint64_t h)
{
	weft_assert_held(weft_mutex, &lock);
	struct made **at = place_locked(h), *m = *at;
	if (m) {
		*at = m->next;
		free(m);
	}
}

void weft_mpi_check_made(const char *call, const void *site, const void *handle)
{
	uint64_t h = handle_number(handle);
	if (!weft_mpi_checking || h < WEFT_MPI_PREDEFINED_END)
		return;
	pthread_mutex_lock(&lock);
	struct made **at = place_locked(h);
	if (!*at) {
		*at = malloc(sizeof **at);
		if (*at)
			**at = (struct made){.handle = h, .call = call, .site = site};
	}
	pthread_mutex_unlock(&lock);
}

const char *weft_mpi_check_made_by(const void *handle, const void **site_p)
{
	pthread_mutex_lock(&lock);
	const struct made *m = *place_locked(handle_number(handle));
	const char *call = m ? m->call : NULL;
	*site_p = m ? m->site : NULL;
	pthread_mutex_unlock(&lock);
	return call;
}

void weft_mpi_check_freed(const char *call, const void *site, const void *handle)
{
	uint64_t h = handle_number(handle);
	if (!weft_mpi_checking || h < WEFT_MPI_PREDEFINED_END)
		return;
	pthread_mutex_lock(&lock);
	struct made *m = *place_locked(h);
	if (m && !m->freed_call) {
		m->freed_call = call;
		m->freed_site = site;
		uint64_t *slot = &freed[n_freed++ % FREED_KEPT];
		if (*slot)
			forget_locked(*slot);
		*slot = h;
	}
	pthread_mutex_unlock(&lock);
}

void weft_mpi_check_known(const void *handle, char *text, size_t size)
{
	char place[WEFT_CHECK_PLACE], gone[WEFT_CHECK_PLACE];
	struct made m = {0};
	text[0] = 0;
	if (!weft_mpi_checking)
		return;
	pthread_mutex_lock(&lock);
	struct made *found = *place_locked(handle_number(handle));
	if (found)
		m = *found;
	pthread_mutex_unlock(&lock);
	if (!m.call)
		return;
	weft_mpi_check_place(m.site, place, sizeof place);
	weft_mpi_check_place(m.freed_site, gone, sizeof gone);
	snprintf(text, size, ": made by %s%s%s%s%s", m.call, place,
		 m.freed_call ? ", freed by " : "", m.freed_call ? m.freed_call : "", gone);
}

void weft_mpi_check_forget(const void *request)
{
	pthread_mutex_lock(&lock);
	forget_locked(handle_number(request));
	pthread_mutex_unlock(&lock);
}

/* " (name)", or of a message " (from rank 1, tag 7, on MPI_COMM_WORLD)"; else "". */
static void describe_object(uint64_t h, enum weft_mpi_kind kind, char *text, size_t size)
{
	char name[MPI_MAX_OBJECT_NAME] = "";
	void *handle = (void *)(uintptr_t)h;
	const struct weft_mpi_request *r;
	int length;

	text[0] = 0;
	switch (kind) {
	case WEFT_MPI_COMM:
		(void)weft_mpi_Comm_get_name(handle, name, &length);
		break;
	case WEFT_MPI_TYPE:
		(void)weft_mpi_Type_get_name(handle, name, &length);
		break;
	case WEFT_MPI_WIN:
		(void)weft_mpi_Win_get_name(handle, name, &length);
		break;
	case WEFT_MPI_REQUEST:
		r = (const struct weft_mpi_request *)weft_mpi_object_find_dynamic(h, kind);
		if (r && r->ops->by_core && r->comm && r->peer >= 0 && r->tag >= 0)
			snprintf(text, size, " (%s rank %d, tag %d, on %s)",
				 r->mode == WEFT_MPI_MODE_RECV ? "from" : "to", r->peer, r->tag,
				 r->comm->name[0] ? r->comm->name : "an unnamed communicator");
		return;
	default:
		return;
	}
	if (name[0])
		snprintf(text, size, " (%s)", name);
}

void weft_mpi_check_leaks(void)
{
	unsigned count[WEFT_MPI_KIND_COUNT] = {0};
	for (int i = 0; i < BUCKETS; i++)
		for (struct made *m = bucket[i]; m; m = m->next) {
			enum weft_mpi_kind kind = kind_of(m->handle);
			char place[WEFT_CHECK_PLACE], which[MPI_MAX_OBJECT_NAME + 64];
			if (!kind_name[kind] || !weft_mpi_object_find_dynamic(m->handle, kind) ||
			    count[kind]++ >= LEAKS_SHOWN)
				continue;
			weft_mpi_check_place(m->site, place, sizeof place);
			describe_object(m->handle, kind, which, sizeof which);
			weft_mpi_check_report("MPI_Finalize: %s %s%s that %s made%s was not %s",
					      strchr("aeiou", kind_name[kind][0]) ? "an" : "a",
					      kind_name[kind], which, m->call, place,
					      kind == WEFT_MPI_REQUEST ? "completed or freed"
								       : "freed");
		}
	for (int k = 0; k < WEFT_MPI_KIND_COUNT; k++)
		if (count[k] > LEAKS_SHOWN)
			weft_mpi_check_report("MPI_Finalize: and %u more of kind %s",
					      count[k] - LEAKS_SHOWN, kind_name[k]);
}
