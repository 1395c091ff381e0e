/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - request objects: pools of them, waiting for one, free and cancel; those that were
 * freed while their operation still runs.
 *
 * A thread keeps a few free requests for itself; the rest is shared under a lock.  A request keeps
 * its slot in the table of handles while it is pooled, so that starting an operation takes no lock.
 */
#include "mpi/p2p/request.h"

#include <stdlib.h>

#include "mpi/error.h"
#include "mpi/type/type.h"
#include "task/task.h"

#define CHUNK 32 /* made or moved between a thread and the shared list at once */

_Thread_local struct weft_mpi_pool weft_mpi_request_pool;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_mpi_pool shared;      /* under lock */
static struct weft_mpi_request *orphans; /* under lock: freed by the user while active */
static _Atomic int x_orphans;            /* hint: is the list worth a look */
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct weft_mpi_request *pool_pop(struct weft_mpi_pool *p)
{
	struct weft_mpi_request *r = p->first;

	if (r) {
		p->first = r->next;
		p->count--;
	}
	return r;
}

/* A thread that ends leaves its requests to the others. */
static void thread_ends(void *arg)
{
	struct weft_mpi_pool *p = arg;
	struct weft_mpi_request *r;

	pthread_mutex_lock(&lock);
	while ((r = pool_pop(p)))
		weft_mpi_pool_push(&shared, r);
	pthread_mutex_unlock(&lock);
}

static void key_make(void)
{
	pthread_key_create(&at_exit, thread_ends);
}

/* From the shared list, else new ones. */
static void refill_pool(void)
{
	struct weft_mpi_pool *mine = &weft_mpi_request_pool;
	struct weft_mpi_request *r;

	pthread_once(&once, key_make);
	pthread_setspecific(at_exit, mine);
	pthread_mutex_lock(&lock);
	while (mine->count < CHUNK && (r = pool_pop(&shared)))
		weft_mpi_pool_push(mine, r);
	pthread_mutex_unlock(&lock);
	while (mine->count < CHUNK) {
		r = aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof(*r), WEFT_CACHELINE));
		if (!r)
			return;
		*r = (struct weft_mpi_request){0};
		if (weft_mpi_object_new(&r->head, WEFT_MPI_REQUEST)) {
			free(r);
			return;
		}
		weft_mpi_object_unname(&r->head);
		weft_mpi_pool_push(mine, r);
	}
}

void weft_mpi_request_spill(void)
{
	struct weft_mpi_pool *mine = &weft_mpi_request_pool;

	pthread_mutex_lock(&lock);
	while (mine->count > WEFT_MPI_POOL_KEEP - CHUNK)
		weft_mpi_pool_push(&shared, pool_pop(mine));
	pthread_mutex_unlock(&lock);
}

struct weft_mpi_request *weft_mpi_request_take_slow(void)
{
	weft_mpi_requests_reap();
	refill_pool();
	return pool_pop(&weft_mpi_request_pool);
}

struct weft_mpi_request *weft_mpi_request_new(const struct weft_mpi_request_ops *ops,
					      struct weft_mpi_comm *comm, void *impl,
					      bool persistent)
{
	struct weft_mpi_request *r = weft_mpi_request_take();

	if (weft_likely(r != NULL))
		weft_mpi_request_name(r, ops, comm, impl, persistent);
	return r;
}

void weft_mpi_request_delete(struct weft_mpi_request *r)
{
	if (r->head.handle)
		weft_mpi_object_unname(&r->head);
	if (r->ops->free)
		r->ops->free(r);
	r->persistent = false;
	weft_mpi_request_give_back(r);
}

/* ---- over at once ------------------------------------------------------------------------- */

static struct weft_completion always = {WEFT_COMPLETION_DONE};

static struct weft_completion *over_wait_on(struct weft_mpi_request *r)
{
	return &always;
}

static int over_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	weft_mpi_status_set(st, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
	return MPI_SUCCESS;
}

const struct weft_mpi_request_ops weft_mpi_over_ops = {
	.name = "point-to-point",
	.wait_on = over_wait_on,
	.finish = over_finish,
};

/* ---- freed while active ------------------------------------------------------------------- */

/* MPI_Request_free of an active request: its operation goes on by itself. */
static void orphan_request(struct weft_mpi_request *r)
{
	weft_mpi_object_unname(&r->head);
	pthread_mutex_lock(&lock);
	r->next = orphans;
	orphans = r;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add_explicit(&x_orphans, 1, memory_order_relaxed); /* a hint */
}

