/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pollset.c - a descriptor for a set of requests: a wait set of the engine over their completions.
 *
 * What is in a set is wanted at once, though no thread waits: an arrival wakes the watcher.
 */
#include <mpi-ext.h>
#include <stdlib.h>
#include <weft/pollable.h>

#include "mpi/entry.h"
#include "mpi/p2p/request.h"
#include "task/task.h"
#include "task/waiting/waitset.h"

struct MPIX_Pollset_s {
	struct weft_waitset *waits;
	int in; /* requests in it */
};

/* For what wants a call at once. */
static struct weft_completion now = {WEFT_COMPLETION_DONE};

static int pollset_create(MPIX_Pollset *set)
{
	if (!set)
		return weft_mpi_bad_pointer("set");
	MPIX_Pollset s = calloc(1, sizeof(*s));
	weft_err err = s ? weft_waitset_create(&s->waits) : WEFT_ERR_NOMEM;
	if (err) {
		free(s);
		return weft_mpi_err_of(err);
	}
	*set = s;
	return MPI_SUCCESS;
}

static int pollset_destroy(MPIX_Pollset *set)
{
	if (!set || !*set)
		return weft_mpi_bad_pointer("set");
	weft_waitset_destroy((*set)->waits);
	weft_task_engine_want(-(*set)->in);
	free(*set);
	*set = MPIX_POLLSET_NULL;
	return MPI_SUCCESS;
}

static int pollset_add(MPIX_Pollset set, MPI_Request request, void *key)
{
	struct weft_mpi_request *r;
	int err = set ? weft_mpi_request_named(request, &r) : weft_mpi_bad_pointer("set");

	if (err)
		return err;
	if (!r->active)
		return weft_mpi_err(MPI_ERR_REQUEST, "the request is not active");
	if (r->continued)
		return weft_mpi_err(MPI_ERR_REQUEST, "the request has a continuation");
	/* Advances it, too, where it must be. */
	struct weft_completion *c = weft_mpi_request_done(r) ? &now : r->ops->wait_on(r);
	weft_err bad = weft_task_waitset_add(set->waits, c ? c : &now, key);
	if (bad)
		return weft_mpi_err_of(bad);
	set->in++;
	weft_task_engine_want(1);
	return MPI_SUCCESS;
}

static int pollset_take(MPIX_Pollset set, int max, void *keys[], int *count)
{
	if (!set || !count || (max > 0 && !keys))
		return weft_mpi_bad_pointer(!set ? "set" : !count ? "count" : "keys");
	if (max < 0)
		return weft_mpi_err(MPI_ERR_COUNT, "max is negative (%d)", max);
	*count = (int)weft_waitset_take(set->waits, keys, (size_t)max);
	set->in -= *count;
	if (*count)
		weft_task_engine_want(-*count);
	return MPI_SUCCESS;
}

static int pollset_descriptor(MPIX_Pollset set, int *fd)
{
	if (!set || !fd)
		return weft_mpi_bad_pointer(set ? "fd" : "set");
	*fd = weft_waitset_fd(set->waits);
	return MPI_SUCCESS;
}

static int pollset_arm(MPIX_Pollset set, int *ready)
{
	if (!set || !ready)
		return weft_mpi_bad_pointer(set ? "ready" : "set");
	weft_err err = weft_waitset_arm(set->waits);
	*ready = err == WEFT_AGAIN;
	return err && err != WEFT_AGAIN ? weft_mpi_err_of(err) : MPI_SUCCESS;
}

/* ---- entry points ------------------------------------------------------------------------- */

static int code_of(int err, const char *func)
{
	return err ? weft_mpi_raise(err, func) : MPI_SUCCESS;
}

static void require_running(const char *func)
{
	if (weft_unlikely(!weft_mpi_running()))
		weft_mpi_not_running(func);
}

WEFT_API int PMPIX_Pollset_create(MPIX_Pollset *set)
{
	require_running("MPIX_Pollset_create");
	return code_of(pollset_create(set), "MPIX_Pollset_create");
}

WEFT_API int PMPIX_Pollset_free(MPIX_Pollset *set)
{
	require_running("MPIX_Pollset_free");
	return code_of(pollset_destroy(set), "MPIX_Pollset_free");
}

WEFT_API int PMPIX_Pollset_add(MPIX_Pollset set, MPI_Request request, void *key)
{
	require_running("MPIX_Pollset_add");
	return code_of(pollset_add(set, request, key), "MPIX_Pollset_add");
}

WEFT_API int PMPIX_Pollset_take(MPIX_Pollset set, int max, void *keys[], int *count)
{
	require_running("MPIX_Pollset_take");
	return code_of(pollset_take(set, max, keys, count), "MPIX_Pollset_take");
}

WEFT_API int PMPIX_Pollset_fd(MPIX_Pollset set, int *fd)
{
	require_running("MPIX_Pollset_fd");
	return code_of(pollset_descriptor(set, fd), "MPIX_Pollset_fd");
}

WEFT_API int PMPIX_Pollset_arm(MPIX_Pollset set, int *ready)
{
	require_running("MPIX_Pollset_arm");
	return code_of(pollset_arm(set, ready), "MPIX_Pollset_arm");
}

WEFT_API int MPIX_Pollset_create(MPIX_Pollset *set)
	__attribute__((weak, alias("PMPIX_Pollset_create")));
WEFT_API int MPIX_Pollset_free(MPIX_Pollset *set)
	__attribute__((weak, alias("PMPIX_Pollset_free")));
WEFT_API int MPIX_Pollset_add(MPIX_Pollset set, MPI_Request request, void *key)
	__attribute__((weak, alias("PMPIX_Pollset_add")));
WEFT_API int MPIX_Pollset_take(MPIX_Pollset set, int max, void *keys[], int *count)
	__attribute__((weak, alias("PMPIX_Pollset_take")));
WEFT_API int MPIX_Pollset_fd(MPIX_Pollset set, int *fd)
	__attribute__((weak, alias("PMPIX_Pollset_fd")));
WEFT_API int MPIX_Pollset_arm(MPIX_Pollset set, int *ready)
	__attribute__((weak, alias("PMPIX_Pollset_arm")));
