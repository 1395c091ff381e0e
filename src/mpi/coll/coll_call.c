/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_call.c - runs a collective in its three forms; checks that all of them share. */
#include <stdlib.h>

#include "coll/calls.h"
#include "mpi/aid/check.h"
#include "mpi/coll/coll_call.h"
#include "mpi/comm/domain.h"
#include "task/task.h"
#include "wait/note.h"

/* Tags: 23 bits of sequence, then the phases of coll/; persistent ones keep theirs and so have a
 * space of their own. */
#define TAG_SEQUENCE 0x7fffff
#define TAG_PERSISTENT 0x08000000

static inline void members_of(struct weft_mpi_comm *c, struct weft_coll_group *g)
{
	*g = (struct weft_coll_group){
		.rank = c->rank,
		.size = c->size,
		.peer = c->inter ? c->group->world : c->peer,
		.remote_size = c->inter ? c->peers : 0,
		.remote = c->inter ? c->peer : NULL,
		.ctx = c->coll,
		.crowded = weft_comm_crowded(c->group->domain->core),
		.apart = weft_comm_apart(c->group->domain->core),
		.shm_p = &c->coll_cache,
	};
	c->coll_cache_free = weft_coll_shm_free;
}

void weft_mpi_coll_group(struct weft_mpi_comm *c, struct weft_coll_group *g)
{
	members_of(c, g);
}

/* The members, in their next collective. */
static void group_of(struct weft_mpi_comm *c, enum weft_coll_kind kind, bool persistent,
		     struct weft_coll_group *g)
{
	int seq = weft_mpi_comm_coll_tag(c) & TAG_SEQUENCE;
	if (weft_unlikely(!c->calls) && (c->inter || c->size > 1))
		c->calls = weft_coll_calls_open(c->coll);
	weft_coll_called(c->calls, (uint32_t)seq, kind);
	members_of(c, g);
	g->tag = seq * WEFT_COLL_TAGS + (persistent ? TAG_PERSISTENT : 0);
}

void weft_mpi_coll_open(struct weft_mpi_coll_call *k, enum weft_coll_kind kind, MPI_Comm comm)
{
	*k = (struct weft_mpi_coll_call){
		.comm = weft_mpi_comm_of(comm), .handle = comm, .a = {.kind = kind}};
}

static void coll_drop(struct weft_mpi_coll_call *k)
{
	free(k->arrays[0]);
	free(k->arrays[1]);
}

int weft_mpi_coll_refuse(struct weft_mpi_coll_call *k, int err)
{
	weft_mpi_check_coll_refused();
	coll_drop(k);
	return err;
}

/* Counts without displacements. */
static bool displs_missing(const struct weft_coll_args *a)
{
	bool r = a->kind != WEFT_COLL_REDUCE_SCATTER && a->rcounts && !a->rdispls;
	return r || (a->scounts && !a->sdispls);
}

int weft_mpi_coll_same_buffer(void)
{
	return weft_mpi_err(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same: give MPI_IN_PLACE "
					    "where the data may stay where it is");
}

static const char *block_at(const void *base, int64_t index, const struct weft_type *t)
{
	return (const char *)base + index * weft_data_type_extent(t);
}

/*
 * Does this rank's own block begin where it also ends up?  Other overlaps are mistakes as well,
 * but cannot be told from interleaved layouts at the price of a few loads.
 */