/* Takes the list for itself, so that callbacks run without the lock; puts back what still runs. */
void weft_mpi_requests_reap(void)
{
	struct weft_mpi_request *list, *next, *keep = NULL;

	/* Relaxed: a hint; one that is missed now is found next time. */
	if (!atomic_load_explicit(&x_orphans, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	list = orphans;
	orphans = NULL;
	pthread_mutex_unlock(&lock);
	for (struct weft_mpi_request *r = list; r; r = next) {
		next = r->next;
		if (weft_mpi_request_done(r)) {
			r->ops->finish(r, MPI_STATUS_IGNORE);
			atomic_fetch_sub_explicit(&x_orphans, 1, memory_order_relaxed);
			weft_mpi_request_delete(r);
		} else {
			r->next = keep;
			keep = r;
		}
	}
	pthread_mutex_lock(&lock);
	while (keep) {
		next = keep->next;
		keep->next = orphans;
		orphans = keep;
		keep = next;
	}
	pthread_mutex_unlock(&lock);
}

void weft_mpi_requests_drain(void)
{
	struct weft_mpi_request *list;

	pthread_mutex_lock(&lock);
	list = orphans;
	orphans = NULL;
	pthread_mutex_unlock(&lock);
	while (list) {
		struct weft_mpi_request *r = list;
		list = r->next;
		/* A receive that no message will match would never end. */
		if (!weft_mpi_request_done(r) && r->ops->cancel)
			r->ops->cancel(r);
		weft_mpi_request_wait(r);
		r->ops->finish(r, MPI_STATUS_IGNORE);
		atomic_fetch_sub_explicit(&x_orphans, 1, memory_order_relaxed);
		weft_mpi_request_delete(r);
	}
}

/* ---- waiting for one ---------------------------------------------------------------------- */

void weft_mpi_request_wait(struct weft_mpi_request *r)
{
	/* Ends when the operation does; advance makes progress in between. */
	while (!weft_mpi_request_done(r)) {
		struct weft_completion *c = r->ops->wait_on(r);
		if (c)
			weft_task_engine_wait(c);
	}
}

static int refuse_continued(void)
{
	return weft_mpi_err(MPI_ERR_REQUEST, "the request has a continuation, which ends it");
}

int weft_mpi_request_end_rest(struct weft_mpi_request *r, MPI_Request *handle_p, MPI_Status *st)
{
	if (weft_unlikely(r->continued))
		return refuse_continued();
	int err = r->ops->finish(r, st), end;

	/* MPI: the code of the last callback that failed. */
	if (weft_unlikely(r->ops->end != NULL) && (end = r->ops->end(r)) != MPI_SUCCESS)
		err = end;
	if (weft_unlikely(err))
		weft_mpi_blame(weft_mpi_request_owner(r));
	if (r->persistent) {
		r->active = false;
	} else {
		*handle_p = MPI_REQUEST_NULL;
		weft_mpi_request_delete(r);
	}
	return err;
}

/* ---- handles ------------------------------------------------------------------------------ */

int weft_mpi_request_bad(int index)
{
	if (index < 0)
		return weft_mpi_err(MPI_ERR_REQUEST,
				    "invalid request (wild, or completed or freed before)");
	return weft_mpi_err(MPI_ERR_REQUEST,
			    "invalid request in place %d (wild, or completed or freed before)",
			    index);
}

int weft_mpi_request_named(MPI_Request handle, struct weft_mpi_request **r_p)
{
	if (handle == MPI_REQUEST_NULL)
		return weft_mpi_err(MPI_ERR_REQUEST, "null request");
	*r_p = weft_mpi_request_of(handle);
	return *r_p ? MPI_SUCCESS : weft_mpi_request_bad(-1);
}

int weft_mpi_request_peek(struct weft_mpi_request *r, MPI_Status *st)
{
	int err = r->ops->finish(r, st);
	if (err)
		weft_mpi_blame(weft_mpi_request_owner(r));
	return err;
}

/* The other members count on it: MPI calls both erroneous (MPI-5.0, 6.12). */
static int refuse_collective(struct weft_mpi_request *r, const char *what)
{
	return weft_mpi_err(MPI_ERR_REQUEST, "the request (%s) is active and cannot be %s",
			    r->ops->name, what);
}

int weft_mpi_Request_free(MPI_Request *request)
{
	struct weft_mpi_request *r;
	int err = weft_mpi_request_named(*request, &r);

	if (!err && r->continued)
		err = refuse_continued();
	if (!err && r->active && r->ops->collective)
		err = refuse_collective(r, "freed");
	if (err)
		return err;
	*request = MPI_REQUEST_NULL;
	if (!r->active) {
		weft_mpi_request_delete(r);
		return MPI_SUCCESS;
	}
	if (r->ops->free_active)
		return r->ops->free_active(r);
	orphan_request(r);
	weft_mpi_requests_reap();
	return MPI_SUCCESS;
}

int weft_mpi_Cancel(MPI_Request *request)
{
	struct weft_mpi_request *r;
	int err = weft_mpi_request_named(*request, &r);

	if (err)
		return err;
	if (!r->active)
		return weft_mpi_err(MPI_ERR_REQUEST, "the request is not active");
	if (r->ops->collective)
		return refuse_collective(r, "cancelled");
	/* What cannot be cancelled completes as if nothing had happened. */
	return r->ops->cancel ? r->ops->cancel(r) : MPI_SUCCESS;
}
