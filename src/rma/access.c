/* SPDX-License-Identifier: BSD-3-Clause */
/* access.c - put, get, accumulate, compare and swap at the origin: by itself, or by messages. */
#include <stdlib.h>
#include <string.h>
#include "rma/acc.h"
#include "rma/memory.h"
#include "rma/pending.h"
#include "rma/win_int.h"
#include "task/task.h"

/* ---- where -------------------------------------------------------------------------------- */

static weft_err check_range(const struct weft_rma_win *win, const struct weft_rma_there *there)
{
	const struct weft_rma_target *t = &win->target[there->rank];
	ptrdiff_t first = 0;
	size_t span = there->bytes;
	if (win->flavor == WEFT_RMA_DYNAMIC || !there->bytes)
		return WEFT_OK;
	if (there->type)
		span = weft_data_type_span(there->type, there->count, &first);
	int64_t from;
	if (__builtin_add_overflow(there->at, (int64_t)first, &from) || from < 0 ||
	    (uint64_t)from > t->len || span > t->len - (uint64_t)from)
		return WEFT_ERR_ARG;
	return WEFT_OK;
}

/* The bytes as a buffer whose base lies at `base`, in whatever address space. */
static struct weft_buf buf_at(const struct weft_rma_there *there, uint64_t base)
{
	void *at = (void *)(uintptr_t)(base + (uint64_t)there->at);
	if (there->type)
		return weft_data_buf_typed(at, there->count, there->type);
	return weft_data_buf_flat(at, there->bytes);
}

static struct weft_rma_memory memory_of(const struct weft_rma_win *win,
					const struct weft_rma_there *there)
{
	const struct weft_rma_target *t = &win->target[there->rank];
	struct weft_rma_memory m = {.pid = t->path == WEFT_RMA_COPY ? t->pid : 0};
	uint64_t base = t->path == WEFT_RMA_COPY ? t->base : (uintptr_t)t->map;
	m.buf = buf_at(there, win->flavor == WEFT_RMA_DYNAMIC ? 0 : base);
	return m;
}

/* Dynamic memory is checked piece by piece, as a target does. */
static bool is_attached(struct weft_rma_win *win, int rank, const struct weft_buf *b)
{
	struct iovec piece;
	for (size_t at = 0; at < b->bytes;) {
		unsigned n = 1;
		at += weft_data_iov(b, at, &piece, &n);
		uint64_t from = (uintptr_t)piece.iov_base;
		if (rank == win->rank ? !weft_rma_reachable(win, from, piece.iov_len)
				      : !weft_rma_attached_find(win->target[rank].attached, from,
								piece.iov_len))
			return false;
	}
	return true;
}

/* Are accesses under way that the target serves?  Those that follow stay behind them. */
static bool is_owed(const struct weft_rma_target *t)
{
	/* Relaxed: the caller's own, or those of threads that the program orders. */
	return atomic_load_explicit(&t->x_asked, memory_order_relaxed) ||
	       atomic_load_explicit(&t->x_pending, memory_order_relaxed);
}

/* Is the access this process's own business?  *m_p: the memory. */
static bool by_origin(struct weft_rma_win *win, const struct weft_rma_there *there,
		      struct weft_rma_memory *m_p, weft_err *err_p)
{
	*err_p = check_range(win, there);
	if (*err_p)
		return true;
	const struct weft_rma_target *t = &win->target[there->rank];
	if (t->path == WEFT_RMA_OWED)
		return false;
	*m_p = memory_of(win, there);
	if (win->flavor != WEFT_RMA_DYNAMIC)
		return true;
	bool attached = is_attached(win, there->rank, &m_p->buf);
	if (there->rank != win->rank) /* else the target looks, and says what is wrong */
		return attached && !is_owed(t);
	*err_p = attached ? WEFT_OK : WEFT_ERR_ARG;
	return true;
}

/* ---- messages ----------------------------------------------------------------------------- */

