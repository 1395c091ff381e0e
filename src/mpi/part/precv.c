/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * precv.c - the receiving side of partitioned communication.
 *
 * One receive for a HEAD is posted while partitions of the round are still to come; the thread that
 * completes it unpacks what it carries, posts what follows it, and posts it again.
 */
#include "mpi/part/part.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/aid/check.h"
#include "mpi/error.h"
#include "mpi/p2p/request.h"
#include "task/task.h"

enum { MATCHED = 1, STARTED = 2 };

struct precv {
	struct weft_mpi_part s;     /* first */
	struct weft_mpi_part_go go; /* what we send */
	uint32_t sender_chan, sender_parts;
	size_t sender_bytes;      /* of a partition of the sender's */
	weft_err match_err;       /* the sender is gone */
	_Atomic uint32_t x_state; /* MATCHED, STARTED */
	uint32_t announced;       /* the sender's partitions that HEADs have named; the worker's */
	struct weft_req head_req;
	char *head;               /* I: its data */
	_Atomic uint32_t x_work;  /* HEADs that are complete and not worked on; worker: the first */
	_Atomic uint64_t *x_bits; /* I: partitions that have arrived */
	_Atomic uint64_t *x_got;  /* bytes of each that has come in parts; NULL: none can */
};

static struct precv *precv_of(struct weft_mpi_part *s)
{
	return (struct precv *)(void *)s;
}

static bool precv_make(struct weft_mpi_part *s)
{
	struct precv *p = precv_of(s);

	p->head = malloc(WEFT_MPI_PART_HEAD_MAX + WEFT_MPI_PART_INLINE);
	p->x_bits = calloc(s->most / 64, sizeof(*p->x_bits));
	if (p->head && p->x_bits)
		return true;
	free(p->head);
	free(p->x_bits);
	return false;
}

static void precv_unmake(struct weft_mpi_part *s)
{
	struct precv *p = precv_of(s);

	free(p->head);
	free(p->x_bits);
	free(p->x_got);
}

static struct weft_mpi_part_pool pool = {
	.bytes = sizeof(struct precv), .make = precv_make, .unmake = precv_unmake};

void weft_mpi_precvs_fini(void)
{
	weft_mpi_part_pool_empty(&pool);
}

/* ---- partitions arrive -------------------------------------------------------------------- */

static void bits_set(struct precv *p, uint64_t first, uint64_t end)
{
	while (first < end) { /* ends: a word further each round */
		uint64_t last = first | 63;
		uint64_t bits = ~UINT64_C(0) << first % 64;
		if (last >= end) {
			last = end - 1;
			bits &= ~UINT64_C(0) >> (63 - last % 64);
		}
		/* ARRIVED -> SEEN (Parrived).  Carries: the partition's data. */
		atomic_fetch_or_explicit(&p->x_bits[first / 64], bits, memory_order_release);
		first = last + 1;
	}
}

/* Some bytes of a partition have come. */
static void some_of(struct precv *p, uint64_t part, uint64_t bytes)
{
	/* PART -> WHOLE.  Carries: these bytes, to the thread that adds the last. */
	uint64_t before = atomic_fetch_add_explicit(&p->x_got[part], bytes, memory_order_acq_rel);

	if (before + bytes == p->s.d.bytes)
		bits_set(p, part, part + 1);
}

/* The sender's data bytes [off, off + len) are in place. */
static void data_arrives(struct precv *p, uint64_t off, uint64_t len)
{
	uint64_t size = p->s.d.bytes, end = off + len;

	if (!len)
		return;
	uint64_t first = off / size, last = end / size;
	if (off % size) {
		uint64_t here = (first + 1) * size < end ? (first + 1) * size - off : len;
		some_of(p, first++, here);
	}
	bits_set(p, first, last);
	if (end % size && last >= first)
		some_of(p, last, end % size);
}

/* ---- messages ----------------------------------------------------------------------------- */

/* The data of a run that has its own message. */
struct body {
	struct weft_req req;
	struct precv *p;
	uint64_t off, len;
	char bounce[]; /* where the run begins or ends within an element */
};