static bool same_buffer(const struct weft_mpi_coll_call *k)
{
	const struct weft_coll_args *a = &k->a;
	bool inter = k->comm->inter;
	int me = inter ? 0 : k->comm->rank;

	/* NULL: not significant here, or absolute addresses in the datatypes. */
	if (!a->sbuf || !a->rbuf || a->in_place)
		return false;
	switch (a->kind) {
	case WEFT_COLL_GATHER:
	case WEFT_COLL_ALLGATHER:
		return !inter && a->scount && a->stype->size &&
		       a->sbuf == block_at(a->rbuf, me * (int64_t)a->rcount, a->rtype);
	case WEFT_COLL_SCATTER:
		return !inter && a->rcount && a->rtype->size &&
		       a->rbuf == block_at(a->sbuf, me * (int64_t)a->scount, a->stype);
	case WEFT_COLL_GATHERV:
	case WEFT_COLL_ALLGATHERV:
		return !inter && a->scount && a->stype->size &&
		       a->sbuf == block_at(a->rbuf, a->rdispls[me], a->rtype);
	case WEFT_COLL_SCATTERV:
		return !inter && a->rcount && a->rtype->size &&
		       a->rbuf == block_at(a->sbuf, a->sdispls[me], a->stype);
	case WEFT_COLL_ALLTOALL:
		return a->sbuf == a->rbuf && a->scount && a->stype->size;
	case WEFT_COLL_ALLTOALLV:
		return !inter && a->scounts[me] && a->rcounts[me] && a->stype->size &&
		       block_at(a->sbuf, a->sdispls[me], a->stype) ==
			       block_at(a->rbuf, a->rdispls[me], a->rtype);
	case WEFT_COLL_ALLTOALLW:
		return !inter && a->scounts[me] && a->rcounts[me] && a->stypes[me]->size &&
		       (const char *)a->sbuf + a->sdispls[me] ==
			       (const char *)a->rbuf + a->rdispls[me];
	case WEFT_COLL_REDUCE:
	case WEFT_COLL_ALLREDUCE:
	case WEFT_COLL_REDUCE_SCATTER:
	case WEFT_COLL_REDUCE_SCATTER_BLOCK:
	case WEFT_COLL_SCAN:
	case WEFT_COLL_EXSCAN:
		return a->sbuf == a->rbuf && a->rcount && a->rtype->size;
	default:
		return false;
	}
}

static int no_displs(struct weft_mpi_coll_call *k)
{
	return weft_mpi_coll_refuse(
		k, weft_mpi_err(MPI_ERR_ARG, "the displacements are a null pointer"));
}

/* Is a member gone?  Then it is why others were elsewhere. */
static bool member_down(const struct weft_mpi_comm *c)
{
	for (int r = 0; r < c->peers; r++)
		if (weft_comm_ctx_peer_down(c->coll, weft_mpi_comm_peer(c, r)))
			return true;
	return false;
}

static int coll_failed(const struct weft_mpi_comm *comm, weft_err err)
{
	err = weft_coll_cause(comm->coll, err);
	if (err == WEFT_ERR_TRUNC && member_down(comm))
		err = WEFT_ERR_PEER;
	if (err == WEFT_ERR_TRUNC)
		return weft_mpi_err(MPI_ERR_TRUNCATE,
				    "the ranks' collectives do not match, or not their amounts of "
				    "data; WEFT_CHECK=1 names both calls");
	return weft_mpi_err_of(err);
}

/* Builds the schedule; NULL: *err_p says why. */
static struct weft_coll *build_schedule(struct weft_mpi_coll_call *k, bool persistent,
					weft_err *err_p)
{
	struct weft_coll_group g;
	group_of(k->comm, k->a.kind, persistent, &g);
	struct weft_coll *c = weft_coll_new();
	*err_p = c ? weft_coll_note(&g, k->a.kind, true) : WEFT_ERR_NOMEM;
	if (!*err_p)
		*err_p = weft_coll_build(c, &g, &k->a);
	if (c && *err_p) {
		weft_coll_free(c);
		c = NULL;
	}
	return c;
}

static __attribute__((noinline)) int run_blocking(struct weft_mpi_coll_call *k)
{
	struct weft_coll_group g;
	if (weft_unlikely(displs_missing(&k->a)))
		return no_displs(k);
	if (weft_unlikely(same_buffer(k)))
		return weft_mpi_coll_refuse(k, weft_mpi_coll_same_buffer());
	if (weft_unlikely(weft_mpi_checking))
		weft_mpi_check_coll_begin(k);
	group_of(k->comm, k->a.kind, false, &g);
	weft_err err = weft_coll_blocking(&g, &k->a);
	if (err == WEFT_AGAIN) {
		struct weft_coll *c = weft_coll_new();
		err = c ? weft_coll_note(&g, k->a.kind, false) : WEFT_ERR_NOMEM;
		if (!err)
			err = weft_coll_build(c, &g, &k->a);
		if (!err) {
			weft_coll_start(c);
			/* Ends when the schedule does; each round runs what was parked. */
			while (!weft_coll_advance(c))
				weft_task_engine_wait(weft_coll_wait_on(c));
			err = weft_coll_result(c);
		}
		if (c)
			weft_coll_free(c);
	}
	coll_drop(k);
	return weft_likely(!err) ? MPI_SUCCESS : coll_failed(k->comm, err);
}