/* Spans of data bytes from `at` on, at most `most` of them in multiples of `unit`; how many bytes. */
static size_t spans_fill(const struct weft_buf *there, size_t at, size_t most, size_t unit,
			 struct weft_rma_span *span, unsigned *n_p)
{
	struct iovec iov[WEFT_RMA_SPANS_MAX / 2];
	unsigned n = WEFT_RMA_SPANS_MAX / 2;
	size_t bytes = weft_data_iov(there, at, iov, &n);
	bytes = (bytes < most ? bytes : most) / unit * unit;
	size_t left = bytes;
	unsigned used = 0;
	for (; used < n && left; used++) {
		size_t len = iov[used].iov_len < left ? iov[used].iov_len : left;
		span[used] = (struct weft_rma_span){(uintptr_t)iov[used].iov_base, len};
		left -= len;
	}
	*n_p = used;
	return bytes;
}

/* One message for data bytes from `at` on; *bytes_p: how many.  data: its room holds them. */
static struct weft_rma_head *message_for(enum weft_rma_kind kind, const struct weft_buf *there,
					 size_t at, size_t unit, bool data, size_t *bytes_p)
{
	struct weft_rma_span span[WEFT_RMA_SPANS_MAX / 2];
	unsigned n;
	*bytes_p = spans_fill(there, at, weft_rma_room(WEFT_RMA_SPANS_MAX / 2), unit, span, &n);
	weft_assert(*bytes_p);
	struct weft_rma_head *h = weft_rma_message(kind, n, data ? *bytes_p : 0);
	if (h)
		memcpy(weft_rma_spans(h), span, n * sizeof *span);
	return h;
}

/* What owed accesses count from: offsets in the window, or addresses. */
static struct weft_buf owed_buf(const struct weft_rma_there *there)
{
	return buf_at(there, 0);
}

static bool is_large(const struct weft_buf *there)
{
	return !there->type && there->bytes >= WEFT_RMA_LARGE;
}

static int new_tag(struct weft_rma_win *win, bool get)
{
	/* Relaxed: a number. */
	uint32_t n = atomic_fetch_add_explicit(&win->x_tag, 1, memory_order_relaxed);
	return weft_rma_tag(get, n);
}

static void large_over(struct weft_req *req, void *arg)
{
	struct weft_rma_pending *p = arg;
	weft_err err = req->status.err;
	/* A get that the target refuses is answered empty. */
	weft_rma_pending_over(p, !err && req->status.bytes < p->len ? WEFT_ERR_ARG : err);
}

/* The data goes as a message of its own, from or to the user's buffer. */
static weft_err access_large(struct weft_rma_win *win, bool get, const struct weft_buf *here,
			     const struct weft_rma_there *there, const struct weft_buf *far,
			     struct weft_rma_op *op)
{
	int peer = weft_rma_process(win, there->rank), tag = new_tag(win, get);
	struct weft_rma_pending *p = weft_rma_pending_new(win, there->rank, op, here);
	struct weft_rma_head *h =
		weft_rma_message(get ? WEFT_RMA_GET_LARGE : WEFT_RMA_PUT_LARGE, 1, 0);
	if (!p || !h) {
		free(h);
		if (p)
			weft_rma_pending_over(p, WEFT_ERR_NOMEM);
		return WEFT_ERR_NOMEM;
	}
	h->id = (uint32_t)tag;
	p->len = get ? far->bytes : 0;
	*weft_rma_spans(h) = (struct weft_rma_span){(uintptr_t)far->base, far->bytes};
	weft_comm_req_init(&p->req, large_over, p);
	weft_err err = weft_rma_send(win, there->rank, h);
	if (!err && get)
		err = weft_comm_core_irecv(&p->req, win->data, peer, tag, here);
	else if (!err)
		err = weft_comm_core_isend(&p->req, win->data, peer, tag, here, WEFT_SEND_STANDARD);
	if (err)
		weft_rma_pending_over(p, err);
	else
		weft_task_engine_pending();
	return err;
}