static void body_comes(struct weft_req *req, void *arg)
{
	struct body *b = arg;
	struct precv *p = b->p;
	weft_err err = req->status.err;

	if (!err && req->status.bytes != b->len)
		err = WEFT_ERR_PROTO;
	if (err) {
		weft_mpi_part_fail(&p->s, err);
	} else {
		if (req->buf.base == b->bounce)
			weft_data_unpack(&p->s.d.whole, b->off, b->bounce, b->len);
		data_arrives(p, b->off, b->len);
	}
	free(b);
	weft_mpi_part_drop(&p->s);
}

/* Where these bytes belong, as a buffer; false: they cannot be described as one. */
static bool place_of(const struct precv *p, uint64_t off, uint64_t len, struct weft_buf *buf)
{
	const struct weft_buf *w = &p->s.d.whole;

	if (!w->type) {
		*buf = weft_data_buf_flat((char *)w->base + off, len);
		return true;
	}
	if (off % w->type->size || len % w->type->size)
		return false;
	*buf = (struct weft_buf){.base = (char *)w->base + (ptrdiff_t)(off / w->type->size) *
								   weft_data_type_extent(w->type),
				 .bytes = len,
				 .type = w->type,
				 .count = len / w->type->size};
	return true;
}

static weft_err body_post(struct precv *p, uint64_t off, uint64_t len)
{
	struct weft_buf buf;
	bool placed = place_of(p, off, len, &buf);
	struct body *b = malloc(sizeof(*b) + (placed ? 0 : len));

	if (!b)
		return WEFT_ERR_NOMEM;
	if (!placed)
		buf = weft_data_buf_flat(b->bounce, len);
	b->p = p;
	b->off = off;
	b->len = len;
	weft_comm_req_init(&b->req, body_comes, b);
	weft_mpi_part_add(&p->s);
	weft_err err = weft_comm_core_irecv(&b->req, p->s.ctx, p->s.peer,
					    weft_mpi_part_tag_data(p->s.chan), &buf);
	if (err) {
		free(b);
		weft_mpi_part_drop(&p->s);
	}
	return err;
}

static void head_comes(struct weft_req *req, void *arg);

static weft_err head_post(struct precv *p)
{
	struct weft_buf buf =
		weft_data_buf_flat(p->head, WEFT_MPI_PART_HEAD_MAX + WEFT_MPI_PART_INLINE);

	weft_comm_req_init(&p->head_req, head_comes, p);
	return weft_comm_core_irecv(&p->head_req, p->s.ctx, p->s.peer, weft_mpi_part_tag(p->s.chan),
				    &buf);
}

static weft_err head_read(struct precv *p, size_t bytes)
{
	struct weft_mpi_part_head head;
	struct weft_mpi_part_item item;
	const char *at = p->head + sizeof(head), *data, *end = p->head + bytes;

	if (bytes < sizeof(head))
		return WEFT_ERR_PROTO;
	memcpy(&head, p->head, sizeof(head));
	if (head.items > WEFT_MPI_PART_ITEMS || bytes < sizeof(head) + head.items * sizeof(item))
		return WEFT_ERR_PROTO;
	data = at + head.items * sizeof(item);
	for (uint32_t i = 0; i < head.items; i++, at += sizeof(item)) {
		memcpy(&item, at, sizeof(item));
		if (item.n > p->sender_parts - p->announced ||
		    item.first > p->sender_parts - item.n)
			return WEFT_ERR_PROTO;
		uint64_t off = item.first * (uint64_t)p->sender_bytes;
		uint64_t len = item.n * (uint64_t)p->sender_bytes;
		p->announced += item.n;
		if (head.follows) {
			weft_err err = body_post(p, off, len);
			if (err)
				return err;
			continue;
		}
		if (len > (uint64_t)(end - data))
			return WEFT_ERR_PROTO;
		weft_data_unpack(&p->s.d.whole, off, data, len);
		data_arrives(p, off, len);
		data += len;
	}
	return WEFT_OK;
}

