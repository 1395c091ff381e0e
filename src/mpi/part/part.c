/* SPDX-License-Identifier: BSD-3-Clause */
/* part.c - sides of partitioned operations: their making, their pools, the ends of their rounds. */
#include "mpi/part/part.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/aid/check.h"

#include "mpi/comm/comm_int.h"
#include "mpi/comm/domain.h"
#include "mpi/p2p/request.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_chan; /* under lock */

/* ---- pools -------------------------------------------------------------------------------- */

static uint32_t round_up(uint32_t parts)
{
	uint32_t most = 64;

	while (most < parts) /* ends: parts is an int */
		most *= 2;
	return most;
}

static struct weft_mpi_part *pool_take(struct weft_mpi_part_pool *pool, uint32_t most)
{
	pthread_mutex_lock(&lock);
	struct weft_mpi_part **link = &pool->first, *s;
	/* Ends with the list; it holds what was in use at once. */
	while ((s = *link) && s->most != most)
		link = &s->next;
	if (s)
		*link = s->next;
	pthread_mutex_unlock(&lock);
	return s;
}

static struct weft_mpi_part *side_new(struct weft_mpi_part_pool *pool, uint32_t most)
{
	struct weft_mpi_part *s =
		aligned_alloc(WEFT_CACHELINE, weft_align_up(pool->bytes, WEFT_CACHELINE));