static void note_asked(struct weft_rma_win *win, int rank)
{
	/* Relaxed: read by the same thread, or behind what orders the program's threads. */
	atomic_store_explicit(&win->target[rank].x_asked, true, memory_order_relaxed);
}

/* Sends h, a put or an accumulate that fetches nothing, of which nothing is answered but a flush; whole: it is all
 * of the access. */
static weft_err send_change(struct weft_rma_win *win, int rank, struct weft_rma_head *h, bool whole)
{
	struct weft_rma_pending *p = NULL;
	if (h && whole && weft_rma_flush_expected(&win->target[rank]))
		p = weft_rma_pending_new(win, rank, NULL, NULL);
	uint32_t id = p ? weft_rma_pending_name(p) : 0;
	if (!id) {
		if (p)
			weft_rma_pending_over(p, WEFT_OK);
		note_asked(win, rank);
		return weft_rma_send(win, rank, h);
	}
	/* The flush's own message can be spared. */
	h->id = id;
	h->flags = WEFT_RMA_ASKS;
	weft_err err = weft_rma_send(win, rank, h);
	if (err)
		weft_rma_pending_unsent(p, id, err);
	return err;
}

static weft_err put_owed(struct weft_rma_win *win, const struct weft_buf *from,
			 const struct weft_rma_there *there, struct weft_rma_op *op)
{
	struct weft_buf far = owed_buf(there);
	size_t bytes;
	if (is_large(&far)) {
		note_asked(win, there->rank);
		return access_large(win, false, from, there, &far, op);
	}
	for (size_t at = 0; at < far.bytes; at += bytes) {
		weft_rma_throttle(win);
		struct weft_rma_head *h = message_for(WEFT_RMA_PUT, &far, at, 1, true, &bytes);
		if (h)
			weft_data_pack(from, at, weft_rma_data(h), bytes);
		weft_err err = send_change(win, there->rank, h, !op && bytes == far.bytes);
		if (err)
			return err;
	}
	return WEFT_OK;
}

/* Sends h, whose answer holds `bytes` data bytes for `to` from `at` on. */
static weft_err send_request(struct weft_rma_win *win, int rank, struct weft_rma_head *h,
			     const struct weft_buf *to, size_t at, size_t bytes,
			     struct weft_rma_op *op)
{
	struct weft_rma_pending *p = h ? weft_rma_pending_new(win, rank, op, to) : NULL;
	if (!p) {
		free(h);
		return WEFT_ERR_NOMEM;
	}
	p->at = at;
	p->len = bytes;
	uint32_t id = weft_rma_pending_name(p);
	weft_err err = WEFT_ERR_LIMIT;
	h->id = id;
	if (id)
		err = weft_rma_send(win, rank, h);
	else
		free(h);
	if (err)
		weft_rma_pending_unsent(p, id, err);
	return err;
}

static weft_err get_owed(struct weft_rma_win *win, const struct weft_buf *to,
			 const struct weft_rma_there *there, struct weft_rma_op *op)
{
	struct weft_buf far = owed_buf(there);
	if (is_large(&far))
		return access_large(win, true, to, there, &far, op);
	size_t bytes;
	for (size_t at = 0; at < far.bytes; at += bytes) {
		weft_rma_throttle(win);
		struct weft_rma_head *h = message_for(WEFT_RMA_GET, &far, at, 1, false, &bytes);
		weft_err err = send_request(win, there->rank, h, to, at, bytes, op);
		if (err)
			return err;
	}
	return WEFT_OK;
}