static void head_work(struct precv *p)
{
	weft_err err = p->head_req.status.err;

	if (!err)
		err = head_read(p, p->head_req.status.bytes);
	if (!err && p->announced < p->sender_parts) {
		err = head_post(p);
		if (!err)
			return;
	}
	if (err)
		weft_mpi_part_fail(&p->s, err);
	weft_mpi_part_drop(&p->s);
}

/* A HEAD that was there before its receive completes within the post: the worker goes on with it. */
static void head_comes(struct weft_req *req, void *arg)
{
	struct precv *p = arg;

	(void)req;
	/* NEXT -> NEXT: carries the HEAD from the thread that received it to the worker, and what the
	 * last worker wrote to the next. */
	if (atomic_fetch_add_explicit(&p->x_work, 1, memory_order_acq_rel) != 0)
		return;
	do /* ends: with the HEADs that are there */
		head_work(p);
	while (atomic_fetch_sub_explicit(&p->x_work, 1, memory_order_acq_rel) != 1);
}

/* ---- rounds ------------------------------------------------------------------------------- */

/* Matched and started: the sender may send. */
static void round_begin(struct precv *p)
{
	struct weft_mpi_part *s = &p->s;
	weft_err err = p->match_err ? p->match_err : p->go.err;

	p->announced = 0;
	for (uint32_t i = 0; p->x_got && i < s->d.parts; i++)
		atomic_store_explicit(&p->x_got[i], 0, memory_order_relaxed); /* no message yet */
	bool expects = !err && p->sender_parts;
	if (expects)
		err = head_post(p);
	if (err)
		weft_mpi_part_fail(s, err);
	/* Also when the sizes differ: the sender waits for it. */
	if (!p->match_err && (!expects || !err)) {
		weft_err sent = weft_mpi_part_send(s, p->sender_chan, &p->go, sizeof(p->go));
		if (sent && !expects)
			weft_mpi_part_fail(s, sent); /* else the HEAD does not come, either */
	}
	if (!expects || err)
		weft_mpi_part_drop(s);
}

static void match_comes(struct weft_req *req, void *arg)
{
	struct precv *p = arg;
	struct weft_mpi_part *s = &p->s;
	uint64_t bytes = 0;

	p->match_err = req->status.err;
	p->sender_chan = s->match.chan;
	p->sender_parts = s->match.parts;
	p->sender_bytes = s->match.part_bytes;
	p->go = (struct weft_mpi_part_go){.serial = s->match.serial, .chan = s->chan};
	if (__builtin_mul_overflow(p->sender_bytes, p->sender_parts, &bytes) ||
	    bytes != s->d.whole.bytes)
		p->go.err = WEFT_ERR_TRUNC;
	if (weft_unlikely(s->sign) && !p->match_err && !p->go.err)
		weft_mpi_check_part(s->d.whole.base, s->peer, s->tag, bytes, s->match.sign,
				    s->sign);
	/* Does a partition of theirs end within one of ours? */
	if (!p->match_err && !p->go.err && !p->x_got && s->d.bytes &&
	    p->sender_bytes % s->d.bytes) {
		p->x_got = calloc(s->most, sizeof(*p->x_got));
		if (!p->x_got)
			p->go.err = WEFT_ERR_NOMEM;
	}
	/* BOTH -> BOTH.  Carries: the match, or the start's buffers, to the thread that begins. */
	if (atomic_fetch_or_explicit(&p->x_state, MATCHED, memory_order_acq_rel) & STARTED)
		round_begin(p);
	weft_mpi_part_unref(&pool, s);
}

