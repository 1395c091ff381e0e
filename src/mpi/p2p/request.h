/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - what the files about requests share, beyond mpi_int.h. */
#ifndef WEFT_MPI_REQUEST_H
#define WEFT_MPI_REQUEST_H

#include "mpi/mpi_int.h"
#include "mpi/p2p/p2p.h"
#include "mpi/type/type.h"

/* ---- pools -------------------------------------------------------------------------------- */

struct weft_mpi_pool {
	struct weft_mpi_request *first;
	unsigned count;
};

#define WEFT_MPI_POOL_KEEP 128 /* a thread keeps at most this many */

extern _Thread_local struct weft_mpi_pool weft_mpi_request_pool;

struct weft_mpi_request *weft_mpi_request_take_slow(void) __attribute__((cold));
void weft_mpi_request_spill(void) __attribute__((cold));

/* One for an operation that is not started yet, without a handle; NULL: no memory. */
static inline struct weft_mpi_request *weft_mpi_request_take(void)
{
	struct weft_mpi_request *r = weft_mpi_request_pool.first;

	if (weft_unlikely(!r))
		return weft_mpi_request_take_slow();
	weft_mpi_request_pool.first = r->next;
	weft_mpi_request_pool.count--;
	return r;
}

static inline void weft_mpi_pool_push(struct weft_mpi_pool *p, struct weft_mpi_request *r)
{
	r->next = p->first;
	p->first = r;
	p->count++;
}

/* Gives back what take() gave; it has no handle (any more). */
static inline void weft_mpi_request_untake(struct weft_mpi_request *r)
{
	weft_mpi_pool_push(&weft_mpi_request_pool, r);
	if (weft_unlikely(weft_mpi_request_pool.count > WEFT_MPI_POOL_KEEP))
		weft_mpi_request_spill();
}

/* Names what take() gave. */
static inline void weft_mpi_request_name(struct weft_mpi_request *r,
					 const struct weft_mpi_request_ops *ops,
					 struct weft_mpi_comm *comm, void *impl, bool persistent)
{
	r->ops = ops;
	r->comm = comm;
	if (comm)
		weft_mpi_comm_ref(comm);
	r->impl = impl;
	r->persistent = persistent;
	r->active = !persistent;
	weft_mpi_object_rename(&r->head);
}

/* The same for one of weft_mpi_plain_ops. */
static inline void weft_mpi_request_name_plain(struct weft_mpi_request *r,
					       struct weft_mpi_comm *comm, enum weft_mpi_mode mode,
					       int rank, int tag)
{
	r->ops = &weft_mpi_plain_ops;
	r->comm = comm;
	r->active = true;
	r->mode = (uint8_t)mode;
	r->peer = rank;
	r->tag = tag;
	weft_mpi_object_rename(&r->head);
}

extern const struct weft_mpi_request_ops weft_mpi_over_ops;

/* The same for an operation that is over already, and has received nothing. */
static inline void weft_mpi_request_name_over(struct weft_mpi_request *r)
{
	r->ops = &weft_mpi_over_ops;
	r->active = true;
	weft_mpi_object_rename(&r->head);
}

/* ---- states ------------------------------------------------------------------------------- */

/* Says why there is no such request; index: its place in an array, or -1. */
int weft_mpi_request_bad(int index);
/* The request, active or not, behind a handle that must not be null. */
int weft_mpi_request_named(MPI_Request handle, struct weft_mpi_request **r_p);

/* The request, if it is active: NULL in *r_p when there is nothing to wait for. */
static inline int weft_mpi_request_active(MPI_Request handle, int index,
					  struct weft_mpi_request **r_p)
{
	*r_p = NULL;
	if (handle == MPI_REQUEST_NULL)
		return MPI_SUCCESS;
	/* No request is predefined. */
	struct weft_mpi_request *r = (struct weft_mpi_request *)weft_mpi_object_find_dynamic(
		(uint64_t)(uintptr_t)handle, WEFT_MPI_REQUEST);
	if (weft_unlikely(!r))
		return weft_mpi_request_bad(index);
	if (r->active)
		*r_p = r;
	return MPI_SUCCESS;
}

/* Is the operation over?  Advances it if it wants to be advanced.  r is active. */
static inline bool weft_mpi_request_done(struct weft_mpi_request *r)
{
	if (weft_likely(r->ops->by_core))
		return weft_wait_completion_done(&r->core.done);
	if (r->ops->advance)
		return r->ops->advance(r);
	return weft_wait_completion_done(r->ops->wait_on(r));
}

static inline void weft_mpi_request_give_back(struct weft_mpi_request *r)
{
	if (weft_unlikely(r->typed)) {
		weft_mpi_type_unref(r->type);
		r->typed = false;
	}
	if (r->comm) {
		weft_mpi_comm_unref(r->comm);
		r->comm = NULL;
	}
	weft_mpi_request_untake(r);
}

int weft_mpi_request_end_rest(struct weft_mpi_request *r, MPI_Request *handle_p, MPI_Status *st);

/* The operation is over: fills the status and gives the request back (persistent ones rest). */
static inline int weft_mpi_request_end(struct weft_mpi_request *r, MPI_Request *handle_p,
				       MPI_Status *st)
{
	if (weft_likely(r->ops == &weft_mpi_over_ops)) {
		weft_mpi_status_set(st, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
		*handle_p = MPI_REQUEST_NULL;
		weft_mpi_object_unname(&r->head);
		weft_mpi_request_untake(r);
		return MPI_SUCCESS;
	}
	if (weft_likely(r->ops->by_core && st == MPI_STATUS_IGNORE && !r->core.status.err &&
			!r->persistent)) {
		*handle_p = MPI_REQUEST_NULL;
		weft_mpi_object_unname(&r->head);
		weft_mpi_request_give_back(r);
		return MPI_SUCCESS;
	}
	return weft_mpi_request_end_rest(r, handle_p, st);
}

/* The status of one that is over, which stays as it is. */
int weft_mpi_request_peek(struct weft_mpi_request *r, MPI_Status *st);

/* Gives back the orphans whose operation is over. */
void weft_mpi_requests_reap(void);
/* At MPI_Finalize: cancels or completes what is left of them. */
void weft_mpi_requests_drain(void);

#endif