static weft_err acc_owed(struct weft_rma_win *win, const struct weft_buf *from,
			 const struct weft_buf *result, const struct weft_rma_there *there,
			 struct weft_rma_reduction red, struct weft_rma_op *op)
{
	struct weft_buf far = owed_buf(there);
	size_t unit = weft_rma_elem_bytes(red.elem), bytes;
	bool operands = red.op != WEFT_OP_NO_OP;
	for (size_t at = 0; at < far.bytes; at += bytes) {
		weft_rma_throttle(win);
		struct weft_rma_head *h = message_for(result ? WEFT_RMA_FETCH_ACC : WEFT_RMA_ACC,
						      &far, at, unit, operands, &bytes);
		if (h) {
			h->op = (uint8_t)red.op;
			h->elem = (uint8_t)red.elem;
			if (operands)
				weft_data_pack(from, at, weft_rma_data(h), bytes);
		}
		weft_err err = result ? send_request(win, there->rank, h, result, at, bytes, op)
				      : send_change(win, there->rank, h, !op && bytes == far.bytes);
		if (err)
			return err;
	}
	return WEFT_OK;
}

/* ---- the calls ---------------------------------------------------------------------------- */

/* What an access of this process's own came to; the kernel may know first that the target is gone. */
static weft_err own_over(struct weft_rma_win *win, int rank, weft_err err)
{
	if (weft_unlikely(err == WEFT_ERR_PEER))
		/* LOST -> flush, lock. */
		atomic_store_explicit(&win->target[rank].x_lost, true, memory_order_release);
	return err;
}

weft_err weft_rma_put(struct weft_rma_win *win, const struct weft_buf *from,
		      const struct weft_rma_there *there, struct weft_rma_op *op)
{
	struct weft_rma_memory m;
	weft_err err;
	if (!by_origin(win, there, &m, &err))
		return put_owed(win, from, there, op);
	return err ? err : own_over(win, there->rank, weft_rma_memory_copy(&m, true, from));
}

weft_err weft_rma_get(struct weft_rma_win *win, const struct weft_buf *to,
		      const struct weft_rma_there *there, struct weft_rma_op *op)
{
	struct weft_rma_memory m;
	weft_err err;
	if (!by_origin(win, there, &m, &err))
		return get_owed(win, to, there, op);
	return err ? err : own_over(win, there->rank, weft_rma_memory_copy(&m, false, to));
}

weft_err weft_rma_accumulate(struct weft_rma_win *win, const struct weft_buf *from,
			     const struct weft_buf *result, const struct weft_rma_there *there,
			     struct weft_rma_reduction red, struct weft_rma_op *op)
{
	struct weft_rma_memory m;
	weft_err err;
	if (!by_origin(win, there, &m, &err))
		return acc_owed(win, from, result, there, red, op);
	struct weft_rma_acc a = {.win = win,
				 .rank = there->rank,
				 .there = m,
				 .red = red,
				 .from = red.op == WEFT_OP_NO_OP ? NULL : from,
				 .result = result,
				 .bytes = there->bytes};
	return err ? err : own_over(win, there->rank, weft_rma_acc(&a));
}

weft_err weft_rma_compare_swap(struct weft_rma_win *win, const void *value, const void *compare,
			       void *result, unsigned elem, const struct weft_rma_there *there)
{
	struct weft_rma_memory m;
	weft_err err;
	size_t size = weft_rma_elem_bytes(elem);
	if (by_origin(win, there, &m, &err)) {
		if (!err)
			err = weft_rma_acc_swap(win, there->rank, &m, elem, compare, value, result);
		return own_over(win, there->rank, err);
	}
	struct weft_buf to = weft_data_buf_flat(result, size);
	struct weft_rma_head *h = weft_rma_message(WEFT_RMA_SWAP, 1, 2 * size);
	if (h) {
		h->elem = (uint8_t)elem;
		*weft_rma_spans(h) = (struct weft_rma_span){(uint64_t)there->at, size};
		memcpy(weft_rma_data(h), compare, size);
		memcpy(weft_rma_data(h) + size, value, size);
	}
	weft_rma_throttle(win);
	return send_request(win, there->rank, h, &to, 0, size, NULL);
}
