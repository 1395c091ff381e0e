/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_made.c - where each handle was made, and freed: for leaks, and for handles that are used after that.
 *
 * Requests are forgotten when they are completed; of other objects the last FREED_KEPT that were freed are kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include "base/assert.h"
#include "mpi/aid/check.h"
#include "mpi/object.h"

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

static uint64_t number(const void *handle)
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
	uint64_t h = number(handle);
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
	const struct made *m = *place_locked(number(handle));
	const char *call = m ? m->call : NULL;
	*site_p = m ? m->site : NULL;
	pthread_mutex_unlock(&lock);
	return call;
}

void weft_mpi_check_freed(const char *call, const void *site, const void *handle)
{
	uint64_t h = number(handle);
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
	struct made *found = *place_locked(number(handle));
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
	forget_locked(number(request));
	pthread_mutex_unlock(&lock);
}

void weft_mpi_check_leaks(void)
{
	unsigned count[WEFT_MPI_KIND_COUNT] = {0};
	for (int i = 0; i < BUCKETS; i++)
		for (struct made *m = bucket[i]; m; m = m->next) {
			enum weft_mpi_kind kind = kind_of(m->handle);
			char place[WEFT_CHECK_PLACE];
			if (!kind_name[kind] || !weft_mpi_object_find_dynamic(m->handle, kind) ||
			    count[kind]++ >= LEAKS_SHOWN)
				continue;
			weft_mpi_check_place(m->site, place, sizeof place);
			weft_mpi_check_report("MPI_Finalize: a %s that %s made%s was not %s",
					      kind_name[kind], m->call, place,
					      kind == WEFT_MPI_REQUEST ? "completed or freed"
								       : "freed");
		}
	for (int k = 0; k < WEFT_MPI_KIND_COUNT; k++)
		if (count[k] > LEAKS_SHOWN)
			weft_mpi_check_report("MPI_Finalize: and %u more of kind %s",
					      count[k] - LEAKS_SHOWN, kind_name[k]);
}