/* Of a call that has no note of its own, or one that names another communicator: a window's or a file's, of which the members of a
 * collective within it are to be asked. */
static __attribute__((noinline)) int run_noted(struct weft_mpi_coll_call *k,
					       struct weft_wait_note *outer)
{
	struct weft_wait_call call = {outer ? outer->call->name : weft_coll_kind_name(k->a.kind),
				      WEFT_WAIT_ALL, false, false};
	struct weft_wait_note note = {.call = &call, .object = k->handle, .rank = -1};
	weft_wait_note_set(&note);
	int err = run_blocking(k);
	weft_wait_note_set(outer);
	return err;
}

int weft_mpi_coll_run(struct weft_mpi_coll_call *k)
{
	struct weft_wait_note *outer = weft_wait_note_get();
	return weft_likely(outer && outer->object == k->handle) ? run_blocking(k)
								: run_noted(k, outer);
}

/* ---- requests ----------------------------------------------------------------------------- */

static struct weft_completion *request_wait_on(struct weft_mpi_request *r)
{
	return weft_coll_wait_on(r->impl);
}

static bool request_advance(struct weft_mpi_request *r)
{
	return weft_coll_advance(r->impl);
}

static int request_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	weft_mpi_status_empty(st);
	weft_err err = weft_coll_result(r->impl);
	return weft_likely(!err) ? MPI_SUCCESS : coll_failed(r->comm, err);
}

static int request_start(struct weft_mpi_request *r)
{
	r->vain = 0;
	weft_coll_start(r->impl);
	weft_task_engine_pending();
	return MPI_SUCCESS;
}

static void request_free(struct weft_mpi_request *r)
{
	weft_coll_free(r->impl);
	if (r->extra)
		weft_mpi_op_unref(r->extra);
	r->extra = NULL;
}

/* Without a user's operation: nothing to do for the application's thread. */
static const struct weft_mpi_request_ops plain_ops = {
	.name = "collective",
	.collective = true,
	.wait_on = request_wait_on,
	.finish = request_finish,
	.free = request_free,
};

static const struct weft_mpi_request_ops user_ops = {
	.name = "collective with a user's operation",
	.collective = true,
	.wait_on = request_wait_on,
	.advance = request_advance,
	.finish = request_finish,
	.free = request_free,
};

static const struct weft_mpi_request_ops persistent_ops = {
	.name = "persistent collective",
	.collective = true,
	.wait_on = request_wait_on,
	.advance = request_advance,
	.finish = request_finish,
	.start = request_start,
	.free = request_free,
};

