/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cont_req.c - continuation requests: where callbacks run, when all have, and which have failed.
 *
 * One lock per request, held for a few instructions, never while the program's code runs.  Its
 * bell is rung under the lock, and made new under it by the thread that is about to wait.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "mpi/cont/cont.h"
#include "mpi/entry.h"
#include "mpi/functions.h"
#include "mpi/info.h"

/* ---- lists -------------------------------------------------------------------------------- */

static void list_push(struct weft_mpi_cont_list *l, struct weft_mpi_cont *k)
{
	k->next = NULL;
	if (l->last)
		l->last->next = k;
	else
		l->first = k;
	l->last = k;
}

static struct weft_mpi_cont *list_pop(struct weft_mpi_cont_list *l)
{
	struct weft_mpi_cont *k = l->first;

	if (k) {
		l->first = k->next;
		if (!l->first)
			l->last = NULL;
	}
	return k;
}

/* ---- life --------------------------------------------------------------------------------- */

static void cont_req_unref(struct weft_mpi_cont_req *c)
{
	struct weft_mpi_cont *k;

	/* LAST -> LAST.  Carries: every access to c. */
	if (atomic_fetch_sub_explicit(&c->x_refs, 1, memory_order_acq_rel) != 1)
		return;
	weft_assert(!c->open && !c->due.first);
	while ((k = list_pop(&c->failed))) /* ends with the list */
		weft_mpi_cont_free(k);
	if (c->blamed)
		weft_mpi_comm_unref(c->blamed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void weft_mpi_cont_open(struct weft_mpi_cont_req *c)
{
	/* Relaxed: the caller has the handle. */
	atomic_fetch_add_explicit(&c->x_refs, 1, memory_order_relaxed);
	pthread_mutex_lock(&c->lock);
	c->open++;
	pthread_mutex_unlock(&c->lock);
	/* Its end is wanted at once, whether a thread waits or not. */
	if (c->everywhere)
		weft_task_engine_want(1);
}

static void ring_locked(struct weft_mpi_cont_req *c)
{
	weft_assert_held(weft_mutex, &c->lock);
	if (!weft_wait_completion_done(&c->bell))
		weft_wait_completion_signal(&c->bell);
}

void weft_mpi_cont_close(struct weft_mpi_cont *k, int code)
{
	struct weft_mpi_cont_req *c = k->of;

	pthread_mutex_lock(&c->lock);
	if (weft_unlikely(code != MPI_SUCCESS)) {
		if (!c->err) {
			c->err = code;
			weft_assert(!c->blamed);
			c->blamed = k->comm;
			k->comm = NULL;
		}
		list_push(&c->failed, k);
	}
	if (--c->open == 0)
		ring_locked(c);
	pthread_mutex_unlock(&c->lock);
	if (code == MPI_SUCCESS)
		weft_mpi_cont_free(k);
	cont_req_unref(c);
}

/* ---- where it runs ------------------------------------------------------------------------ */

static enum weft_task_verdict run_task(struct weft_task *t, void *arg)
{
	(void)t;
	weft_mpi_cont_run(arg);
	return WEFT_TASK_GONE;
}

static void run_work(struct weft_task_app_work *w)
{
	weft_mpi_cont_run(weft_container_of(w, struct weft_mpi_cont, work));
}

static void dispatch_callback(struct weft_mpi_cont *k)
{
	if (k->of->everywhere) {
		weft_task_launch(&k->task, "continuation", run_task, k);
	} else {
		k->work.fn = run_work;
		weft_task_engine_leave(&k->work);
	}
}

void weft_mpi_cont_ready(struct weft_mpi_cont *k, bool here)
{
	struct weft_mpi_cont_req *c = k->of;

	if (c->everywhere)
		weft_task_engine_want(-1);
	pthread_mutex_lock(&c->lock);
	bool now = c->started && !c->poll_only;
	if (!now) {
		list_push(&c->due, k);
		if (c->started)
			ring_locked(c);
	}
	pthread_mutex_unlock(&c->lock);
	if (now && here)
		weft_mpi_cont_run(k);
	else if (now)
		dispatch_callback(k);
}

/* Hands out what is due, as long as it is allowed to run by itself. */
static void dispatch_due(struct weft_mpi_cont_req *c)
{
	struct weft_mpi_cont *k;

	do { /* ends: with the list; new ones do not come into it while started */
		pthread_mutex_lock(&c->lock);
		k = c->poll_only ? NULL : list_pop(&c->due);
		pthread_mutex_unlock(&c->lock);
		if (k)
			dispatch_callback(k);
	} while (k);
}

/* ---- the request -------------------------------------------------------------------------- */

static struct weft_completion *wait_on(struct weft_mpi_request *r)
{
	struct weft_mpi_cont_req *c = r->impl;

	pthread_mutex_lock(&c->lock);
	bool now = !c->open || (c->poll_only && c->due.first);
	/* Rung for what has been seen since: from here on for what comes. */
	if (!now && weft_wait_completion_done(&c->bell))
		weft_wait_completion_init(&c->bell);
	pthread_mutex_unlock(&c->lock);
	return now ? NULL : &c->bell;
}

static struct weft_mpi_cont *next_due(struct weft_mpi_cont_req *c)
{
	pthread_mutex_lock(&c->lock);
	struct weft_mpi_cont *k = c->poll_only ? list_pop(&c->due) : NULL;
	pthread_mutex_unlock(&c->lock);
	return k;
}

static bool cont_req_advance(struct weft_mpi_request *r)
{
	struct weft_mpi_cont_req *c = r->impl;
	struct weft_mpi_cont *k;
	int n = 0;

	/* Ends: by the limit, or when the callbacks attach nothing more that is complete. */
	while ((!c->max_poll || n < c->max_poll) && (k = next_due(c))) {
		weft_mpi_cont_run(k);
		n++;
	}
	pthread_mutex_lock(&c->lock);
	bool over = !c->open;
	pthread_mutex_unlock(&c->lock);
	return over;
}

static int cont_req_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct weft_mpi_cont_req *c = r->impl;

	weft_mpi_status_empty(st);
	pthread_mutex_lock(&c->lock);
	int err = c->err;
	/* The error handler is that of the operation's communicator. */
	if (c->blamed && !r->comm) {
		r->comm = c->blamed;
		c->blamed = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	return err ? weft_mpi_err(err, "a continuation failed: MPIX_Continue_get_failed says which")
		   : MPI_SUCCESS;
}

static int cont_req_start(struct weft_mpi_request *r)
{
	struct weft_mpi_cont_req *c = r->impl;

	pthread_mutex_lock(&c->lock);
	struct weft_mpi_comm *before[] = {r->comm, c->blamed};
	r->comm = NULL;
	c->started = true;
	c->err = MPI_SUCCESS;
	c->blamed = NULL;
	pthread_mutex_unlock(&c->lock);
	for (int i = 0; i < 2; i++)
		if (before[i])
			weft_mpi_comm_unref(before[i]);
	dispatch_due(c);
	return MPI_SUCCESS;
}

/* Complete, and told: callbacks wait for the next start. */
static int cont_req_end(struct weft_mpi_request *r)
{
	struct weft_mpi_cont_req *c = r->impl;

	pthread_mutex_lock(&c->lock);
	c->started = false;
	pthread_mutex_unlock(&c->lock);
	return MPI_SUCCESS;
}

/* The handle goes: what is registered runs all the same. */
static void cont_req_release(struct weft_mpi_request *r)
{
	struct weft_mpi_cont_req *c = r->impl;

	pthread_mutex_lock(&c->lock);
	c->started = true;
	c->poll_only = false;
	pthread_mutex_unlock(&c->lock);
	dispatch_due(c);
	cont_req_unref(c);
}

static int free_active(struct weft_mpi_request *r)
{
	weft_mpi_request_delete(r);
	return MPI_SUCCESS;
}

static const struct weft_mpi_request_ops cont_ops = {
	.name = "continuation",
	.wait_on = wait_on,
	.advance = cont_req_advance,
	.finish = cont_req_finish,
	.start = cont_req_start,
	.end = cont_req_end,
	.free_active = free_active,
	.free = cont_req_release,
};

bool weft_mpi_cont_req_is(const struct weft_mpi_request *r)
{
	return r->ops == &cont_ops;
}

int weft_mpi_cont_req_of(MPI_Request handle, struct weft_mpi_cont_req **c_p)
{
	struct weft_mpi_request *r = weft_mpi_request_of(handle);

	if (!r || r->ops != &cont_ops)
		return weft_mpi_err(MPI_ERR_REQUEST, "not a continuation request");
	*c_p = r->impl;
	return MPI_SUCCESS;
}

/* ---- making ------------------------------------------------------------------------------- */

static bool is_true(const char *value)
{
	return strcmp(value, "true") == 0 || strcmp(value, "yes") == 0 || strcmp(value, "1") == 0;
}

/* The proposal's keys; what it does not name is left alone. */
static int read_info(MPI_Info info, struct weft_mpi_cont_req *c)
{
	char value[64];

	if (info == MPI_INFO_NULL)
		return MPI_SUCCESS;
	struct weft_mpi_info *i = weft_mpi_info_of(info);
	if (!i)
		return weft_mpi_bad_handle(MPI_ERR_INFO, "info object", info);
	if (weft_mpi_info_look(i, "mpi_continue_thread", value, sizeof(value))) {
		c->everywhere = strcmp(value, "all") == 0 || strcmp(value, "any") == 0;
		if (!c->everywhere && strcmp(value, "application") != 0)
			return weft_mpi_err(MPI_ERR_INFO_VALUE,
					    "mpi_continue_thread is \"%s\": it must be "
					    "\"application\" or \"all\"",
					    value);
	}
	if (weft_mpi_info_look(i, "mpi_continue_poll_only", value, sizeof(value)))
		c->poll_only |= is_true(value);
	if (weft_mpi_info_look(i, "mpi_continue_enqueue_complete", value, sizeof(value)))
		c->defer = is_true(value);
	if (weft_mpi_info_look(i, "mpi_continue_max_poll", value, sizeof(value)))
		c->max_poll = atoi(value) > 0 ? atoi(value) : 0;
	return MPI_SUCCESS;
}

static int cont_req_init(int flags, int max_poll, MPI_Info info, MPI_Request *cont_req)
{
	if (!cont_req)
		return weft_mpi_bad_pointer("cont_req");
	if (flags & ~MPIX_CONT_POLL_ONLY)
		return weft_mpi_err(MPI_ERR_ARG, "unknown flags (0x%x)", (unsigned)flags);
	if (max_poll < 0)
		return weft_mpi_err(MPI_ERR_ARG, "max_poll is negative (%d)", max_poll);
	struct weft_mpi_cont_req *c = calloc(1, sizeof(*c));
	if (!c)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	c->max_poll = max_poll;
	c->poll_only = flags & MPIX_CONT_POLL_ONLY;
	int err = read_info(info, c);
	/* A test of the request is the one place, then: no thread of ours runs them. */
	c->everywhere &= !c->poll_only;
	pthread_mutex_init(&c->lock, NULL);
	weft_wait_completion_init(&c->bell);
	/* Relaxed: the caller alone has it. */
	atomic_store_explicit(&c->x_refs, 1, memory_order_relaxed);
	struct weft_mpi_request *r = err ? NULL : weft_mpi_request_new(&cont_ops, NULL, c, true);
	if (!r) {
		cont_req_unref(c);
		return err ? err : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	*cont_req = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

static int get_failed(MPI_Request cont_req, int *count, void **cb_data)
{
	struct weft_mpi_cont_req *c;
	struct weft_mpi_cont *k = NULL;
	int err = weft_mpi_cont_req_of(cont_req, &c), n = 0;

	if (err)
		return err;
	if (!count || (*count && !cb_data))
		return weft_mpi_bad_pointer(count ? "cb_data" : "count");
	if (*count < 0)
		return weft_mpi_err(MPI_ERR_COUNT, "count is negative (%d)", *count);
	while (n < *count) { /* ends: the array is full, or none is left */
		pthread_mutex_lock(&c->lock);
		k = list_pop(&c->failed);
		pthread_mutex_unlock(&c->lock);
		if (!k)
			break;
		cb_data[n++] = k->cb_data;
		weft_mpi_cont_free(k);
	}
	*count = n;
	return MPI_SUCCESS;
}

const char *const weft_mpi_extensions[] = {"MPIX_Continue_init",
					   "MPIX_Continue",
					   "MPIX_Continueall",
					   "MPIX_Continue_get_failed",
					   "MPIX_Pollset_create",
					   "MPIX_Pollset_free",
					   "MPIX_Pollset_add",
					   "MPIX_Pollset_take",
					   "MPIX_Pollset_fd",
					   "MPIX_Pollset_arm",
					   NULL};

/* ---- entry points ------------------------------------------------------------------------- */

WEFT_API int PMPIX_Continue_init(int flags, int max_poll, MPI_Info info, MPI_Request *cont_req)
{
	if (weft_unlikely(!weft_mpi_running()))
		weft_mpi_not_running("MPIX_Continue_init");
	int err = cont_req_init(flags, max_poll, info, cont_req);
	return err ? weft_mpi_raise(err, "MPIX_Continue_init") : MPI_SUCCESS;
}

WEFT_API int PMPIX_Continue_get_failed(MPI_Request cont_req, int *count, void **cb_data)
{
	if (weft_unlikely(!weft_mpi_running()))
		weft_mpi_not_running("MPIX_Continue_get_failed");
	int err = get_failed(cont_req, count, cb_data);
	return err ? weft_mpi_raise(err, "MPIX_Continue_get_failed") : MPI_SUCCESS;
}

WEFT_API int MPIX_Continue_init(int flags, int max_poll, MPI_Info info, MPI_Request *cont_req)
	__attribute__((weak, alias("PMPIX_Continue_init")));
WEFT_API int MPIX_Continue_get_failed(MPI_Request cont_req, int *count, void **cb_data)
	__attribute__((weak, alias("PMPIX_Continue_get_failed")));