static int precv_start(struct weft_mpi_request *r)
{
	struct precv *p = r->impl;
	struct weft_mpi_part *s = &p->s;

	weft_mpi_part_open(s);
	for (uint32_t i = 0; i < (s->d.parts + 63) / 64; i++)
		atomic_store_explicit(&p->x_bits[i], 0, memory_order_relaxed); /* no message yet */
	if (s->peer < 0) {
		weft_mpi_part_drop(s);
		return MPI_SUCCESS;
	}
	/* Relaxed: of the last round, which is over. */
	atomic_fetch_and_explicit(&p->x_state, ~(uint32_t)STARTED, memory_order_relaxed);
	/* BOTH: as in match_comes. */
	if (atomic_fetch_or_explicit(&p->x_state, STARTED, memory_order_acq_rel) & MATCHED)
		round_begin(p);
	if (!weft_wait_completion_done(&s->done))
		weft_task_engine_pending();
	return MPI_SUCCESS;
}

static int precv_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct precv *p = r->impl;
	int err = weft_mpi_part_result(&p->s);

	if (p->s.peer < 0)
		return weft_mpi_p2p_status_null(st);
	weft_mpi_status_set(st, p->s.rank, p->s.tag, err ? 0 : p->s.d.whole.bytes, false);
	return err;
}

static void precv_free(struct weft_mpi_request *r)
{
	/* Not matched yet, it takes its place in the order all the same. */
	weft_mpi_part_unref(&pool, r->impl);
}

static const struct weft_mpi_request_ops precv_ops = {
	.name = "partitioned receive",
	.wait_on = weft_mpi_part_wait_on,
	.finish = precv_finish,
	.start = precv_start,
	.free = precv_free,
};

/* MPI's parameter is called dest; it is the source. */
int weft_mpi_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
			int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_part_args a = {.buf = buf,
				       .partitions = partitions,
				       .count = count,
				       .type = datatype,
				       .rank = dest,
				       .tag = tag,
				       .comm = weft_mpi_comm_of(comm)};
	struct weft_mpi_part *s;
	struct weft_mpi_request *r;

	(void)info; /* no key means anything */
	int err = weft_mpi_part_make(&pool, &a, &precv_ops, &s, &r);
	if (err)
		return err;
	struct precv *p = precv_of(s);
	/* Relaxed: the match comes after the post. */
	atomic_store_explicit(&p->x_state, 0, memory_order_relaxed);
	p->match_err = WEFT_OK;
	if (s->peer >= 0) {
		struct weft_buf msg = weft_data_buf_flat(&s->match, sizeof(s->match));
		weft_comm_req_init(&s->match_req, match_comes, s);
		weft_err core =
			weft_comm_core_irecv(&s->match_req, s->match_ctx, s->peer, tag, &msg);
		if (core) {
			err = weft_mpi_err_peer(core, s->peer);
			weft_mpi_part_unref(&pool, s);
			weft_mpi_request_delete(r);
			return err;
		}
	}
	*request = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

/* ---- questions ---------------------------------------------------------------------------- */

static bool has_arrived(struct precv *p, uint32_t partition)
{
	if (weft_wait_completion_done(&p->s.done))
		return true;
	/* SEEN <- ARRIVED.  Carries: the partition's data. */
	return atomic_load_explicit(&p->x_bits[partition / 64], memory_order_acquire) >>
		       partition % 64 &
	       1;
}

int weft_mpi_Parrived(MPI_Request request, int partition, int *flag)
{
	struct weft_mpi_request *r;
	int err = weft_mpi_request_named(request, &r);

	if (err)
		return err;
	struct precv *p = r->impl;
	if (r->ops != &precv_ops)
		err = weft_mpi_err(MPI_ERR_REQUEST, "not a partitioned receive: it is a %s request",
				   r->ops->name);
	else if ((uint32_t)partition >= p->s.d.parts)
		err = weft_mpi_err(MPI_ERR_ARG, "invalid partition %d (the request has %u)",
				   partition, p->s.d.parts);
	if (err) {
		weft_mpi_blame(r->comm);
		return err;
	}
	/* Not active: nothing is to come. */
	*flag = !r->active || has_arrived(p, (uint32_t)partition);
	if (*flag)
		return MPI_SUCCESS;
	weft_engine_poll();
	*flag = has_arrived(p, (uint32_t)partition);
	return MPI_SUCCESS;
}