static int request_make(struct weft_mpi_coll_call *k, bool persistent, MPI_Request *request)
{
	weft_err err;
	if (weft_unlikely(displs_missing(&k->a)))
		return no_displs(k);
	if (weft_unlikely(same_buffer(k)))
		return weft_mpi_coll_refuse(k, weft_mpi_coll_same_buffer());
	if (weft_unlikely(weft_mpi_checking))
		weft_mpi_check_coll_begin(k);
	struct weft_coll *c = build_schedule(k, persistent, &err);
	coll_drop(k);
	if (!c)
		return coll_failed(k->comm, err);
	const struct weft_mpi_request_ops *ops = persistent ? &persistent_ops
						 : k->op    ? &user_ops
							    : &plain_ops;
	struct weft_mpi_request *r = weft_mpi_request_new(ops, k->comm, c, persistent);
	if (!r) {
		weft_coll_free(c);
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a request");
	}
	r->extra = k->op;
	r->vain = 0;
	if (k->op) {
		weft_mpi_object_ref(&k->op->head);
		weft_mpi_type_ref(k->op_type);
		r->type = k->op_type;
		r->typed = true;
	}
	if (!persistent) {
		weft_coll_start(c);
		weft_task_engine_pending();
	}
	*request = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

int weft_mpi_coll_start(struct weft_mpi_coll_call *k, MPI_Request *request)
{
	return request_make(k, false, request);
}

int weft_mpi_coll_init(struct weft_mpi_coll_call *k, MPI_Request *request)
{
	return request_make(k, true, request);
}

/* ---- checks ------------------------------------------------------------------------------- */

int weft_mpi_coll_not_in_place(const char *what)
{
	return weft_mpi_err(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed as %s here", what);
}

int weft_mpi_coll_in_place(struct weft_mpi_coll_call *k, const void *sendbuf)
{
	if (sendbuf != MPI_IN_PLACE)
		return MPI_SUCCESS;
	if (k->comm->inter)
		return weft_mpi_coll_not_in_place("sendbuf on an intercommunicator");
	k->a.in_place = true;
	return MPI_SUCCESS;
}

int weft_mpi_coll_buf(const char *what, const void *base, MPI_Count count, MPI_Datatype type,
		      const struct weft_type **layout_p)
{
	struct weft_buf buf;
	struct weft_mpi_type *t = weft_mpi_type_of(type);
	if (weft_unlikely(!t))
		return weft_mpi_err(MPI_ERR_TYPE, "invalid datatype of %s", what);
	if (weft_unlikely(count < 0))
		return weft_mpi_err(MPI_ERR_COUNT, "count of %s is negative (%lld)", what,
				    (long long)count);
	if (weft_unlikely(base == MPI_IN_PLACE))
		return weft_mpi_coll_not_in_place(what);
	weft_err err = weft_mpi_buf(base, count, type, &buf);
	if (weft_unlikely(err))
		return weft_mpi_buf_class(err);
	/* Address 0 is MPI_BOTTOM, which makes sense with absolute addresses only. */
	if (weft_unlikely(!base && buf.bytes && t->predefined))
		return weft_mpi_err(MPI_ERR_BUFFER, "%s is a null pointer", what);
	*layout_p = t->layout;
	return MPI_SUCCESS;
}

/* Where block i begins: with MPI_BOTTOM the displacements are addresses.  in_bytes: they count
 * bytes, not elements. */
static const void *block_begins(const void *base, const MPI_Aint *displs, int i, MPI_Datatype type,
				bool in_bytes)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	if (base == MPI_IN_PLACE || !displs || !t || !t->layout)
		return base;
	int64_t unit = in_bytes ? 1 : weft_data_type_extent(t->layout);
	/* Wraps where it does not point into memory. */
	return (const void *)((uintptr_t)base + (uintptr_t)displs[i] * (uintptr_t)unit);
}

int weft_mpi_coll_bufs(const char *what, const void *base, const MPI_Count *counts,
		       const MPI_Aint *displs, int n, MPI_Datatype type,
		       const struct weft_type **layout_p)
{
	if (n && !counts)
		return weft_mpi_err(MPI_ERR_ARG, "the counts of %s are a null pointer", what);
	for (int i = 0; i < n; i++) {
		const void *at = block_begins(base, displs, i, type, false);
		int err = weft_mpi_coll_buf(what, at, counts[i], type, layout_p);
		if (err)
			return err;
	}
	return n ? MPI_SUCCESS : weft_mpi_coll_buf(what, base, 0, type, layout_p);
}

int weft_mpi_coll_bufs_w(struct weft_mpi_coll_call *k, bool send, const void *base,
			 const MPI_Count *counts, const MPI_Aint *displs, const MPI_Datatype *types,
			 int n)
{
	const char *what = send ? "sendbuf" : "recvbuf";
	if (n && (!counts || !types))
		return weft_mpi_err(MPI_ERR_ARG, "the counts or datatypes of %s are a null pointer",
				    what);
	const struct weft_type **mine = malloc(((size_t)n + 1) * sizeof *mine);
	if (!mine)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	k->arrays[send ? 0 : 1] = mine;
	if (send)
		k->a.stypes = mine;
	else
		k->a.rtypes = mine;
	for (int i = 0; i < n; i++) {
		/* MPI asks for a type of each block; programs leave it out where there is no data. */
		if (types[i] == MPI_DATATYPE_NULL && !counts[i]) {
			mine[i] = &weft_data_type_elem[WEFT_B_BYTE];
			continue;
		}
		const void *at = block_begins(base, displs, i, types[i], true);
		int err = weft_mpi_coll_buf(what, at, counts[i], types[i], &mine[i]);
		if (err)
			return err;
	}
	return MPI_SUCCESS;
}