	if (!s)
		return NULL;
	memset((void *)s, 0, pool->bytes);
	s->most = most;
	if (!pool->make(s)) {
		free(s);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	s->chan = next_chan++;
	pthread_mutex_unlock(&lock);
	return s;
}

void weft_mpi_part_unref(struct weft_mpi_part_pool *pool, struct weft_mpi_part *s)
{
	/* LAST -> LAST.  Carries: every access to the side, to its next user. */
	if (atomic_fetch_sub_explicit(&s->x_refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&lock);
	s->next = pool->first;
	pool->first = s;
	pthread_mutex_unlock(&lock);
}

void weft_mpi_part_pool_empty(struct weft_mpi_part_pool *pool)
{
	struct weft_mpi_part *s;

	while ((s = pool->first)) { /* ends with the list */
		pool->first = s->next;
		pool->unmake(s);
		free(s);
	}
}

/* ---- making ------------------------------------------------------------------------------- */

/* The contexts of c, opened at the first use. */
static int make_contexts(struct weft_mpi_comm *c)
{
	weft_err err = WEFT_OK;

	pthread_mutex_lock(&c->lock);
	if (!c->part_match)
		err = weft_comm_ctx_open(c->group->domain->core, WEFT_MPI_CTX_PART | 2 * c->id,
					 &c->part_match);
	if (!err && !c->part_data)
		err = weft_comm_ctx_open(c->group->domain->core,
					 WEFT_MPI_CTX_PART | 2 * c->id | WEFT_CTX_COUNTED,
					 &c->part_data);
	pthread_mutex_unlock(&c->lock);
	return err ? weft_mpi_err_of(err) : MPI_SUCCESS;
}

static int describe_partitions(const struct weft_mpi_part_args *a, struct weft_mpi_part_data *d)
{
	MPI_Count all;

	if (a->partitions < 0)
		return weft_mpi_err(MPI_ERR_ARG, "the number of partitions is negative (%d)",
				    a->partitions);
	if (__builtin_mul_overflow(a->count, (MPI_Count)a->partitions, &all))
		return weft_mpi_err(MPI_ERR_COUNT, "%d partitions of %lld elements are too many",
				    a->partitions, (long long)a->count);
	int err = weft_mpi_p2p_buf(a->buf, all, a->type, &d->whole);
	if (err)
		return err;
	d->parts = (uint32_t)a->partitions;
	d->count = (size_t)a->count;
	d->bytes = d->parts ? d->whole.bytes / d->parts : 0;
	return MPI_SUCCESS;
}

int weft_mpi_part_make(struct weft_mpi_part_pool *pool, const struct weft_mpi_part_args *a,
		       const struct weft_mpi_request_ops *ops, struct weft_mpi_part **s_p,
		       struct weft_mpi_request **r_p)
{
	struct weft_mpi_part_data d;
	int err = describe_partitions(a, &d);

	if (!err)
		err = make_contexts(a->comm);
	if (err)
		return err;
	uint32_t most = round_up(d.parts);
	struct weft_mpi_part *s = pool_take(pool, most);
	if (!s)
		s = side_new(pool, most);
	struct weft_mpi_request *r = s ? weft_mpi_request_new(ops, a->comm, s, true) : NULL;
	if (!r) {
		if (s) {
			atomic_store_explicit(&s->x_refs, 1, memory_order_relaxed);
			weft_mpi_part_unref(pool, s);
		}
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	s->d = d;
	s->serial++;
	s->match_ctx = a->comm->part_match;
	s->ctx = a->comm->part_data;
	s->rank = a->rank;
	s->peer = a->rank == MPI_PROC_NULL ? -1 : weft_mpi_comm_peer(a->comm, a->rank);
	s->tag = a->tag;
	s->sign = weft_mpi_checking
			  ? weft_mpi_check_sign(a->count * (MPI_Count)a->partitions, a->type)
			  : 0;
	/* Relaxed: the caller alone has it. */
	atomic_store_explicit(&s->x_refs, s->peer < 0 ? 1 : 2, memory_order_relaxed);
	weft_mpi_p2p_hold(r, &d.whole, a->type);
	*s_p = s;
	*r_p = r;
	return MPI_SUCCESS;
}

/* ---- small messages ----------------------------------------------------------------------- */

/* One that found the way taken. */
struct late {
	struct weft_req req;
	struct weft_mpi_part *s;
	char data[];
};

static void late_over(struct weft_req *req, void *arg)
{
	struct late *l = arg;
	struct weft_mpi_part *s = l->s;

	if (req->status.err)
		weft_mpi_part_fail(s, req->status.err);
	free(l);
	weft_mpi_part_drop(s);
}

static weft_err send_late(struct weft_mpi_part *s, uint32_t to, const void *data, size_t len)
{
	struct late *l = malloc(sizeof(*l) + len);

	if (!l)
		return WEFT_ERR_NOMEM;
	l->s = s;
	memcpy(l->data, data, len);
	struct weft_buf buf = weft_data_buf_flat(l->data, len);
	weft_comm_req_init(&l->req, late_over, l);
	weft_mpi_part_add(s);
	weft_err err = weft_comm_core_isend(&l->req, s->ctx, s->peer, weft_mpi_part_tag(to), &buf,
					    WEFT_SEND_STANDARD);
	if (err) {
		free(l);
		weft_mpi_part_drop(s);
	}
	return err;
}

weft_err weft_mpi_part_send(struct weft_mpi_part *s, uint32_t to, const void *data, size_t len)
{
	struct weft_buf buf = weft_data_buf_flat(data, len);
	weft_err err = weft_comm_send_now(s->ctx, s->peer, weft_mpi_part_tag(to), &buf);

	return err == WEFT_AGAIN ? send_late(s, to, data, len) : err;
}

/* ---- rounds ------------------------------------------------------------------------------- */

void weft_mpi_part_open(struct weft_mpi_part *s)
{
	weft_wait_completion_init(&s->done);
	/* Relaxed: the round begins with what follows. */
	atomic_store_explicit(&s->x_err, WEFT_OK, memory_order_relaxed);
	atomic_store_explicit(&s->x_open, 1, memory_order_relaxed);
}

struct weft_completion *weft_mpi_part_wait_on(struct weft_mpi_request *r)
{
	return &((struct weft_mpi_part *)r->impl)->done;
}

int weft_mpi_part_result(const struct weft_mpi_part *s)
{
	/* Relaxed: the round is over. */
	weft_err err = atomic_load_explicit(&s->x_err, memory_order_relaxed);

	if (err == WEFT_ERR_TRUNC)
		return weft_mpi_err(
			MPI_ERR_TRUNCATE,
			"the buffers of sender and receiver differ in size: all partitions "
			"together must hold as much data on both sides");
	return err ? weft_mpi_err_peer(err, s->peer) : MPI_SUCCESS;
}
