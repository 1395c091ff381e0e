/* SPDX-License-Identifier: BSD-3-Clause */
/* pending.c - the life of parts of accesses, and the answers that end them. */
#include "rma/pending.h"

#include <stdlib.h>
#include "base/log.h"
#include "comm/match/ids.h"

static struct weft_ids ids;
static _Atomic uint32_t x_numbers;

void weft_rma_pending_numbers(struct weft_rma_win *win)
{
	/* Relaxed: a number.  It comes round after 2^32 members of windows. */
	win->first_number = (int)atomic_fetch_add_explicit(&x_numbers, (uint32_t)win->size,
							   memory_order_relaxed);
}

/* What stands for that member in the table of ids. */
static int number_of(const struct weft_rma_win *win, int rank)
{
	return (int)((uint32_t)win->first_number + (uint32_t)rank);
}

/* ---- operations --------------------------------------------------------------------------- */

void weft_rma_op_init(struct weft_rma_op *op)
{
	weft_wait_completion_init(&op->done);
	/* Relaxed: no other thread knows it. */
	atomic_store_explicit(&op->x_left, 1, memory_order_relaxed); /* the call itself */
	atomic_store_explicit(&op->x_err, WEFT_OK, memory_order_relaxed);
}

void weft_rma_op_part(struct weft_rma_op *op, weft_err err)
{
	if (!op)
		return;
	/* Relaxed: ordered by the count. */
	if (err)
		atomic_store_explicit(&op->x_err, (int)err, memory_order_relaxed);
	/* LAST -> LAST.  Carries: what the other parts have written. */
	if (atomic_fetch_sub_explicit(&op->x_left, 1, memory_order_acq_rel) == 1)
		weft_wait_completion_signal(&op->done);
}

void weft_rma_op_started(struct weft_rma_op *op)
{
	weft_rma_op_part(op, WEFT_OK);
}

/* ---- parts -------------------------------------------------------------------------------- */

struct weft_rma_pending *weft_rma_pending_new(struct weft_rma_win *win, int rank,
					      struct weft_rma_op *op, const struct weft_buf *buf)
{
	struct weft_rma_pending *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->win = win;
	p->rank = rank;
	p->op = op;
	if (buf) {
		p->to = *buf;
		if (buf->type)
			weft_data_type_ref(buf->type);
	}
	/* Relaxed: the caller starts what ends it. */
	if (op)
		atomic_fetch_add_explicit(&op->x_left, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&win->target[rank].x_pending, 1, memory_order_relaxed);
	return p;
}

uint32_t weft_rma_pending_name(struct weft_rma_pending *p)
{
	return weft_comm_ids_give(&ids, p, number_of(p->win, p->rank));
}

void weft_rma_pending_over(struct weft_rma_pending *p, weft_err err)
{
	struct weft_rma_win *win = p->win;
	struct weft_rma_target *t = &win->target[p->rank];
	if (!p->op && !p->x_over)
		weft_rma_failed(t, err);
	if (p->to.type)
		weft_data_type_unref(p->to.type);
	/* OVER -> flush, lock.  Carries: the data. */
	if (p->x_over)
		atomic_store_explicit(p->x_over, err ? (int)err : 1, memory_order_release);
	weft_rma_op_part(p->op, err);
	free(p);
	/* The same. */
	atomic_fetch_sub_explicit(&t->x_pending, 1, memory_order_acq_rel);
	weft_rma_notify(win);
}

void weft_rma_pending_unsent(struct weft_rma_pending *p, uint32_t id, weft_err err)
{
	/* The peer's death may have ended it meanwhile. */
	if (!id || weft_comm_ids_take(&ids, id, number_of(p->win, p->rank)) == p)
		weft_rma_pending_over(p, err);
}

void weft_rma_pending_end(struct weft_rma_win *win, int rank)
{
	uint32_t from = 0;
	/* Ends: each turn takes one of finitely many. */
	for (;;) {
		struct weft_rma_pending *p =
			weft_comm_ids_take_any(&ids, number_of(win, rank), &from);
		if (!p)
			return;
		weft_rma_pending_over(p, WEFT_ERR_PEER);
	}
}

/* What a peer says went wrong: one of our numbers, whatever it has sent. */
static weft_err err_of(const struct weft_rma_head *h)
{
	return h->err > 0 || h->err < WEFT_ERR_INTERNAL ? WEFT_ERR_PROTO : (weft_err)h->err;
}

static void unpack_result(struct weft_rma_pending *p, const struct weft_rma_head *h)
{
	weft_err err = err_of(h);
	if (!err && h->bytes != p->len) {
		weft_warn("window: rank %d answers with %u bytes where %zu were asked for", p->rank,
			  h->bytes, p->len);
		err = WEFT_ERR_PROTO;
	}
	if (!err && p->len)
		weft_data_unpack(&p->to, p->at, weft_rma_data(h), p->len);
	weft_rma_pending_over(p, err);
}

void weft_rma_answered(struct weft_rma_win *win, int rank, const struct weft_rma_head *h,
		       size_t len)
{
	struct weft_rma_pending *p = NULL;
	(void)len;
	if (h->kind >= WEFT_RMA_RESULT)
		p = weft_comm_ids_take(&ids, h->id, number_of(win, rank));
	switch (h->kind) {
	case WEFT_RMA_LOCK:
		weft_rma_lock_asked(win, rank, h->flags & WEFT_RMA_EXCLUSIVE, h->id);
		return;
	case WEFT_RMA_FREED:
		weft_rma_lock_freed(win);
		return;
	case WEFT_RMA_POST:
		/* POSTED -> post_wait.  Carries: the target's stores to its memory. */
		atomic_fetch_add_explicit(&win->target[rank].told_apart.x_posts, 1,
					  memory_order_release);
		weft_rma_notify(win);
		return;
	case WEFT_RMA_WAKE:
		weft_rma_notify(win);
		return;
	case WEFT_RMA_RESULT:
		if (p)
			unpack_result(p, h);
		return;
	case WEFT_RMA_FLUSHED:
	case WEFT_RMA_GRANTED:
		if (p)
			weft_rma_pending_over(p, err_of(h));
		return;
	default:
		weft_warn("window: rank %d sends a message of unknown kind %u", rank, h->kind);
	}
}
